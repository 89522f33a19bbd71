r"""One environment of one seed: its episodes, each started from a seed of its own, and its state as plain data.

Episode e of seed s starts with `reset(seed=episode_seed(s, e))`, so that an environment that seeds properly is in a
state given by e and the actions :math:`a_0, \dots, a_{t-1}` since the episode's start, whatever it did before. That
pair is what a checkpoint keeps; restoring resets and replays, also where a copy of the simulator is not possible.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ipe.deep.environments.failure import EnvironmentFailure, one_line
from ipe.deep.environments.observations import Encoder, EnvironmentSpec
from ipe.errors import InputError

_LARGEST_REWARD = float(np.finfo(np.float32).max)


def episode_seed(seed: int, episode: int) -> int:
    """Return the seed that an episode is started with: 31 bits, from the run's seed and the episode's number.

    Example:
        >>> episode_seed(0, 0), episode_seed(0, 1), episode_seed(1, 0)
        (1484405855, 1982462498, 917752063)
    """
    return int(np.random.SeedSequence([seed, episode]).generate_state(1, np.uint32)[0]) >> 1


class Step(NamedTuple):
    """What followed an action."""

    observation: NDArray[Any]
    """The observation that the action led to; at the end of an episode, its true last one."""
    reward: float
    terminated: bool
    """Whether the episode ended in a terminal state."""
    truncated: bool
    """Whether the episode was cut off."""


class Interface(NamedTuple):
    """What lies between an environment's own observations and actions and those of a network."""

    encode: Encoder
    """The function from one of the environment's observations to the array that a network sees."""
    axes: int
    """The number of axes of one of the environment's observations."""
    first_action: int
    """The environment's number for the action of index 0."""


