r"""Experience replay: where each transition lies, and how it is read.

A seed has a ring of slots. A slot holds an observation, and the action, the reward and the end of the step that was
taken from it. The next slot holds the observation that the step led to, so that each observation is stored once. A step
that truncates its episode bootstraps from its last observation, which takes a slot from which no step starts.
After a termination nothing is bootstrapped, and the slot of the next episode's first observation follows at once. So no
transition crosses an episode.

Where observations are stacks of the last k frames, a slot holds the newest frame alone, and after it how many frames of
its episode come before it, k - 1 at most. The frames before it lie in the slots before it; those of an episode's first
observations that are not there are its first frame again.

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
    stack: int = 1
    """The number of frames in an observation, which lie one after the other along its last axis."""

    @property
    def frame(self) -> tuple[int, ...]:
        """The shape of one frame."""
        return (*self.shape[:-1], self.shape[-1] // self.stack)

    @property
    def stored(self) -> tuple[tuple[int, ...], str]:
        """The shape and dtype of what is stored of one observation, flat."""
        size, dtype = math.prod(self.frame), self.dtype
        if self.binary:
            size, dtype = -(-size // 8), "uint8"
        return (size + (self.stack > 1),), dtype

    def pack(self, observation: NDArray[Any], age: int = 0) -> NDArray[Any]:
        """What is stored of an observation, before which `age` others of its episode came."""
        if self.stack == 1:
            return np.packbits(observation, bitorder="little") if self.binary else observation.reshape(-1)
        flat = observation[..., -self.frame[-1] :].reshape(-1)
        flat = np.packbits(flat, bitorder="little") if self.binary else flat
        return np.append(flat, flat.dtype.type(min(age, self.stack - 1)))

    def read(self, observations: Any, slots: Any, base: Any, size: int) -> Any:
        """Observations from a replay, inside a compiled program.

        Args:
            observations: what is stored of all seeds' observations, one ring of slots after the other.
            slots: the slots to read, (seeds, n); those past the end of the ring are counted on.
            base: where each seed's ring begins, (seeds, 1).
            size: the number of slots of a ring.

        Returns:
            What `unpack` takes: (seeds, n, m), or (seeds, n, frames, m) for stacks of frames.
        """

        if self.stack == 1:
            return observations.at[slots % size + base].get(mode="promise_in_bounds")
        last = observations.shape[1] - 1
        ages = observations.at[slots % size + base, last].get(mode="promise_in_bounds")
        return self._frames(observations, slots, ages, base, size)

    def complete(self, newest: Any, observations: Any, slots: Any, base: Any, size: int) -> Any:
        """Observations of which the newest frames are given, as `read` returns them.

        Args:
            newest: what is stored of one observation of each seed, (seeds, m).
            observations, base, size: as for `read`.
            slots: the slots after those in which the frames before the newest lie, (seeds, 1).
        """
        if self.stack == 1:
            return newest[:, None]
        frames = self._frames(observations, slots, newest[:, -1:], base, size)
        return frames.at[:, 0, -1].set(newest[:, :-1])

    def _frames(self, observations: Any, slots: Any, ages: Any, base: Any, size: int) -> Any:
        """The frames of stacks, the oldest first, from the slots of their newest frames and their ages."""
        back = jnp.arange(self.stack - 1, -1, -1, dtype=slots.dtype)
        places = slots[..., None] - jnp.minimum(back, ages[..., None].astype(slots.dtype))
        return observations.at[places % size + base[..., None]].get(mode="promise_in_bounds")[..., :-1]

    def unpack(self, stored: Any) -> Any:
        """Observations from `read` as float32 (..., *shape), inside a compiled program."""
        if self.stack > 1:
            frames = self._replace(shape=self.frame, stack=1).unpack(stored)  # (..., frames, *frame)
            axis = frames.ndim - 1 - len(self.frame)
            return jnp.moveaxis(frames, axis, -2).reshape(*frames.shape[:axis], *self.shape)
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
    environment truncates more often than that, fewer than `capacity` transitions are kept. Stacks of k frames have
    k - 1 slots more, in which the frames before the oldest transition stay.

    A seed that acts in several environments has a ring for each of them, one after the other; `seeds` is then the
    number of rings, and `capacity` that of the transitions in each.
    """

    def __init__(self, seeds: int, capacity: int, stack: int = 1, environments: int = 1) -> None:
        self.capacity = capacity
        self.environments = environments
        self.size = slots_of(capacity, stack)
        self._room = self.size - (stack - 1)
        self.count = 0
        """How many transitions each seed has had so far: the same number for every seed."""
        self.head = np.zeros(seeds, np.int64)
        """The place of the current observation. Places are counted on without end; a slot is a place modulo `size`."""
        self.oldest = np.zeros(seeds, np.int64)
        """The number of the oldest transition that is kept."""
        self.places = np.zeros((capacity, seeds), np.int64)
        """The place at which each of the last `capacity` transitions starts, counted like `head`."""
        self._seeds = np.arange(seeds)
        self._first_rings = np.arange(0, seeds, environments)[:, None]
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
        if self._even and not truncated.any():  # the place of every seed's current observation is its step's number
            self.head = self.head + 1
            if self.count > self.capacity:
                self.oldest = np.full_like(self.head, self.count - self.capacity)
            out[:, 0] = (self.count - 1) % self.size
            out[:, 1:] = self.count % self.size
            return
        self._even = False
        places = self.head[:, None] + _STEP
        places[:, 2] += truncated
        self.oldest = self._oldest(places[:, 2])
        self.head = places[:, 2]
        np.remainder(places, self.size, out=out, casting="unsafe")

    def _oldest(self, head: NDArray[np.int64]) -> NDArray[np.int64]:
        """The oldest transitions to keep: at most `capacity`, and none whose slot is written over (after many
        truncations)."""
        oldest = np.maximum(self.oldest, self.count - self.capacity)
        while (lapped := self.places[oldest % self.capacity, self._seeds] <= head - self._room).any():
            oldest += lapped
        return oldest

    def sample(self, draws: NDArray[np.float64], out: NDArray[np.int32]) -> None:
        """Draw transitions uniformly with replacement, by uniform numbers in [0, 1) of shape (seeds, batch); `out`
        receives the slots from which the transitions start, in the same shape."""
        numbers = (draws * self.kept[:, None]).astype(np.int64)
        if self.environments > 1:
            self._across(numbers, out)
            return
        numbers += self.oldest[:, None]
        if not self._even:  # otherwise the number of a transition is the place at which it starts
            numbers = self.places[numbers % self.capacity, self._seeds[:, None]]
        np.remainder(numbers, self.size, out=out, casting="unsafe")

    @property
    def kept(self) -> NDArray[np.int64]:
        """How many transitions of each seed are kept, in all its rings."""
        kept = self.count - self.oldest
        return kept if self.environments == 1 else kept.reshape(-1, self.environments).sum(axis=1)

    def at(self, places: NDArray[np.int64], out: NDArray[np.int32]) -> None:
        """Find the slots of transitions from their rows in `places`, (seeds, batch): the rows of a seed's second ring
        are counted on from those of the first, and so on. `out` receives the slots from which the transitions start;
        those of a second ring are counted on, too."""
        if self.environments == 1:
            np.remainder(self.places[places, self._first_rings], self.size, out=out, casting="unsafe")
            return
        ring, row = np.divmod(places, self.capacity)
        out[:] = self.places[row, self._first_rings + ring] % self.size + ring * self.size

    def _across(self, numbers: NDArray[np.int64], out: NDArray[np.int32]) -> None:
        """The slots of transitions that are numbered over all rings of a seed, the oldest of its first ring being 0."""
        kept = (self.count - self.oldest).reshape(-1, self.environments)
        ends = kept.cumsum(axis=1)
        ring = (numbers[:, :, None] >= ends[:, None, :]).sum(axis=2)
        inside = numbers - np.take_along_axis(ends - kept, ring, axis=1)
        row = (inside + self.oldest[self._first_rings + ring]) % self.capacity
        self.at(ring * self.capacity + row, out)

    def arrays(self) -> dict[str, NDArray[np.int64]]:
        """The account of all slots, for a checkpoint; of the places, those that are known yet."""
        count, places = np.array(self.count, np.int64), self.places[: min(self.count, self.capacity)]
        return {"head": self.head, "count": count, "oldest": self.oldest, "places": places}

    def restore(self, arrays: dict[str, NDArray[np.int64]]) -> None:
        """Take over the account of a checkpoint."""
        self.count = int(arrays["count"])
        self.head, self.oldest = (np.array(arrays[name]) for name in ("head", "oldest"))
        self.places[: len(arrays["places"])] = arrays["places"]  # earlier versions wrote all of them
        self._even = bool((self.head == self.count).all())


