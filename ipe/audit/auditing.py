"""The audit of a Q-function in hand on a batch of transitions: of arrays, and of networks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ipe.audit.exact import audit_table
from ipe.audit.result import Audit, PolicySource, SampleAudit
from ipe.audit.samples import audit_samples, check_policy_rows, check_rows
from ipe.base.arrays import Mask
from ipe.base.numbers import check_positive, whole_number
from ipe.deep.transitions import Transitions, make_transitions
from ipe.errors import InputError
from ipe.mdp_input import check_gamma

if TYPE_CHECKING:
    from ipe.audit.fitting import Fit


def audit(
    transitions: Transitions | Mapping[str, Any],
    *,
    q: Any,
    gamma: float,
    q_next: Any = None,
    policy: Any = None,
    policy_next: Any = None,
    deterministic: bool | None = None,
    fit: Fit | None = None,
    worst: int = 10,
    tolerance: float | None = None,
) -> Audit:
    r"""Is this the value of any policy on this data, of which, and how far off is it?

    Transitions between numbered states and a table of values are audited by exact inverse policy evaluation on the
    empirical model (`ipe.audit.exact`). For other observations, give Q(s, .) and Q(s', .) of each transition. Without a
    model, every transition is judged by itself (`ipe.audit.samples`); the evaluation policy is the given one, or it is
    fitted to a part of the batch and judged by the rest.

    Audit on transitions that the values were not learned from: values know the noise of their own training data, and
    look better on it than they are.

    Args:
        transitions: the batch, or a mapping from the names that `make_transitions` lists to arrays.
        q: action values, shape (states, actions), NaN where an action does not exist. With `q_next`: Q(s, .) of each
            transition, shape (n, actions).
        gamma: the discount, in [0, 1).
        q_next: Q(s', .) of each transition, shape (n, actions).
        policy: with a table, another policy to judge beside the evaluation policy and the greedy one, such as a policy
            network's; shape (states, actions).
        policy_next: with `q_next`, probabilities of the evaluation policy at each s', shape (n, actions). Default: a
            policy is fitted.
        deterministic: whether a pair (s, a) always has the same reward and successor. None: for a table, the batch
            shows it; otherwise it is not known.
        fit: how a policy is fitted.
        worst: how many of the worst states to list, or of the transitions that no policy explains.
        tolerance: values count as achievable up to this residual, relative to the largest absolute value (at least 1).
            Default: 1e-9 for a table; 1e-5 for values per transition, because networks compute in single precision.

    Returns:
        A `TableAudit` or a `SampleAudit`; printed, it is a table.

    Raises:
        InputError: naming the array and the index.

    Example:
        >>> batch = {"state": [0, 0, 1, 1], "action": [0, 1, 0, 1], "reward": [1.0, -1.0, 2.0, 0.0],
        ...          "next_state": [0, 1, 1, 0], "terminated": [False] * 4}
        >>> optimal = audit(batch, q=[[16.3, 17.0], [20.0, 15.3]], gamma=0.9, deterministic=True)
        >>> optimal.achievable, optimal.policy
        (True, array([[0., 1.],
               [1., 0.]]))
        >>> wrong = audit(batch, q=[[16.3, 19.0], [20.0, 15.3]], gamma=0.9, deterministic=True)
        >>> wrong.achievable, round(wrong.distance_bounds[0], 3)
        (False, 1.053)
    """
    if not isinstance(transitions, Transitions):
        transitions = make_transitions(transitions)
    gamma = check_gamma(gamma)
    whole_number(worst, "worst", 0)
    if tolerance is not None:
        tolerance = check_positive(tolerance, "tolerance")
    if q_next is None:
        if not transitions.discrete:
            raise InputError(
                "q_next is missing: without numbered states (state, next_state), Q is given as q and q_next, each of "
                "shape (transitions, actions)"
            )
        if policy_next is not None:
            raise InputError("policy_next goes with q_next: for a table the evaluation policy is solved for")
        tolerance = 1e-9 if tolerance is None else tolerance
        return audit_table(transitions, q, gamma, policy, deterministic=deterministic, worst=worst, tolerance=tolerance)
    if policy is not None:
        raise InputError("policy goes with a table of values: with q_next, give policy_next")
    q_sa, rows = check_rows(transitions, q, q_next)
    fitted: Mask | None = None
    source: PolicySource = "given"
    if policy_next is None:
        from ipe.audit.fitting import Fit, fit_policy, split  # JAX takes seconds to import

        fit = Fit() if fit is None else fit
        fitted = split(len(transitions), fit)
        policy_next, source = fit_policy(transitions, q_sa, rows, gamma, fitted, fit), "fitted"
    return audit_samples(
        transitions,
        q_sa,
        rows,
        gamma,
        check_policy_rows(policy_next, transitions, rows.shape[1]),
        source,
        fitted=fitted,
        deterministic=deterministic,
        worst=worst,
        tolerance=1e-5 if tolerance is None else tolerance,
    )


@dataclass(frozen=True)
class Networks:
    """The networks of a trained agent, as functions of observations."""

    q: Callable[[NDArray[Any]], NDArray[Any]]
    """Q(s, .) at observations, shape (n, A)."""
    pi: Callable[[NDArray[Any]], NDArray[Any]] | None
    """The policy network's probabilities at observations, shape (n, A); None without a policy network."""
    gamma: float
    """The discount that the agent was trained with."""


def audit_networks(
    networks: Networks,
    batch: Transitions,
    *,
    every_state: NDArray[Any] | None = None,
    for_fit: Transitions | None = None,
    fit: Fit | None = None,
    refit: bool = False,
    **options: Any,
) -> Audit:
    """Audit an agent's Q-network: as a table where states are numbered, else transition by transition.

    Args:
        networks: the agent's networks.
        batch: the transitions.
        every_state: for a batch between numbered states, the observations of all states in order.
        for_fit: the same transitions in the form that a policy is fitted to. Default: `batch`.
        fit: how a policy is fitted.
        refit: fit a policy even if there is a policy network; refused for a table.
        options: `deterministic`, `worst` and `tolerance` of `audit`.
    """
    q, pi = networks.q, networks.pi
    if every_state is not None:
        refuse_refit(refit)
        policy = None if pi is None else pi(every_state)
        return audit(batch, q=q(every_state), gamma=networks.gamma, policy=policy, **options)
    here, there = np.asarray(batch.observation), np.asarray(batch.next_observation)
    policy_next = None if pi is None or refit else pi(there)
    rows: dict[str, Any] = {"q": q(here), "q_next": q(there), "policy_next": policy_next}
    result = audit(batch if for_fit is None else for_fit, gamma=networks.gamma, fit=fit, **rows, **options)
    if policy_next is not None and isinstance(result, SampleAudit):
        return dataclasses.replace(result, source="network")
    return result


def refuse_refit(refit: bool) -> None:
    """Refuse to fit a policy where Q is a table."""
    if refit:
        raise InputError(
            "refit is not for numbered states: there Q is a table, whose evaluation policy is solved for and not "
            "fitted; leave it out"
        )
