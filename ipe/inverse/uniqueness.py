"""Whether another v has the same residual."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ipe.base.arrays import Array
from ipe.inverse.problem import BoxProblem, BoxSolution

SMALL = 400
"""States up to which the rank of the problem's matrix is computed."""


def known_uniqueness(problem: BoxProblem, solution: BoxSolution) -> BoxSolution:
    r"""The l2 solution with its `unique` filled in where that is cheap to know.

    The residual :math:`A v - b` is the same for every l2 solution. v is unique when the columns of A that the norm
    sees are independent; it is not when those of the states inside their box are dependent.
    """
    if problem.rows.n_columns > SMALL:
        return solution
    dense = problem.rows.matrix.toarray()[problem.d > 0]
    inside = problem.free & (solution.v > problem.lo) & (solution.v < problem.hi)
    if _independent(dense[:, problem.free]):
        return replace(solution, unique=True)
    return solution if _independent(dense[:, inside]) else replace(solution, unique=False)


def _independent(columns: Array) -> bool:
    n = columns.shape[1]
    return n == 0 or bool(np.linalg.matrix_rank(columns) == n)
