r"""Bellman operators on state values and on action values.

.. math::
    q_V(s,a) = r(s,a) + \gamma \sum_{s'} P(s'|s,a) V(s'), \qquad
    (T^\pi V)(s) = \sum_a \pi(a|s)\, q_V(s,a), \qquad (T^* V)(s) = \max_{a \in \mathcal{A}(s)} q_V(s,a).

On action values, :math:`T^\pi Q = q_V` with :math:`V(s) = \sum_a \pi(a|s) Q(s,a)`, and :math:`T^* Q = q_V`
with :math:`V(s) = \max_a Q(s,a)`. Terminal states have value 0. Action values that are returned are NaN where
an action is not allowed and 0 in terminal states.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.base.arrays import Array
from ipe.checks import check_one_form, check_policy, check_q, check_v
from ipe.mdp import FiniteMDP


def q_from_v(mdp: FiniteMDP, v: Any) -> Array:
    r"""The action values that look one step ahead, :math:`q_V = r + \gamma P V`.

    Args:
        mdp: the MDP.
        v: state values, shape (S,).

    Returns:
        Shape (S, A); NaN where an action is not allowed, 0 in terminal states.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> q_from_v(switch_stay(), [17.0, 20.0])
        array([[16.3, 17. ],
               [20. , 15.3]])
    """
    return hide_missing(mdp, backup(mdp, check_v(mdp, v)))


def bellman_operator(mdp: FiniteMDP, policy: Any, *, v: Any = None, q: Any = None) -> Array:
    r"""The operator :math:`T^\pi`, whose fixed point is the value of the policy.

    Args:
        mdp: the MDP.
        policy: :math:`\pi(a|s)`, shape (S, A).
        v: state values, shape (S,); or
        q: action values, shape (S, A). Exactly one of the two.

    Returns:
        :math:`T^\pi V` of shape (S,), or :math:`T^\pi Q` of shape (S, A).

    Example:
        >>> from ipe.zoo import switch_stay
        >>> switch_then_stay = [[0.0, 1.0], [1.0, 0.0]]
        >>> bellman_operator(switch_stay(), switch_then_stay, v=[17.0, 20.0])
        array([17., 20.])
    """
    pi = check_policy(mdp, policy)
    form, values = check_one_form(mdp, v, q)
    if form == "v":
        return average(pi, backup(mdp, values))
    return hide_missing(mdp, backup(mdp, average(pi, values)))


def optimality_operator(mdp: FiniteMDP, *, v: Any = None, q: Any = None) -> Array:
    r"""The operator :math:`T^*`, whose fixed point is the optimal value.

    Args:
        mdp: the MDP.
        v: state values, shape (S,); or
        q: action values, shape (S, A). Exactly one of the two.

    Returns:
        :math:`T^* V` of shape (S,), or :math:`T^* Q` of shape (S, A).

    Example:
        >>> from ipe.zoo import switch_stay
        >>> optimality_operator(switch_stay(), v=[0.0, 0.0])
        array([1., 2.])
    """
    form, values = check_one_form(mdp, v, q)
    if form == "v":
        return _maximum(mdp, backup(mdp, values))
    return hide_missing(mdp, backup(mdp, _maximum(mdp, values)))


def state_values(mdp: FiniteMDP, policy: Any, q: Any) -> Array:
    r"""What a policy makes of action values, :math:`V(s) = \sum_a \pi(a|s) Q(s,a)`; 0 in terminal states.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> state_values(switch_stay(), [[0.5, 0.5], [1.0, 0.0]], [[16.0, 17.0], [20.0, 15.0]])
        array([16.5, 20. ])
    """
    return average(check_policy(mdp, policy), check_q(mdp, q))


def action_bounds(mdp: FiniteMDP, q: Any) -> tuple[Array, Array]:
    r"""The least and the largest allowed action value, :math:`\min_a Q(s,a)` and :math:`\max_a Q(s,a)`.

    Both are 0 in terminal states.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> action_bounds(switch_stay(), [[16.0, 17.0], [20.0, 15.0]])
        (array([16., 15.]), array([17., 20.]))
    """
    values = check_q(mdp, q)
    lo = _over_allowed(mdp, values, np.minimum, np.inf)
    return lo, _maximum(mdp, values)


def backup(mdp: FiniteMDP, v: Array, rewards: Array | None = None) -> Array:
    """`q_from_v` without checks. Where an action is not allowed the result is its entry in `rewards`, 0 by default."""
    q: Array = mdp.transitions @ v  # rows of pairs that do not exist are empty
    q *= mdp.gamma
    q += (mdp.rewards if rewards is None else rewards).ravel()
    return q.reshape(mdp.n_states, mdp.n_actions)


def largest(q: Array) -> Array:
    """The largest entry of each row."""
    return _by_columns(q, np.maximum)


def average(pi: Array, q: Array) -> Array:
    """The mean of each row of `q` under `pi`."""
    mean: Array = np.einsum("sa,sa->s", pi, q)
    return mean


def hide_missing(mdp: FiniteMDP, q: Array) -> Array:
    """Action values as users see them: NaN where an action is not allowed, 0 in terminal states."""
    if not mdp.all_allowed:
        q[~mdp.allowed] = np.nan
        q[mdp.terminal] = 0.0
    return q


def _maximum(mdp: FiniteMDP, q: Array) -> Array:
    """The largest allowed entry of each row, 0 in terminal states."""
    return _over_allowed(mdp, q, np.maximum, -np.inf)


def _over_allowed(mdp: FiniteMDP, q: Array, better: np.ufunc, worst: float) -> Array:
    if mdp.all_allowed:
        return _by_columns(q, better)
    best = _by_columns(np.where(mdp.allowed, q, worst), better)
    best[mdp.terminal] = 0.0
    return best


def _by_columns(q: Array, better: np.ufunc) -> Array:
    """`better.reduce(q, axis=1)`, three times as fast where actions are few."""
    best = q[:, 0].copy()
    for a in range(1, q.shape[1]):
        better(best, q[:, a], out=best)
    return best
