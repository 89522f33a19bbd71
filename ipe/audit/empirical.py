r"""The empirical model: what a batch of transitions between numbered states says about the MDP that it comes from.

For a pair (s, a) that was seen n(s, a) times, :math:`\hat P(\cdot|s,a)` are the shares of its successors and
:math:`\hat r(s,a)` is the mean of its rewards. A transition with the flag `terminated` leads to one added state, the
last one, of value 0.

Which pairs count:

- A pair that was never seen has no Bellman equation here. Its action stays open to policies, with its value in Q.
- A pair that was seen once says nothing about noise. It counts if transitions are deterministic, else it is left out.

An action is not allowed in a state where Q is NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array, Indices, Mask, numeric, refuse_where
from ipe.deep.transitions import Transitions, check_below
from ipe.errors import InputError
from ipe.mdp import FiniteMDP


@dataclass(frozen=True, eq=False)
class EmpiricalModel:
    """The model, and the n transitions that it was made of. The m pairs that count are numbered 0, ..., m - 1."""

    mdp: FiniteMDP
    """The MDP, whose last state is the added one. A pair that does not count stays put there, with `weights` of 0."""
    q: Array
    """The action values, shape (S + 1, A): 0 in the added state."""
    weights: Array
    """The share of each pair among the transitions that count, shape (S + 1, A)."""
    state: Indices
    """The state of each pair that counts, shape (m,)."""
    action: Indices
    """The action of each pair that counts, shape (m,)."""
    count: Indices
    """How often each pair was seen, shape (m,)."""
    pair: Indices
    """The number of the pair that each transition belongs to, shape (n,)."""
    reward: Array
    """The reward of each transition, shape (n,)."""
    successor: Indices
    """The state that each transition leads to, shape (n,); S where it terminated."""
    deterministic: bool
    """Whether every pair always has the same reward and successor."""
    left_out: int
    """The number of transitions that do not count because their pair was seen once."""

    @property
    def share(self) -> Array:
        """The weight of each pair, shape (m,): they sum to one."""
        share: Array = self.count / self.count.sum()
        return share

    @property
    def rows(self) -> sparse.csr_array:
        r""":math:`\hat P` of the pairs that count, shape (m, S + 1)."""
        return sparse.csr_array(self.mdp.transitions[self.state * self.mdp.n_actions + self.action])


def empirical_model(
    transitions: Transitions, q: Any, gamma: float, deterministic: bool | None = None
) -> EmpiricalModel:
    """The empirical model of transitions between the states 0, ..., S - 1, with action values of shape (S, A). By
    default a batch counts as deterministic if there is a pair that was seen more than once, and all such pairs have the
    same reward and successor. Errors name the array and the index."""
    table = check_table(transitions, q)
    n_states, n_actions = table.shape
    start, action = np.asarray(transitions.observation), transitions.action
    successor = np.where(transitions.terminated, n_states, np.asarray(transitions.next_observation))
    keys, first, pair, count = np.unique(
        start * n_actions + action, return_index=True, return_inverse=True, return_counts=True
    )
    differs = (transitions.reward != transitions.reward[first][pair]) | (successor != successor[first][pair])
    if deterministic is None:
        deterministic = not differs.any() and bool((count > 1).any())
    elif deterministic and differs.any():
        i = int(np.argmax(differs))
        raise InputError(
            f"deterministic: transition {i} has another reward or successor than transition {first[pair[i]]}, from the "
            f"same state {start[i]} by the same action {action[i]}"
        )
    used = count >= (1 if deterministic else 2)
    if not used.any():
        raise InputError(
            f"none of the {len(keys)} pairs of state and action is there twice, so that noise cannot be told from "
            "error: give more transitions, or say that they are deterministic"
        )
    kept, number = used[pair], np.cumsum(used) - 1
    pair, successor, reward = number[pair[kept]], successor[kept], transitions.reward[kept]
    keys, count = keys[used], count[used]
    allowed = np.concatenate([~np.isnan(table), np.zeros((1, n_actions), dtype=bool)])
    mdp = assemble(allowed, gamma, keys, pair, reward, successor)
    weights = np.zeros(allowed.size)
    weights[keys] = count / count.sum()
    values = np.concatenate([np.where(np.isnan(table), 0.0, table), np.zeros((1, n_actions))])
    state, chosen = np.divmod(keys, n_actions)
    left_out = int((~kept).sum())
    return EmpiricalModel(
        mdp,
        values,
        weights.reshape(allowed.shape),
        state,
        chosen,
        count,
        pair,
        reward,
        successor,
        bool(deterministic),
        left_out,
    )


def check_table(transitions: Transitions, q: Any) -> Array:
    """Action values of shape (states, actions), checked: they are finite wherever the transitions need them."""
    table = numeric(q, "q")
    if table.ndim != 2 or 0 in table.shape:
        raise InputError(f"q must have shape (states, actions), found {table.shape}")
    refuse_where(np.isinf(table), table, "q", "not a finite number")
    n_states, n_actions = table.shape
    start, arrived = np.asarray(transitions.observation), np.asarray(transitions.next_observation)
    live = ~transitions.terminated
    for name, array, count, what in (
        ("state", start, n_states, "states"),
        ("next_state", np.where(live, arrived, 0), n_states, "states"),
        ("action", transitions.action, n_actions, "actions"),
    ):
        check_below(name, array, count, f"q has the {what} 0 to {count - 1}")
    missing = np.isnan(table[start, transitions.action])
    if missing.any():
        i = int(np.argmax(missing))
        s, a = start[i], transitions.action[i]
        raise InputError(f"q[{s}, {a}] is NaN, an action that does not exist, but transition {i} takes it")
    lost = live & np.isnan(table[np.where(live, arrived, 0)]).all(axis=1)
    if lost.any():
        i = int(np.argmax(lost))
        raise InputError(f"q[{arrived[i]}] is NaN for all actions, but transition {i} leads there and goes on")
    return table


def assemble(allowed: Mask, gamma: float, keys: Indices, pair: Indices, reward: Array, successor: Indices) -> FiniteMDP:
    """The MDP with the shares of successors and the mean rewards of some transitions.

    Args:
        allowed: which actions exist, shape (S + 1, A); the last state has none.
        gamma: the discount.
        keys: `s * A + a` of each pair that counts; each pair has a transition.
        pair: the number of each transition's pair.
        reward: the reward of each transition.
        successor: the state that each transition leads to.
    """
    n_states, n_actions = allowed.shape
    count = np.bincount(pair, minlength=len(keys))
    rewards = np.zeros(allowed.size)
    rewards[keys] = np.bincount(pair, reward, minlength=len(keys)) / count
    counted = np.zeros(allowed.size, dtype=bool)
    counted[keys] = True
    others = np.flatnonzero(allowed.ravel() & ~counted)
    at = np.concatenate([keys[pair], others]), np.concatenate([successor, others // n_actions])
    rows = sparse.csr_array(sparse.coo_array((np.ones(len(at[0])), at), shape=(allowed.size, n_states)))
    rows.data /= np.repeat(rows.sum(axis=1), np.diff(rows.indptr))  # after the sum: n of n are 1, to the last bit
    ended = ~allowed.any(axis=1)
    return FiniteMDP(rows, rewards.reshape(allowed.shape), gamma, allowed=allowed, terminal=ended)
