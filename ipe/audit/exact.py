"""The audit of a table of action values: exact inverse policy evaluation on the empirical model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.audit.decomposition import (
    Decomposition,
    PairErrors,
    crossed_residual,
    decompose,
    fit_optimism,
    pair_errors,
)
from ipe.audit.empirical import EmpiricalModel, empirical_model
from ipe.audit.result import Exploration, TableAudit, WorstState
from ipe.base.arrays import Array, Indices, numeric
from ipe.checks import check_policy
from ipe.deep.transitions import Transitions
from ipe.entropy import epsilon_from_probabilities
from ipe.errors import InputError
from ipe.inverse import EvaluationPolicy, evaluation_policy
from ipe.inverse.choice import SMALL
from ipe.inverse.closed_forms import has_exact_successors
from ipe.planning import action_bounds
from ipe.planning.operators import average

EVIDENCE = 2.0
"""The number of standard errors by which the residual has to exceed 0 to count as more than noise."""
AT_AN_END = 1e-9
"""How near to an end of its box v counts as being at that end, relative to the box's width."""


def audit_table(
    transitions: Transitions,
    q: Any,
    gamma: float,
    policy: Any = None,
    *,
    deterministic: bool | None,
    worst: int,
    tolerance: float,
) -> TableAudit:
    """Audit a table of action values; the arguments are those of `ipe.audit.audit`."""
    model = empirical_model(transitions, q, gamma, deterministic)
    solution = evaluation_policy(model.mdp, q=model.q, weights=model.weights, on_miss="flag")
    lo, hi = action_bounds(model.mdp, model.q)
    errors, greedy_errors = pair_errors(model, solution.v), pair_errors(model, hi)
    width = hi - lo
    free = (solution.v > lo + AT_AN_END * width) & (solution.v < hi - AT_AN_END * width) & (width > 0)
    evaluation = decompose(model, errors, fit_optimism(model, errors, free & (_arrived(model) > 0)))
    rho = _sup_residual(model, solution, errors)
    return TableAudit(
        gamma=model.mdp.gamma,
        transitions=len(transitions),
        model=model,
        solution=solution,
        policy=solution.policy[:-1],
        evaluation=evaluation,
        greedy=decompose(model, greedy_errors),
        given=None if policy is None else _given(model, policy),
        crossed=evaluation.residual if model.deterministic else crossed_residual(model),
        evaluation_errors=errors,
        greedy_errors=greedy_errors,
        sup_residual=rho,
        distance_bounds=(rho[0] / (1.0 + model.mdp.gamma), rho[1] / (1.0 - model.mdp.gamma)),
        achievable=_verdict(model, evaluation, rho, tolerance),
        exploration=_exploration(model, solution),
        worst=_worst(model, solution, errors, greedy_errors, worst),
    )


def _given(model: EmpiricalModel, policy: Any) -> Decomposition:
    """The parts of the squared TD error under a policy that came with the values."""
    pi = numeric(policy, "policy")
    shape = (model.mdp.n_states - 1, model.mdp.n_actions)
    if pi.shape != shape:
        raise InputError(f"policy must have shape {shape}, as q; found {pi.shape}")
    pi = check_policy(model.mdp, np.concatenate([pi, np.zeros((1, shape[1]))]))
    return decompose(model, pair_errors(model, average(pi, model.q)))


def _sup_residual(model: EmpiricalModel, solution: EvaluationPolicy, errors: PairErrors) -> tuple[float, float]:
    r"""Bounds on :math:`\rho` over the pairs that count, exact to a solver's gap where the l-inf problem is cheap."""
    lower, upper = solution.residual_lower_bound, float(np.abs(errors.mean).max())
    if model.mdp.n_states <= SMALL or has_exact_successors(model.mdp):
        flat = (model.weights > 0).astype(np.float64)
        sup = evaluation_policy(model.mdp, q=model.q, norm="linf", weights=flat, on_miss="flag")
        lower, upper = max(lower, sup.residual_lower_bound), min(upper, sup.residual)
    return min(lower, upper), upper


def _verdict(
    model: EmpiricalModel, evaluation: Decomposition, rho: tuple[float, float], tolerance: float
) -> bool | None:
    """Whether the values are those of a policy; None where the batch cannot say."""
    allowed = tolerance * max(1.0, float(np.abs(model.q).max()))
    if rho[1] <= allowed:
        return True
    if model.deterministic:
        return False if rho[0] > allowed else None
    return False if evaluation.residual > EVIDENCE * evaluation.standard_error + allowed**2 else None


def _arrived(model: EmpiricalModel) -> Indices:
    """How often transitions arrived at each state, shape (S + 1,)."""
    return np.asarray(np.bincount(model.successor, minlength=model.mdp.n_states), dtype=np.intp)


def _exploration(model: EmpiricalModel, solution: EvaluationPolicy) -> Exploration:
    arrivals = _arrived(model)[:-1].astype(np.float64)
    seen = np.flatnonzero(arrivals)
    weights = arrivals[seen] / max(arrivals.sum(), 1.0)
    return Exploration(solution.entropy[seen], _epsilon(model, solution)[seen], weights)


def _epsilon(model: EmpiricalModel, solution: EvaluationPolicy) -> Array:
    return np.asarray(epsilon_from_probabilities(solution.policy, model.mdp.allowed), dtype=np.float64)


def _worst(
    model: EmpiricalModel, solution: EvaluationPolicy, errors: PairErrors, greedy: PairErrors, count: int
) -> tuple[WorstState, ...]:
    """The visited states with the largest residuals under the evaluation policy, the largest first."""
    n_states = model.mdp.n_states
    visits = np.bincount(model.state, model.count, minlength=n_states)

    def root_mean_square(of: PairErrors) -> Array:
        sums = np.bincount(model.state, model.count * of.mean**2, minlength=n_states)
        return np.asarray(np.sqrt(sums / np.maximum(visits, 1.0)))

    residual, greedy_residual = root_mean_square(errors), root_mean_square(greedy)
    epsilon = _epsilon(model, solution)
    ranked = np.argsort(-residual, kind="stable")
    rows = []
    for s in ranked[visits[ranked] > 0][:count]:
        pairs = np.flatnonzero(model.state == s)
        at = pairs[np.argmax(np.abs(errors.mean[pairs]))]
        rows.append(
            WorstState(
                state=int(s),
                visits=int(visits[s]),
                residual=float(residual[s]),
                greedy_residual=float(greedy_residual[s]),
                action=int(model.action[at]),
                delta=float(errors.mean[at]),
                standard_error=float(errors.standard_error[at]),
                entropy=float(solution.entropy[s]),
                epsilon=float(epsilon[s]),
            )
        )
    return tuple(rows)
