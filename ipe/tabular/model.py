r"""A finite MDP as arrays from which a compiled program draws next states.

The rows :math:`P(\cdot|s,a)` lie one after the other, each as its successors with cumulated probabilities;
a uniform number is located in its row by bisection. That takes :math:`\lceil \log_2 K \rceil` looks for at most
K successors and memory in proportion to the number of transitions, be the MDP dense or sparse, two states or a million.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.mdp_input import start_distribution


class Rows(NamedTuple):
    """Distributions one after the other: row i is the entries from offsets[i] to offsets[i + 1]."""

    offsets: Any
    """The entry at which each row begins, and the number of all entries."""
    thresholds: Any
    """The cumulated probabilities within each row; infinite at its end, so that rounding leaves no gap."""
    outcomes: Any
    """The outcome of each entry: a state."""


class Model(NamedTuple):
    """What a simulation needs of an MDP."""

    transitions: Rows
    """The distributions of successors; row s * A + a belongs to the pair (s, a)."""
    rewards: Any
    """The reward of each entry of `transitions`."""
    start: Rows
    """The distribution of start states, a single row."""
    allowed: Any
    """Which actions are allowed, shape (S, A); None if every action is, in every state that is not terminal."""
    terminal: Any
    """Which states are terminal, shape (S,); None if there are none."""


def model_of(mdp: FiniteMDP, start: Any) -> Model:
    """The arrays of an MDP that starts in `start`, in `mdp.start`, or anywhere that is not terminal."""
    rows = mdp.transitions
    distribution = _start(mdp, start)
    support = np.flatnonzero(distribution)
    rewards = mdp.transition_rewards
    if rewards is None:
        rewards = np.repeat(mdp.rewards.ravel(), np.diff(rows.indptr))
    terminal = bool(mdp.terminal.any())
    masked = not mdp.allowed[~mdp.terminal].all()
    return Model(
        transitions=_rows(rows.indptr, rows.data, rows.indices),
        rewards=np.asarray(rewards),
        start=_rows(np.array([0, support.size]), distribution[support], support),
        allowed=np.asarray(mdp.allowed) if masked else None,
        terminal=np.asarray(mdp.terminal) if terminal else None,
    )


def looks(rows: Rows) -> int:
    """How many looks the bisection needs in the longest row."""
    return int(np.diff(rows.offsets).max() - 1).bit_length()


def locate(rows: Rows, row: Any, number: Any, looks: int) -> Any:
    """The first entry of a row whose threshold exceeds a number in [0, 1)."""
    low = rows.offsets[row]
    high = rows.offsets[row + 1] - 1
    for _ in range(looks):
        middle = (low + high) // 2
        beyond = rows.thresholds[middle] <= number
        low, high = jnp.where(beyond, middle + 1, low), jnp.where(beyond, high, middle)
    return low


def choose(pi: Any, number: Any, allowed: Any) -> Any:
    """The action at which the cumulated probability exceeds a number of 32 bits in [0, 1); never one of probability 0.

    Where the probabilities are NaN, because the values have overflowed, the first allowed action.
    """
    # Rounding may leave the sum short of one, but not as short as 2^-32, and make it rise where pi is 0.
    found = (pi > 0) & (jnp.cumsum(pi) > number)
    rank = found if allowed is None else 2 * found.astype(jnp.int8) + allowed
    return jnp.argmax(rank).astype(jnp.int32)


def _rows(offsets: NDArray[Any], probabilities: Array, outcomes: NDArray[Any]) -> Rows:
    lengths = np.diff(offsets)
    thresholds = probabilities.astype(np.float64)
    for k in range(1, int(lengths.max(initial=0))):
        at = offsets[:-1][lengths > k] + k
        thresholds[at] += thresholds[at - 1]
    thresholds[offsets[1:][lengths > 0] - 1] = np.inf
    if offsets[-1] > np.iinfo(np.int32).max:
        raise InputError(f"mdp has {offsets[-1]} transitions; simulation takes at most {np.iinfo(np.int32).max}")
    return Rows(offsets.astype(np.int32), thresholds, outcomes.astype(np.int32))


def _start(mdp: FiniteMDP, start: Any) -> Array:
    given = mdp.start if start is None else start_distribution(start, mdp.terminal)
    if given is not None:
        return given
    live = ~mdp.terminal
    if not live.any():
        raise InputError("mdp has only terminal states: there is nothing to simulate")
    return np.where(live, 1.0 / live.sum(), 0.0)
