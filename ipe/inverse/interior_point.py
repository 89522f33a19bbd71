r"""l1 and l-inf by a primal-dual interior-point method.

.. math:: \min_{lo \le v \le hi} \; \sum_i d_i |r_i| \quad \text{or} \quad \max_i d_i |r_i|, \qquad r = A v - b .

Both are linear programs. Their Newton systems have one unknown per state (`ipe.inverse.normal_equations`), and
Mehrotra's predictor and corrector (`ipe.inverse.predictor_corrector`) needs some 10 to 40 of them whatever the size.
The method starts from a strictly feasible pair of a primal and a dual point. Both sides stay feasible, so that the
complementarity is the gap, and the lower bound that the multipliers prove is computed anew after every step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array, dot
from ipe.inverse.duality import lower_bound
from ipe.inverse.normal_equations import NormalEquations
from ipe.inverse.predictor_corrector import Arrays, Change, mehrotra_step, moved
from ipe.inverse.problem import BoxProblem, BoxSolution
from ipe.inverse.watch import Watch

NAME = "interior point"
SHORTEST_STEP = 1e-8
PATIENCE = 6
"""Steps without a smaller gap after which rounding errors are all that is left."""
FIRST_PATIENCE = 25
"""Steps without any bound: from a start far from the central path, a few short steps come first."""


def solve_interior_point(
    problem: BoxProblem,
    start: Array,
    *,
    rtol: float = 1e-6,
    atol: float = 0.0,
    max_iterations: int = 150,
    watch: Watch | None = None,
) -> BoxSolution:
    """Minimise the l1 or l-inf norm until the gap is at most `max(rtol * norm, atol)`.

    Args:
        problem: with norm l1 or l-inf.
        start: a point of the box, best the l2 solution.
        rtol: the gap wanted, relative to the norm.
        atol: the gap wanted, absolute.
        max_iterations: how many Newton systems are allowed.
        watch: told of every step.

    Returns:
        The solution with the gap that its multipliers prove.
    """
    watch = watch or Watch()
    rows, free = np.flatnonzero(problem.d > 0), np.flatnonzero(problem.free)
    delta = problem.residuals(start)[rows]
    size = float(np.abs(delta).max())
    best_v, best_norm, best_bound, iterations, idle = start, problem.norm_of(problem.residuals(start)), 0.0, 0, 0
    if best_norm == 0 or not free.size:  # nothing to lower, or nothing to lower it with
        return BoxSolution(start, best_norm, 0.0, 0, True, NAME)
    weight = float(problem.d.max())
    d = problem.d[rows] / weight
    A = sparse.csr_array(problem.gamma * problem.rows.matrix[rows][:, free])
    lo, hi = (problem.lo - start)[free] / size, (problem.hi - start)[free] / size
    # In the unknown x = (v - start) / size the residuals at the start are at most 1.
    equations = NormalEquations(A if problem.norm == "l1" else sparse.csr_array(sparse.diags_array(d) @ A), watch)
    iterate: _Iterate = (_L1 if problem.norm == "l1" else _Linf)(equations, delta / size, d, lo, hi)
    while iterations < max_iterations and not iterate.stalled:
        iterate.step()
        iterations += 1
        v = start.copy()
        v[free] += size * iterate.x
        v = problem.clip(v)
        norm = problem.norm_of(problem.residuals(v))
        y = np.zeros_like(problem.b)
        y[rows] = weight * iterate.y
        bound = lower_bound(problem, y)
        idle = 0 if norm < best_norm or bound > best_bound else idle + 1
        if norm < best_norm:
            best_v, best_norm = v, norm
        best_bound = max(best_bound, bound)
        target = max(rtol * best_norm, atol)
        watch.note(NAME, iterations, best_v, best_norm, max(0.0, best_norm - best_bound), target)
        if best_norm - best_bound <= target or idle >= (PATIENCE if best_bound > 0 else FIRST_PATIENCE):
            break
    gap = max(0.0, best_norm - best_bound)
    return BoxSolution(best_v, best_norm, gap, iterations, gap <= max(rtol * best_norm, atol), NAME)


class _Iterate(Protocol):
    """A primal point x, multipliers y of the rows, and the step from them to the next pair."""

    x: Array
    stalled: bool

    @property
    def y(self) -> Array:
        """The multipliers of the residuals."""

    def step(self) -> None:
        """One step of Mehrotra's method."""


