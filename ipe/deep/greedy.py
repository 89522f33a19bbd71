r"""Greedy episodes of a batch of seeds that is in training: all episodes of an evaluation at once.

Each seed has an environment for every episode of an evaluation. In each step one compiled call chooses all actions,
:math:`\arg\max_a Q(s,a)`, ties broken at random. Episodes and draws depend on the trained seed and the frame alone:
neither on the batch nor on what was evaluated before, so that there is nothing to keep in a checkpoint.
"""

from __future__ import annotations

from collections.abc import MutableSequence, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ipe.behaviours import BEHAVIOURS, View, sample_at
from ipe.deep.environments import Environment, EnvironmentFailure, make_environment
from ipe.deep.evaluating import TICK, Evaluating
from ipe.deep.networks import Architecture, act, features
from ipe.deep.randomness import WHILE_TRAINING
from ipe.deep.settings import TrainingSettings

LONGEST_EPISODE = 27_000
"""Frames after which an episode is cut off, if no limit of the environment's comes before: its return so far counts.
(Half an hour of an Atari game, at which evaluations of DQN end their episodes.)"""


class Played(NamedTuple):
    """The episodes of a seed in one evaluation."""

    returns: NDArray[np.float64]
    """The sum of rewards of each episode, not discounted; NaN where its environment failed."""
    lengths: NDArray[np.int64]
    """The number of frames of each episode."""
    failure: str
    """What went wrong with the first episode that failed; an empty text if none did."""


class Greedy:
    """The environments in which a batch of seeds is evaluated while it trains.

    Args:
        settings: the settings of every seed.
        seeds: the trained seeds.
        evaluating: how many episodes there are, and how often.
        net: the shape of the networks.
        pulse: two numbers for a watchdog, as `ipe.deep.actors.Actors` has them: the index of the seed whose environment
            is being waited for, -1 for none; and the frame after which it is evaluated, plus a multiple of `TICK`.
    """

    def __init__(
        self,
        settings: Sequence[TrainingSettings],
        seeds: Sequence[int],
        evaluating: Evaluating,
        net: Architecture,
        pulse: MutableSequence[int] | None = None,
    ) -> None:
        self.evaluating = evaluating
        self._settings, self._seeds, self._net = list(settings), list(seeds), net
        self._pulse = [-1, -1] if pulse is None else pulse
        self._environments: dict[int, list[Environment]] = {}
        # XLA rounds a batch of one differently from larger ones; images are always trained one seed at a time.
        self._lanes = len(seeds) if net.image else max(2, len(seeds))

    def play(self, parameters: dict[str, Any], frame: int, which: Sequence[int]) -> dict[int, Played]:
        """Play the episodes of the evaluation after a frame.

        Args:
            parameters: the Q-networks; the first axis is the seeds, and perhaps more lanes after them.
            frame: the number of frames that are done.
            which: the indices of the seeds to evaluate.

        Returns:
            The episodes of each of these seeds, by its index.
        """
        episodes = {i: _Episodes(self._of(i, frame), self._generator(i, frame)) for i in which}
        if not episodes:
            return {}
        spec = next(iter(self._environments.values()))[0].spec
        lanes = np.minimum(np.arange(self._lanes), len(self._seeds) - 1)
        parameters = jax.tree.map(lambda array: array[lanes], parameters)
        choose = _chooser(self._net, spec.scale)
        observations = np.zeros((self._lanes, self.evaluating.episodes, *spec.observation_shape), spec.dtype)
        draws = np.zeros(observations.shape[:2], np.float32)
        for i, each in episodes.items():
            self._wait(i, frame, 0)
            each.reset(frame // self.evaluating.every - 1, observations[i])
        for step in range(1, LONGEST_EPISODE + 1):
            going = {i: each for i, each in episodes.items() if each.going}
            self._pulse[0] = -1
            if not going:
                break
            for i, each in going.items():
                draws[i] = each.generator.random(draws.shape[1], np.float32)
            actions = np.asarray(choose(parameters, observations, draws))
            for i, each in going.items():
                self._wait(i, frame, step)
                each.step(actions[i], observations[i])
        self._pulse[0] = -1
        return {i: Played(each.returns, each.lengths, each.failure) for i, each in episodes.items()}

    def close(self) -> None:
        """Close the environments."""
        for environments in self._environments.values():
            for environment in environments:
                environment.close()

    def _wait(self, i: int, frame: int, step: int) -> None:
        """Tell a watchdog whose environment is waited for; every step looks different to it."""
        self._pulse[1] = frame + TICK * step
        self._pulse[0] = i

    def _of(self, i: int, frame: int) -> list[Environment]:
        if i not in self._environments:
            self._wait(i, frame, 0)
            where, seed = self._settings[i].environment, self._seeds[i]
            seeds = [environment_seed(seed, episode) for episode in range(self.evaluating.episodes)]
            self._environments[i] = [make_environment(where, each) for each in seeds]
            self._pulse[0] = -1
        return self._environments[i]

    def _generator(self, i: int, frame: int) -> np.random.Generator:
        sequence = np.random.SeedSequence(self._seeds[i], spawn_key=(WHILE_TRAINING, frame, 1))
        return np.random.Generator(np.random.Philox(sequence))


def environment_seed(trained: int, episode: int) -> int:
    """The seed of the environment for one of the episodes of an evaluation of a trained seed: 2^63 or more, where those
    of training are less. It plays another episode at every evaluation."""
    sequence = np.random.SeedSequence(trained, spawn_key=(WHILE_TRAINING, episode))
    return 2**63 | int(sequence.generate_state(1, np.uint64)[0])


class _Episodes:
    """The episodes of one seed, side by side."""

    def __init__(self, environments: list[Environment], generator: np.random.Generator) -> None:
        self.environments, self.generator = environments, generator
        self.returns = np.zeros(len(environments))
        self.lengths = np.zeros(len(environments), np.int64)
        self.failure = ""
        self.going = list(range(len(environments)))

    def reset(self, episode: int, observations: NDArray[Any]) -> None:
        """Begin the episodes of this number."""
        for k in self.going.copy():
            try:
                observations[k] = self.environments[k].restore({"episode": episode, "actions": np.zeros(0, np.int32)})
            except EnvironmentFailure as failure:
                self._fail(k, str(failure))

    def step(self, actions: NDArray[Any], observations: NDArray[Any]) -> None:
        """Take a step in every episode that has not ended."""
        for k in self.going.copy():
            action = int(actions[k])
            if action < 0:
                self._fail(k, "the action values are not finite")
                continue
            try:
                observation, reward, terminated, truncated = self.environments[k].step(action)
            except EnvironmentFailure as failure:
                self._fail(k, str(failure))
                continue
            observations[k] = observation
            self.returns[k] += reward
            self.lengths[k] += 1
            if terminated or truncated:
                self.going.remove(k)

    def _fail(self, k: int, reason: str) -> None:
        self.returns[k] = np.nan
        self.failure = self.failure or reason
        self.going.remove(k)


@lru_cache(maxsize=32)
def _chooser(net: Architecture, scale: float) -> Any:
    """The compiled function (parameters, observations, draws) -> actions; the first two axes of the observations are
    the seeds and the episodes."""

    def choose(parameters: dict[str, Any], observations: Any, draws: Any) -> Any:
        inputs = features(net, observations.astype(jnp.float32) * jnp.float32(scale))
        acting = BEHAVIOURS["greedy"].act(View(act(net, parameters, inputs)), {})
        return sample_at(acting.probabilities, draws)

    return jax.jit(choose)
