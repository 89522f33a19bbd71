r"""Least squares in a box by interior points, for MDPs whose transition rows are nearly dependent.

Where the dynamics are smooth (a discretised continuous state), the singular values of P fall below the
rounding of P itself, and conjugate gradients, whose iterations grow with their spread, stall far from the minimum.
Here each Newton step of Mehrotra's predictor-corrector method on

.. math:: \min_{lo \le x \le hi} \tfrac12 \| M x - c \|^2, \qquad M = W^{1/2} \gamma P, \quad c = W^{1/2} b,

is itself a least-squares problem, :math:`\min \|M\,dx + \delta\|^2 + \|D^{1/2} dx - D^{-1/2} h\|^2` with the
barrier's diagonal D, solved by orthogonal factors: nothing is squared, so residuals fall to rounding whatever
the singular values. The factors are dense, which limits the size.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, solve_triangular

from ipe.base.arrays import Array
from ipe.inverse.l2 import certificate, solve_l2
from ipe.inverse.predictor_corrector import Arrays, Change, mehrotra_step, moved
from ipe.inverse.problem import BoxProblem, BoxSolution

DENSE_UP_TO = 1000
"""States up to which dense factors take seconds, so that they are worth a try where conjugate gradients stall."""
FACTORS_UP_TO = 4000
"""States up to which they take minutes, and gigabytes, so that they can be asked for."""
MAX_STEPS = 100


def solve_least_squares(problem: BoxProblem, *, rtol: float = 1e-8, atol: float | None = None) -> BoxSolution:
    """Conjugate gradients; where they prove too little and the problem is small, interior points after them.

    Args:
        problem: with norm l2.
        rtol: the gap wanted, relative to the objective.
        atol: the gap wanted, absolute; by default what rounding allows.
    """
    first = solve_l2(problem, rtol=rtol, atol=atol)
    reached = first.gap <= max(rtol * first.objective, _floor(problem, atol))
    if reached or (first.converged and first.gap < 0.5 * first.objective) or problem.free.sum() > DENSE_UP_TO:
        return first
    second = solve_l2_interior_point(problem, first.v, rtol=rtol, atol=atol)
    return second if second.gap < first.gap else first


def solve_l2_interior_point(
    problem: BoxProblem, start: Array, *, rtol: float = 1e-8, atol: float | None = None, max_iterations: int = MAX_STEPS
) -> BoxSolution:
    """Minimise half the squared norm until the gap is at most `max(rtol * objective, atol)`.

    Args:
        problem: with norm l2.
        start: a point of the box.
        rtol: the gap wanted, relative to the objective.
        atol: the gap wanted, absolute; by default what rounding allows.
        max_iterations: Newton systems allowed.

    Returns:
        The best point seen, with the certificate of `l2.certificate`.
    """
    floor = _floor(problem, atol)
    best_v, (best_f, best_gap), iterations = start, certificate(problem, start), 0
    free = np.flatnonzero(problem.free)
    if free.size:
        iterate = _Iterate.around(problem, start)
        while best_gap > max(rtol * best_f, floor) and iterations < max_iterations and iterate.moving:
            iterate.step()
            iterations += 1
            v = start.copy()
            nearer_lo = iterate.from_lo <= iterate.from_hi  # from the nearer end it is the more accurate
            v[free] = np.where(
                nearer_lo,
                problem.lo[free] + problem.scale * iterate.from_lo,
                problem.hi[free] - problem.scale * iterate.from_hi,
            )
            v = problem.clip(v)
            f, gap = certificate(problem, v)
            if gap < best_gap:
                best_v, best_f, best_gap = v, f, gap
    converged = best_gap <= max(rtol * best_f, floor, 0.0 if atol is not None else problem.gap_rounding)
    return BoxSolution(best_v, best_f, best_gap, iterations, bool(converged), "interior point")


def _floor(problem: BoxProblem, atol: float | None) -> float:
    return problem.objective_floor if atol is None else atol


@dataclass(eq=False)
class _Iterate:
    """Distances to the ends of the box with their multipliers, in units of the problem's scale."""

    M: Array
    c: Array
    lo: Array
    from_lo: Array
    from_hi: Array
    z_lo: Array
    z_hi: Array
    moving: bool = True

    @classmethod
    def around(cls, problem: BoxProblem, start: Array) -> _Iterate:
        """The problem in its free states, as one square system, from 1% inside the box near `start`."""
        rows, free = problem.d > 0, problem.free
        root = np.sqrt(problem.d[rows])
        M = (root * problem.gamma)[:, None] * problem.rows.matrix[np.flatnonzero(rows)][
            :, np.flatnonzero(free)
        ].toarray()
        c = (M @ start[free] - root * problem.residuals(start)[rows]) / problem.scale
        if M.shape[0] > M.shape[1]:
            Q, M = qr(M, mode="economic", check_finite=False)
            c = Q.T @ c
        lo, width = problem.lo[free] / problem.scale, (problem.hi - problem.lo)[free] / problem.scale
        from_lo = np.clip((start - problem.lo)[free] / problem.scale, 0.01 * width, 0.99 * width)
        from_hi = width - from_lo
        delta = M @ (lo + from_lo) - c
        g = M.T @ delta
        barrier = max(0.05 * float(np.dot(delta, delta)) / len(lo), float(np.finfo(float).tiny))
        z_lo, z_hi = np.maximum(g, 0.0) + barrier / from_lo, np.maximum(-g, 0.0) + barrier / from_hi
        return cls(M, c, lo, from_lo, from_hi, z_lo, z_hi)

    def step(self) -> None:
        """One step of Mehrotra's method; the unknowns are the distances to the lower ends."""
        slacks, multipliers = (self.from_lo, self.from_hi), (self.z_lo, self.z_hi)
        step = mehrotra_step(slacks, multipliers, self._newton(), equal_lengths=True, inner=np.dot)
        self.from_lo, self.from_hi = moved(slacks, step.change.slacks, step.primal)
        self.z_lo, self.z_hi = moved(multipliers, step.change.multipliers, step.dual)
        self.moving = step.primal > 1e-10

    def _newton(self) -> Callable[[Arrays], Change]:
        """The map from complementarity targets to the Newton direction at this point."""
        s, t, z, w = self.from_lo, self.from_hi, self.z_lo, self.z_hi
        root = np.sqrt(z / s + w / t)
        delta = self.M @ (self.lo + s) - self.c
        Q, R = qr(np.vstack([self.M, np.diag(root)]), mode="economic", check_finite=False)

        def direction(targets: Arrays) -> Change:
            to_lo, to_hi = targets
            h = (z + to_lo / s) - (w + to_hi / t)
            dx = solve_triangular(R, Q.T @ np.concatenate([-delta, h / root]), check_finite=False)
            return Change(dx, (dx, -dx), ((to_lo - z * dx) / s, (to_hi + w * dx) / t))

        return direction
