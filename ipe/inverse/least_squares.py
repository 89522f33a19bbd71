r"""Least squares in a box by interior points, for MDPs whose transition rows are nearly dependent.

Where the dynamics are smooth (a discretised continuous state), the singular values of P fall below the rounding of P
itself. Conjugate gradients, whose iterations grow with the spread of the singular values, stall far from the minimum.
Here each Newton step of Mehrotra's predictor-corrector method on

.. math:: \min_{lo \le x \le hi} \tfrac12 \| M x - c \|^2, \qquad M = W^{1/2} \gamma P, \quad c = W^{1/2} b,

is itself a least-squares problem, :math:`\min \|M\,dx + \delta\|^2 + \|D^{1/2} dx - D^{-1/2} h\|^2` with the barrier's
diagonal D. It is solved in one of two ways:

- Small problems without sparse factors have orthogonal ones. Nothing is squared, so residuals fall to rounding whatever
  the singular values.
- The others have Cholesky factors of :math:`M^\top M + D`, sparse or dense (`ipe.inverse.normal_equations`),
  regularised and refined. The squared system blurs directions along which the objective hardly changes. The gradient
  is computed from M itself, so that later steps correct what one step misses.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular

from ipe.base.arrays import Array
from ipe.inverse.l2 import MAX_PRODUCTS, certificate, solve_l2
from ipe.inverse.normal_equations import DENSE_UP_TO, NormalEquations, predicted_work
from ipe.inverse.predictor_corrector import Arrays, Change, mehrotra_step, moved
from ipe.inverse.problem import BoxProblem, BoxSolution
from ipe.inverse.watch import Watch

ORTHOGONAL_UP_TO = 1000
"""States up to which dense orthogonal factors take seconds."""
FIRST_PRODUCTS = 600
"""Products that conjugate gradients get before interior points get a turn; the remaining ones come after that."""
MAX_STEPS = 100
PATIENCE = 10
"""Steps without a smaller gap after which rounding errors are all that is left."""
NAME = "interior point"


def solve_least_squares(
    problem: BoxProblem, *, rtol: float = 1e-8, atol: float | None = None, watch: Watch | None = None
) -> BoxSolution:
    """Conjugate gradients; interior points where those prove too little and factors are affordable.

    Args:
        problem: with norm l2.
        rtol: the gap wanted, relative to the objective.
        atol: the gap wanted, absolute; by default what rounding allows.
        watch: told of every round.
    """
    small = int(problem.free.sum()) <= ORTHOGONAL_UP_TO
    budget = MAX_PRODUCTS if small else FIRST_PRODUCTS
    first = solve_l2(problem, rtol=rtol, atol=atol, watch=watch, max_iterations=budget)
    if _enough(problem, first, rtol, atol):
        return first
    cholesky = predicted_work(problem.rows.matrix).worthwhile(problem.rows.n_columns) or (
        not small and affordable(problem)
    )
    for orthogonal, tried in ((False, cholesky), (True, small)):
        if tried:
            second = solve_l2_interior_point(problem, first.v, rtol=rtol, atol=atol, watch=watch, orthogonal=orthogonal)
            first = second if second.gap < first.gap else first
        if _enough(problem, first, rtol, atol):
            return first
    if small:
        return first
    third = solve_l2(problem, rtol=rtol, atol=atol, watch=watch, start=first.v)
    return third if third.gap < first.gap else first


def affordable(problem: BoxProblem) -> bool:
    """Whether the problem has Newton systems that can be factorised: predicted to be sparse, or small."""
    return int(problem.free.sum()) <= DENSE_UP_TO or predicted_work(problem.rows.matrix).sparse


def _enough(problem: BoxProblem, solution: BoxSolution, rtol: float, atol: float | None) -> bool:
    """Whether the gap is reached, or is as small as rounding allows and says something."""
    reached = solution.gap <= max(rtol * solution.objective, _floor(problem, atol))
    return reached or (solution.converged and solution.gap < 0.5 * solution.objective)


def solve_l2_interior_point(
    problem: BoxProblem,
    start: Array,
    *,
    rtol: float = 1e-8,
    atol: float | None = None,
    max_iterations: int = MAX_STEPS,
    watch: Watch | None = None,
    orthogonal: bool | None = None,
) -> BoxSolution:
    """Minimise half the squared norm until the gap is at most `max(rtol * objective, atol)`.

    Args:
        problem: with norm l2.
        start: a point of the box.
        rtol: the gap wanted, relative to the objective.
        atol: the gap wanted, absolute; by default what rounding allows.
        max_iterations: how many Newton systems are allowed.
        watch: told of every step.
        orthogonal: whether Newton steps have dense orthogonal factors; by default up to 1000 states.

    Returns:
        The best point seen, with the certificate of `l2.certificate`.
    """
    watch = watch or Watch()
    floor = _floor(problem, atol)
    best_v, (best_f, best_gap), iterations = start, certificate(problem, start), 0
    free = np.flatnonzero(problem.free)
    if free.size:
        dense = free.size <= ORTHOGONAL_UP_TO if orthogonal is None else orthogonal
        iterate = (_Orthogonal if dense else _Normal)(problem, start, watch)
        idle = 0
        while (
            best_gap > max(rtol * best_f, floor) and iterations < max_iterations and iterate.moving and idle < PATIENCE
        ):
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
            idle = 0 if gap < 0.9 * best_gap else idle + 1
            if gap < best_gap:
                best_v, best_f, best_gap = v, f, gap
            watch.note(NAME, iterations, best_v, best_f, best_gap, max(rtol * best_f, floor))
    converged = best_gap <= max(rtol * best_f, floor, 0.0 if atol is not None else problem.gap_rounding)
    return BoxSolution(best_v, best_f, best_gap, iterations, bool(converged), NAME)


def _floor(problem: BoxProblem, atol: float | None) -> float:
    return problem.objective_floor if atol is None else atol


class _Iterate:
    """Distances to the ends of the box with their multipliers, in units of the problem's scale."""

    def __init__(self, problem: BoxProblem, start: Array, watch: Watch) -> None:
        free, self.watch = problem.free, watch
        self.lo, width = problem.lo[free] / problem.scale, (problem.hi - problem.lo)[free] / problem.scale
        self.from_lo = np.clip((start - problem.lo)[free] / problem.scale, 0.01 * width, 0.99 * width)
        self.from_hi = width - self.from_lo
        self.moving = True

    def start_multipliers(self, delta: Array, g: Array) -> None:
        """Multipliers that balance the gradient, from the weighted residuals and the gradient at this point."""
        barrier = max(0.05 * float(np.dot(delta, delta)) / len(g), float(np.finfo(float).tiny))
        self.z_lo = np.maximum(g, 0.0) + barrier / self.from_lo
        self.z_hi = np.maximum(-g, 0.0) + barrier / self.from_hi

    def step(self) -> None:
        """One step of Mehrotra's method; the unknowns are the distances to the lower ends."""
        slacks, multipliers = (self.from_lo, self.from_hi), (self.z_lo, self.z_hi)
        solve = self.solver(self.z_lo / self.from_lo + self.z_hi / self.from_hi)

        def direction(targets: Arrays) -> Change:
            to_lo, to_hi = (target / slack for target, slack in zip(targets, slacks, strict=True))
            dx = solve((self.z_lo + to_lo) - (self.z_hi + to_hi))
            at_lo, at_hi = self.z_lo / self.from_lo, self.z_hi / self.from_hi
            return Change(dx, (dx, -dx), (to_lo - at_lo * dx, to_hi + at_hi * dx))

        step = mehrotra_step(slacks, multipliers, direction, equal_lengths=True)
        self.from_lo, self.from_hi = moved(slacks, step.change.slacks, step.primal)
        self.z_lo, self.z_hi = moved(multipliers, step.change.multipliers, step.dual)
        self.moving = self.moving and step.primal > 1e-10

    def solver(self, barrier: Array) -> Callable[[Array], Array]:
        """The map from h to the dx that minimises the Newton step's least-squares problem."""
        raise NotImplementedError


