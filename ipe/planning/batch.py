"""The values of many policies of a small MDP at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.base.arrays import Array, numeric
from ipe.errors import InputError
from ipe.mdp import FiniteMDP

MAX_STATES = 200


def many_policy_values(mdp: FiniteMDP, policies: Any) -> Array:
    r"""The values :math:`V^\pi = (I - \gamma P^\pi)^{-1} r^\pi` of a stack of policies, by dense solves.

    Args:
        mdp: at most 200 states.
        policies: shape (..., S, A); rows of terminal states are ignored. The probabilities are not
            checked: they come from simulations.

    Returns:
        Shape (..., S).

    Example:
        >>> from ipe.zoo import switch_stay
        >>> many_policy_values(switch_stay(), [[[1, 0], [1, 0]], [[0, 1], [1, 0]]]).round(6)
        array([[10., 20.],
               [17., 20.]])
    """
    if mdp.n_states > MAX_STATES:
        raise InputError(f"many_policy_values is for at most {MAX_STATES} states, the MDP has {mdp.n_states}")
    pi = numeric(policies, "policies")
    if pi.ndim < 2 or pi.shape[-2:] != (mdp.n_states, mdp.n_actions):
        raise InputError(f"policies must have shape (..., {mdp.n_states}, {mdp.n_actions}); found {pi.shape}")
    pi = np.where(mdp.allowed, pi, 0.0)
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    chains = np.einsum("...sa,sat->...st", pi, dense)
    rewards = np.einsum("...sa,sa->...s", pi, mdp.rewards)
    values: Array = np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * chains, rewards[..., None])[..., 0]
    return values
