r"""l-inf by a primal-dual interior-point method, for MDPs that HiGHS takes too long for.

.. math:: \min_{v, t} t \quad \text{subject to} \quad -t \le d_i (A v - b)_i \le t, \; lo \le v \le hi .

Mehrotra's predictor and corrector, from a strictly feasible pair: any v inside the box with t above its
largest residual, any multipliers that sum to one. Both sides stay feasible, so the complementarity is the
gap. The Newton system has one unknown per state. While it is well conditioned, conjugate gradients
solve it; when they no longer do, a dense Cholesky factor, which is what limits the size (8 bytes times the
square of the number of states).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from ipe.base.arrays import Array, dot
from ipe.inverse.duality import lower_bound
from ipe.inverse.predictor_corrector import Arrays, Change, mehrotra_step, moved
from ipe.inverse.problem import BoxProblem, BoxSolution
from ipe.planning.krylov import conjugate_gradients

ALWAYS_DIRECT = 1500
"""States up to which the factor costs so little that conjugate gradients are not tried."""
MAX_CG_STEPS = 300
CG_TOLERANCE = 1e-13
"""The factor by which the squared residual of the Newton system must fall. An inexact step spoils the dual equations,
and with them the lower bound."""


def solve_interior_point(
    problem: BoxProblem, start: Array, *, rtol: float = 1e-6, atol: float = 0.0, max_iterations: int = 100
) -> BoxSolution:
    """Minimise the l-inf norm until the gap is at most `max(rtol * norm, atol)`.

    Args:
        problem: with norm l-inf.
        start: a point of the box, best the l2 solution.
        rtol: the gap wanted, relative to the norm.
        atol: the gap wanted, absolute.
        max_iterations: Newton systems allowed.

    Returns:
        The solution with the gap that its multipliers prove.
    """
    rows = np.flatnonzero(problem.d > 0)
    free = np.flatnonzero(problem.free)
    delta = problem.residuals(start)[rows]
    size = float((problem.d[rows] * np.abs(delta)).max())
    if size == 0 or not free.size:  # nothing to lower, or nothing to lower it with
        return BoxSolution(start, size, 0.0, 0, True, "interior point")
    A = sparse.csr_array(sparse.diags_array(problem.d[rows] * problem.gamma) @ problem.rows.matrix[rows][:, free])
    # In the unknown x = (v - start) / size the norm at the start is 1.
    state = _State(
        A, problem.d[rows] * delta / size, (problem.lo - start)[free] / size, (problem.hi - start)[free] / size
    )
    best_v, best_norm, best_bound, iterations = start, size, 0.0, 0
    while iterations < max_iterations:
        state.step()
        iterations += 1
        v = start.copy()
        v[free] += size * state.x
        v = problem.clip(v)
        norm = problem.norm_of(problem.residuals(v))
        if norm < best_norm:
            best_v, best_norm = v, norm
        y = np.zeros_like(problem.b)
        y[rows] = problem.d[rows] * (state.multipliers[0] - state.multipliers[1])
        best_bound = max(best_bound, lower_bound(problem, y))
        if best_norm - best_bound <= max(rtol * best_norm, atol) or state.stalled:
            break
    gap = max(0.0, best_norm - best_bound)
    converged = gap <= max(rtol * best_norm, atol)
    return BoxSolution(best_v, best_norm, gap, iterations, converged, "interior point")


class _State:
    """The iterate x and t, the slacks of the residual's upper and lower rows and of the box, and their multipliers."""

    def __init__(self, A: sparse.csr_array, c: Array, lo: Array, hi: Array) -> None:
        self.A, self.c, self.lo, self.hi = A, c, lo, hi
        width = hi - lo
        self.x = np.clip(np.zeros_like(lo), lo + 0.01 * width, hi - 0.01 * width)
        residual = A @ self.x + c
        self.t = 1.1 * float(np.abs(residual).max())
        self.slacks = up, down, from_lo, from_hi = self._slacks()
        total = float((1.0 / up).sum() + (1.0 / down).sum())
        barrier = 1.0 / total
        self._set_multipliers(1.0 / (up * total), 1.0 / (down * total), barrier / from_lo, barrier / from_hi)
        self.direct = len(lo) <= ALWAYS_DIRECT
        self.stalled = False

    def step(self) -> None:
        """One step of Mehrotra's method."""
        step = mehrotra_step(self.slacks, self.multipliers, self._newton())
        dx, dt = step.change.unknowns
        self.stalled = max(step.primal, step.dual) < 1e-8
        self.x = self.x + step.primal * dx
        self.t += step.primal * dt
        self.slacks = self._slacks()
        self._set_multipliers(*moved(self.multipliers, step.change.multipliers, step.dual))
        self.stalled |= min(float(x.min()) for x in self.slacks) <= 0
        products = sum(dot(x, z) for x, z in zip(self.slacks, self.multipliers, strict=True))
        if products > 0.7 * step.barrier * sum(len(x) for x in self.slacks):
            self.direct = True  # a poor step: most likely the inexact solves

    def _slacks(self) -> Arrays:
        residual = self.A @ self.x + self.c
        return self.t - residual, self.t + residual, self.x - self.lo, self.hi - self.x

    def _set_multipliers(self, z_up: Array, z_down: Array, z_lo: Array, z_hi: Array) -> None:
        """Set the multipliers; what an inexact Newton step leaves of the dual equations goes into those of the box."""
        total = z_up.sum() + z_down.sum()
        z_up, z_down = z_up / total, z_down / total
        missing = self.A.T @ (z_up - z_down) - (z_lo - z_hi)
        self.multipliers = z_up, z_down, z_lo + np.maximum(missing, 0.0), z_hi + np.maximum(-missing, 0.0)

    def _newton(self) -> Callable[[Arrays], Change]:
        """The map from complementarity targets to the Newton direction at this point."""
        A = self.A
        up, down, at_lo, at_hi = (z / x for x, z in zip(self.slacks, self.multipliers, strict=True))
        total = float(up.sum() + down.sum())
        g = A.T @ (up - down)
        solve = self._solver(up + down, at_lo + at_hi, g, total)

        def direction(targets: Arrays) -> Change:
            e_up, e_down, e_lo, e_hi = (target / x for target, x in zip(targets, self.slacks, strict=True))
            rest = float(e_up.sum() + e_down.sum())
            dx = solve((e_lo - e_hi) - A.T @ (e_up - e_down) + g * (rest / total))
            dt = (rest + dot(g, dx)) / total
            dr = A @ dx
            multipliers = e_up - up * (dt - dr), e_down - down * (dt + dr), e_lo - at_lo * dx, e_hi + at_hi * dx
            return Change((dx, dt), (dt - dr, dt + dr, dx, -dx), multipliers)

        return direction

    def _solver(self, weights: Array, box: Array, g: Array, total: float) -> Callable[[Array], Array]:
        r"""Solves :math:`(A^\top \Theta A + E - g g^\top / \sum\theta)\, x = rhs`."""
        A = self.A
        if not self.direct:
            diagonal = sparse.csr_array(A.multiply(A)).T @ weights + box - g * g / total

            def product(x: Array) -> Array:
                out: Array = A.T @ (weights * (A @ x)) + box * x - g * (dot(g, x) / total)
                return out

            def iterative(rhs: Array) -> Array:
                solved = conjugate_gradients(
                    product, lambda r: r / diagonal, rhs, target=CG_TOLERANCE, limit=MAX_CG_STEPS
                )
                if solved.converged:
                    return solved.x
                self.direct = True
                return self._solver(weights, box, g, total)(rhs)

            return iterative
        scaled = sparse.csr_array(sparse.diags_array(np.sqrt(weights)) @ A)
        matrix = (scaled.T @ scaled).toarray()
        matrix[np.diag_indices_from(matrix)] += box
        matrix -= np.outer(g, g / total)
        try:
            factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:  # rounding has made the matrix indefinite: no further progress is possible
            self.stalled = True
            return lambda rhs: np.zeros_like(rhs)
        return lambda rhs: np.asarray(cho_solve(factor, rhs, check_finite=False))
