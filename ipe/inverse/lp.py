r"""l1 and l-inf as linear programs, by HiGHS.

The programs are written around the best point so far (first the l2 solution) and scaled by its largest residual, so
that the solver's absolute tolerances are relative to what is being minimised. The multipliers it returns are
not trusted: `duality.lower_bound` computes the gap from them anew.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ipe.base.arrays import Array, Indices
from ipe.inverse.duality import lower_bound
from ipe.inverse.problem import BoxProblem, BoxSolution

METHODS = ("highs-ipm", "highs-ds")
COLUMN_SCALE = 1e4
"""The factor on the probabilities: HiGHS drops coefficients below 1e-9, which would matter in a wide box."""
OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def solve_lp(problem: BoxProblem, start: Array, *, rtol: float = 1e-8, atol: float = 0.0) -> BoxSolution:
    """The exact minimiser for l1 or l-inf: interior points with crossover, then the simplex method if needed.

    Args:
        problem: with norm l1 or l-inf.
        start: a point of the box with finite residuals, best the l2 solution.
        rtol: the gap wanted, relative to the norm.
        atol: the gap wanted, absolute.

    Returns:
        The better of what the two methods found; `converged` says whether its gap is small enough.
    """
    rows = np.flatnonzero(problem.d > 0)
    matrix = sparse.csr_array(COLUMN_SCALE * problem.rows.matrix[rows])
    program = _l1_program if problem.norm == "l1" else _linf_program
    best_v, delta = start, problem.residuals(start)
    best_norm, best_bound, iterations = problem.norm_of(delta), 0.0, 0
    for method in METHODS:
        if best_norm == 0:
            break
        scale = float(np.abs(delta).max())
        centre, unit = best_v, COLUMN_SCALE * scale / problem.gamma
        x, multipliers, steps = program(problem, matrix, rows, delta[rows] / scale, centre, unit, method)
        iterations += steps
        if x is not None:
            v = problem.clip(centre + unit * x)
            following = problem.residuals(v)
            if (norm := problem.norm_of(following)) <= best_norm:
                best_v, delta, best_norm = v, following, norm
            y = np.zeros_like(problem.b)
            y[rows] = multipliers
            best_bound = max(best_bound, lower_bound(problem, y))
        if best_norm - best_bound <= max(rtol * best_norm, atol):
            break
    gap = max(0.0, best_norm - best_bound)
    return BoxSolution(best_v, best_norm, gap, iterations, gap <= max(rtol * best_norm, atol), method)


def _l1_program(
    problem: BoxProblem, matrix: sparse.csr_array, rows: Indices, delta: Array, centre: Array, unit: float, method: str
) -> tuple[Array | None, Array, int]:
    r""":math:`\min \sum d (p + m)` with :math:`M x - p + m = -\delta`, p and m not negative."""
    d = problem.d[rows] / problem.d.max()
    n_rows, n = matrix.shape
    eye = sparse.eye_array(n_rows, format="csr")
    result = linprog(
        np.concatenate([np.zeros(n), d, d]),
        A_eq=sparse.hstack([matrix, -eye, eye], format="csr"),
        b_eq=-delta,
        bounds=_bounds(problem, centre, unit, 2 * n_rows),
        method=method,
        options=OPTIONS,
    )
    if result.x is None:
        return None, np.zeros(n_rows), int(result.nit or 0)
    return result.x[:n], -result.eqlin.marginals * problem.d.max(), int(result.nit)


def _linf_program(
    problem: BoxProblem, matrix: sparse.csr_array, rows: Indices, delta: Array, centre: Array, unit: float, method: str
) -> tuple[Array | None, Array, int]:
    r""":math:`\min t` with :math:`|M x + \delta| \le t / d`."""
    n_rows, n = matrix.shape
    slack = sparse.csr_array(-(problem.d.max() / problem.d[rows])[:, None])
    result = linprog(
        np.concatenate([np.zeros(n), [1.0]]),
        A_ub=sparse.vstack([sparse.hstack([matrix, slack]), sparse.hstack([-matrix, slack])], format="csr"),
        b_ub=np.concatenate([-delta, delta]),
        bounds=_bounds(problem, centre, unit, 1),
        method=method,
        options=OPTIONS,
    )
    if result.x is None:
        return None, np.zeros(n_rows), int(result.nit or 0)
    marginals = result.ineqlin.marginals
    return result.x[:n], (marginals[n_rows:] - marginals[:n_rows]) * problem.d.max(), int(result.nit)


def _bounds(problem: BoxProblem, centre: Array, unit: float, extra: int) -> Array:
    """The box for x = (v - centre) / unit, then `extra` variables that are not negative."""
    box = np.stack([problem.lo - centre, problem.hi - centre], axis=1) / unit
    return np.concatenate([box, np.tile([0.0, np.inf], (extra, 1))])
