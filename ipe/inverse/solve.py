r"""The evaluation policy of a value function: the paper's `eq:eval-policy-problem`, solved exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from ipe.base.arrays import Array
from ipe.base.numbers import check_positive
from ipe.base.words import one_of
from ipe.checks import Form, check_one_form, check_weights
from ipe.errors import InputError, NotSolvedError, SolveInterrupted
from ipe.inverse.closed_forms import clip_values, has_exact_successors, separable, unconstrained
from ipe.inverse.interior_point import solve_interior_point
from ipe.inverse.l2 import certificate, solve_l2
from ipe.inverse.least_squares import FIRST_PRODUCTS, affordable, solve_l2_interior_point, solve_least_squares
from ipe.inverse.lift import maximum_entropy_lift
from ipe.inverse.lp import solve_lp
from ipe.inverse.normal_equations import DENSE_UP_TO, predicted_work
from ipe.inverse.pdhg import solve_pdhg
from ipe.inverse.problem import BoxProblem, BoxSolution, Norm, q_problem, v_problem
from ipe.inverse.result import EvaluationPolicy
from ipe.inverse.uniqueness import known_uniqueness
from ipe.inverse.watch import INTERRUPTED, TIME_LIMIT, ProgressCallback, StartWatch, TimeOverError, Watch
from ipe.mdp import FiniteMDP
from ipe.planning.operators import backup
from ipe.planning.policies import share

Method: TypeAlias = Literal["auto", "closed-form", "projected-cg", "highs", "interior-point", "pdhg"]

METHODS_OF: dict[str, tuple[str, ...]] = {
    "l2": ("closed-form", "projected-cg", "interior-point"),
    "l1": ("closed-form", "highs", "interior-point", "pdhg"),
    "linf": ("closed-form", "highs", "interior-point", "pdhg"),
}
SOLVERS: dict[str, Callable[..., BoxSolution]] = {
    "highs": solve_lp,
    "interior-point": solve_interior_point,
    "pdhg": solve_pdhg,
}
DEFAULT_RTOL = {"highs": 1e-8, "interior-point": 1e-6, "pdhg": 1e-4}
BUDGETS: dict[str, dict[str, Any]] = {"highs": {"alone": True}, "pdhg": {"max_iterations": 4000}}
"""What a method may spend while another one waits for its turn: one call of IPX; some iterations of PDHG."""
L2_RTOL = 1e-8
SMALL = 1000
"""States up to which every method takes seconds, so that the relative gap is 1e-8 by default."""
WIDE_FLOPS = 5e7
"""Work of a sparse factor from which HiGHS's IPX gets the first turn for l-inf: a grid of some 80 by 80 cells."""


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
            queues, walks) or the MDP is small, HiGHS's IPX for l-inf on large grids; on random graphs (Garnets)
            interior points for l-inf and PDHG for l1, and PDHG where dense factors would not fit. A method that misses
            the gap is followed by another.
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
    form, given = check_one_form(mdp, v, q)
    one_of(norm, METHODS_OF, "norm")
    one_of(on_miss, ("raise", "flag"), "on_miss")
    d = check_weights(mdp, weights, form)
    rtol = None if rtol is None else check_positive(rtol, "rtol")
    atol = None if atol is None else check_positive(atol, "atol")
    tolerance = check_positive(tolerance, "tolerance")
    q_values = backup(mdp, given) if form == "v" else given
    problem = v_problem(mdp, given, q_values, norm, d) if form == "v" else q_problem(mdp, given, norm, d)
    turns = _choose(mdp, problem, form, method)
    watch = Watch(None if time_limit is None else check_positive(time_limit, "time_limit"), progress)
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


def _choose(mdp: FiniteMDP, problem: BoxProblem, form: Form, method: str) -> tuple[str, ...]:
    """The methods that get a turn, in their order: the one asked for, or for "auto" those that suit the structure."""
    one_of(method, get_args(Method), "method")
    closed = form == "v" or has_exact_successors(mdp) or not problem.free.any()
    if method == "closed-form" and not closed:
        raise InputError("method: there is a closed form only for v, for deterministic transitions or for gamma = 0")
    if method not in ("auto", *METHODS_OF[problem.norm]):
        raise InputError(f"method {method!r} does not solve {problem.norm}; {', '.join(METHODS_OF[problem.norm])} do")
    if method == "interior-point" and not affordable(problem):
        raise InputError(
            f"method 'interior-point' would need dense factors here, of at most {DENSE_UP_TO} states; "
            f"found {mdp.n_states}"
        )
    if method != "auto":
        return (method,)
    if closed:
        return ("closed-form",)
    if problem.norm == "l2":
        return ("auto",)
    if mdp.n_states <= SMALL:
        return ("interior-point", "highs")
    work = predicted_work(problem.rows.matrix)
    if work.worthwhile(mdp.n_states):
        # On wide but sparse graphs IPX needs one good basis instead of a factor per step: up to three times as fast for
        # l-inf, but five times slower for l1.
        wide = problem.norm == "linf" and work.flops > WIDE_FLOPS
        return ("highs", "interior-point", "pdhg") if wide else ("interior-point", "pdhg")
    if mdp.n_states > DENSE_UP_TO:
        return ("pdhg",)
    return ("interior-point", "pdhg") if problem.norm == "linf" else ("pdhg", "interior-point")


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
        return BoxSolution(v, objective, gap, watch.iterations, False, watch.method or "none", stopped=stopped)


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


