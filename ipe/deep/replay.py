r"""Experience replay: where each transition lies, and how it is read.

A seed has a ring of slots. A slot holds an observation, and the action, the reward and the end of the step that was
taken from it. The next slot holds the observation that the step led to, so that each observation is stored once. A step
that truncates its episode bootstraps from its last observation, which takes a slot from which no step starts.
After a termination nothing is bootstrapped, and the slot of the next episode's first observation follows at once. So no
transition crosses an episode.

`Slots` keeps account of the slots on the host. The arrays belong to the compiled program, which writes into them in
place. Binary observations are packed, eight to a byte.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

CONTINUES, TERMINATED, TRUNCATED = 0, 1, 2
"""How a step ended: the codes in column `END` of the replay."""

_STEP = np.array([0, 1, 1], np.int64)


class Format(NamedTuple):
    """How observations are stored."""

    shape: tuple[int, ...]
    """The shape of one observation."""
    dtype: str
    """The dtype of an observation that is not binary."""
    binary: bool
    """Whether observations hold only 0 and 1, and are packed."""
    scale: float
    """The factor that stored numbers are multiplied by when they are read."""

    @property
    def stored(self) -> tuple[tuple[int, ...], str]:
        """The shape and dtype of one observation as it is stored, flat."""
        size = math.prod(self.shape)
        return ((-(-size // 8),), "uint8") if self.binary else ((size,), self.dtype)

    def pack(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Observations (seeds, *shape) in the form in which they are stored."""
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

    There are a sixteenth more slots than transitions, for the last observations of truncated episodes. If an
    environment truncates more often than that, fewer than `capacity` transitions are kept.
    """

    def __init__(self, seeds: int, capacity: int) -> None:
        self.capacity = capacity
        self.size = capacity + capacity // 16 + 2
        self.count = 0
        """How many transitions each seed has had so far: the same number for every seed."""
        self.head = np.zeros(seeds, np.int64)
        """The place of the current observation. Places are counted on without end; a slot is a place modulo `size`."""
        self.oldest = np.zeros(seeds, np.int64)
        """The number of the oldest transition that is kept."""
        self.places = np.zeros((capacity, seeds), np.int64)
        """The place at which each of the last `capacity` transitions starts, counted like `head`."""
        self._seeds = np.arange(seeds)
        self._even = True  # no seed has truncated an episode yet

    def push(self, truncated: NDArray[np.bool_], out: NDArray[np.int32]) -> None:
        """Make room for one more step of each seed.

        Args:
            truncated: whether the step truncated its episode, shape (seeds,).
            out: receives three slots for each seed, shape (seeds, 3): that of the observation that the step was taken
                from, with its action, reward and end; that of the observation that the step led to; and that of the
                observation to act on next, which is the same one or the first of the next episode.
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
        """The oldest transitions to keep: at most `capacity`, and none whose slot is written over (after many
        truncations)."""
        oldest = np.maximum(self.oldest, self.count - self.capacity)
        while (lapped := self.places[oldest % self.capacity, self._seeds] <= head - self.size).any():
            oldest += lapped
        return oldest

    def sample(self, draws: NDArray[np.float64], out: NDArray[np.int32]) -> None:
        """Draw transitions uniformly with replacement.

        Args:
            draws: uniform numbers in [0, 1), (seeds, batch).
            out: receives the slots from which the transitions start, (seeds, batch).
        """
        numbers = (draws * (self.count - self.oldest)[:, None]).astype(np.int64)
        numbers += self.oldest[:, None]
        if not self._even:  # otherwise the number of a transition is the place at which it starts
            numbers = self.places[numbers % self.capacity, self._seeds[:, None]]
        np.remainder(numbers, self.size, out=out, casting="unsafe")

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """The account of all slots, for a checkpoint."""
        count = np.array(self.count, np.int64)
        return {"head": self.head, "count": count, "oldest": self.oldest, "places": self.places}

    def restore(self, arrays: dict[str, NDArray[np.int64]]) -> None:
        """Take over the account of a checkpoint."""
        self.count = int(arrays["count"])
        self.head, self.oldest, self.places = (np.array(arrays[name]) for name in ("head", "oldest", "places"))
        self._even = bool((self.head == self.count).all())


def empty(seeds: int, slots: int, form: Format) -> dict[str, NDArray[Any]]:
    """The arrays of all seeds' rings, one ring after the other: observations, and each step's (action, reward, end)."""
    (stored, dtype) = form.stored
    return {
        "observation": np.zeros((seeds * slots, *stored), dtype),
        "step": np.zeros((seeds * slots, 3), np.float32),
    }
