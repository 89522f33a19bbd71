"""JSON files that vouch for themselves: an object's text behind the sha256 of that text. A byte that is flipped,
missing or added is noticed, without a second file.

::

    {"sha256": "9f86d0...",
    "content": {"format": "ipe.sweep", "schema": 1, ...}}
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ipe.deep.plain import encode, json_text
from ipe.errors import InputError

_HEAD, _NECK, _TAIL = b'{"sha256": "', b'",\n"content": ', b"}\n"
_TEXT = len(_HEAD) + 64 + len(_NECK)


def sealed_bytes(content: dict[str, Any], field: str, size: int = 0) -> bytes:
    """The file of an object; the same object gives the same bytes.

    Args:
        content: what JSON holds; every float finite.
        field: its name in an error message.
        size: of the file in bytes, at least: shorter ones are filled up with spaces.

    Example:
        >>> open_sealed(sealed_bytes({"frame": 7}, "note"))
        {'frame': 7}
    """
    text = json_text(encode(content, field, finite=True), field).encode()
    text = text.ljust(size - _TEXT - len(_TAIL))
    return _HEAD + hashlib.sha256(text).hexdigest().encode() + _NECK + text + _TAIL


def open_sealed(data: bytes) -> dict[str, Any]:
    """The object of a file.

    Raises:
        InputError: if these are not the bytes that `sealed_bytes` gave.
    """
    text = data[_TEXT : -len(_TAIL)]
    if data != _HEAD + hashlib.sha256(text).hexdigest().encode() + _NECK + text + _TAIL:
        raise InputError("it is damaged: not what was written")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):  # somebody sealed what is no JSON
        content = None
    if not isinstance(content, dict):
        raise InputError("it does not hold a JSON object")
    return content


def read_sealed(path: Path, kind: str, schema: int) -> dict[str, Any]:
    """The object in a file, of a known format.

    Args:
        path: the file.
        kind: what its `format` says.
        schema: the last one that is understood.

    Raises:
        InputError: naming the file, if it is missing, damaged, of something else or of a later version.
    """
    try:
        content = open_sealed(path.read_bytes())
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if content.get("format") != kind:
        raise InputError(f"{path}: its format must be {kind!r}, found {content.get('format')!r}")
    found = content.get("schema")
    if type(found) is not int or found < 1:
        raise InputError(f"{path}: schema must be a whole number from 1 on, found {found!r}")
    if found > schema:
        raise LaterVersionError(
            f"{path}: written by a later version of ipe (schema {found}, this one reads up to {schema})"
        )
    return content


class LaterVersionError(InputError):
    """A whole file of a schema that this version does not know: not to be used, and not to be replaced either."""
