"""What the host tells the compiled program about a frame: numbers in columns that have names, and observations.

The host fills one `Frame` of NumPy arrays anew for every frame; inside the compiled program its arrays are JAX's. Two
arrays of numbers instead of ten: each array that is handed to a compiled program costs microseconds.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ipe.deep.replay import Format

ACTION, REWARD, END = range(3)
"""The columns of a step, as a frame brings it and as the replay keeps it."""


class Frame(NamedTuple):
    """A frame of a batch of seeds. The first axis of every array is the seeds."""

    whole: Any
    """Whole numbers, int32. Their columns are `slots`, `updates_before`, `acting_step` and `minibatch`."""
    real: Any
    """Real numbers, float32. Their columns are `step`, `epsilon`, `draw`, `at_random`, `updates` and `chance`."""
    arrived: Any
    """The observation that the step led to, as the replay stores it."""
    current: Any
    """The observation to act on, as the replay stores it: the one that arrived, or the next episode's first."""
    heads: Any = None
    """The slots of the current observations in a seed's environments, if there are several; None for one."""
    weights: Any = None
    """The importance weights of the minibatch's transitions; None if they are drawn uniformly."""

    @classmethod
    def empty(cls, seeds: int, form: Format, batch: int, *, weighted: bool = False) -> Self:
        """A frame of zeros, for the host to fill, for so many seeds and transitions in a minibatch."""
        (size,), dtype = form.stored
        whole, real = np.zeros((seeds, 5 + batch), np.int32), np.zeros((seeds, 8), np.float32)
        weights = np.zeros((seeds, batch), np.float32) if weighted else None
        return cls(whole, real, np.zeros((seeds, size), dtype), np.zeros((seeds, size), dtype), None, weights)

    @classmethod
    def of_updates(cls, seeds: int, batch: int, environments: int, *, weighted: bool = False) -> Self:
        """A frame of zeros for updates alone, of seeds that act in several environments: it has no observations."""
        whole, real = np.zeros((seeds, 5 + batch), np.int32), np.zeros((seeds, 8), np.float32)
        weights = np.zeros((seeds, batch), np.float32) if weighted else None
        return cls(whole, real, None, None, np.zeros((seeds, environments), np.int32), weights)

    @property
    def slots(self) -> Any:
        """Three slots of the replay: of the step's start, of its arrival, and of the current observation."""
        return self.whole[:, :3]

    @property
    def updates_before(self) -> Any:
        """How many updates each seed has done before this frame."""
        return self.whole[:, 3]

    @property
    def acting_step(self) -> Any:
        """How many frames after the warm-up came before the next action."""
        return self.whole[:, 4]

    @property
    def minibatch(self) -> Any:
        """The slots of the replay from which the minibatch's transitions start."""
        return self.whole[:, 5:]

    @property
    def step(self) -> Any:
        """The step that was taken: `ACTION`, `REWARD` and `END` (`ipe.deep.replay` has the kinds of ends)."""
        return self.real[:, :3]

    @property
    def epsilon(self) -> Any:
        """The epsilon that the schedule has for the next action."""
        return self.real[:, 3]

    @property
    def draw(self) -> Any:
        """The uniform number in [0, 1) that the next action is drawn with."""
        return self.real[:, 4]

    @property
    def at_random(self) -> Any:
        """1 where the next action is uniformly random, in the warm-up; 0 elsewhere."""
        return self.real[:, 5]

    @property
    def updates(self) -> Any:
        """1 where the networks are updated in this frame; 0 elsewhere."""
        return self.real[:, 6]

    @property
    def chance(self) -> Any:
        """The uniform number in [0, 1) for a behaviour that remembers; 0 for others."""
        return self.real[:, 7]

    def pad(self, seeds: int, environments: int = 1) -> None:
        """Let the lanes beyond the last seed do what the last seed does, in each of so many environments."""
        if seeds * environments < len(self.real):
            for array in (self.real, self.arrived, self.current):
                lanes = array.reshape(-1, environments, array.shape[1])
                lanes[seeds:] = lanes[seeds - 1]


def store(form: Format, observations: NDArray[Any], lane: int, observation: NDArray[Any], age: int) -> None:
    """Write an observation, before which `age` others of its episode came, into its lane of `Frame.arrived` or
    `Frame.current`, as the replay stores it."""
    observations[lane] = form.pack(observation, age)
