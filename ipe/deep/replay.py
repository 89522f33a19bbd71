r"""Experience replay: where each transition lies, and how it is read.

A seed has a ring of slots. A slot holds an observation, and the action, reward and end of the step that was taken from
it; the next slot holds the observation that the step led to, so that each is stored once. Only where a step was the
last by truncation does its last observation, from which it bootstraps, take a slot of its own, from which no step
starts; after a termination nothing is bootstrapped, and the slot of the next episode's first observation follows at
once. So no transition crosses an episode.

`Slots` keeps the books, on the host; the arrays are the compiled program's, which writes into them in place. Binary
observations are packed, eight to a byte.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

CONTINUES, TERMINATED, TRUNCATED = 0, 1, 2
"""How a step ended."""

_STEP = np.array([0, 1, 1], np.int64)


class Format(NamedTuple):
    """How observations are stored."""

    shape: tuple[int, ...]
    dtype: str
    binary: bool
    scale: float

    @property
    def stored(self) -> tuple[tuple[int, ...], str]:
        """The shape and dtype of one stored observation: flat."""
        size = math.prod(self.shape)
        return ((-(-size // 8),), "uint8") if self.binary else ((size,), self.dtype)

    def pack(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Observations (seeds, *shape) as they are stored."""
        flat = observations.reshape(len(observations), -1)
        return np.packbits(flat, axis=-1, bitorder="little") if self.binary else flat

    def unpack(self, stored: Any) -> Any:
        """Stored observations (..., n) as float32 (..., *shape), inside a compiled program."""
        size = math.prod(self.shape)
        if self.binary:
            bits = (stored[..., None] >> jnp.arange(8, dtype=jnp.uint8)) & jnp.uint8(1)
            stored = bits.reshape(*stored.shape[:-1], -1)[..., :size]
        values = stored.astype(jnp.float32)
        if self.scale != 1.0:
            values = values * jnp.float32(self.scale)
        return values.reshape(*stored.shape[:-1], *self.shape)


class Slots:
    """Which slots hold the last transitions of each seed.

    There are a sixteenth more slots than transitions, for the last observations of truncated episodes. In an
    environment that truncates more often than that, fewer than `capacity` transitions are kept.
    """

    def __init__(self, seeds: int, capacity: int) -> None:
        self.capacity = capacity
        self.size = capacity + capacity // 16 + 2
        self.count = 0
        """Transitions so far; as many for every seed."""
        self.head = np.zeros(seeds, np.int64)
        """The place of the current observation, counted on without end; its slot is this modulo `size`."""
        self.oldest = np.zeros(seeds, np.int64)
        """The number of the oldest transition that is kept."""
        self.places = np.zeros((capacity, seeds), np.int64)
        """Of the last `capacity` transitions: where each starts, counted like `head`."""
        self._seeds = np.arange(seeds)
        self._even = True  # no seed has truncated an episode yet

    def push(self, truncated: NDArray[np.bool_], out: NDArray[np.int32]) -> None:
        """Make room for one more step of each seed.

        Args:
            truncated: whether it ended the episode by truncation, (seeds,).
            out: receives the slots, (seeds, 3): of the observation that the step was taken from, with its action,
                reward and end; of the observation that it led to; of the one to act on next, the same or the next
                episode's first.
        """
        self.places[self.count % self.capacity] = self.head
        self.count += 1
        places = self.head[:, None] + _STEP
        if truncated.any():
            places[:, 2] += truncated
            self._even = False
        if self.count > self.capacity or not self._even:
            self.oldest = self._oldest(places[:, 2])
        self.head = places[:, 2]
        np.remainder(places, self.size, out=out, casting="unsafe")

    def _oldest(self, head: NDArray[np.int64]) -> NDArray[np.int64]:
        """The oldest transitions that are kept: neither too many nor, where many were truncated, written over."""
        oldest = np.maximum(self.oldest, self.count - self.capacity)
        while (lapped := self.places[oldest % self.capacity, self._seeds] <= head - self.size).any():
            oldest += lapped
        return oldest

    def sample(self, draws: NDArray[np.float64], out: NDArray[np.int32]) -> None:
        """Slots of transitions drawn uniformly with replacement.

        Args:
            draws: uniform numbers in [0, 1), (seeds, batch).
            out: receives the slots from which the transitions start, (seeds, batch).
        """
        numbers = (draws * (self.count - self.oldest)[:, None]).astype(np.int64)
        numbers += self.oldest[:, None]
        if not self._even:  # else a transition starts at the place of its own number
            numbers = self.places[numbers % self.capacity, self._seeds[:, None]]
        np.remainder(numbers, self.size, out=out, casting="unsafe")

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """All of it, for a checkpoint."""
        count = np.array(self.count, np.int64)
        return {"head": self.head, "count": count, "oldest": self.oldest, "places": self.places}

    def restore(self, arrays: dict[str, NDArray[np.int64]]) -> None:
        """The books of a checkpoint."""
        self.count = int(arrays["count"])
        self.head, self.oldest, self.places = (np.array(arrays[name]) for name in ("head", "oldest", "places"))
        self._even = bool((self.head == self.count).all())


def empty(seeds: int, slots: int, form: Format) -> dict[str, NDArray[Any]]:
    """The arrays of all seeds' rings, one after the other: observations, and (action, reward, end) of steps."""
    (stored, dtype) = form.stored
    return {
        "observation": np.zeros((seeds * slots, *stored), dtype),
        "step": np.zeros((seeds * slots, 3), np.float32),
    }
