r"""The evaluation policy of a value function: the paper's `eq:eval-policy-problem`, solved exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ipe.base.arrays import Array
from ipe.base.numbers import check_positive
from ipe.base.words import one_of
from ipe.checks import Form
from ipe.errors import NotSolvedError, SolveInterrupted
from ipe.inverse.choice import METHODS_OF, SMALL, Method, choose
from ipe.inverse.closed_forms import clip_values, separable, unconstrained
from ipe.inverse.interior_point import solve_interior_point
from ipe.inverse.l2 import certificate, solve_l2
from ipe.inverse.least_squares import FIRST_PRODUCTS, solve_l2_interior_point, solve_least_squares
from ipe.inverse.lp import solve_lp
from ipe.inverse.outcome import make_result
from ipe.inverse.pdhg import solve_pdhg
from ipe.inverse.problem import BoxProblem, BoxSolution, Norm, pose
from ipe.inverse.result import EvaluationPolicy
from ipe.inverse.uniqueness import known_uniqueness
from ipe.inverse.watch import INTERRUPTED, TIME_LIMIT, ProgressCallback, StartWatch, TimeOverError, Watch
from ipe.mdp import FiniteMDP

SOLVERS: dict[str, Callable[..., BoxSolution]] = {
    "highs": solve_lp,
    "interior-point": solve_interior_point,
    "pdhg": solve_pdhg,
}
DEFAULT_RTOL = {"highs": 1e-8, "interior-point": 1e-6, "pdhg": 1e-4}
BUDGETS: dict[str, dict[str, Any]] = {"highs": {"alone": True}, "pdhg": {"max_iterations": 4000}}
"""What a method may spend while another one waits for its turn: one call of IPX; some iterations of PDHG."""
L2_RTOL = 1e-8


def evaluation_policy(
    mdp: FiniteMDP,
    *,
    v: Any = None,
    q: Any = None,
    norm: Norm = "l2",
    weights: Any = None,
    method: Method = "auto",
    rtol: float | None = None,
    atol: float | None = None,
    tolerance: float = 1e-9,
    on_miss: Literal["raise", "flag"] = "raise",
    time_limit: float | None = None,
    progress: ProgressCallback | None = None,
) -> EvaluationPolicy:
    r"""The evaluation policy: the policy whose Bellman equation the given values satisfy best.

    .. math:: \pi \in \arg\min_\beta \|Q - T^\beta Q\|_d \qquad (\text{or } \|V - T^\beta V\|_d)

    The policy enters only through :math:`v(s) = \sum_a \pi(a|s) Q(s,a)`, so this is a regression in |S|
    unknowns, each between the least and the largest action value of its state; see `ipe.inverse.problem`. Among
    the policies with that v, the result is the one of maximum entropy.

    Args:
        mdp: the MDP.
        v: state values, shape (S,); or
        q: action values, shape (S, A). Exactly one of the two.
        norm: "l2" :math:`\sqrt{\sum d x^2}`, "l1" :math:`\sum d |x|`, or "linf" :math:`\max d |x|`.
        weights: d, of the shape of the values: not negative, not all zero. For l1 and l2 they are normalised to sum
            to one; for l-inf they are taken as they are. Default: equal (one, for l-inf). Rows of weight zero
            are dropped.
        method: "auto" takes the closed form where there is one (V form, deterministic transitions). Else it chooses by
            the structure of the MDP. For l2: projected conjugate gradients, and interior points where those stall. For
            l1 and l-inf: interior points wherever the factors of their systems are predicted to be sparse (grids,
            queues, walks, stars) or dense ones are cheap, HiGHS's IPX for l-inf on large grids; on larger random graphs
            (Garnets) interior points for l-inf and PDHG for l1, and PDHG where dense factors would not fit. A method
            that misses the gap is followed by another.
        rtol: the relative gap to reach. By default 1e-8 for l2 and up to 1000 states, 1e-6 for interior points and 1e-4
            for PDHG beyond.
        atol: the absolute gap to reach. By default what rounding allows.
        tolerance: values count as achievable when the sup-norm residual is at most `tolerance` times the largest
            absolute value (at least 1).
        on_miss: what to do when the gap is missed: "raise" a `NotSolvedError` that carries the result, or "flag"
            it by `converged=False`.
        time_limit: how many seconds the solve may take. When they are over, the best point so far is returned with
            its proven gap, flagged by `converged=False` and `stopped="time limit"`, whatever `on_miss` says.
        progress: called with a `SolveProgress` (method, iterations, objective, gap, target, seconds) after each round.

    Returns:
        The policy with residual, gap, achievability and distance bounds.

    Raises:
        NotSolvedError: the gap was missed; the error's `result` holds the best policy found.
        SolveInterrupted: Ctrl-C was pressed; it is a `KeyboardInterrupt` whose `result` holds the best policy so far.

    Example:
        >>> import ipe
        >>> result = ipe.evaluation_policy(ipe.zoo.switch_stay(), v=[18.0, -6.0])
        >>> result.policy
        array([[1., 0.],
               [1., 0.]])
        >>> result.achievable, round(result.residual, 3), result.gap
        (False, 1.924, 0.0)
        >>> optimal = ipe.evaluation_policy(ipe.zoo.switch_stay(), q=[[16.3, 17.0], [20.0, 15.3]])
        >>> optimal.achievable, optimal.policy
        (True, array([[0., 1.],
               [1., 0.]]))
    """
    watch = Watch(None if time_limit is None else check_positive(time_limit, "time_limit"), progress)
    one_of(norm, METHODS_OF, "norm")
    one_of(on_miss, ("raise", "flag"), "on_miss")
    form, given, q_values, problem = pose(mdp, v, q, norm, weights)
    rtol = None if rtol is None else check_positive(rtol, "rtol")
    atol = None if atol is None else check_positive(atol, "atol")
    tolerance = check_positive(tolerance, "tolerance")
    turns = choose(mdp, problem, form, method)
    solution = _watched(problem, turns, form, rtol, atol, watch)
    result = make_result(mdp, form, given, q_values, problem, solution, tolerance=tolerance)
    if solution.stopped == INTERRUPTED:
        raise SolveInterrupted(result)
    if not result.converged and not solution.stopped and on_miss == "raise":
        raise NotSolvedError(
            f"{result.method} stopped after {result.iterations} iterations with a gap of {result.gap:.3g} for an "
            f'objective of {result.objective:.6g}; ask for less (rtol, atol), or take what there is (on_miss="flag")',
            result,
        )
    return result


def _watched(
    problem: BoxProblem, turns: tuple[str, ...], form: Form, rtol: float | None, atol: float | None, watch: Watch
) -> BoxSolution:
    """The solution, or the best point so far if the time was over or Ctrl-C was pressed."""
    try:
        return _solve(problem, turns, form, rtol, atol, watch)
    except (TimeOverError, KeyboardInterrupt) as reason:
        v = 0.5 * (problem.lo + problem.hi) if watch.v is None else watch.v
        if problem.norm == "l2":
            objective, gap = certificate(problem, v)
        else:
            objective = problem.norm_of(problem.residuals(v))
            gap = objective - max(0.0, watch.lower)
        stopped = TIME_LIMIT if isinstance(reason, TimeOverError) else INTERRUPTED
        return BoxSolution(
            v, objective, gap, watch.iterations, False, watch.method or "middle of the box", stopped=stopped
        )


def _solve(
    problem: BoxProblem, turns: tuple[str, ...], form: Form, rtol: float | None, atol: float | None, watch: Watch
) -> BoxSolution:
    if not problem.free.any():
        return unconstrained(problem)
    if turns == ("closed-form",):
        return clip_values(problem) if form == "v" else separable(problem)
    if problem.norm == "l2":
        return known_uniqueness(problem, _solve_l2(problem, turns[0], L2_RTOL if rtol is None else rtol, atol, watch))
    start = _start(problem, StartWatch(watch))
    norm = problem.norm_of(problem.residuals(start))
    floor = problem.norm_of(np.full_like(problem.b, problem.achieved)) if atol is None else atol
    if norm <= floor:  # the values are achievable: nothing is left to minimise but rounding errors
        return BoxSolution(start, norm, norm, 0, True, "least squares")
    best: BoxSolution | None = None
    for method in turns:
        wanted = rtol or (1e-8 if len(problem.lo) <= SMALL else DEFAULT_RTOL[method])
        budget = BUDGETS.get(method, {}) if method != turns[-1] else {}
        found = SOLVERS[method](problem, start, rtol=wanted, atol=floor, watch=watch, **budget)
        best = found if best is None else _better(best, found, max(wanted * found.objective, floor))
        if best.converged:
            break
        start = best.v
    assert best is not None
    return best


def _start(problem: BoxProblem, watch: Watch) -> Array:
    """The l2 solution, or on larger problems what conjugate gradients make of it in some seconds."""
    if len(problem.lo) <= SMALL:
        return solve_least_squares(problem.in_l2(), watch=watch).v
    return solve_l2(problem.in_l2(), watch=watch, max_iterations=FIRST_PRODUCTS).v


def _better(one: BoxSolution, other: BoxSolution, target: float) -> BoxSolution:
    """The better point of two solutions with the better lower bound of both."""
    best = other if other.objective <= one.objective else one
    lower = max(one.objective - one.gap, other.objective - other.gap)
    gap = max(0.0, best.objective - lower)
    iterations = one.iterations + other.iterations
    return replace(best, gap=gap, converged=gap <= target, iterations=iterations, method=other.method)


def _solve_l2(problem: BoxProblem, method: str, rtol: float, atol: float | None, watch: Watch) -> BoxSolution:
    if method == "interior-point":
        start = 0.5 * (problem.lo + problem.hi)
        return solve_l2_interior_point(problem, start, rtol=rtol, atol=atol, watch=watch)
    solver = solve_l2 if method == "projected-cg" else solve_least_squares
    return solver(problem, rtol=rtol, atol=atol, watch=watch)
