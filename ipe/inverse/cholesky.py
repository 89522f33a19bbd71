r"""Dense Cholesky factors by LAPACK, during which the clock and Ctrl-C are heard.

The factor of 12,000 columns takes a quarter of a minute. `scipy.linalg.cho_factor` holds Python's interpreter lock
meanwhile, so that neither a time limit nor Ctrl-C would be heard. Here the same routine is called through ctypes, which
lets the lock go, in a thread that is watched. (Blocks of columns with a look at the clock between them were tried:
half as long again. `numpy.linalg.cholesky` lets the lock go too: half as long again, and two copies of the matrix.)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cho_solve, cython_lapack

from ipe.base.arrays import Array
from ipe.inverse.watch import Watch

AT_ONCE = 1500
"""Columns up to which a factor takes so little time that it is not watched."""


def cholesky(matrix: Array, watch: Watch) -> Callable[[Array], Array]:
    r"""Factorise a symmetric positive definite matrix as :math:`L L^\top`, and return the solver of its systems.

    Args:
        matrix: the matrix, row by row in memory. L overwrites its lower triangle; what stands above the diagonal is
            not changed.
        watch: ends the work by an exception when the time is over.

    Returns:
        A function that solves `matrix x = b` for a given b.

    Raises:
        numpy.linalg.LinAlgError: the matrix is not positive definite. Its lower triangle is lost then.

    Example:
        >>> solve = cholesky(np.array([[2.0, 1.0], [1.0, 3.0]]), Watch())
        >>> solve(np.array([3.0, 5.0])).round(12)
        array([0.8, 1.4])
    """
    failed = _factorise(matrix) if len(matrix) <= AT_ONCE else watch.run(lambda: _factorise(matrix))
    if failed:
        raise np.linalg.LinAlgError(f"the leading minor of order {failed} is not positive")
    return lambda b: np.asarray(cho_solve((matrix.T, False), b, check_finite=False))


def _factorise(matrix: Array) -> int:
    """Overwrite the lower triangle by L. Return 0, or the order of the first leading minor that is not positive."""
    assert matrix.dtype == np.float64
    assert matrix.flags.c_contiguous
    assert matrix.flags.writeable
    n, info = ctypes.c_int(len(matrix)), ctypes.c_int(0)
    # LAPACK reads columns where NumPy has rows: its upper triangle is NumPy's lower one.
    _potrf()(b"U", ctypes.byref(n), matrix.ctypes.data, ctypes.byref(n), ctypes.byref(info))
    return info.value


@cache
def _potrf() -> Any:
    """LAPACK's dpotrf, from the table of C functions that SciPy publishes for Cython."""
    capsule = cython_lapack.__pyx_capi__["dpotrf"]
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    integer = ctypes.POINTER(ctypes.c_int)
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_char_p, integer, ctypes.c_void_p, integer, integer)
    return prototype(pointer(capsule, name(capsule)))


def mirror(matrix: Array) -> None:
    """Write the upper triangle into the lower one, in place: after a factorisation that failed."""
    for i in range(1, len(matrix)):
        matrix[i, :i] = matrix[:i, i]
