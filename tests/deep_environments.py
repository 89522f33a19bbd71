"""Environments for the tests of the deep learner: `tests.deep_environments:Drift-v0` and so on.

| id | what it is |
|---|---|
| Drift-v0 | a noisy point with four actions that ends at random; in one chosen episode it goes wrong |
| Pixels-v0 | a random binary image of a chosen size |
| Constant-v0 | one state, a reward of 1 per step |
| Film-v0 | frames of random bytes, with two or three axes |
| Stacked-v0 | the same, in stacks that Gymnasium's wrapper makes |
| Whole-v0 | the same stacks as images with more channels |
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

Result = tuple[Any, float, bool, bool, dict[str, Any]]


class Drift(gymnasium.Env):  # type: ignore[misc]
    """A point in three dimensions that its four actions push in four directions; numbers of the size of one.

    Args:
        end: the probability that a step is the last, by termination.
        bad: the seed of the episode that goes wrong (`episode_seed`), 0 for none.
        fault: nan, shape, raise or reset: what goes wrong there.
        at: in which of its steps, counted from 1.
    """

    def __init__(self, end: float = 0.1, bad: int = 0, fault: str = "nan", at: int = 3) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
        self.action_space = spaces.Discrete(4)
        self._end, self._bad, self._fault, self._at = end, bad, fault, at

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._wrong = self._bad > 0 and seed == self._bad
        if self._wrong and self._fault == "reset":
            raise OSError("no more episodes")
        self._t = 0
        self._x = self.np_random.normal(size=3)
        return self._x.astype(np.float32), {}

    def step(self, action: Any) -> Result:
        push = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [-1, -1, -1]])[action]
        self._t += 1
        self._x = 0.7 * self._x + 0.5 * push + 0.3 * self.np_random.normal(size=3)
        ended = bool(self.np_random.random() < self._end)
        reward = float(self._x[0] - 0.5 * abs(self._x[1]))
        if self._wrong:
            ended = False
            if self._t == self._at:
                return self._faulty(), reward, False, False, {}
        return self._x.astype(np.float32), reward, ended, False, {}

    def _faulty(self) -> Any:
        if self._fault == "raise":
            raise OSError("the wheel came off")
        return np.zeros(4, np.float32) if self._fault == "shape" else np.full(3, np.nan, np.float32)


class Pixels(gymnasium.Env):  # type: ignore[misc]
    """Random bits in an image of `height` by `width` by 2; two actions; ends at random."""

    def __init__(self, height: int = 4, width: int = 5) -> None:
        self.observation_space = spaces.MultiBinary([height, width, 2])
        self.action_space = spaces.Discrete(2)
        self._shape = (height, width, 2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return self._bits(), {}

    def step(self, action: Any) -> Result:
        x = self._bits()
        return x, float(x.mean() - 0.5), bool(self.np_random.random() < 0.1), False, {}

    def _bits(self) -> Any:
        return self.np_random.integers(0, 2, self._shape, dtype=np.int8)


class Constant(gymnasium.Env):  # type: ignore[misc]
    """Always the same observation and a reward of 1; `end`: whether every step terminates."""

    def __init__(self, end: bool = False) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (2,), np.float32)
        self.action_space = spaces.Discrete(2)
        self._end = end

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return np.ones(2, np.float32), {}

    def step(self, action: Any) -> Result:
        return np.ones(2, np.float32), 1.0, self._end, False, {}


class Film(gymnasium.Env):  # type: ignore[misc]
    """Frames of random bytes, of random numbers or of random bits; three actions.

    Args:
        height, width: the pixels.
        channels: the channels; 0 for frames with two axes.
        first: whether the channels come first.
        terminate: the probability that a step terminates.
        truncate: truncate after this many steps, 0 for never.
        same: whether all frames are shown in one array.
        kind: uint8, float32 or bits.
    """

    def __init__(
        self, height: int = 36, width: int = 40, channels: int = 0, first: bool = False, terminate: float = 0.1,
        truncate: int = 0, same: bool = False, kind: str = "uint8",
    ) -> None:  # fmt: skip
        shape = (height, width) if not channels else (channels, height, width) if first else (height, width, channels)
        kinds = {"uint8": (255, np.uint8), "float32": (1.0, np.float32), "bits": (1, np.uint8)}
        high, dtype = kinds[kind]
        self.observation_space = spaces.Box(0, high, shape, dtype)
        self.action_space = spaces.Discrete(3)
        self._kind, self._terminate, self._truncate = kind, terminate, truncate
        self._frame = np.zeros(shape, dtype) if same else None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._t = 0
        return self._shown(), {}

    def step(self, action: Any) -> Result:
        self._t += 1
        ended = bool(self.np_random.random() < self._terminate)
        reward = float(self.np_random.normal() + action)
        return self._shown(), reward, ended, not ended and self._t == self._truncate, {}

    def _shown(self) -> Any:
        space = self.observation_space
        if self._kind == "float32":
            frame = self.np_random.random(space.shape, dtype=np.float32)
        else:
            frame = self.np_random.integers(0, int(space.high.max()), space.shape, dtype=np.uint8, endpoint=True)
        if self._frame is None:
            return frame
        self._frame[:] = frame
        return self._frame


def stacked_film(stack: int = 4, padding: str = "reset", flip: bool = False, **options: Any) -> Any:
    """A film whose frames Gymnasium's wrapper stacks; `flip`: with the frames upside down after that."""
    from gymnasium.wrappers import FrameStackObservation, TimeLimit

    env = TimeLimit(FrameStackObservation(Film(**options), stack, padding_type=padding), 10**6)
    return Shuffled(env) if flip else env


def whole_film(stack: int = 4, **options: Any) -> Any:
    """The same stacks as images (height, width, frames x channels), of which nobody can see that they are stacks."""
    from gymnasium.wrappers import FrameStackObservation, TransformObservation

    film = Film(**options)

    def laid_out(frames: Any) -> Any:
        frames = [frame[..., None] if frame.ndim == 2 else frame for frame in frames]
        frames = [np.moveaxis(frame, 0, -1) if options.get("first") else frame for frame in frames]
        return np.concatenate(frames, axis=-1)

    stacked = FrameStackObservation(film, stack)
    low, high = (laid_out(bound) for bound in (stacked.observation_space.low, stacked.observation_space.high))
    return TransformObservation(stacked, laid_out, spaces.Box(low, high, dtype=film.observation_space.dtype))


class Shuffled(gymnasium.Wrapper):  # type: ignore[misc]
    """Changes stacks in a way that Gymnasium does not know of: their frames are no stacks any more."""

    def step(self, action: Any) -> Result:
        observation, *rest = self.env.step(action)
        return observation[::-1], *rest


for _name, _function in (("Stacked-v0", stacked_film), ("Whole-v0", whole_film)):
    if _name not in gymnasium.registry:
        gymnasium.register(_name, entry_point=_function)
for _class in (Drift, Pixels, Constant, Film):
    if f"{_class.__name__}-v0" not in gymnasium.registry:
        gymnasium.register(f"{_class.__name__}-v0", entry_point=_class)
