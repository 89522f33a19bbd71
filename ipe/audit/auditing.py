"""The audit of a Q-function in hand on a batch of transitions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ipe.audit.exact import audit_table
from ipe.audit.result import Audit, PolicySource
from ipe.audit.samples import audit_samples, check_policy_rows, check_rows
from ipe.audit.transitions import Transitions, make_transitions
from ipe.base.numbers import check_positive, whole_number
from ipe.errors import InputError
from ipe.mdp_input import check_gamma

if TYPE_CHECKING:
    from ipe.audit.fitting import Fit

GIVEN: PolicySource = "given"
FITTED: PolicySource = "fitted"


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
    empirical model (`ipe.audit.exact`). Other observations come with Q(s, .) and Q(s', .) per transition; without a
    model, every transition is judged by itself (`ipe.audit.samples`), and the evaluation policy is the one given or is
    fitted to a part of the batch and judged by the rest.

    The values should not have been learned from this very batch: then they know its noise, and look better than they
    are.

    Args:
        transitions: the batch; as a mapping, arrays by the names that `make_transitions` lists.
        q: action values, shape (states, actions), NaN where an action does not exist; or with `q_next`, Q(s, .) of each
            transition, shape (n, actions).
        gamma: the discount, in [0, 1).
        q_next: Q(s', .) of each transition, shape (n, actions).
        policy: with a table, another policy to judge beside the evaluation policy and the greedy one, such as a policy
            network's; shape (states, actions).
        policy_next: with `q_next`, probabilities of the evaluation policy at each s', shape (n, actions). Default: it
            is fitted.
        deterministic: whether a pair (s, a) always has the same reward and successor. None: with states, as the batch
            shows; else not known.
        fit: how a policy is fitted.
        worst: how many of the worst states to list, or of the transitions that no policy explains.
        tolerance: values count as achievable up to this residual, relative to the largest absolute value (at least 1).
            Default: 1e-9 for a table, 1e-5 per transition (networks compute in single precision).

    Returns:
        A `TableAudit` or a `SampleAudit`. Print it.

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
        own = 1e-9 if tolerance is None else tolerance
        return audit_table(transitions, q, gamma, policy, deterministic=deterministic, worst=worst, tolerance=own)
    if policy is not None:
        raise InputError("policy goes with a table of values: with q_next, give policy_next")
    q_sa, rows = check_rows(transitions, q, q_next)
    fitted, source = None, GIVEN
    if policy_next is None:
        from ipe.audit.fitting import Fit, fit_policy, split

        fit = Fit() if fit is None else fit
        fitted = split(len(transitions), fit)
        policy_next, source = fit_policy(transitions, q_sa, rows, gamma, fitted, fit), FITTED
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
