"""Reading files that somebody else may have written: suffixes, JSON, .npz archives, and errors that name the file.

Every function raises an `InputError` that says what is wrong with the file's content. `naming` puts the file's
name before that sentence.
"""

from __future__ import annotations

import contextlib
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.base.words import did_you_mean
from ipe.errors import InputError

PathLike = str | os.PathLike[str]


@contextlib.contextmanager
def naming(path: PathLike) -> Iterator[None]:
    """Put a name, a file's say, before every `InputError` that is raised inside the `with` block."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def suffix_of(path: PathLike, known: Sequence[str]) -> str:
    """The suffix of the path in lower case, or an `InputError` that lists the known suffixes.

    Example:
        >>> suffix_of("values.NPZ", (".npz", ".json"))
        '.npz'
        >>> suffix_of("values.csv", (".npz",))
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: the suffix must be .npz; found .csv
    """
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        found = f"found {suffix}" if suffix else "found none"
        *others, last = known
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"the suffix must be {wanted}; {found}")
    return suffix


def read_bytes(path: PathLike) -> bytes:
    """The bytes of a file."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file") from None
    except IsADirectoryError:
        raise InputError("it is a folder, not a file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from None


def entries(folder: PathLike) -> list[Path]:
    """What is in a folder, in the order of the names; nothing if there is no such folder."""
    try:
        return [Path(folder) / name for name in sorted(os.listdir(folder))]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read the folder {folder}: {error.strerror or error}") from None


def read_npz(path: PathLike) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file. Each array's checksum is verified, and nothing is ever unpickled."""
    if Path(path).is_dir() or not Path(path).exists():
        read_bytes(path)  # raises the error that says what is there instead of a file
    try:
        with zipfile.ZipFile(path) as archive:
            # Checksums come first: numpy would allocate whatever length a damaged header claims.
            damaged = archive.testzip()
            if damaged is not None:
                raise InputError(f"the array {Path(damaged).stem!r} is damaged (its checksum does not match)")
            if len(archive.namelist()) != _entries_announced(Path(path)):
                raise InputError("the archive's list of arrays is damaged")
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds for a damaged or foreign file
        raise InputError(f"not a readable .npz file, or a damaged one ({error})") from None


def _entries_announced(path: Path) -> int:
    """The number of entries that the end of a zip file announces.

    Python's zipfile does not compare that number with the entries it finds: one flipped bit in the list of entries
    can hide all entries after it.
    """
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 65_557))  # the end record and the longest comment after it
        tail = file.read()
    return int.from_bytes(tail[tail.rindex(b"PK\x05\x06") :][10:12], "little")


def read_json(path: PathLike) -> Any:
    """The content of a JSON file. A key that stands twice in one object is refused."""
    try:
        return json.loads(read_bytes(path).decode("utf-8-sig"), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise InputError(f"not valid JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise InputError("not valid JSON: nested too deeply") from None
    except InputError:
        raise
    except ValueError as error:  # a number of thousands of digits
        raise InputError(f"not valid JSON: {error}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in pairs:
        if key in out:
            raise InputError(f"the key {key!r} stands twice in one object")
        out[key] = value
    return out


def check_keys(found: Iterable[str], required: Sequence[str], optional: Sequence[str], where: str = "") -> None:
    """Refuse a missing required key and any unknown key; `where` names the place in the file."""
    keys, known = list(found), [*required, *optional]
    at = f"{where}: " if where else ""
    for key in required:
        if key not in keys:
            raise InputError(f"{at}the key {key!r} is missing")
    for key in keys:
        if key not in known:
            hint = did_you_mean(key, known) or f" (known are {', '.join(known)})"
            raise InputError(f"{at}unknown key {key!r}{hint}")
