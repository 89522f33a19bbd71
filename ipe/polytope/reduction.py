r"""Two chosen states of any MDP, with a fixed policy in all others: again an MDP of two states.

Let the other states O follow a policy. Their values are linear in those of the two chosen states T,

.. math:: V_O = N (r_O + \gamma P_{OT} V_T), \qquad N = (I - \gamma P_{OO})^{-1},

so that they can be eliminated: a pair (s, a) of a chosen state has the reward :math:`r + \gamma P_O N r_O` and leads to
the chosen states with the discounted probabilities :math:`P_T + \gamma P_O N P_{OT}`. What these lack to 1 was lost to
the discount on the way, or to terminal states; it leads to a terminal state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array
from ipe.base.numbers import whole_number
from ipe.checks import check_mdp, check_policy
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.planning.contraction import contraction
from ipe.planning.linear import Chain, policy_chain, solve
from ipe.planning.policies import uniform_policy


def two_state_mdp(mdp: FiniteMDP, states: Sequence[int], policy: Any = None) -> FiniteMDP:
    """The MDP of two chosen states, all others following a policy.

    Args:
        mdp: the MDP.
        states: the two states, neither of them terminal.
        policy: the policy of the other states, shape (S, A); what it says about the two states is ignored. Default:
            uniform.

    Returns:
        An MDP with the two states, in their order, and a terminal state. Its policies have the values that they have in
        the given MDP.

    Example:
        >>> from ipe.zoo import river_swim
        >>> two_state_mdp(river_swim(6), (0, 5))
        FiniteMDP(3 states, 2 actions, gamma=0.95, 1 terminal, stochastic)
    """
    check_mdp(mdp)
    chosen = list(check_two_states(mdp, states))
    pi = uniform_policy(mdp) if policy is None else check_policy(mdp, policy)
    others = np.ones(mdp.n_states, dtype=bool)
    others[chosen] = False
    among, into, rewards = _others(mdp, pi, others, chosen)
    rows = mdp.transitions[[s * mdp.n_actions + a for s in chosen for a in range(mdp.n_actions)]]
    passing = rows @ sparse.diags_array(others.astype(np.float64))
    direct = rows[:, chosen].toarray()
    leads = direct + mdp.gamma * (passing @ np.stack([_solved(among, column, mdp) for column in into], axis=1))
    pays = mdp.rewards[chosen].ravel() + mdp.gamma * (passing @ _solved(among, rewards, mdp))
    allowed = np.append(mdp.allowed[chosen], np.zeros((1, mdp.n_actions), dtype=bool), axis=0)
    leads = np.clip(leads, 0.0, 1.0)
    ending = np.maximum(1.0 - leads.sum(axis=1), 0.0)
    transitions = np.zeros((3, mdp.n_actions, 3))
    transitions[:2] = np.column_stack([leads, ending]).reshape(2, mdp.n_actions, 3)
    return FiniteMDP(
        np.where(allowed[:, :, None], transitions, 0.0),
        np.where(allowed, np.append(pays.reshape(2, -1), np.zeros((1, mdp.n_actions)), axis=0), 0.0),
        mdp.gamma,
        allowed=allowed,
        terminal=[2],
        state_names=[*(mdp.state_name(s) for s in chosen), "the others"],
        action_names=mdp.action_names or None,
        tolerance=1e-6,
    )


def check_two_states(mdp: FiniteMDP, states: Sequence[int]) -> tuple[int, int]:
    """Two different states that are not terminal, or an `InputError` that names what is wrong."""
    try:
        first, second = states
    except (TypeError, ValueError):
        raise InputError(f"states must be two states, found {states!r}") from None
    chosen = [whole_number(s, f"states[{i}]", 0, mdp.n_states - 1) for i, s in enumerate((first, second))]
    if chosen[0] == chosen[1]:
        raise InputError(f"states must be two different states, found {chosen[0]} twice")
    for i, s in enumerate(chosen):
        if mdp.terminal[s]:
            raise InputError(f"states[{i}] = {s} is terminal: its value is 0 for every policy")
    return chosen[0], chosen[1]


def _others(
    mdp: FiniteMDP, pi: Array, others: Any, chosen: list[int]
) -> tuple[sparse.csr_array, tuple[Array, Array], Array]:
    """The chain among the other states, its probabilities of reaching the chosen ones, and its rewards."""
    chain = policy_chain(mdp, pi)
    keep = sparse.diags_array(others.astype(np.float64))
    matrix = sparse.csr_array(keep @ chain.matrix)
    first, second = (np.asarray(matrix[:, [s]].toarray()).ravel() for s in chosen)
    return sparse.csr_array(matrix @ keep), (first, second), np.where(others, chain.rewards, 0.0)


def _solved(matrix: sparse.csr_array, x: Array, mdp: FiniteMDP) -> Array:
    """:math:`N x`: the values of the chain among the other states with the rewards x."""
    live = ~mdp.terminal
    modulus = contraction(matrix, live, live, mdp.gamma, x, mdp.n_actions)
    return solve(Chain(matrix, x, mdp.gamma, modulus), "auto", 1e-12 * (float(np.abs(x).max()) or 1.0)).v
