"""The array types of the library, checks that an argument is an array of real numbers, and two plain reductions."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ipe.errors import InputError

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]


def numeric(array: Any, name: str) -> Array:
    """`array` as float64, or an `InputError` that names the argument."""
    out = array_like(array, name, of=" of numbers")
    if out.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers, found dtype {out.dtype}")
    return out.astype(np.float64)


def array_like(array: Any, name: str, of: str = "") -> NDArray[Any]:
    """`array` as a NumPy array of any type, or an `InputError` that names the argument."""
    try:
        return np.asarray(array)
    except ValueError as error:  # ragged lists
        raise InputError(f"{name} is not an array{of}: {error}") from None


def place(index: Any) -> str:
    """An index as it follows an array's name in an error message: `[3]` or `[3, 1]`, nothing for a scalar.

    Example:
        >>> place((3, 1)), place(())
        ('[3, 1]', '')
    """
    return f"[{', '.join(str(int(i)) for i in index)}]" if len(index) else ""


def refuse_where(wrong: Any, array: Any, name: str, what: str) -> None:
    """Refuse an array that is wrong somewhere: an `InputError` names the first wrong entry, its value, and what it is.

    Example:
        >>> refuse_where(np.array([False, True]), np.array([1.0, -2.0]), "weights", "negative")
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: weights[1] = -2 is negative
    """
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise InputError(f"{name}{place(at)} = {array[at]:g} is {what}")


def dot(x: NDArray[Any], y: NDArray[Any]) -> float:
    """The inner product of two vectors, summed in double precision by one thread.

    `np.dot` hands long vectors to a threaded BLAS, whose threads wait for one another. On cores that are busy with
    other work that takes many times as long as the sum itself.
    """
    return float(np.einsum("i,i->", x, y, dtype=np.float64))


def sup(x: Array) -> float:
    """The largest absolute value of an array, 0 if it is empty."""
    return float(max(x.max(initial=0.0), -x.min(initial=0.0)))