class _Orthogonal(_Iterate):
    """Newton steps by orthogonal factors of the dense matrix M."""

    def __init__(self, problem: BoxProblem, start: Array, watch: Watch) -> None:
        super().__init__(problem, start, watch)
        rows, free = np.flatnonzero(problem.d > 0), np.flatnonzero(problem.free)
        root = np.sqrt(problem.d[rows])
        M = (root * problem.gamma)[:, None] * problem.rows.matrix[rows][:, free].toarray()
        c = (M @ start[free] - root * problem.residuals(start)[rows]) / problem.scale
        if M.shape[0] > M.shape[1]:
            Q, M = qr(M, mode="economic", check_finite=False)
            c = Q.T @ c
        self.M, self.c = M, c
        delta = M @ (self.lo + self.from_lo) - c
        self.start_multipliers(delta, M.T @ delta)

    def solver(self, barrier: Array) -> Callable[[Array], Array]:
        root = np.sqrt(barrier)
        delta = self.M @ (self.lo + self.from_lo) - self.c
        Q, R = qr(np.vstack([self.M, np.diag(root)]), mode="economic", check_finite=False)
        return lambda h: solve_triangular(R, Q.T @ np.concatenate([-delta, h / root]), check_finite=False)


class _Normal(_Iterate):
    """Newton steps by Cholesky factors of the normal equations."""

    def __init__(self, problem: BoxProblem, start: Array, watch: Watch) -> None:
        super().__init__(problem, start, watch)
        rows, free = np.flatnonzero(problem.d > 0), np.flatnonzero(problem.free)
        A = sparse.csr_array(problem.gamma * problem.rows.matrix[rows][:, free])
        self.d = problem.d[rows]
        self.b = A @ (start[free] / problem.scale) - problem.residuals(start)[rows] / problem.scale
        self.equations = NormalEquations(A, self.watch)
        self.equations.direct = True
        delta = A @ (self.lo + self.from_lo) - self.b
        self.start_multipliers(np.sqrt(self.d) * delta, A.T @ (self.d * delta))

    def solver(self, barrier: Array) -> Callable[[Array], Array]:
        A = self.equations.A
        g = A.T @ (self.d * (A @ (self.lo + self.from_lo) - self.b))
        solve = self.equations.solver(self.d, barrier)
        self.moving = not self.equations.failed
        return lambda h: solve(h - g)
