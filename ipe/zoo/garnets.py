"""Random MDPs of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ipe.base.memory import check_memory
from ipe.base.numbers import whole_number
from ipe.errors import InputError
from ipe.mdp import FiniteMDP

_TRANSITION_BYTES = 48
"""The memory that a transition takes while the MDP is made, measured: 48 to 80 bytes."""


def garnet(
    n_states: int = 1000, n_actions: int = 4, successors: int = 5, seed: int = 0, gamma: float = 0.95
) -> FiniteMDP:
    r"""A random MDP: each pair (s, a) has `successors` distinct next states.

    The next states are drawn uniformly without replacement, their probabilities uniformly from the
    simplex, the rewards :math:`r(s,a)` from the standard normal distribution. Same seed, same MDP.

    Example:
        >>> garnet(100, 4, 5, seed=1)
        FiniteMDP(100 states, 4 actions, gamma=0.95, stochastic)
    """
    n_states, n_actions = whole_number(n_states, "n_states", 1), whole_number(n_actions, "n_actions", 1)
    successors, seed = whole_number(successors, "successors", 1), whole_number(seed, "seed", 0)
    if successors > n_states:
        raise InputError(f"successors = {successors} is more than the {n_states} states there are")
    rng = np.random.default_rng(seed)
    n_rows = n_states * n_actions
    check_memory(_TRANSITION_BYTES * n_rows * successors, f"an MDP of {n_rows} pairs with {successors} successors each")
    columns = _distinct(rng, n_rows, n_states, successors)
    columns.sort(axis=1)
    probabilities = rng.standard_exponential((n_rows, successors))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    indptr = np.arange(0, n_rows * successors + 1, successors, dtype=columns.dtype)
    rows = sparse.csr_array((probabilities.ravel(), columns.ravel(), indptr), shape=(n_rows, n_states))
    return FiniteMDP(rows, rng.standard_normal((n_states, n_actions)), gamma)


def _distinct(rng: np.random.Generator, n_rows: int, n_states: int, count: int) -> NDArray[Any]:
    """`count` distinct states per row, every subset equally likely; in 32 bits where these hold every index."""
    index = np.int32 if n_rows * count < np.iinfo(np.int32).max else np.int64
    if count * count > 4 * n_states:  # nearly every independent draw would repeat a state
        return np.stack([rng.choice(n_states, count, replace=False).astype(index) for _ in range(n_rows)])
    columns = rng.integers(n_states, size=(n_rows, count)).astype(index)
    again = np.arange(n_rows)
    while again.size:
        ordered = np.sort(columns[again], axis=1)
        again = again[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        columns[again] = rng.integers(n_states, size=(again.size, count))
    return columns
