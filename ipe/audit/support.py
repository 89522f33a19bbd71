r"""How much of Q hangs on actions that the data do not have.

Q-learning bootstraps from :math:`\max_b Q(s',b)`. If the data never show what follows a greedy action at s', its value
is a guess that no transition corrects, and the max picks the guesses that are too high. The greedy action of a
transition's s', not terminal, is *beyond the data's support*

- between numbered states: if no transition of the batch takes it in s' (exact);
- elsewhere: if none of the k nearest observations from which a transition starts took it. Distances are Euclidean, each
  coordinate divided by its standard deviation over the batch. So k is the one choice in it, and says what *nearby* is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array
from ipe.deep.transitions import Transitions

NEIGHBOURS = 10
"""How many of the nearest observations count as nearby."""
_MOST = 5_000
"""The most transitions that are looked up, evenly over the batch, and the most that they are looked up among, times
ten."""
_BLOCK = 256


@dataclass(frozen=True)
class Support:
    """How much of Q is beyond the support of a batch."""

    transitions: int
    """How many transitions were looked at: those that did not terminate, or a part of them."""
    beyond: float
    """The share of these transitions whose greedy action at s' is beyond the data's support."""
    excess: float
    r"""The mean over these transitions of :math:`\max_b Q(s',b)` less its largest value over supported actions: 0 where
    the greedy action is supported. States s' with no supported action are left out of it."""
    neighbours: int | None
    """How many of the nearest observations count as nearby; None between numbered states."""


def support_of(batch: Transitions, q_next: Array) -> Support | None:
    r"""How much of Q is beyond the support of a batch.

    Args:
        batch: the transitions.
        q_next: :math:`Q(s', \cdot)` of each transition, shape (n, A).

    Returns:
        What was found; None if every transition terminates.

    Example:
        >>> from ipe.deep.transitions import make_transitions
        >>> steps = {"state": [0, 1], "action": [1, 0], "reward": [0.0, 0.0], "next_state": [1, 0]}
        >>> batch = make_transitions({**steps, "terminated": [False, False]})
        >>> support_of(batch, np.array([[3.0, 5.0], [1.0, 2.0]]))      # action 1 was never taken in state 1
        Support(transitions=2, beyond=0.5, excess=1.0, neighbours=None)
    """
    rows = np.flatnonzero(~batch.terminated)
    if not rows.size:
        return None
    here, there = np.asarray(batch.observation), np.asarray(batch.next_observation)
    if batch.discrete:
        taken = np.zeros((max(int(here.max()), int(there.max())) + 1, q_next.shape[1]), bool)
        taken[here, batch.action] = True
        supported, neighbours = taken[there[rows]], None
    else:
        rows = rows[np.linspace(0, rows.size - 1, min(rows.size, _MOST)).astype(np.intp)]
        among = np.linspace(0, len(batch) - 1, min(len(batch), 10 * _MOST)).astype(np.intp)
        supported = _nearby(here[among], batch.action[among], there[rows], q_next.shape[1])
        neighbours = NEIGHBOURS
    q = q_next[rows]
    greedy = q.argmax(axis=1)
    within = np.where(supported, q, -np.inf).max(axis=1)
    known = np.isfinite(within)
    excess = float((q.max(axis=1) - within)[known].mean()) if known.any() else 0.0
    beyond = float((~supported[np.arange(rows.size), greedy]).mean())
    return Support(int(rows.size), beyond, excess, neighbours)


def _nearby(
    here: NDArray[np.generic], action: NDArray[np.intp], there: NDArray[np.generic], n: int
) -> NDArray[np.bool_]:
    """Which actions the nearest of the observations `here` took, for each of the observations `there`."""
    known, wanted = (x.reshape(len(x), -1).astype(np.float32) for x in (here, there))
    scale = known.std(axis=0)
    scale[scale == 0.0] = 1.0
    known, wanted = known / scale, wanted / scale
    count, lengths = min(NEIGHBOURS, len(known)), (known**2).sum(axis=1)
    supported = np.zeros((len(wanted), n), bool)
    for start in range(0, len(wanted), _BLOCK):
        distances = lengths - 2.0 * wanted[start : start + _BLOCK] @ known.T
        nearest = np.argpartition(distances, count - 1, axis=1)[:, :count]
        supported[np.arange(start, start + len(nearest))[:, None], action[nearest]] = True
    return supported
