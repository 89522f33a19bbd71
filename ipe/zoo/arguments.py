"""What the zoo asks of its numbers: whole ones and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.errors import InputError


def whole_number(value: Any, name: str, low: int) -> int:
    """`value` as an int of at least `low`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < low:
        raise InputError(f"{name} must be a whole number >= {low}, found {value!r}")
    return int(value)


def probability(value: Any, name: str) -> float:
    """`value` as a float in [0, 1]."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not number or not 0.0 <= value <= 1.0:
        raise InputError(f"{name} must be a probability, found {value!r}")
    return float(value)


def yes_or_no(value: Any, name: str) -> bool:
    """`value` as a bool; a string or a number is refused, since `bool("false")` is true."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError(f"{name} must be True or False, found {value!r}")
    return bool(value)