class _Linf:
    """Minimises t with slacks of :math:`-t \\le d r \\le t` and of the box."""

    def __init__(self, equations: NormalEquations, c: Array, d: Array, lo: Array, hi: Array) -> None:
        self.equations, self.A, self.c, self.d, self.lo, self.hi = equations, equations.A, d * c, d, lo, hi
        self.x = _inside(lo, hi)
        self.t = 1.1 * float(np.abs(self.A @ self.x + self.c).max())
        self.slacks = up, down, from_lo, from_hi = self._slacks()
        total = float((1.0 / up).sum() + (1.0 / down).sum())
        barrier = 1.0 / total
        self._set_multipliers(1.0 / (up * total), 1.0 / (down * total), barrier / from_lo, barrier / from_hi)
        self.stalled = False

    @property
    def y(self) -> Array:
        """The multipliers of the residuals."""
        out: Array = self.d * (self.multipliers[0] - self.multipliers[1])
        return out

    def step(self) -> None:
        step = mehrotra_step(self.slacks, self.multipliers, self._newton())
        dx, dt = step.change.unknowns
        self.stalled = self.equations.failed or max(step.primal, step.dual) < SHORTEST_STEP
        self.x = self.x + step.primal * dx
        self.t += step.primal * dt
        self.slacks = self._slacks()
        self._set_multipliers(*moved(self.multipliers, step.change.multipliers, step.dual))
        self.stalled |= min(float(x.min()) for x in self.slacks) <= 0
        products = sum(dot(x, z) for x, z in zip(self.slacks, self.multipliers, strict=True))
        if products > 0.7 * step.barrier * sum(len(x) for x in self.slacks):
            self.equations.direct = True  # a poor step: most likely the inexact solves

    def _slacks(self) -> Arrays:
        residual = self.A @ self.x + self.c
        return self.t - residual, self.t + residual, self.x - self.lo, self.hi - self.x

    def _set_multipliers(self, z_up: Array, z_down: Array, z_lo: Array, z_hi: Array) -> None:
        """Set the multipliers; what an inexact Newton step leaves of the dual equations goes into those of the box."""
        total = z_up.sum() + z_down.sum()
        z_up, z_down = z_up / total, z_down / total
        self.multipliers = z_up, z_down, *_balanced(self.A.T @ (z_up - z_down), z_lo, z_hi)

    def _newton(self) -> Callable[[Arrays], Change]:
        """The map from complementarity targets to the Newton direction at this point."""
        A = self.A
        up, down, at_lo, at_hi = (z / x for x, z in zip(self.slacks, self.multipliers, strict=True))
        total = float(up.sum() + down.sum())
        g = A.T @ (up - down)
        solve = self.equations.solver(up + down, at_lo + at_hi, g, total)

        def direction(targets: Arrays) -> Change:
            e_up, e_down, e_lo, e_hi = (target / x for target, x in zip(targets, self.slacks, strict=True))
            rest = float(e_up.sum() + e_down.sum())
            dx = solve((e_lo - e_hi) - A.T @ (e_up - e_down) + g * (rest / total))
            dt = (rest + dot(g, dx)) / total
            dr = A @ dx
            multipliers = e_up - up * (dt - dr), e_down - down * (dt + dr), e_lo - at_lo * dx, e_hi + at_hi * dx
            return Change((dx, dt), (dt - dr, dt + dr, dx, -dx), multipliers)

        return direction


