r"""Dense Cholesky factors, block by block, so that the clock and Ctrl-C are heard between two blocks.

LAPACK computes the factor of 12,000 columns in one call, for a quarter of a minute, and SciPy holds Python's
interpreter lock meanwhile. Here each block of columns costs one matrix product and one small call, and the whole takes
as long as LAPACK's call.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import cho_solve, solve_triangular

from ipe.base.arrays import Array

BLOCK = 256
"""Columns of a block: 128 and 512 were slower."""


def cholesky(matrix: Array, check: Callable[[], None]) -> Callable[[Array], Array]:
    r"""Factorise a symmetric positive definite matrix as :math:`L L^\top`, and return the solver of its systems.

    Args:
        matrix: the matrix. L overwrites its lower triangle; what stands above the diagonal is not changed.
        check: called after each block; it ends the work by an exception.

    Returns:
        A function that solves `matrix x = b` for a given b.

    Raises:
        numpy.linalg.LinAlgError: the matrix is not positive definite. Its lower triangle is lost then.

    Example:
        >>> solve = cholesky(np.array([[2.0, 1.0], [1.0, 3.0]]), lambda: None)
        >>> solve(np.array([3.0, 5.0])).round(12)
        array([0.8, 1.4])
    """
    n = len(matrix)
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        block = slice(first, last)
        above = np.triu(matrix[block, block], 1)
        if first:
            matrix[first:, block] -= matrix[first:, :first] @ matrix[block, :first].T
            matrix[block, block] = np.tril(matrix[block, block]) + above
        corner = np.linalg.cholesky(matrix[block, block])
        matrix[block, block] = corner + above
        if last < n:
            matrix[last:, block] = solve_triangular(corner, matrix[last:, block].T, lower=True, check_finite=False).T
        check()
    return lambda b: np.asarray(cho_solve((matrix.T, False), b, check_finite=False))


def mirror(matrix: Array) -> None:
    """Write the upper triangle into the lower one, in place: after a factorisation that failed."""
    for i in range(1, len(matrix)):
        matrix[i, :i] = matrix[:i, i]
