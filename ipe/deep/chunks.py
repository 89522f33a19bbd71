"""Large arrays as chunks: files that are named by their content, and that checkpoints of the same folder share.

A full replay of images has hundreds of megabytes, of which a few change between two checkpoints. Its bytes are cut into
chunks of `CHUNK` bytes. Each chunk is a file `chunk-SHA256.bin`, whose name is the SHA-256 checksum of its content. A
chunk that is there already, and whole, is not written again. No chunk is ever written over: another content has another
name.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.base.atomic import write_bytes
from ipe.base.files import entries
from ipe.deep.tensors import hash_file

CHUNK = 8 << 20
"""The bytes of a chunk."""
LARGE = 64 << 20
"""The bytes from which on an array is written as chunks."""

_NAME, _SHA256 = re.compile(r"chunk-[0-9a-f]{64}\.bin"), re.compile(r"[0-9a-f]{64}")


def chunk_path(folder: Path, sha256: str) -> Path:
    """The file of a chunk."""
    return folder / f"chunk-{sha256}.bin"


def chunk_files(folder: Path) -> list[Path]:
    """The files of all chunks in a folder."""
    return [path for path in entries(folder) if _NAME.fullmatch(path.name)]


def write_chunks(folder: Path, array: NDArray[Any], sound: set[str], new: list[Path]) -> list[str]:
    """Write the chunks of an array that are not in a folder yet.

    Args:
        folder: the folder.
        array: the array. It is not copied if it is in C order.
        sound: receives the checksums of the chunks that are known to be whole; those in it are not read again.
        new: receives the files that were written.

    Returns:
        The checksums of the chunks, in their order.
    """
    names = []
    for piece in _pieces(array):
        name = hashlib.sha256(piece).hexdigest()
        names.append(name)
        path = chunk_path(folder, name)
        if name not in sound and not is_whole(path, name):
            new += [] if path.exists() else [path]
            write_bytes(path, piece)
        sound.add(name)
    return names


def is_whole(path: Path, sha256: str) -> bool:
    """Whether a chunk's file is there, and has the content that its name says."""
    try:
        return hash_file(path) == sha256
    except OSError:
        return False


def is_described(about: Any) -> bool:
    """Whether this is what `read_chunks` takes: a type, a shape, and as many checksums as such an array has chunks."""
    try:
        size = math.prod(about["shape"]) * np.dtype(about["dtype"]).itemsize
        sides = all(isinstance(side, int) and side >= 0 for side in about["shape"])
        named = all(_SHA256.fullmatch(name) for name in about["chunks"])
        return sides and named and len(about["chunks"]) == -(-size // CHUNK)
    except (KeyError, TypeError):
        return False


def read_chunks(folder: Path, about: Mapping[str, Any]) -> NDArray[Any]:
    """Read an array from its chunks; a ValueError says which one is not what was written.

    Args:
        folder: the folder of the chunks.
        about: the array's `dtype`, its `shape`, and the checksums of its `chunks`, in their order.
    """
    array = np.empty(tuple(about["shape"]), about["dtype"])
    for piece, name in zip(_pieces(array), about["chunks"], strict=True):
        try:
            content = chunk_path(folder, name).read_bytes()
        except OSError as error:
            raise ValueError(f"the chunk {name[:12]} cannot be read: {error.strerror or error}") from None
        if hashlib.sha256(content).hexdigest() != name or len(content) != len(piece):
            raise ValueError(f"the chunk {name[:12]} has another content")
        piece[:] = content
    return array


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    """The bytes of an array, chunk by chunk."""
    data = array.reshape(-1).view(np.uint8)
    for start in range(0, data.size, CHUNK):
        yield data[start : start + CHUNK].data
