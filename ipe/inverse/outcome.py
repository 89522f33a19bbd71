"""From a point of the box to what users get: the policy of maximum entropy, its residuals, and what they prove."""

from __future__ import annotations

import numpy as np

from ipe.base.arrays import Array
from ipe.checks import Form
from ipe.inverse.lift import maximum_entropy_lift
from ipe.inverse.problem import BoxProblem, BoxSolution
from ipe.inverse.result import EvaluationPolicy
from ipe.mdp import FiniteMDP
from ipe.planning.policies import share


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
