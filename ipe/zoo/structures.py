"""MDPs of any size whose states have a shape: a slippery grid, a queue, a walk on a ring, a smooth kernel on a line.

Their transitions connect near states only, unlike those of `garnet`. What that means for exact solvers is told in
`ipe.inverse.normal_equations`.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array, Indices
from ipe.base.memory import check_memory
from ipe.base.numbers import check_positive, finite_number, whole_number
from ipe.mdp import FiniteMDP

_MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))
_SERVICE = (0.1, 0.3, 0.6)
_SERVICE_COST = (0.0, 0.2, 0.5)
_TRANSITION_BYTES = 72
"""The memory that a transition takes while an MDP is made, measured: 71 to 82 bytes."""


def slippery_grid(n: int = 10, slip: float = 0.2, seed: int = 0, gamma: float = 0.95) -> FiniteMDP:
    r"""A square of n x n cells with four moves: up, right, down, left.

    A move goes the way it says with probability :math:`1 - \text{slip}`, and to either side of it with probability
    slip / 2. A move against the wall stays. The rewards :math:`r(s,a)` are standard normal. Cell (x, y) is the state
    :math:`x + n y`.

    Example:
        >>> slippery_grid(100)
        FiniteMDP(10000 states, 4 actions, gamma=0.95, stochastic)
    """
    n, slip = whole_number(n, "n", 2), finite_number(slip, "slip", 0, 1)
    _check_size(n * n * 12, f"n = {n}")
    s = np.arange(n * n)
    x, y = s % n, s // n
    to = [np.clip(x + dx, 0, n - 1) + n * np.clip(y + dy, 0, n - 1) for dx, dy in _MOVES]
    shares = ((0, 1.0 - slip), (1, slip / 2), (3, slip / 2))
    entries = [(a, to[(a + turn) % 4], np.full(s.size, p)) for a in range(4) for turn, p in shares]
    rewards = np.random.default_rng(whole_number(seed, "seed", 0)).standard_normal((s.size, 4))
    return FiniteMDP(_rows(s.size, 4, entries), rewards, gamma, action_names=("up", "right", "down", "left"))


def queue(n: int = 100, arrival: float = 0.3, gamma: float = 0.99) -> FiniteMDP:
    r"""A queue of at most n - 1 customers that is served slowly, at a middle pace, or fast.

    In each step a customer arrives with probability `arrival`, and one leaves with the probability .1, .3 or .6 of the
    service chosen. A step costs the share of the queue that is filled, plus 0, .2 or .5 for the service.

    Example:
        >>> queue(50)
        FiniteMDP(50 states, 3 actions, gamma=0.99, stochastic)
    """
    n, arrival = whole_number(n, "n", 2), finite_number(arrival, "arrival", 0, 1)
    _check_size(n * 9, f"n = {n}")
    s = np.arange(n)
    entries = []
    for a, leave in enumerate(_SERVICE):
        up, down = arrival * (1.0 - leave), leave * (1.0 - arrival)
        for target, p in ((np.minimum(s + 1, n - 1), up), (np.maximum(s - 1, 0), down), (s, 1.0 - up - down)):
            entries.append((a, target, np.full(n, p)))
    rewards = -(s / n)[:, None] - np.array(_SERVICE_COST)
    return FiniteMDP(_rows(n, 3, entries), rewards, gamma, start=0, action_names=("slow", "middle", "fast"))


def ring_walk(n: int = 100, drift: float = 0.7, seed: int = 0, gamma: float = 0.99) -> FiniteMDP:
    r"""A walk on a ring of n states: either action goes its way with probability `drift`, and back otherwise.

    The rewards :math:`r(s,a)` are standard normal.

    Example:
        >>> ring_walk(50)
        FiniteMDP(50 states, 2 actions, gamma=0.99, stochastic)
    """
    n, drift = whole_number(n, "n", 3), finite_number(drift, "drift", 0, 1)
    _check_size(n * 4, f"n = {n}")
    s = np.arange(n)
    entries = [(a, (s + step) % n, np.full(n, p)) for a, way in ((0, -1), (1, 1)) for step, p in _both(way, drift)]
    rewards = np.random.default_rng(whole_number(seed, "seed", 0)).standard_normal((n, 2))
    return FiniteMDP(_rows(n, 2, entries), rewards, gamma, action_names=("left", "right"))


def smooth_line(n: int = 200, width: float = 0.05, gamma: float = 0.99) -> FiniteMDP:
    r"""A discretised continuous state: n points of [0, 1], moved by -.1, 0 or .1 with normal noise of this width.

    The noise is cut off at four widths. Neighbouring rows of P are nearly equal, so that its singular values fall below
    the rounding of float64: the hardest structure for iterative solvers. The reward is the squared distance from .7,
    negated, less 1% per move.

    Example:
        >>> smooth_line(100)
        FiniteMDP(100 states, 3 actions, gamma=0.99, stochastic)
    """
    n, width = whole_number(n, "n", 2), check_positive(width, "width")
    reach = int(min(np.ceil(4.0 * width * (n - 1)), 2 * n))
    _check_size(n * 3 * (2 * reach + 1), f"n = {n} with the width {width:g}")
    x = np.linspace(0.0, 1.0, n)
    entries = []
    for a, shift in enumerate((-0.1, 0.0, 0.1)):
        mean = np.clip(x + shift, 0.0, 1.0)
        first = np.rint(mean * (n - 1)).astype(np.int64)
        targets = np.clip(first[:, None] + np.arange(-reach, reach + 1), -1, n)
        inside = (targets >= 0) & (targets < n)
        weights = np.where(inside, np.exp(-0.5 * ((x[np.clip(targets, 0, n - 1)] - mean[:, None]) / width) ** 2), 0.0)
        weights /= weights.sum(axis=1, keepdims=True)
        columns = np.flatnonzero(inside.any(axis=0))
        entries += [(a, np.clip(targets[:, column], 0, n - 1), weights[:, column]) for column in columns]
    rewards = -((x - 0.7) ** 2)[:, None] - 0.01 * np.abs(np.array([-1.0, 0.0, 1.0]))
    return FiniteMDP(_rows(n, 3, entries), rewards, gamma, action_names=("left", "stay", "right"))


def _check_size(transitions: int, what: str) -> None:
    check_memory(_TRANSITION_BYTES * transitions, what)


def _both(way: int, drift: float) -> tuple[tuple[int, float], tuple[int, float]]:
    return (way, drift), (-way, 1.0 - drift)


def _rows(n: int, n_actions: int, entries: list[tuple[int, Indices, Array]]) -> sparse.csr_array:
    """Entries (action, next state of every state, its probability) as rows `s * A + a`."""
    s = np.arange(n)
    rows = np.concatenate([s * n_actions + a for a, _, _ in entries])
    columns = np.concatenate([target for _, target, _ in entries])
    probabilities = np.concatenate([p for _, _, p in entries])
    return sparse.csr_array((probabilities, (rows, columns)), shape=(n * n_actions, n))
