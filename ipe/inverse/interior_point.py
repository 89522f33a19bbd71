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
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from ipe.base.arrays import Array
from ipe.inverse.duality import lower_bound
from ipe.inverse.problem import BoxProblem, BoxSolution
from ipe.inverse.rows import dot

ALWAYS_DIRECT = 1500
"""States up to which the factor costs so little that conjugate gradients are not tried."""
MAX_CG_STEPS = 300
CG_TOLERANCE = 1e-13
"""Of the squared residual. What is left of it spoils the dual equations, and with them the bound."""


@dataclass(eq=False)
class _Pair:
    """Slacks of the upper and lower residual rows and of the box, each with its multiplier."""

    slack_up: Array
    slack_down: Array
    from_lo: Array
    from_hi: Array
    z_up: Array
    z_down: Array
    z_lo: Array
    z_hi: Array

    def slacks(self) -> tuple[Array, ...]:
        return self.slack_up, self.slack_down, self.from_lo, self.from_hi

    def multipliers(self) -> tuple[Array, ...]:
        return self.z_up, self.z_down, self.z_lo, self.z_hi

    def complementarity(self) -> float:
        return float(sum(dot(x, z) for x, z in zip(self.slacks(), self.multipliers(), strict=True)))


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
        y[rows] = problem.d[rows] * (state.pair.z_up - state.pair.z_down)
        best_bound = max(best_bound, lower_bound(problem, y))
        if best_norm - best_bound <= max(rtol * best_norm, atol) or state.stalled:
            break
    gap = max(0.0, best_norm - best_bound)
    converged = gap <= max(rtol * best_norm, atol)
    return BoxSolution(best_v, best_norm, gap, iterations, converged, "interior point")


