r"""The primal-dual hybrid gradient method for l1 and l-inf problems too large for factors.

.. math:: \min_{lo \le v \le hi}\; \max_{y \in \text{dual ball}}\; y^\top (A v - b).

Reflected steps with Halpern's anchor and restarts (Lu and Yang, 2024), diagonally preconditioned (Pock and
Chambolle, 2011). Both sides stay feasible, so the gap between the norm and the dual value is a proof at
every step.
"""

from __future__ import annotations

import numpy as np

from ipe.base.arrays import Array
from ipe.inverse.duality import lower_bound, project_dual
from ipe.inverse.problem import BoxProblem, BoxSolution
from ipe.inverse.watch import Watch

NAME = "restarted PDHG"
CHECK_EVERY = 20


def solve_pdhg(
    problem: BoxProblem,
    start: Array,
    *,
    rtol: float = 1e-4,
    atol: float = 0.0,
    max_iterations: int = 20_000,
    watch: Watch | None = None,
) -> BoxSolution:
    """Minimise the norm until the gap is at most `max(rtol * norm, atol)`.

    Args:
        problem: with norm l1 or l-inf.
        start: a first v, best the l2 solution.
        rtol: the gap wanted, relative to the norm.
        atol: the gap wanted, absolute.
        max_iterations: how many iterations, of one product with A and one with its transpose, are allowed.
        watch: told of the gap every 20 iterations.

    Returns:
        The best v seen; `gap` is its norm less the best dual value seen.
    """
    watch = watch or Watch()
    columns = problem.transposed(np.where(problem.d > 0, 1.0, 0.0))
    tau = np.divide(1.0, columns, out=np.zeros_like(columns), where=columns > np.finfo(float).tiny)
    sigma = 1.0 / problem.gamma if problem.gamma > 0 else 0.0
    v = problem.clip(start)
    delta = problem.residuals(v)
    y = _first_multipliers(problem, delta)
    best_v, best_norm, best_dual = v, problem.norm_of(delta), lower_bound(problem, y)
    omega = _primal_weight(problem, y)
    anchor_v, anchor_y, k = v, y, 0
    c = problem.transposed(y)
    restart_gap = last_gap = np.inf
    for iteration in range(1, max_iterations + 1):
        watch.check()
        next_v = problem.clip(v - (tau / omega) * c)
        reflected = 2.0 * next_v - v
        next_y = project_dual(problem, y + (sigma * omega) * problem.residuals(reflected))
        if iteration % CHECK_EVERY == 0 or iteration == 1:
            norm = problem.norm_of(problem.residuals(next_v))
            dual = lower_bound(problem, next_y)  # which does not rely on the projection's rounding
            if norm < best_norm:
                best_norm, best_v = norm, next_v
            best_dual = max(best_dual, dual)
            target = max(rtol * best_norm, atol)
            watch.note(NAME, iteration, best_v, best_norm, max(0.0, best_norm - best_dual), target)
            if best_norm - best_dual <= target:
                break
            gap = norm - dual
            if gap <= 0.2 * restart_gap or (gap <= 0.8 * restart_gap and gap > last_gap) or k > 0.4 * iteration:
                omega = _balanced(omega, next_v - anchor_v, next_y - anchor_y, tau, sigma)
                v, y, k = next_v, next_y, 0
                anchor_v, anchor_y = v, y
                c = problem.transposed(y)
                restart_gap = last_gap = gap
                continue
            last_gap = gap
        weight = (k + 1.0) / (k + 2.0)
        v = weight * (2.0 * next_v - v) + (1.0 - weight) * anchor_v
        y = weight * (2.0 * next_y - y) + (1.0 - weight) * anchor_y
        c = problem.transposed(y)
        k += 1
    gap = max(0.0, best_norm - best_dual)
    return BoxSolution(best_v, best_norm, gap, iteration, bool(gap <= max(rtol * best_norm, atol)), NAME)


def _first_multipliers(problem: BoxProblem, delta: Array) -> Array:
    if problem.norm == "l1":
        return problem.d * np.sign(delta)
    worst = problem.norm_of(delta)
    at = problem.d * np.abs(delta) >= 0.9 * worst
    y = np.where(at, np.sign(delta), 0.0)
    return project_dual(problem, y)


def _primal_weight(problem: BoxProblem, y: Array) -> float:
    size = float(np.linalg.norm(problem.hi - problem.lo))
    return float(np.linalg.norm(y)) / size if size > 0 else 1.0


def _balanced(omega: float, dv: Array, dy: Array, tau: Array, sigma: float) -> float:
    """The primal weight after a restart: how far the multipliers moved, relative to v, smoothed.

    At most ten times more or less than before: one of the two may be held by its bounds for a while.
    """
    scaled = np.divide(dv * dv, tau, out=np.zeros_like(dv), where=tau > 0).sum()
    moved_v, moved_y = float(np.sqrt(scaled)), float(np.linalg.norm(dy)) / np.sqrt(sigma)
    if moved_v <= 0 and moved_y <= 0:
        return omega
    ratio = moved_y / moved_v if moved_v > 0 else np.inf
    return float(np.sqrt(omega * min(max(ratio, 1e-2 * omega), 1e2 * omega)))
