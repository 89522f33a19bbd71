r"""When a run does what: frames of updates, of copies to the target network, and the scheduled epsilon.

Frames are counted from 1 where they are over (the update of frame N), and from 0 where they begin
(:math:`\epsilon_t`, t = 0, 1, ...). Both start counting after the warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ipe.behaviours.schedules import SCHEDULES
from ipe.deep.frame import Frame
from ipe.deep.settings import TrainingSettings

_BLOCK = 1024


class _Row(NamedTuple):
    """What is due in a frame: an array with a number for each run, under the names that `Frame` has for them; and who
    updates, all, some or none of the runs."""

    updates_before: NDArray[np.int64]
    acting_step: NDArray[np.int64]
    epsilon: NDArray[np.float64]
    at_random: NDArray[np.bool_]
    updates: NDArray[np.bool_]
    who: str


class Timetable:
    """When each run of a batch does what."""

    def __init__(self, settings: Sequence[TrainingSettings]) -> None:
        self._warm_up = np.array([each.warm_up for each in settings])
        self._every = np.array([each.update_every for each in settings])
        self._period = np.array([each.target_period for each in settings])
        self._kind = settings[0].epsilon.kind
        self._ends = [
            np.array([getattr(each.epsilon, name) for each in settings], np.float64)
            for name in ("initial", "final", "steps")
        ]
        self._next_copy = 0
        self._block, self._rows = -1, list[_Row]()

    def fill(self, frame: Frame, number: int) -> str:
        """Write what is due in the frame of a number, counted from 0 (-1: before the first), into it: updates before
        it, epsilon of its action, who acts at random, who updates. Returns whether all, some or none of the runs
        update."""
        block, place = divmod(number + 1, _BLOCK)
        if self._block != block:
            self._block, self._rows = block, self._rows_of(np.arange(block * _BLOCK, (block + 1) * _BLOCK)[:, None])
        row = self._rows[place]
        frame.updates_before[:] = row.updates_before
        frame.acting_step[:] = row.acting_step
        frame.epsilon[:] = row.epsilon
        frame.at_random[:] = row.at_random
        frame.updates[:] = row.updates
        return row.who

    def copies(self, frame: int) -> NDArray[np.bool_] | None:
        """Which runs copy their Q-network after this frame, counted from 1; None: no run."""
        if frame < self._next_copy:
            return None
        self._next_copy = int(((frame // self._period + 1) * self._period).min())
        due: NDArray[np.bool_] = (frame % self._period == 0) & (frame > self._warm_up)
        return due if due.any() else None

    def frame_of_update(self, run: int, frame: int, back: int) -> int:
        """The frame, counted from 1, of a run's update: 1 is its last one up to this frame, 2 the one before."""
        done = max(0, frame - int(self._warm_up[run])) // int(self._every[run])
        return int(self._warm_up[run] + (done - back + 1) * self._every[run])

    def _rows_of(self, t: NDArray[np.int64]) -> list[_Row]:
        """What is due in some frames, given by how many frames come before their actions, shape (frames, 1)."""
        after = t - self._warm_up
        steps = np.maximum(after, 0)
        updates = (after > 0) & (after % self._every == 0)
        every, some = updates.all(axis=1), updates.any(axis=1)
        return list(
            map(
                _Row,
                np.maximum(after - 1, 0) // self._every,
                steps,
                SCHEDULES[self._kind](steps.astype(np.float64), *self._ends),
                t < self._warm_up,
                updates,
                np.where(every, "all", np.where(some, "some", "none")).tolist(),
            )
        )
