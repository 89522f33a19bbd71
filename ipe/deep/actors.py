"""The environments of a batch of seeds: stepped with the chosen actions, and left behind one by one when they fail.

A seed may act in several environments (`TrainingSettings.environments`). Their frames are counted one after the other:
the first environment's step is one frame, the second's the next. All arrays have a row for each environment, those of
the first seed before those of the second. A seed whose environments do not all go on is left behind.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableSequence, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.deep.environments import Environment, EnvironmentFailure, make_environment
from ipe.deep.frame import Frame, store
from ipe.deep.progress import Outcome
from ipe.deep.randomness import environment_seed
from ipe.deep.recording import Recording
from ipe.deep.records import Records
from ipe.deep.replay import CONTINUES, TERMINATED, TRUNCATED, Format
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError


class Actors:
    """The environments of a batch of seeds, the returns of their episodes, and the outcome of each seed.

    Args:
        settings: the settings of every seed.
        seeds: the seeds.
        pulse: two numbers that are kept up to date for a watchdog: the index of the environment that is being waited
            for, -1 for none; and the frame that it was asked for, counted from 1 (0: the first reset; -1: the
            environment is being made).
        give_up: outcomes of seeds whose environments must not be asked any more from those outcomes' frames on.
        acting: whether the seeds act; those that learn from a data set have no environments.
    """

    def __init__(
        self,
        settings: Sequence[TrainingSettings],
        seeds: Sequence[int],
        pulse: MutableSequence[int] | None = None,
        give_up: Mapping[int, Outcome] | None = None,
        *,
        acting: bool = True,
    ) -> None:
        self.seeds = list(seeds)
        self.kept: Recording | None = None
        self.records = Records()
        self.outcomes = [Outcome(seed) for seed in seeds]
        self.each = settings[0].environments
        self.returns = np.zeros(len(seeds) * self.each)
        self.lengths = np.zeros(len(seeds) * self.each, np.int64)
        self._pulse = [-1, -1] if pulse is None else pulse
        self._give_up = dict(give_up or {})
        rows = [(i, j) for i in range(len(seeds)) for j in range(self.each)] if acting else []
        self.environments = [self._make(i, j, settings[i]) for i, j in rows]

    @property
    def running(self) -> bool:
        """Whether any seed is still in training."""
        return any(outcome.status == "running" for outcome in self.outcomes)

    def reset(self, form: Format, frame: Frame) -> None:
        """Begin the first episode of every seed, and write its first observation into `frame.current`."""
        self._pulse[1] = 0
        for row, environment in enumerate(self.environments):
            i = row // self.each
            if self.outcomes[i].lost or self._given_up(i, 0):
                continue
            self._pulse[0] = i
            try:
                observation = environment.reset()
                store(form, frame.current, row, observation, 0)
                if self.kept is not None:
                    self.kept.show(row, observation)
            except EnvironmentFailure as failure:
                self.stop(i, "failed", 0, self._named(row, failure))
        self._pulse[0] = -1

    def step(self, actions: NDArray[Any], number: int, form: Format, frame: Frame) -> list[int]:
        """Take a step in the environment of every seed that is running; an episode that ends is recorded.

        Args:
            actions: the action in each environment; a negative one where no action has a probability.
            number: the number of the first environment's frame, counted from 1.
            form: how observations are stored.
            frame: receives the steps, the observations that they led to, and those to act on next.

        Returns:
            The indices of the seeds that have no action to take.
        """
        pulse, without_action, first = self._pulse, [], number
        pulse[1] = number
        for row, environment in enumerate(self.environments):
            i, j = divmod(row, self.each)
            if self.outcomes[i].status != "running" or i in without_action:
                continue
            if j or number != first:
                number = first + j
                pulse[1] = number
            if self._give_up and self._given_up(i, number):
                continue
            action = int(actions[row])
            if action < 0:
                without_action.append(i)
                continue
            pulse[0] = i
            try:
                observation, reward, terminated, truncated = environment.step(action)
                self.returns[row] += reward
                self.lengths[row] += 1
                age = int(self.lengths[row])
                store(form, frame.arrived, row, observation, age)
                end = TERMINATED if terminated else TRUNCATED if truncated else CONTINUES
                arrived = observation
                if end != CONTINUES:
                    observation, age = environment.reset(), 0
            except EnvironmentFailure as failure:
                self.stop(i, "failed", number, self._named(row, failure))
                continue
            if end == CONTINUES:
                frame.current[row] = frame.arrived[row]
            else:
                store(form, frame.current, row, observation, age)
            frame.step[row] = action, reward, end
            if self.kept is not None:
                self.kept.step(row, action, reward, end, arrived)
                if end != CONTINUES:
                    self.kept.show(row, observation)
            if end != CONTINUES:
                self.records.episode(self.seeds[i], number, float(self.returns[row]), int(self.lengths[row]))
                self.returns[row] = self.lengths[row] = 0
        pulse[0] = -1
        return without_action

    def stop(self, i: int, status: str, frame: int, reason: str) -> None:
        """Leave a seed behind: it failed or diverged at a frame, with which its records end."""
        self.outcomes[i] = Outcome(self.seeds[i], status, frame, reason)
        self.records.drop_from(self.seeds[i], frame)

    def finish(self, frame: int) -> None:
        """Mark the seeds that are still running as done."""
        for outcome in self.outcomes:
            if outcome.status == "running":
                outcome.status, outcome.frame = "done", frame

    def restore(
        self, states: Sequence[dict[str, Any]], frame: int, frames: int, form: Format, current: NDArray[Any]
    ) -> None:
        """Bring the environments to where a checkpoint left them after `frame` of `frames`, by the same seeds and the
        same actions. An environment that fails, or comes to another observation than the stored `current` one, is
        refused."""
        self._pulse[1] = frame + 1
        for outcome in () if self.environments else self.outcomes:
            if frame < frames and not outcome.lost and not outcome.stopped:
                outcome.status = "running"
        for row, environment in enumerate(self.environments):
            i = row // self.each
            if self.outcomes[i].lost or self.outcomes[i].stopped or self._given_up(i, frame + 1):
                continue
            if frame < frames:
                self.outcomes[i].status = "running"
            self._pulse[0] = i
            try:
                observation = form.pack(environment.restore(states[row]), int(self.lengths[row]))
            except EnvironmentFailure as failure:
                raise InputError(f"seed {self.seeds[i]}: {self._named(row, failure)}") from None
            if not np.array_equal(observation, current[row]):
                raise InputError(
                    f"seed {self.seeds[i]}: the environment, started from the same seed and given the same actions, "
                    "does not come to the state of the checkpoint; it does not draw all its randomness from its seed"
                )
        self._pulse[0] = -1

    def close(self) -> None:
        """Close the environments."""
        for environment in self.environments:
            environment.close()

    def _named(self, row: int, failure: EnvironmentFailure) -> str:
        """What went wrong, and in which of several environments, counted from 0."""
        return str(failure) if self.each == 1 else f"environment {row % self.each}: {failure}"

    def _make(self, i: int, j: int, settings: TrainingSettings) -> Environment:
        self._pulse[1] = -1
        self._pulse[0] = i
        environment = make_environment(settings.environment, environment_seed(self.seeds[i], j))
        self._pulse[0] = -1
        return environment

    def _given_up(self, i: int, frame: int) -> bool:
        """Whether a seed's environment must not be asked at this frame; the seed is stopped then."""
        last = self._give_up.get(self.seeds[i])
        if last is None or frame < last.frame:
            return False
        self.stop(i, last.status, frame, last.reason)
        return True
