"""The array types of the library, and the check that an argument is an array of real numbers."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ipe.errors import InputError

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]


def numeric(array: Any, name: str) -> Array:
    """`array` as float64, or an `InputError` that names it."""
    out = array_like(array, name, of=" of numbers")
    if out.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers, found dtype {out.dtype}")
    return out.astype(np.float64)


def array_like(array: Any, name: str, of: str = "") -> NDArray[Any]:
    """`array` as a NumPy array of any type, or an `InputError` that names it."""
    try:
        return np.asarray(array)
    except ValueError as error:  # ragged lists
        raise InputError(f"{name} is not an array{of}: {error}") from None