def slots_of(capacity: int, stack: int = 1) -> int:
    """How many slots one seed has for `capacity` transitions of stacks of frames."""
    return capacity + capacity // 16 + 2 + stack - 1


def empty(seeds: int, slots: int, form: Format) -> dict[str, NDArray[Any]]:
    """The arrays of all seeds' rings, one ring after the other: observations, and each step's (action, reward, end)."""
    (stored, dtype) = form.stored
    return {
        "observation": np.zeros((seeds * slots, *stored), dtype),
        "step": np.zeros((seeds * slots, 3), np.float32),
    }


def filled(array: NDArray[Any], seeds: int, head: NDArray[np.int64]) -> NDArray[Any]:
    """The part of an array of `empty` that has been written to, for a checkpoint; `head` are the places that were
    written last."""
    size = len(array) // seeds
    used = min(int(head.max()) + 1, size)
    return array if used == size else array.reshape(seeds, size, -1)[:, :used].reshape(seeds * used, -1)


def refilled(part: NDArray[Any], seeds: int, size: int) -> NDArray[Any]:
    """The array of rings of `size` slots that `filled` took a part of; or the array itself, which earlier versions
    wrote whole."""
    used = len(part) // seeds
    if used == size:
        return part
    array = np.zeros((seeds, size, part.shape[1]), part.dtype)
    array[:, :used] = part.reshape(seeds, used, -1)
    return array.reshape(seeds * size, -1)
