"""What commands write: files that are never replaced unasked, and strict JSON."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

from ipe.errors import InputError


def check_out(path: str, overwrite: bool) -> None:
    """That a file can be written at this path: asked before the work, not after it.

    Args:
        path: where the file will go.
        overwrite: whether a file that is already there may be replaced.
    """
    if not path:
        raise InputError("--out is empty")
    folder = os.path.dirname(os.path.realpath(path))
    if os.path.isdir(path):
        raise InputError(f"--out {path} is a folder, not a file")
    if not os.path.isdir(folder):
        raise InputError(f"--out {path}: there is no folder {folder}")
    if os.path.lexists(path) and not overwrite:
        raise InputError(f"--out {path} exists; give --overwrite to replace it")
    if not os.access(folder, os.W_OK):
        raise InputError(f"--out {path}: the folder {folder} cannot be written to")


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
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [_strict(entry) for entry in value]
    if isinstance(value, Mapping):
        return {key: _strict(entry) for key, entry in value.items()}
    return value
