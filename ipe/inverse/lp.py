r"""l1 and l-inf as linear programs, by HiGHS: its interior-point method IPX without crossover, then the simplex method.

Crossover turns an interior solution into a vertex, which takes longer than the solution itself and adds nothing to its
proof. The programs are written around the best point so far (first the l2 solution) and scaled by its largest
residual, so that the solver's absolute tolerances are relative to what is being minimised. With
:math:`x = (v - \text{centre}) / u` and :math:`M x + \delta` for the residuals:

- l-inf: :math:`\min t` subject to :math:`-t/d \le M x + \delta \le t/d` and the box.
- l1: the dual program :math:`\max \delta^\top y + lo^\top z - hi^\top w` subject to :math:`M^\top y = z - w`,
  :math:`|y| \le d`, :math:`z, w \ge 0`. It has one row per state, the primal program one per pair (s, a). The
  multipliers of its rows are x.

The multipliers that HiGHS returns are not trusted: `duality.lower_bound` computes the gap from them anew.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array
from ipe.base.packages import missing_package
from ipe.inverse.duality import lower_bound
from ipe.inverse.problem import BoxProblem, BoxSolution
from ipe.inverse.watch import Watch

SOLVERS = {"ipx": "HiGHS, interior point", "simplex": "HiGHS, simplex"}
COLUMN_SCALE = 1e4
"""The factor on the probabilities: HiGHS drops coefficients below 1e-9, which would matter in a wide box."""
TOLERANCE = 1e-10
MAX_IPX_STEPS = 300
"""IPX needs some 20 to 60 steps. Where rounding keeps it from its tolerance, it would go on without end."""
SECONDS = 30.0
SECONDS_PER_ROW = 1e-3
"""A call of HiGHS gets at most these seconds plus those of its rows, so that what comes after it gets a turn."""


class _Program(NamedTuple):
    """:math:`\\min c^\\top x` subject to bounds on the rows of a matrix and on x."""

    cost: Array
    matrix: Any
    rows: tuple[Array, Array]
    columns: tuple[Array, Array]


def solve_lp(
    problem: BoxProblem,
    start: Array,
    *,
    rtol: float = 1e-8,
    atol: float = 0.0,
    watch: Watch | None = None,
    alone: bool = False,
) -> BoxSolution:
    """Minimise the l1 or l-inf norm by HiGHS.

    Args:
        problem: with norm l1 or l-inf.
        start: a point of the box with finite residuals, best the l2 solution.
        rtol: the gap wanted, relative to the norm.
        atol: the gap wanted, absolute.
        watch: told of every call.
        alone: whether IPX alone is called, and not for long, because another solver waits for its turn.

    Returns:
        The better of what the two methods found; `converged` says whether its gap is small enough.
    """
    watch = watch or Watch()
    rows = np.flatnonzero(problem.d > 0)
    matrix = sparse.csr_array(COLUMN_SCALE * problem.rows.matrix[rows])
    weight = float(problem.d.max())
    d = problem.d[rows] / weight
    best_v, delta = start, problem.residuals(start)
    best_norm, best_bound, iterations, name = problem.norm_of(delta), 0.0, 0, next(iter(SOLVERS.values()))
    if best_norm == 0 or not problem.free.any():  # nothing to lower, or nothing to lower it with
        return BoxSolution(start, best_norm, 0.0, 0, True, name)
    for solver, name in list(SOLVERS.items())[: 1 if alone else None]:
        scale = float(np.abs(delta).max())
        unit = COLUMN_SCALE * scale / problem.gamma
        box = (problem.lo - best_v) / unit, (problem.hi - best_v) / unit
        program = (_l1_program if problem.norm == "l1" else _linf_program)(matrix, delta[rows] / scale, d, box)
        watch.note(name, iterations, best_v, best_norm, math.inf, max(rtol * best_norm, atol))
        seconds = min(SECONDS + (0.1 if alone else 1.0) * SECONDS_PER_ROW * len(rows), watch.remaining)
        x, y, steps = _run(program, solver, seconds)
        iterations += steps
        if x is not None and y is not None:
            x, multipliers = _read(problem, x, y, len(rows))
            v = problem.clip(best_v + unit * x)
            following = problem.residuals(v)
            if (norm := problem.norm_of(following)) <= best_norm:
                best_v, delta, best_norm = v, following, norm
            full = np.zeros_like(problem.b)
            full[rows] = weight * multipliers
            best_bound = max(best_bound, lower_bound(problem, full))
        gap, target = max(0.0, best_norm - best_bound), max(rtol * best_norm, atol)
        watch.note(name, iterations, best_v, best_norm, gap, target)
        if gap <= target:
            break
    gap = max(0.0, best_norm - best_bound)
    return BoxSolution(best_v, best_norm, gap, iterations, gap <= max(rtol * best_norm, atol), name)


def _l1_program(matrix: sparse.csr_array, delta: Array, d: Array, box: tuple[Array, Array]) -> _Program:
    n, (lo, hi) = matrix.shape[1], box
    identity = sparse.eye_array(n)
    columns = np.concatenate([-d, np.zeros(2 * n)]), np.concatenate([d, np.full(2 * n, np.inf)])
    cost = np.concatenate([-delta, -lo, hi])
    return _Program(cost, sparse.hstack([matrix.T, -identity, identity]), (np.zeros(n), np.zeros(n)), columns)


def _linf_program(matrix: sparse.csr_array, delta: Array, d: Array, box: tuple[Array, Array]) -> _Program:
    (n_rows, n), (lo, hi) = matrix.shape, box
    slack = sparse.csr_array((1.0 / d)[:, None])
    both = sparse.vstack([sparse.hstack([matrix, -slack]), sparse.hstack([matrix, slack])])
    free = np.full(n_rows, np.inf)
    bounds = np.concatenate([-free, -delta]), np.concatenate([-delta, free])
    return _Program(np.append(np.zeros(n), 1.0), both, bounds, (np.append(lo, 0.0), np.append(hi, np.inf)))


def _read(problem: BoxProblem, x: Array, y: Array, n_rows: int) -> tuple[Array, Array]:
    """The point and the multipliers of the residuals, from the columns' values and the rows' multipliers."""
    if problem.norm == "l1":
        return y, x[:n_rows]
    return x[:-1], -(y[:n_rows] + y[n_rows:])


def _run(program: _Program, solver: str, seconds: float) -> tuple[Array | None, Array | None, int]:
    """The columns' values, the rows' multipliers (None if there are none), and the number of iterations."""
    try:
        import highspy
    except ImportError:
        raise missing_package("method 'highs'", "highspy") from None
    matrix = sparse.csc_array(program.matrix)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_ = program.cost
    lp.row_lower_, lp.row_upper_ = program.rows
    lp.col_lower_, lp.col_upper_ = program.columns
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    highs = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("solver", solver),
        ("run_crossover", "off"),
        ("threads", 1),
        ("time_limit", min(float(seconds), 1e9)),
        ("primal_feasibility_tolerance", TOLERANCE),
        ("dual_feasibility_tolerance", TOLERANCE),
        ("ipm_optimality_tolerance", TOLERANCE),
        ("ipm_iteration_limit", MAX_IPX_STEPS),
    ):
        highs.setOptionValue(option, value)
    if solver == "ipx":
        highs.setOptionValue("presolve", "off")  # it takes longer than it saves
    highs.passModel(lp)
    _solve(highs)
    solution, info = highs.getSolution(), highs.getInfo()
    count = max(0, int(info.ipm_iteration_count)) + max(0, int(info.simplex_iteration_count))
    if not solution.value_valid or not solution.dual_valid:
        return None, None, count
    values, multipliers = np.array(solution.col_value), np.array(solution.row_dual)
    finite = bool(np.isfinite(values).all() and np.isfinite(multipliers).all())
    return (values, multipliers, count) if finite else (None, None, count)


def _solve(highs: Any) -> None:
    """Run HiGHS in its thread, so that Ctrl-C reaches Python while it works."""
    highs.HandleKeyboardInterrupt = True
    highs.startSolve()
    try:
        while not highs.wait(0.1)[0]:
            pass
    except KeyboardInterrupt:
        highs.cancelSolve()
        while not highs.wait(0.1)[0]:
            pass
        raise