def make_result(
    mdp: FiniteMDP,
    form: Form,
    given: Array,
    q_values: Array,
    problem: BoxProblem,
    solution: BoxSolution,
    *,
    tolerance: float,
    policy: tuple[Array, Array] | None = None,
    lower: float | None = None,
) -> EvaluationPolicy:
    """The result that a solution stands for: its lift, its residuals, and what follows from them.

    Args:
        mdp, form, given: the MDP, which form the values have, and the values.
        q_values: the action values that v averages: Q, or q_V in the V form.
        problem, solution: the box problem and its solution.
        tolerance: the residual, relative, at which values count as achievable.
        policy: the policy and its inverse temperatures, if they are known already.
        lower: a lower bound on every policy's residual, if it does not follow from the gap of the solution.
    """
    if policy is None:
        v, pi, eta = _lifted(mdp, form, q_values, problem, solution)
    else:
        v, (pi, eta) = solution.v, policy
    delta = problem.residuals(v)
    residual = problem.norm_of(delta)
    lower = _residual_lower_bound(problem, solution) if lower is None else lower
    sup = _sup_residual(problem, mdp, form, v)
    rho = min(sup, _sup_lower_bound(problem, mdp, form, lower, sup))
    allowed_residual = tolerance * max(1.0, float(np.abs(given).max(initial=0.0)))
    achievable: bool | None = None
    if sup <= allowed_residual:
        achievable = True
    elif rho > allowed_residual:
        achievable = False
    return EvaluationPolicy(
        mdp=mdp,
        form=form,
        given=given,
        norm=problem.norm,
        policy=pi,
        v=v,
        inverse_temperatures=eta,
        residual=residual,
        residual_lower_bound=lower,
        sup_residual=sup,
        objective=solution.objective,
        gap=solution.gap,
        achievable=achievable,
        distance_bounds=(rho / (1.0 + mdp.gamma), sup / (1.0 - mdp.gamma)),
        unique=solution.unique,
        method=solution.method,
        iterations=solution.iterations,
        converged=solution.converged,
        tolerance=tolerance,
        stopped=solution.stopped,
    )


def _lifted(
    mdp: FiniteMDP, form: Form, q: Array, problem: BoxProblem, solution: BoxSolution
) -> tuple[Array, Array, Array]:
    """v, its policy and inverse temperatures; where the norm does not see v, the clip of V or the uniform policy."""
    seen = problem.constrained
    v = np.where(seen, solution.v, problem.clip(problem.b) if form == "v" else _mean(mdp, q))
    pi, eta = maximum_entropy_lift(q, v, mdp.allowed)
    if form == "q" and not seen.all():
        pi, eta = np.where(seen[:, None], pi, share(mdp.allowed)), np.where(seen, eta, 0.0)
    return v, pi, eta


def _mean(mdp: FiniteMDP, q: Array) -> Array:
    count = np.maximum(mdp.allowed.sum(axis=1), 1)
    mean: Array = np.where(mdp.allowed, q, 0.0).sum(axis=1) / count
    return mean


def _residual_lower_bound(problem: BoxProblem, solution: BoxSolution) -> float:
    best = max(0.0, solution.objective - solution.gap)
    return float(np.sqrt(2.0 * best)) if problem.norm == "l2" else best


def _sup_residual(problem: BoxProblem, mdp: FiniteMDP, form: Form, v: Array) -> float:
    """The largest residual over all rows that the MDP has, those of weight zero included."""
    present = ~mdp.terminal if form == "v" else mdp.allowed.ravel()
    delta = np.where(present, problem.gamma * problem.rows.times(v) - problem.b, 0.0)
    return float(np.abs(delta).max(initial=0.0))


def _sup_lower_bound(problem: BoxProblem, mdp: FiniteMDP, form: Form, lower: float, sup: float) -> float:
    """A lower bound on the largest residual of every policy: exact where known, else from the bound in the norm."""
    if form == "v":  # the clip is optimal in the sup norm too
        return _sup_residual(problem, mdp, form, problem.clip(problem.b))
    if problem.gamma == 0 or not (problem.hi > problem.lo)[mdp.transitions.indices].any():
        return sup  # no policy changes any residual
    return lower / float(problem.d.max()) if problem.norm == "linf" else lower
