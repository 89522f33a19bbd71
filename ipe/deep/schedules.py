r"""When a run does what: frames of updates, of copies to the target network, and the scheduled epsilon.

Frames are counted from 1 where they are over (the update of frame N), and from 0 where they begin
(:math:`\epsilon_t`, t = 0, 1, ...). Both start counting after the warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.behaviours.schedules import SCHEDULES
from ipe.deep.frame import Frame
from ipe.deep.settings import TrainingSettings

_BLOCK = 1024


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
        self._simple = not self._warm_up.any() and bool((self._every == 1).all())
        self._next_copy = 0
        self._block: tuple[int, NDArray[np.float64]] = (-1, np.zeros((0, 0)))

    def fill(self, frame: Frame, number: int) -> str:
        """Write what is due in the frame of a number, counted from 0 (-1: before the first), into it: updates before
        it, epsilon of its action, who acts at random, who updates. Returns whether all, some or none of the runs
        update."""
        frame.epsilon[:] = self._epsilons(number + 1)
        if self._simple:
            frame.updates_before[:] = max(number, 0)
            frame.acting_step[:] = number + 1
            frame.updates[:] = 1.0
            return "all"
        after = number + 1 - self._warm_up
        frame.acting_step[:] = np.maximum(after, 0)
        frame.updates_before[:] = np.maximum(after - 1, 0) // self._every
        updates = (after > 0) & (after % self._every == 0)
        frame.at_random[:] = number + 1 < self._warm_up
        frame.updates[:] = updates
        return "all" if updates.all() else "some" if updates.any() else "none"

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

    def _epsilons(self, t: int) -> Any:
        block, row = divmod(t, _BLOCK)
        if self._block[0] != block:
            steps = np.maximum(np.arange(block * _BLOCK, (block + 1) * _BLOCK)[:, None] - self._warm_up, 0)
            self._block = (block, SCHEDULES[self._kind](steps.astype(np.float64), *self._ends))
        return self._block[1][row]