class _L1:
    r"""Minimises :math:`\sum d (p + m)` with :math:`p - m = r` and :math:`p, m \ge 0`.

    The multipliers y of :math:`p - m = r` lie between -d and d. Complementary are p and :math:`d - y`, m and
    :math:`d + y`.
    """

    def __init__(self, equations: NormalEquations, c: Array, d: Array, lo: Array, hi: Array) -> None:
        self.equations, self.A, self.c, self.d, self.lo, self.hi = equations, equations.A, c, d, lo, hi
        self.x = _inside(lo, hi)
        residual = self.A @ self.x + c
        spread = float(np.abs(residual).mean()) or 1.0
        root = np.sqrt(residual * residual + spread * spread)
        barrier = 0.5 * spread
        self.p, self.m = 0.5 * (root + residual), 0.5 * (root - residual)
        self.y = 0.9 * d * residual / root
        z = barrier * float(d.mean())
        self.z_lo, self.z_hi = _balanced(self.A.T @ self.y, z / (self.x - lo), z / (hi - self.x))
        self.stalled = False

    def step(self) -> None:
        slacks = self.p, self.m, self.x - self.lo, self.hi - self.x
        multipliers = self.d - self.y, self.d + self.y, self.z_lo, self.z_hi
        step = mehrotra_step(slacks, multipliers, self._newton(slacks, multipliers))
        dx, dy = step.change.unknowns
        self.stalled = self.equations.failed or max(step.primal, step.dual) < SHORTEST_STEP
        self.x = self.x + step.primal * dx
        self.y = np.clip(self.y + step.dual * dy, -self.d, self.d)
        p, m = moved(slacks[:2], step.change.slacks[:2], step.primal)
        # What rounding leaves of p - m = r is split between the two, so that the primal point stays feasible.
        missing = self.A @ self.x + self.c - (p - m)
        self.p, self.m = p + np.maximum(missing, 0.0), m + np.maximum(-missing, 0.0)
        z_lo, z_hi = moved(multipliers[2:], step.change.multipliers[2:], step.dual)
        self.z_lo, self.z_hi = _balanced(self.A.T @ self.y, z_lo, z_hi)
        positive = self.p, self.m, self.d - np.abs(self.y), self.x - self.lo, self.hi - self.x
        self.stalled |= min(float(x.min()) for x in positive) <= 0
        before = step.barrier * sum(len(x) for x in slacks)
        after = dot(self.p, self.d - self.y) + dot(self.m, self.d + self.y)
        after += dot(self.x - self.lo, self.z_lo) + dot(self.hi - self.x, self.z_hi)
        if after > 0.7 * before:
            self.equations.direct = True  # a poor step: most likely the inexact solves

    def _newton(self, slacks: Arrays, multipliers: Arrays) -> Callable[[Arrays], Change]:
        """The map from complementarity targets to the Newton direction at this point."""
        A = self.A
        p, m, from_lo, from_hi = slacks
        s_p, s_m, z_lo, z_hi = multipliers
        theta = 1.0 / (p / s_p + m / s_m)
        solve = self.equations.solver(theta, z_lo / from_lo + z_hi / from_hi)

        def direction(targets: Arrays) -> Change:
            t_p, t_m, t_lo, t_hi = targets
            e = t_p / s_p - t_m / s_m
            dx = solve(t_lo / from_lo - t_hi / from_hi + A.T @ (theta * e))
            dr = A @ dx
            dy = theta * (dr - e)
            dp, dm = (t_p + p * dy) / s_p, (t_m - m * dy) / s_m
            changes = -dy, dy, (t_lo - z_lo * dx) / from_lo, (t_hi + z_hi * dx) / from_hi
            return Change((dx, dy), (dp, dm, dx, -dx), changes)

        return direction


def _inside(lo: Array, hi: Array) -> Array:
    """The start, which is 0 here, moved into the box: by 1% of its width, but not far beyond the residual's size, 1."""
    margin = np.minimum(0.01 * (hi - lo), 1.0)
    return np.clip(np.zeros_like(lo), lo + margin, hi - margin)


def _balanced(gradient: Array, z_lo: Array, z_hi: Array) -> tuple[Array, Array]:
    """The box's multipliers, raised so that their difference is the gradient: the dual point is then feasible."""
    missing = gradient - (z_lo - z_hi)
    return z_lo + np.maximum(missing, 0.0), z_hi + np.maximum(-missing, 0.0)
