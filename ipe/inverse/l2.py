r"""Least squares in a box, for millions of states.

.. math:: \min_{lo \le v \le hi} f(v) = \tfrac12 \| \gamma P v - b \|_W^2, \qquad W = \mathrm{diag}(d).

Two kinds of step alternate. Projected steps along the diagonally scaled gradient find out which states sit at an end
of their box. Conjugate gradients with Jacobi preconditioning solve for the other states, and a projected line search
brings the result back to the box. (Moré and Toraldo's scheme for bound-constrained
quadratics.) Only products with P and its transpose are needed.

The certificate is the duality gap: with the gradient :math:`g = \gamma P^\top W (\gamma P v - b)`,

.. math:: f(v) - \min f \;\le\; \sum_s \max\{ g_s (v_s - lo_s),\; g_s (v_s - hi_s) \},

and, as f is not negative, also :math:`f(v) - \min f \le f(v)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ipe.base.arrays import Array, Mask, dot
from ipe.inverse.problem import BoxProblem, BoxSolution, weighted_norm
from ipe.inverse.rows import THREADED_FROM
from ipe.inverse.watch import Watch
from ipe.planning.krylov import conjugate_gradients

NAME = "projected conjugate gradients"
IDENTIFICATION_STEPS = 3
MAX_CG_STEPS = 200
MAX_PRODUCTS = 5000
MAX_HALVINGS = 40
PATIENCE = 5
"""Rounds without a smaller gap after which the solver stops: only rounding errors are left."""


@dataclass(frozen=True, eq=False)
class _Point:
    """v with its residuals delta, f(v) and the gradient g."""

    v: Array
    delta: Array
    f: float
    g: Array


def certificate(problem: BoxProblem, v: Array) -> tuple[float, float]:
    r""":math:`f(v)` and the gap: a bound on :math:`f(v) - \min f`, for any v in the box."""
    point = _evaluate(problem, v, problem.residuals(v))
    return point.f, _gap(problem, point)


def solve_l2(
    problem: BoxProblem,
    *,
    rtol: float = 1e-8,
    atol: float | None = None,
    max_iterations: int = MAX_PRODUCTS,
    start: Array | None = None,
    watch: Watch | None = None,
) -> BoxSolution:
    r"""Minimise f until `gap <= max(rtol * f, atol)`, or rounding lets the gap fall no further.

    Args:
        problem: the box problem, with weights d that sum to one.
        rtol: the gap wanted, relative to the objective.
        atol: the gap wanted, absolute. By default an objective that means a sup-norm residual of
            `problem.achieved`; and, where rounding stops the iteration, the size of the
            rounding errors in the gap.
        max_iterations: how many products with :math:`P^\top W P` are allowed.
        start: a point of the box; by default the sampled minimiser, which is exact in deterministic MDPs.
        watch: told of every round.

    Returns:
        The solution; `converged` says whether the gap was reached.
    """
    floor = problem.objective_floor if atol is None else atol
    diagonal = problem.gamma**2 * problem.rows.squared_transposed_times(problem.d)
    preconditioner = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > np.finfo(float).tiny)
    watch = watch or Watch()
    v = _first_guess(problem) if start is None else problem.clip(start)
    point = _evaluate(problem, v, problem.residuals(v))
    best_v, best_f, best_gap, products, idle = point.v, point.f, _gap(problem, point), 0, 0
    watch.note(NAME, products, best_v, best_f, best_gap, max(rtol * best_f, floor))
    length: float | None = None
    while best_gap > max(rtol * best_f, floor) and idle < PATIENCE and products < max_iterations:
        point, length, used = _identify(problem, point, preconditioner, length, watch)
        products += used
        point, used = _subspace(problem, point, preconditioner, max(rtol * point.f, floor), watch)
        products += used
        gap = _gap(problem, point)
        if gap <= max(rtol * point.f, floor):  # residuals were updated step by step: prove it with fresh ones
            point = _evaluate(problem, point.v, problem.residuals(point.v))
            gap = _gap(problem, point)
        idle = 0 if gap < 0.9 * best_gap else idle + 1
        if gap < best_gap:
            best_v, best_f, best_gap = point.v, point.f, gap
        watch.note(NAME, products, best_v, best_f, best_gap, max(rtol * best_f, floor))
    objective, gap = certificate(problem, best_v) if idle or products >= max_iterations else (best_f, best_gap)
    target = max(rtol * objective, floor)
    if atol is None:
        target = max(target, problem.gap_rounding)
    return BoxSolution(best_v, objective, gap, products, bool(gap <= target), NAME)


def _first_guess(problem: BoxProblem) -> Array:
    r"""The sampled minimiser :math:`\mathrm{clip}\, E[(Q - r)/\gamma \mid s']`: exact in deterministic MDPs."""
    middle = 0.5 * (problem.lo + problem.hi)
    sums = problem.rows.transposed_times(problem.d * problem.b)
    mean = np.divide(sums, problem.gamma * problem.column_weights, out=middle, where=problem.constrained)
    return problem.clip(mean)


def _evaluate(problem: BoxProblem, v: Array, delta: Array) -> _Point:
    weighted = problem.d * delta
    return _Point(v, delta, 0.5 * dot(weighted, delta), problem.transposed(weighted))


def _gap(problem: BoxProblem, point: _Point) -> float:
    g, v = point.g, point.v
    bound = float(np.maximum(g * (v - problem.lo), g * (v - problem.hi)).sum())
    return min(bound, point.f)


def _free(problem: BoxProblem, point: _Point) -> Mask:
    """The states whose v may move downhill: not held by an end of the box."""
    held = ((point.v <= problem.lo) & (point.g >= 0)) | ((point.v >= problem.hi) & (point.g <= 0))
    return ~held & problem.constrained


def _identify(
    problem: BoxProblem, point: _Point, preconditioner: Array, length: float | None, watch: Watch
) -> tuple[_Point, float | None, int]:
    """Projected steps along the scaled gradient, until the set of held states stays the same.

    Args:
        problem, point, preconditioner, watch: the problem, where to start, the scaling, and who is told.
        length: what would have been the best length of the last such step, a multiple of the scaled gradient. The next
            step gets it, which spares the product that would find its best length. None before the first step.

    Returns:
        The point, the best length of its last step, and the number of products.
    """
    products = 0
    for _ in range(IDENTIFICATION_STEPS):
        watch.check()
        free = _free(problem, point)
        direction = np.where(free, -preconditioner * point.g, 0.0)
        if length is None:
            curvature = problem.gamma**2 * weighted_norm(problem.rows.times(direction), problem.d, "l2") ** 2
            slope = dot(point.g, direction)
            products += 1
            if not (slope < 0 < curvature):
                return point, None, products
            length = -slope / curvature
        following, best, used = _line_search(problem, point, direction, length)
        products += used
        if following is point:
            return point, None, products
        length = best
        settled = np.array_equal(free, _free(problem, following))
        point = following
        if settled:
            break
    return point, length, products


def _subspace(
    problem: BoxProblem, point: _Point, preconditioner: Array, target: float, watch: Watch
) -> tuple[_Point, int]:
    """A Newton step on the free states, then a projected line search along it."""
    free = _free(problem, point)
    size = float(np.abs(point.g[free]).max(initial=0.0))
    if size == 0:
        return point, 0
    step, products = _newton_step(problem, point, free, size, preconditioner, target, watch)
    if products == 0:
        return point, 0
    point, _, used = _line_search(problem, point, step, 1.0)
    return point, products + used


def _newton_step(
    problem: BoxProblem,
    point: _Point,
    free: Mask,
    size: float,
    preconditioner: Array,
    target: float,
    watch: Watch,
) -> tuple[Array, int]:
    """The Newton step by conjugate gradients, as far as the gap or the next set of free states calls for it."""
    weight = float(problem.d.max())
    # The system P'DP x = -g / size with the largest weight 1, so that its numbers suit single precision too.
    scaled = preconditioner * (problem.gamma**2 * weight)
    single = _in_single(problem, scaled)
    rows, finest = (problem.rows.single, 1e-10) if single else (problem.rows, 1e-24)
    dtype: Any = np.float32 if single else np.float64
    unit = size / (problem.gamma**2 * weight)
    d, scaled = (problem.d / weight).astype(dtype), scaled.astype(dtype)
    residual = (np.where(free, -point.g, 0.0) / size).astype(dtype)
    width = np.maximum(point.v - problem.lo, problem.hi - point.v)

    def product(direction: Array) -> Array:
        curved = rows.normal_times(d, direction)
        curved[~free] = 0.0
        return curved

    def enough(step: Array, residual: Array, fall: float) -> bool:
        # When the time is over, what there is of the step is taken: the products for it are not lost.
        if watch.remaining == 0.0 or size * dot(np.abs(residual), width) <= 0.3 * target:
            return True
        if fall > 1e-2:
            return False
        # A step that leaves the box ends on another set of free states: more accuracy is wasted on it.
        moved = point.v + unit * step
        return fall <= finest or bool(((moved < problem.lo) | (moved > problem.hi)).any())

    solved = conjugate_gradients(product, lambda r: scaled * r, residual, target=0.0, limit=MAX_CG_STEPS, enough=enough)
    full: Array = unit * solved.x.astype(np.float64)
    return full, solved.products


def _in_single(problem: BoxProblem, preconditioner: Array) -> bool:
    """Whether steps are computed in single precision.

    Where memory limits, that takes half the time. A step need not be exact: gradient, objective and gap at its end
    are, and the next step corrects what is left. Not where the weights of rows, or of states, differ by more than
    single precision holds.
    """
    even = problem.smallest_weight > 1e-6 * float(problem.d.max()) and float(preconditioner.max()) < 1e12
    return problem.rows.matrix.nnz >= THREADED_FROM and even


def _line_search(problem: BoxProblem, point: _Point, direction: Array, step: float) -> tuple[_Point, float | None, int]:
    r"""The first of step, step/2, step/4, ... whose projection lowers f enough; or stay.

    The change of f is taken as :math:`g^\top s + \frac12 \|\gamma P s\|_W^2`, which stays accurate when it is far
    smaller than the rounding of f itself.

    Returns:
        The point, the multiple of the direction that would have been best along the projected step (None if there was
        no step), and the number of products.
    """
    for tries in range(1, MAX_HALVINGS):
        v = problem.clip(point.v + step * direction)
        moved = v - point.v
        promised = dot(point.g, moved)
        if not promised < 0:
            break
        change = problem.rows.times(moved)
        change *= problem.gamma
        curvature = weighted_norm(change, problem.d, "l2") ** 2
        if promised + 0.5 * curvature <= 1e-4 * promised:
            if not problem.all_rows:
                change[problem.d == 0] = 0.0
            change += point.delta
            best = step * -promised / curvature if curvature > 0 else None
            return _evaluate(problem, v, change), best, tries
        step *= 0.5
    return point, None, tries
