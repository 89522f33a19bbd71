"""Plain data for JSON files: checked before it is written, with the path of what does not fit."""

from __future__ import annotations

import json
import math
from typing import Any

from ipe.errors import InputError

_FLOAT = "__float__"
"""The only key of the object that stands for a float JSON has no number for."""


def encode(value: Any, field: str, *, finite: bool = False) -> Any:
    """A value as JSON can hold it; equal to it after `decode`, but for tuples, which become lists.

    Floats and integers keep every bit (of a NaN only that it is one).

    Args:
        value: None, bool, int, float, str, or lists and string-keyed dictionaries of these.
        field: its name in an error message.
        finite: refuse the floats that JSON has no number for, rather than write them as objects.

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
    """What `encode` was given."""
    if isinstance(value, list):
        return [decode(item) for item in value]
    if isinstance(value, dict):
        if set(value) == {_FLOAT}:
            return float(value[_FLOAT])
        return {key: decode(item) for key, item in value.items()}
    return value


def json_text(value: Any, field: str, indent: int | None = None) -> str:
    """Encoded data as strict JSON, in ASCII; the same data gives the same text."""
    try:
        return json.dumps(value, allow_nan=False, indent=indent)
    except ValueError as error:  # an integer of thousands of digits
        raise InputError(f"{field} cannot be written as JSON: {error}") from None
