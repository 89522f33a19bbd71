"""Deep sea: a grid in which only one path of many leads to the treasure."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ipe.base.memory import check_memory
from ipe.base.numbers import finite_number, whole_number
from ipe.mdp import FiniteMDP

_CELL_BYTES = 512
"""The memory that a cell takes while its MDP is made: two transitions."""


def deep_sea(n: int = 10, seed: int | None = 0, move_cost: float = 0.01, gamma: float = 0.99) -> FiniteMDP:
    r"""Deep sea: dive for n steps, and find the treasure only by going right in every one of them.

    The cell (row, column) of an n x n grid is the state :math:`n \cdot \text{row} + \text{column}`; the last state is
    the end. Episodes start in the cell (0, 0). Every step leads to the next row, and the step in the last row ends the
    episode:

    - going left leads one column to the left, or stays in column 0, and pays nothing;
    - going right leads one column to the right, or stays in the last column, and pays
      :math:`-\text{move cost} / n`. In the last column it pays 1 more: that cell is reached only in the last row, and
      only from the diagonal.

    Which of the two actions goes right is drawn for each cell, so that an agent that repeats an action does not happen
    to follow the diagonal. A policy that knows nothing finds the treasure in one of :math:`2^n` episodes. The optimal
    return is :math:`1 - \text{move cost}`; that of never going right is 0.

    The problem is that of Osband, Van Roy, Russo and Wen (*Deep Exploration via Randomized Value Functions*, 2019),
    as the behaviour suite has it (Osband et al., *Behaviour Suite for Reinforcement Learning*, 2020): the same
    transitions, rewards and random mapping of actions, in the variant without noise.

    Args:
        n: the number of rows and of columns, at least 2.
        seed: the seed of the mapping of actions, the behaviour suite's `mapping_seed`. None: action 1 goes right in
            every cell.
        move_cost: n times the cost of going right.
        gamma: the discount.

    Example:
        >>> mdp = deep_sea(5)
        >>> mdp
        FiniteMDP(26 states, 2 actions, gamma=0.99, 1 terminal, deterministic)
        >>> from ipe.planning import optimal_values
        >>> round(float(optimal_values(mdp).v[0]), 6)  # .99^4 - .002 (1 + .99 + ... + .99^4)
        0.950794
    """
    n, cost = whole_number(n, "n", 2), finite_number(move_cost, "move_cost", 0.0)
    check_memory(_CELL_BYTES * n * n, f"n = {n}")
    if seed is None:
        right = np.ones((n, n), dtype=np.int64)
    else:
        right = np.random.RandomState(whole_number(seed, "seed", 0, 2**32 - 1)).binomial(1, 0.5, (n, n))
    end = n * n
    row, column = np.divmod(np.arange(end), n)
    targets, rewards = np.zeros((end, 2), dtype=np.int64), np.zeros((end + 1, 2))
    for action in (0, 1):
        goes_right = right.ravel() == action
        moved = np.clip(np.where(goes_right, column + 1, column - 1), 0, n - 1)
        targets[:, action] = np.where(row == n - 1, end, n * (row + 1) + moved)
        rewards[:end, action] = np.where(goes_right, (column == n - 1) - cost / n, 0.0)
    rows = sparse.coo_array((np.ones(2 * end), (np.arange(2 * end), targets.ravel())), shape=(2 * end + 2, end + 1))
    return FiniteMDP(rows, rewards, gamma, terminal=[end], start=0)
