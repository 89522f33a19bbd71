r"""Lower bounds for l1 and l-inf: a residual below which no policy gets, from any vector of multipliers.

For every y, :math:`\min_{lo \le v \le hi} y^\top (A v - b) = -y^\top b + \sum_s \min\{c_s\, lo_s, c_s\, hi_s\}` with
:math:`c = A^\top y`. It is a lower bound of :math:`\|A v - b\|_d` as long as y lies in the unit ball of the dual norm:
:math:`|y_i| \le d_i` for l1, :math:`\sum_i |y_i| / d_i \le 1` for l-inf.
"""

from __future__ import annotations

import numpy as np

from ipe.base.arrays import Array, dot
from ipe.inverse.problem import BoxProblem


def dual_value(problem: BoxProblem, y: Array, c: Array) -> float:
    r""":math:`-y^\top b + \sum_s \min\{c_s\, lo_s, c_s\, hi_s\}` for multipliers y and :math:`c = A^\top y`."""
    return float(-dot(y, problem.b) + np.minimum(c * problem.lo, c * problem.hi).sum())


def lower_bound(problem: BoxProblem, y: Array) -> float:
    """The bound that multipliers prove, after they are brought into the dual ball; never below 0."""
    if problem.norm == "l1":
        y = np.clip(y, -problem.d, problem.d)
    else:
        y = np.where(problem.d > 0, y, 0.0)
        size = float(np.divide(np.abs(y), problem.d, out=np.zeros_like(y), where=problem.d > 0).sum())
        y = y / max(1.0, size)
    return max(0.0, dual_value(problem, y, problem.transposed(y)))


def project_dual(problem: BoxProblem, y: Array) -> Array:
    r"""The nearest multipliers in the dual ball: a box for l1, a weighted l1 ball for l-inf."""
    if problem.norm == "l1":
        return np.clip(y, -problem.d, problem.d)
    rows = problem.d > 0
    inverse = np.divide(1.0, problem.d, out=np.zeros_like(y), where=rows)
    size = np.abs(y)
    if dot(size, inverse) <= 1.0:
        return np.where(rows, y, 0.0)
    # The projection is sign(y) max(|y| - t / d, 0); t solves a piecewise linear equation in the
    # thresholds d |y|, sorted from the largest.
    order = np.argsort(-(problem.d * size))
    order = order[rows[order]]
    sums = np.cumsum((inverse * size)[order])
    squares = np.cumsum((inverse * inverse)[order])
    thresholds = (sums - 1.0) / squares
    active = np.flatnonzero((problem.d * size)[order] > thresholds)
    if not active.size:  # y is so large that the ball is a point beside it: a corner is nearest
        shrunk = np.zeros_like(y)
        shrunk[order[0]] = problem.d[order[0]]
    else:
        shrunk = np.maximum(size - thresholds[active[-1]] * inverse, 0.0)
    return np.where(rows, np.sign(y) * shrunk, 0.0)
