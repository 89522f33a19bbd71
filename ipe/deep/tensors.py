"""Arrays in the safetensors format, written to an open file and hashed on the way.

The library's `save_file` writes to a temporary file, which it renames: that file cannot be flushed before, and a kill
leaves it behind under a name that nobody knows. Its `save` copies all arrays. The format is the length of a header in
eight bytes, the header in JSON, and the arrays' bytes; reading is left to the library.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ipe.base.atomic import write_atomic
from ipe.errors import InputError

_CHUNK = 1 << 20
_CODES = {"bool": "BOOL", "float16": "F16", "float32": "F32", "float64": "F64"}
_CODES |= {f"{kind}int{bits}": f"{kind.upper() or 'I'}{bits}" for kind in ("", "u") for bits in (8, 16, 32, 64)}
_DTYPES = {np.dtype(name): code for name, code in _CODES.items()}


def check_arrays(arrays: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays, if the format can hold them: they are of boolean, integer or floating type, little-endian."""
    out = {}
    for name, value in arrays.items():
        if name == "__metadata__" or not name.isprintable():
            raise InputError(f"arrays: {name!r} cannot be the name of an array")
        array = np.asarray(value)
        if array.dtype not in _DTYPES or array.dtype.str.startswith(">"):
            raise InputError(f"arrays: {name!r} is of type {array.dtype}; known are {', '.join(_CODES)}")
        out[name] = array
    return out


def describe_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """Return the type and the shape of each array, as JSON can hold them."""
    return {name: {"dtype": str(array.dtype), "shape": list(array.shape)} for name, array in arrays.items()}


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]]) -> tuple[str, int]:
    """Write arrays from `check_arrays` to a file, whole or not at all, without a copy of those in C order. Returns the
    SHA-256 checksum of what was to be written, computed from memory rather than from the file, and its size."""
    sha256, sizes = hashlib.sha256(), []

    def write(file: BinaryIO) -> None:
        for piece in _pieces(arrays):
            sha256.update(piece)
            file.write(piece)
            sizes.append(len(piece))

    write_atomic(path, write)
    return sha256.hexdigest(), sum(sizes)


def _pieces(arrays: Mapping[str, NDArray[Any]]) -> Iterator[bytes | memoryview]:
    header, end = {}, 0
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))  # so that each is aligned
    for name, array in ordered:
        offsets = [end, end := end + array.nbytes]
        header[name] = {"dtype": _DTYPES[array.dtype], "shape": list(array.shape), "data_offsets": offsets}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little")
    yield text
    for _, array in ordered:
        data = array.reshape(-1).view(np.uint8)  # the format knows no strides: a copy if not in C order, one at a time
        for start in range(0, data.size, _CHUNK):
            yield data[start : start + _CHUNK].data


def hash_file(path: Path) -> str:
    """Return the SHA-256 checksum of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
