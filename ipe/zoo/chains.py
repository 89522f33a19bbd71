"""States in a row: moves lead to a neighbour or stay."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ipe.base.memory import check_memory
from ipe.base.numbers import finite_number, true_or_false, whole_number
from ipe.mdp import FiniteMDP

_LEFT, _RIGHT = 0, 1
_ACTIONS = ("left", "right")
_STATE_BYTES = 512
"""The memory that a state takes while its MDP is made, measured: four transitions of 108 to 128 bytes."""


def river_swim(n: int = 6, gamma: float = 0.95) -> FiniteMDP:
    r"""RiverSwim: swimming left is safe and pays little, swimming right against the current pays at its end.

    `left` always moves to the left neighbour; in :math:`s_0` it stays and pays .005. `right` moves

    - from :math:`s_0`: right with probability .6, stays with .4;
    - from a state between: right with .35, stays with .6, left with .05;
    - in :math:`s_{n-1}`: stays with .6, left with .4, and pays 1 either way.

    All other rewards are 0. Episodes start in :math:`s_0`.

    The problem is Strehl and Littman's (*An analysis of model-based Interval Estimation for Markov Decision
    Processes*, 2008); the numbers are those in common use since Osband, Russo and Van Roy (*(More) Efficient
    Reinforcement Learning via Posterior Sampling*, 2013). The original has rewards of 5 and 10000, goes
    right with .3, .3 (.6 stays, .1 left) and .3 in the three cases, and starts in :math:`s_1` or :math:`s_2`.

    Args:
        n: how many states, at least 2.
        gamma: the discount.

    Example:
        >>> river_swim()
        FiniteMDP(6 states, 2 actions, gamma=0.95, stochastic)
    """
    n = whole_number(n, "n", 2)
    check_memory(_STATE_BYTES * n, f"n = {n}")
    s = np.arange(n)
    stay = np.full(n, 0.6)
    right = np.full(n, 0.35)
    left = np.full(n, 0.05)
    stay[0], right[0], left[0] = 0.4, 0.6, 0.0
    stay[-1], right[-1], left[-1] = 0.6, 0.0, 0.4
    entries = [(s, _LEFT, s - 1, np.ones(n)), (s, _RIGHT, s - 1, left), (s, _RIGHT, s, stay), (s, _RIGHT, s + 1, right)]
    rewards = np.zeros((n, 2))
    rewards[0, _LEFT], rewards[-1, _RIGHT] = 0.005, 1.0
    return FiniteMDP(_rows(n, entries), rewards, gamma, start=0, action_names=_ACTIONS)


def chain(n: int = 5, slip: float = 0.0, terminal: bool = True, gamma: float = 0.9) -> FiniteMDP:
    r"""A row of states with a reward of 1 for every arrival at its right end.

    `left` and `right` move one state; with probability `slip` the move goes the other way. A move past
    the left end stays there. Every transition into :math:`s_{n-1}` pays 1, every other 0: rewards
    :math:`r(s,a,s')`. With `terminal` the right end ends the episode; without it, it is a state as the
    others, where a move to the right stays (and pays). Episodes start in :math:`s_0`.

    Without slip the optimal values are :math:`V^*(s) = \gamma^{n-2-s}` for :math:`s < n-1` if the end is
    terminal, and :math:`V^*(s) = \gamma^{\max(n-2-s, 0)} / (1-\gamma)` if it is not.

    Args:
        n: how many states, the end included; at least 2.
        slip: the probability of moving the other way.
        terminal: whether the right end is a terminal state.
        gamma: the discount.

    Example:
        >>> chain(5)
        FiniteMDP(5 states, 2 actions, gamma=0.9, 1 terminal, deterministic)
        >>> chain(3, slip=0.1, terminal=False).rewards
        array([[0. , 0. ],
               [0.1, 0.9],
               [0.1, 0.9]])
    """
    n, slip = whole_number(n, "n", 2), finite_number(slip, "slip", 0, 1)
    check_memory(_STATE_BYTES * n, f"n = {n}")
    s = np.arange(n - 1 if true_or_false(terminal, "terminal") else n)
    entries = [
        (s, action, s + step * direction, np.full(s.size, share))
        for action, direction in ((_LEFT, -1), (_RIGHT, 1))
        for step, share in ((1, 1.0 - slip), (-1, slip))
    ]
    rows = _rows(n, entries)
    pays = sparse.csr_array(rows * (np.arange(n) == n - 1))
    pays.data[:] = pays.data > 0
    return FiniteMDP(rows, pays, gamma, terminal=[n - 1] if terminal else None, start=0, action_names=_ACTIONS)


def _rows(n: int, entries: list[tuple[np.ndarray, int, np.ndarray, np.ndarray]]) -> sparse.coo_array:
    """Entries (states, action, next states, probabilities) as rows `2 s + a`; a move past an end stays there."""
    rows = np.concatenate([2 * s + a for s, a, _, _ in entries])
    columns = np.concatenate([np.clip(following, 0, n - 1) for _, _, following, _ in entries])
    probabilities = np.concatenate([p for _, _, _, p in entries])
    return sparse.coo_array((probabilities, (rows, columns)), shape=(2 * n, n))
