"""Environments for the tests of the deep learner: `tests.deep_environments:Drift-v0` and so on.

| id | what it is |
|---|---|
| Drift-v0 | a noisy point with four actions that ends at random; in one chosen episode it goes wrong |
| Pixels-v0 | a random binary image of a chosen size |
| Constant-v0 | one state, a reward of 1 per step |
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


for _class in (Drift, Pixels, Constant):
    if f"{_class.__name__}-v0" not in gymnasium.registry:
        gymnasium.register(f"{_class.__name__}-v0", entry_point=_class)