class Environment:
    """An environment that plays episode after episode. Made by `make_environment`."""

    spec: EnvironmentSpec
    """What the environment shows, and how many actions it has."""
    seed: int
    episode: int
    """The number of the episode being played: 0 after the first `reset`, -1 before it."""

    def __init__(self, env: Any, spec: EnvironmentSpec, encode: Encoder, first_action: int, seed: int) -> None:
        self.spec = spec
        self.seed = seed
        self.episode = -1
        self._env = env
        self._encode = encode
        self._first_action = first_action
        self._n_actions = spec.actions
        self._env_step = env.step
        self._actions = array("i")
        self._over = True
        self._before: NDArray[Any] | None = None  # the observation before, where observations are stacks

    def reset(self) -> NDArray[Any]:
        """Start the next episode, and return its first observation.

        Raises:
            EnvironmentFailure: the environment raised, or its observation is NaN, infinite or of another shape.
        """
        self.episode += 1
        self._actions = array("i")
        self._over = True
        try:
            started = self._env.reset(seed=episode_seed(self.seed, self.episode))
            if not isinstance(started, tuple) or len(started) != 2:
                raise EnvironmentFailure(f"reset must return (observation, info), it returned {_form(started)}")
            observation = self._encode(started[0])
            if self.spec.stack > 1:
                self._before = None
                self._check_stack(observation)
        except Exception as error:
            raise EnvironmentFailure(f"at the start of episode {self.episode}: {one_line(error)}") from error
        self._over = False
        return observation

    def step(self, action: int) -> Step:
        """Take an action, one of 0, ..., spec.actions - 1.

        Raises:
            EnvironmentFailure: the environment raised; or the observation or the reward is NaN or infinite (in
                single precision); or the observation has another shape.
        """
        action = int(action)
        if self._over or not 0 <= action < self._n_actions:
            raise self._refusal(action)
        try:
            observation, reward, terminated, truncated, _ = self._env_step(self._first_action + action)
            x = self._encode(observation)
            if self._before is not None:
                self._check_stack(x)
            reward = float(reward)
            if not -_LARGEST_REWARD <= reward <= _LARGEST_REWARD:  # false for NaN too
                raise EnvironmentFailure(f"the reward is {reward:g}, expected a finite number of single precision")
            self._over = bool(terminated or truncated)
        except Exception as error:
            self._over = True
            at = f"at step {len(self._actions)} of episode {self.episode}"
            raise EnvironmentFailure(f"{at}: {one_line(error)}{_advice(error)}") from error
        self._actions.append(action)
        return Step(x, reward, bool(terminated), bool(truncated))

    def state(self) -> dict[str, Any]:
        """Return the episode and the actions since its start: all that it takes to restore this moment.

        Returns:
            `{"episode": int, "actions": int32 array}`. Before the first `reset` the episode is -1, and there is
            nothing to restore.
        """
        return {"episode": self.episode, "actions": np.array(self._actions, dtype=np.int32)}

    def restore(self, state: Mapping[str, Any]) -> NDArray[Any]:
        """Bring this environment into a state that `state` returned, here or with the same settings and seed.

        Returns:
            The observation of that moment.

        Raises:
            InputError: if it is no such state.
            EnvironmentFailure: the environment does not repeat the episode.
        """
        episode, actions = self._checked(state)
        self.episode = episode - 1
        observation = self.reset()
        for t, action in enumerate(actions):
            if self._over:
                raise EnvironmentFailure(
                    f"{self.spec.id} does not repeat itself from a seed: episode {episode} had gone on for "
                    f"{len(actions)} steps, and ended after {t} when it was repeated"
                )
            observation = self.step(action).observation
        return observation

    @property
    def drawable(self) -> bool:
        """Whether the environment can be made with render_mode="rgb_array"."""
        return "rgb_array" in (self._env.metadata.get("render_modes") or ())

    def render(self) -> NDArray[Any]:
        """Draw the environment, made with render_mode="rgb_array", as it is now: (height, width, 3) of uint8."""
        if self._env.render_mode != "rgb_array":
            raise InputError(f'{self.spec.id} was made without render_mode="rgb_array"')
        try:
            picture = np.array(self._env.render(), dtype=np.uint8)
        except Exception as error:
            raise EnvironmentFailure(f"{self.spec.id} cannot be drawn: {one_line(error)}") from error
        if picture.ndim != 3 or picture.shape[2] != 3:
            raise EnvironmentFailure(f"{self.spec.id} drew the shape {picture.shape}, expected (height, width, 3)")
        return picture

    @property
    def interface(self) -> Interface:
        """How observations of the environment become those of a network, also after `close`."""
        return Interface(self._encode, len(self._env.observation_space.shape), self._first_action)

    def close(self) -> None:
        """Free what the environment holds. An exception that it raises then is of no use to anybody."""
        self._over = True
        with contextlib.suppress(Exception):
            self._env.close()

    def _checked(self, state: Mapping[str, Any]) -> tuple[int, list[int]]:
        try:
            episode, actions = int(state["episode"]), np.asarray(state["actions"])
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"expected an environment's state with episode and actions: {one_line(error)}") from None
        if episode < 0:
            raise InputError(f"episode must be 0 or more, found {episode}")
        if actions.ndim != 1 or (actions.size and actions.dtype.kind not in "iu"):
            raise InputError(f"actions must be a vector of integers, found {actions.dtype} of shape {actions.shape}")
        wrong = (actions < 0) | (actions >= self._n_actions)
        if wrong.any():
            t = int(np.argmax(wrong))
            raise InputError(f"actions[{t}] = {actions[t]} is not one of the actions 0 to {self._n_actions - 1}")
        return episode, [int(action) for action in actions]

    def _check_stack(self, observation: NDArray[Any]) -> None:
        """Compare a stack of frames with the one before, of which the replay will take all frames but the newest."""
        if not self.spec.layout.follows(self._before, observation):
            raise EnvironmentFailure(
                f"the observation is not a stack of the last {self.spec.stack} frames, as FrameStackObservation makes "
                "them; set environment.stack to 1"
            )
        self._before = observation

    def _refusal(self, action: int) -> Exception:
        if self._over:
            return RuntimeError(f"{self.spec.id} is not in the middle of an episode: call reset before step")
        return InputError(f"action must be one of 0 to {self._n_actions - 1}, found {action}")


def _advice(error: Exception) -> str:
    """Return advice on the commonest mistake in an environment written for the API before Gymnasium."""
    if isinstance(error, ValueError) and "to unpack (expected 5" in str(error):
        return " (step must return observation, reward, terminated, truncated, info; the old gym API returned four)"
    return ""


def _form(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} values"
    shape = getattr(value, "shape", None)
    return type(value).__name__ if shape is None else f"{type(value).__name__} of shape {shape}"
