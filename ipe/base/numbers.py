"""Checks of single numbers: each returns a Python int, float or bool, or names the argument that is wrong.

True and False are no numbers here, although Python counts them among the integers.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from ipe.errors import InputError

LARGEST_SEED = 2**63 - 1


def is_whole(value: Any) -> bool:
    """Whether a value is an integer of Python or NumPy, and not a boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Whether a value is a real number of Python or NumPy, and not a boolean. NaN and the infinities are numbers."""
    return isinstance(value, Real) and not isinstance(value, bool)


def whole_number(value: Any, name: str, low: int, high: int | None = None, *, also: str = "") -> int:
    """`value` as an int of at least `low` and, if given, at most `high`; else an `InputError` with the argument's name,
    the range, what is `also` allowed in its place, and the value.

    Example:
        >>> whole_number(3.5, "seed", 0)
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: seed must be a whole number >= 0, found 3.5
        >>> whole_number(70_000, "port", 0, 65_535)
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: port must be a whole number from 0 to 65535, found 70000
    """
    if not is_whole(value) or value < low or (high is not None and value > high):
        top = "2^63 - 1" if high == LARGEST_SEED else high
        allowed = f">= {low}" if high is None else f"from {low} to {top}"
        raise InputError(f"{name} must be a whole number {allowed}{also}, found {_shown(value)}")
    return int(value)


def seed_number(value: Any, name: str = "seed") -> int:
    """A seed: a whole number from 0 to 2^63 - 1."""
    return whole_number(value, name, 0, LARGEST_SEED)


def finite_number(
    value: Any, name: str, low: float = -math.inf, high: float = math.inf, *, above: bool = False, below: bool = False
) -> float:
    """`value` as a float between `low` and `high`, without the ends that are excluded by `above` and `below`; else an
    `InputError` with the argument's name, the range and the value, also for NaN and the infinities.

    Example:
        >>> finite_number(0.0, "rtol", 0.0, above=True)
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: rtol must be a finite number > 0, found 0.0
        >>> finite_number(95, "level", 0, 1, above=True, below=True)
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: level must lie strictly between 0 and 1, found 95
    """
    if is_number(value) and _is_finite(value):
        reaches = value > low if above else value >= low
        stays = value < high if below else value <= high
        if reaches and stays:
            return float(value)
    raise InputError(f"{name} must {_range(low, high, above, below)}, found {_shown(value)}")


def check_positive(value: Any, name: str) -> float:
    """A finite number greater than zero."""
    return finite_number(value, name, 0.0, above=True)


def true_or_false(value: Any, name: str) -> bool:
    """`value` as a bool. A string or a number is refused, since `bool("false")` is true."""
    if not isinstance(value, bool) and type(value).__name__ != "bool":  # numpy.bool, without importing numpy here
        raise InputError(f"{name} must be true or false, found {value!r}")
    return bool(value)


def _is_finite(value: Any) -> bool:
    """Whether a number has a finite float: an integer of 400 digits has none."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _shown(value: Any) -> str:
    """A value as it stands in an error message; NumPy's scalars look like Python's."""
    return repr(value.item() if is_number(value) and hasattr(value, "item") else value)


def _range(low: float, high: float, above: bool, below: bool) -> str:
    if math.isinf(high):
        return "be a finite number" + ("" if math.isinf(low) else f" {'>' if above else '>='} {low:g}")
    if above and below:
        return f"lie strictly between {low:g} and {high:g}"
    if not above and not below:
        return f"be a number from {low:g} to {high:g}"
    return f"lie in {'(' if above else '['}{low:g}, {high:g}{')' if below else ']'}"
