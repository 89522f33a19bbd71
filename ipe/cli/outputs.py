"""The files that commands write, which are never replaced unasked, and strict JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from ipe.errors import InputError

FIGURE = (".svg", ".png", ".pdf")
"""The suffixes of figures."""
OVERWRITE = "Replace the file at --out if there is one."


def check_out(path: str, overwrite: bool, suffixes: Sequence[str] = (), option: str = "--out") -> None:
    """Refuse a path at which a file cannot be written: before the work, not after it."""
    if not path:
        raise InputError(f"{option} is empty")
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise InputError(f"{option} {path} is a folder, not a file")
    if not os.path.isdir(folder):
        raise InputError(f"{option} {path}: there is no folder {folder}")
    if _exists(path, option) and not overwrite:
        raise InputError(f"{option} {path} exists; give --overwrite to replace it")
    suffix = os.path.splitext(path)[1]
    if suffixes and suffix.lower() not in suffixes:
        *others, last = suffixes
        known = f"{', '.join(others)} or {last}" if others else last
        raise InputError(f"{option} {path}: the suffix must be {known}; found {suffix or 'none'}")
    if not os.access(folder, os.W_OK):
        raise InputError(f"{option} {path}: the folder {folder} cannot be written to")


def _exists(path: str, option: str) -> bool:
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:  # a name that is too long for the file system
        raise InputError(f"{option} {path}: {error.strerror or error}") from None
    return True


def json_text(content: Mapping[str, Any]) -> str:
    """An object as strict JSON, one line per key. Infinities, which JSON does not have, are "inf" and "-inf".

    Example:
        >>> print(json_text({"name": "x", "eta": [0.5, float("-inf")]}))
        {
          "name": "x",
          "eta": [0.5, "-inf"]
        }
    """
    lines = (f"  {json.dumps(key)}: {json.dumps(_strict(value), allow_nan=False)}" for key, value in content.items())
    return "{\n" + ",\n".join(lines) + "\n}"


def _strict(value: Any) -> Any:
    if hasattr(value, "tolist"):  # an array
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_strict(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _strict(entry) for key, entry in value.items()}
    return value
