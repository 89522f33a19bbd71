"""What the formats share: opening a file, its suffix, and errors that name it."""

from __future__ import annotations

import contextlib
import difflib
import json
import math
import os
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.errors import InputError

PathLike = str | os.PathLike[str]


@contextlib.contextmanager
def naming(path: PathLike) -> Iterator[None]:
    """Put the file's name before every `InputError` from inside."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def suffix_of(path: PathLike, known: Sequence[str]) -> str:
    """The suffix of the path in lower case, if it is a known one."""
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        found = f"found {suffix}" if suffix else "found none"
        raise InputError(f"the suffix must be {', '.join(known[:-1])} or {known[-1]}; {found}")
    return suffix


def read_bytes(path: PathLike) -> bytes:
    """The content of a file."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file") from None
    except IsADirectoryError:
        raise InputError("it is a folder, not a file") from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}") from None


def read_npz(path: PathLike) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz file, each with its checksum verified; nothing in it is ever unpickled."""
    if Path(path).is_dir() or not Path(path).exists():
        read_bytes(path)  # for its message
    try:
        with zipfile.ZipFile(path) as archive:
            # Before anything is parsed: the length in a damaged header would be allocated first.
            damaged = archive.testzip()
            if damaged is not None:
                raise InputError(f"the array {Path(damaged).stem!r} is damaged (its checksum does not match)")
            if len(archive.namelist()) != _entries_announced(Path(path)):
                raise InputError("its list of arrays is damaged")
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except InputError:
        raise
    except Exception as error:  # zipfile, zlib and numpy raise a dozen kinds for a damaged or foreign file
        raise InputError(f"not a readable .npz file, or a damaged one ({error})") from None


def _entries_announced(path: Path) -> int:
    """How many entries the end of a zip file says it has.

    Python's zipfile does not compare: one flipped bit in a length of the list can hide the entries after it.
    """
    with open(path, "rb") as file:
        file.seek(max(0, path.stat().st_size - 65_557))  # the end record and the longest comment after it
        tail = file.read()
    return int.from_bytes(tail[tail.rindex(b"PK\x05\x06") :][10:12], "little")


def read_json(path: PathLike) -> Any:
    """The content of a JSON file; a key that stands twice in one object is refused."""
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
    """Every required key, no unknown one."""
    keys, known = list(found), [*required, *optional]
    at = f"{where}: " if where else ""
    for key in required:
        if key not in keys:
            raise InputError(f"{at}the key {key!r} is missing")
    for key in keys:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            raise InputError(f"{at}unknown key {key!r} ({hint})")


def number(value: Any, field: str) -> float:
    """A finite number of a JSON file; true and false are none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise InputError(f"{field} must be a number, found {short(value)}")
    try:
        out = float(value)
    except OverflowError:
        out = math.inf
    if not math.isfinite(out):
        raise InputError(f"{field} = {out:g} is not a finite number")
    return out


def short(value: Any) -> str:
    """A value for an error message, not longer than a line."""
    text = json.dumps(value) if not isinstance(value, np.ndarray) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
