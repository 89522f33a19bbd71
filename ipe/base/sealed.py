"""JSON files that vouch for themselves: the text of an object stands behind the SHA-256 checksum of that text.

A byte that is flipped, missing or added is noticed, without a second file::

    {"sha256": "9f86d0...",
    "content": {"format": "ipe.sweep", "schema": 1, ...}}
"""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from ipe.errors import InputError

_FLOAT = "__float__"
"""The only key of the object that stands for a float for which JSON has no number."""
_HEAD, _TAIL = b'{"sha256": "', b"}\n"
_NECKS = (b'",\n"content": ', b'", "content": ')  # the second is how checkpoints were written before


class LaterVersionError(InputError):
    """A file is whole, but of a schema that this version does not know: it must be neither used nor replaced."""


def encode(value: Any, field: str, *, finite: bool = False) -> Any:
    """Turn None, bool, int, float, str, and lists and string-keyed dictionaries of these into what JSON can hold.
    `decode` gives an equal value back, with lists for tuples; floats and integers keep every bit (a NaN stays a NaN).
    With `finite`, infinities and NaN are refused. Errors call the value `field`.

    Example:
        >>> encode({"state": (2**127, 0.1), "best": float("-inf")}, "data")
        {'state': [170141183460469231731687303715884105728, 0.1], 'best': {'__float__': '-inf'}}
        >>> encode({"state": [1, {2}]}, "data")
        Traceback (most recent call last):
        ipe.errors.InputError: data.state[1] is a set, which JSON cannot hold
    """
    if isinstance(value, float) and not math.isfinite(value):
        if finite:
            raise InputError(f"{field} = {value} is not a finite number")
        return {_FLOAT: repr(float(value))}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [encode(item, f"{field}[{index}]", finite=finite) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        raise InputError(f"{field} is a {type(value).__name__}, which JSON cannot hold")
    for key in value:
        if not isinstance(key, str) or key == _FLOAT:
            raise InputError(f"{field} has the key {key!r}; keys must be strings other than {_FLOAT!r}")
    return {key: encode(item, f"{field}.{key}", finite=finite) for key, item in value.items()}


def decode(value: Any) -> Any:
    """Return the value that `encode` was given."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {_FLOAT}:
            return float(value[_FLOAT])
        return {key: decode(item) for key, item in value.items()}
    return value


def sealed_bytes(content: dict[str, Any], field: str, size: int = 0, *, finite: bool = True) -> bytes:
    """Return the content of the file of an object, filled up with spaces to a least `size`; the same object gives the
    same bytes. Errors call the object `field`; with `finite`, they refuse infinities and NaN.

    Example:
        >>> open_sealed(sealed_bytes({"frame": 7}, "note"))
        {'frame': 7}
    """
    try:
        text = json.dumps(encode(content, field, finite=finite), allow_nan=False).encode()
    except ValueError as error:  # an integer of thousands of digits
        if isinstance(error, InputError):
            raise
        raise InputError(f"{field} cannot be written as JSON: {error}") from None
    text = text.ljust(size - len(_HEAD) - 64 - len(_NECKS[0]) - len(_TAIL))
    return _whole(text, _NECKS[0])


def open_sealed(data: bytes) -> dict[str, Any]:
    """Return the object of a file's content, as JSON has it; `decode` turns it into the object that was sealed.

    Raises:
        InputError: if these are not bytes that `sealed_bytes` gave.
    """
    for neck in _NECKS:
        text = data[len(_HEAD) + 64 + len(neck) : -len(_TAIL)]
        if data == _whole(text, neck):
            break
    else:
        raise InputError("it is damaged: it is not what was written")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):  # somebody sealed what is no JSON
        content = None
    if not isinstance(content, dict):
        raise InputError("it does not hold a JSON object")
    return content


def read_sealed(path: Path, kind: str, schema: int) -> dict[str, Any]:
    """Read the object in a file whose `format` is `kind` and whose schema is at most `schema`.

    Raises:
        InputError: naming the file, if it is missing, damaged, of another format or of a later version.
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


def _whole(text: bytes, neck: bytes) -> bytes:
    return _HEAD + hashlib.sha256(text).hexdigest().encode() + neck + text + _TAIL