class _State:
    """The iterate: x, t and the pair of slacks and multipliers, with one Newton step as a method."""

    def __init__(self, A: sparse.csr_array, c: Array, lo: Array, hi: Array) -> None:
        self.A, self.c, self.lo, self.hi = A, c, lo, hi
        width = hi - lo
        self.x = np.clip(np.zeros_like(lo), lo + 0.01 * width, hi - 0.01 * width)
        residual = A @ self.x + c
        self.t = 1.1 * float(np.abs(residual).max())
        up, down = self.t - residual, self.t + residual
        total = float((1.0 / up).sum() + (1.0 / down).sum())
        z_up, z_down = 1.0 / (up * total), 1.0 / (down * total)
        barrier = 1.0 / total
        from_lo, from_hi = self.x - lo, hi - self.x
        self.pair = _Pair(up, down, from_lo, from_hi, z_up, z_down, barrier / from_lo, barrier / from_hi)
        self._restore_dual_feasibility()
        self.direct = len(lo) <= ALWAYS_DIRECT
        self.stalled = False

    def step(self) -> None:
        """Mehrotra's predictor and corrector, and a step to 99.5% of the way to the boundary."""
        p = self.pair
        count = 2 * len(p.slack_up) + 2 * len(p.from_lo)
        barrier = p.complementarity() / count
        direction = self._newton()
        targets = tuple(-x * z for x, z in zip(p.slacks(), p.multipliers(), strict=True))
        _, _, change = direction(targets)
        primal, dual = longest_step(p.slacks(), change.slacks()), longest_step(p.multipliers(), change.multipliers())
        ahead = sum(
            dot(x + primal * dx, z + dual * dz)
            for x, dx, z, dz in zip(p.slacks(), change.slacks(), p.multipliers(), change.multipliers(), strict=True)
        )
        centre = barrier * (ahead / count / barrier) ** 3
        targets = tuple(
            centre + target - dx * dz
            for target, dx, dz in zip(targets, change.slacks(), change.multipliers(), strict=True)
        )
        dx, dt, change = direction(targets)
        primal = min(1.0, 0.995 * longest_step(p.slacks(), change.slacks()))
        dual = min(1.0, 0.995 * longest_step(p.multipliers(), change.multipliers()))
        self.stalled = max(primal, dual) < 1e-8
        self.x = self.x + primal * dx
        self.t += primal * dt
        residual = self.A @ self.x + self.c
        self.pair = _Pair(
            self.t - residual,
            self.t + residual,
            self.x - self.lo,
            self.hi - self.x,
            *(z + dual * dz for z, dz in zip(p.multipliers(), change.multipliers(), strict=True)),
        )
        self.stalled |= min(float(x.min()) for x in self.pair.slacks()) <= 0
        self._restore_dual_feasibility()
        if self.pair.complementarity() > 0.7 * barrier * count:
            self.direct = True  # a poor step: most likely the inexact solves

    def _restore_dual_feasibility(self) -> None:
        """What an inexact Newton step leaves of the dual equations goes into the box's multipliers."""
        p = self.pair
        total = p.z_up.sum() + p.z_down.sum()
        p.z_up, p.z_down = p.z_up / total, p.z_down / total
        missing = self.A.T @ (p.z_up - p.z_down) - (p.z_lo - p.z_hi)
        p.z_lo = p.z_lo + np.maximum(missing, 0.0)
        p.z_hi = p.z_hi + np.maximum(-missing, 0.0)

    def _newton(self) -> Callable[[tuple[Array, ...]], tuple[Array, float, _Pair]]:
        """The map from complementarity targets to the Newton direction at this point."""
        p, A = self.pair, self.A
        up, down = p.z_up / p.slack_up, p.z_down / p.slack_down
        box = p.z_lo / p.from_lo + p.z_hi / p.from_hi
        total = float(up.sum() + down.sum())
        g = A.T @ (up - down)
        solve = self._solver(up + down, box, g, total)

        def direction(targets: tuple[Array, ...]) -> tuple[Array, float, _Pair]:
            e_up, e_down, e_lo, e_hi = (target / x for target, x in zip(targets, p.slacks(), strict=True))
            rest = float(e_up.sum() + e_down.sum())
            dx = solve((e_lo - e_hi) - A.T @ (e_up - e_down) + g * (rest / total))
            dt = (rest + dot(g, dx)) / total
            dr = A @ dx
            return (
                dx,
                dt,
                _Pair(
                    dt - dr,
                    dt + dr,
                    dx,
                    -dx,
                    e_up - up * (dt - dr),
                    e_down - down * (dt + dr),
                    e_lo - (p.z_lo / p.from_lo) * dx,
                    e_hi + (p.z_hi / p.from_hi) * dx,
                ),
            )

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
                x = _conjugate_gradients(product, diagonal, rhs)
                if x is None:
                    self.direct = True
                    return self._solver(weights, box, g, total)(rhs)
                return x

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


def _conjugate_gradients(product: Callable[[Array], Array], diagonal: Array, rhs: Array) -> Array | None:
    """Jacobi-preconditioned conjugate gradients; None when they do not converge in a few hundred steps."""
    x, residual = np.zeros_like(rhs), rhs
    z = residual / diagonal
    direction, rz = z, dot(residual, z)
    target = CG_TOLERANCE * rz
    for _ in range(MAX_CG_STEPS):
        if rz <= target:
            return x
        curved = product(direction)
        alpha = rz / dot(direction, curved)
        x = x + alpha * direction
        residual = residual - alpha * curved
        z = residual / diagonal
        previous, rz = rz, dot(residual, z)
        direction = z + (rz / previous) * direction
    return None


def longest_step(values: tuple[Array, ...], changes: tuple[Array, ...]) -> float:
    """The longest step, at most 1, that keeps every value from turning negative."""
    step = 1.0
    for value, change in zip(values, changes, strict=True):
        falling = change < 0
        if falling.any():
            with np.errstate(over="ignore"):  # a change so small that it allows any step
                step = min(step, float((-value[falling] / change[falling]).min()))
    return step
