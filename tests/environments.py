"""Environments for tests, registered as a user's own would be: `tests.environments:Counting-v0` and so on.

| id | what it is |
|---|---|
| Counting-v0 | shows which episode it is and which step: no transition may mix two |
| Catch-v0 | a paddle under falling balls, a binary image; a small convolutional DQN learns it in some thousand frames |
| Corridor-v0 | a walk to the right, with a Discrete observation |
| Faulty-v0 | goes wrong in a chosen way at a chosen step |
| Spaces-v0 | has a chosen observation space and a chosen action space |
| Unseeded-v0 | ignores its seed |
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from ipe.deep.environments import episode_seed

Result = tuple[Any, Any, bool, bool, dict[str, Any]]


def mark(seed: int, episode: int) -> float:
    """What `Counting` shows throughout an episode of a run: a number of its own, exact in single precision."""
    return float(episode_seed(seed, episode) % 2**24)


class Counting(gymnasium.Env):  # type: ignore[misc]
    """Observation (mark of the episode, steps taken); the reward for action a at step t is `3 t + a`.

    Args:
        terminate_after: steps until it terminates, 0 for never.
        truncate_after: steps until it truncates, 0 for never.
        vary: terminate after a number of steps from 1 to `terminate_after`, drawn per episode.
        start: the environment's own name for the first of its three actions.
    """

    def __init__(self, terminate_after: int = 5, truncate_after: int = 0, vary: bool = False, start: int = 0) -> None:
        self.observation_space = spaces.Box(0.0, 2.0**24, (2,), np.float32)
        self.action_space = spaces.Discrete(3, start=start)
        self._terminate_after, self._truncate_after, self._vary = terminate_after, truncate_after, vary
        self._shown = np.zeros(2, dtype=np.float32)  # one array for ever: callers must not keep it

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._length = self._terminate_after
        if self._vary:
            self._length = int(self.np_random.integers(1, self._terminate_after + 1))
        self._shown[:] = ((seed or 0) % 2**24, 0)
        return self._shown, {}

    def step(self, action: Any) -> Result:
        assert self.action_space.contains(action)
        t = int(self._shown[1])
        self._shown[1] = t + 1
        reward = 3.0 * t + float(action - self.action_space.start)
        return self._shown, reward, t + 1 == self._length, t + 1 == self._truncate_after, {}


class Catch(gymnasium.Env):  # type: ignore[misc]
    """Three balls fall one after the other on a 5 x 5 board; channel 0 shows the paddle, channel 1 the ball.

    Actions: left, stay, right. A ball that reaches the bottom row is +1 if the paddle is there, else -1; the episode
    terminates after the third. Always catching gives 3; a random policy about -1.8.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, balls: int = 3) -> None:
        self.render_mode = render_mode
        self.observation_space = spaces.Box(0, 1, (5, 5, 2), np.bool_)
        self.action_space = spaces.Discrete(3)
        self._balls = balls

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._paddle, self._left = 2, self._balls
        self._drop()
        return self._board(), {}

    def step(self, action: Any) -> Result:
        self._paddle = min(max(self._paddle + int(action) - 1, 0), 4)
        self._row += 1
        reward = 0.0
        if self._row == 4:
            reward = 1.0 if self._column == self._paddle else -1.0
            self._left -= 1
            if self._left:
                self._drop()
        return self._board(), reward, self._left == 0, False, {}

    def render(self) -> Any:
        board = self._board()
        return np.stack([board[:, :, 0], board[:, :, 1], board[:, :, 1]], axis=2).astype(np.uint8) * 255

    def _drop(self) -> None:
        self._row, self._column = 0, int(self.np_random.integers(5))

    def _board(self) -> Any:
        board = np.zeros((5, 5, 2), dtype=np.bool_)
        board[4, self._paddle, 0] = True
        board[self._row, self._column, 1] = True
        return board


class Corridor(gymnasium.Env):  # type: ignore[misc]
    """Cells `start`, ..., `start + n - 1`; action 1 goes right, 0 left. The last cell terminates with +1."""

    def __init__(self, n: int = 6, start: int = 0) -> None:
        self.observation_space = spaces.Discrete(n, start=start)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._cell = 0
        return self._shown(), {}

    def step(self, action: Any) -> Result:
        self._cell = max(self._cell + (1 if action == 1 else -1), 0)
        done = self._cell == self.observation_space.n - 1
        return self._shown(), float(done), done, False, {}

    def _shown(self) -> Any:
        return np.int64(self._cell + self.observation_space.start)


class Faulty(gymnasium.Env):  # type: ignore[misc]
    """A vector of two ones, until step `at` of every episode (0: the reset), counted from 1, has its fault.

    `fault`: nan, infinite, huge (finite in double precision alone), shape, text, none, raise, exit (SystemExit),
    reward_nan, reward_infinite, reward_huge, reward_none, old_api (four values), bare_reset (no info).
    """

    def __init__(self, fault: str = "nan", at: int = 1) -> None:
        if at < 0:
            raise ValueError(f"at must be 0 or more,\nfound {at}")
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(2)
        self._fault, self._at, self._t = fault, at, 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._t = 0
        return self._observation() if self._fault == "bare_reset" else (self._observation(), {})

    def step(self, action: Any) -> Any:
        self._t += 1
        observation, reward = self._observation(), self._reward()
        if self._fault == "old_api" and self._t == self._at:
            return observation, reward, False, {}
        return observation, reward, False, False, {}

    def _observation(self) -> Any:
        x = np.ones(2)
        if self._t != self._at:
            return x
        if self._fault == "raise":
            raise OSError("the wheel\ncame off")
        if self._fault == "exit":
            raise SystemExit(3)
        x[1] = {"nan": np.nan, "infinite": -np.inf, "huge": 1e39}.get(self._fault, 1.0)
        others = {"shape": np.ones(3), "text": np.array(["a", "b"]), "none": None}
        return others.get(self._fault, x)

    def _reward(self) -> Any:
        if self._t != self._at:
            return 1.0
        faults = {"reward_nan": np.nan, "reward_infinite": np.inf, "reward_huge": -1e39, "reward_none": None}
        return faults.get(self._fault, 1.0)


SPACES: dict[str, spaces.Space[Any]] = {
    "dict": spaces.Dict({"position": spaces.Box(0.0, 1.0, (2,))}),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.Discrete(3))),
    "multi_discrete": spaces.MultiDiscrete([2, 3]),
    "box": spaces.Box(-1.0, 1.0, (3,), np.float64),
    "integers": spaces.Box(-5, 5, (3,), np.int64),
    "bytes": spaces.Box(0, 255, (3,), np.uint8),
    "scalar": spaces.Box(-1.0, 1.0, ()),
    "four_axes": spaces.Box(-1.0, 1.0, (2, 2, 2, 2)),
    "empty": spaces.Box(-1.0, 1.0, (0,)),
    "picture": spaces.Box(0, 255, (4, 5, 3), np.uint8),
    "grey": spaces.Box(0, 255, (4, 5), np.uint8),
    "float_picture": spaces.Box(-1.0, 1.0, (4, 5), np.float64),
    "integer_picture": spaces.Box(0, 9, (4, 5, 1), np.int32),
    "boolean_picture": spaces.Box(0, 1, (4, 5, 2), np.bool_),
    "bits": spaces.Box(0, 1, (7,), np.int8),
    "bit_picture": spaces.Box(0, 1, (4, 5), np.uint8),
    "multi_binary": spaces.MultiBinary(7),
    "multi_binary_picture": spaces.MultiBinary([4, 5, 2]),
    "discrete": spaces.Discrete(4),
    "discrete_from_3": spaces.Discrete(4, start=3),
    "text": spaces.Text(5),
}


class Spaces(gymnasium.Env):  # type: ignore[misc]
    """Draws its observations from a space of `SPACES`, and takes the actions of another."""

    def __init__(self, observation: str = "box", action: str = "discrete") -> None:
        self.observation_space, self.action_space = SPACES[observation], SPACES[action]

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Result:
        assert self.action_space.contains(action)
        return self.observation_space.sample(), 0.0, False, False, {}


class Unseeded(gymnasium.Env):  # type: ignore[misc]
    """Draws from a generator that no seed reaches."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0.0, 1.0, (2,), np.float64)
        self.action_space = spaces.Discrete(2)
        self._generator = np.random.default_rng(0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        return self._generator.random(2), {}

    def step(self, action: Any) -> Result:
        ended = bool(self._generator.random() < 0.05)
        return self._generator.random(2), 0.0, ended, False, {}


for _class in (Counting, Catch, Corridor, Faulty, Spaces, Unseeded):
    if f"{_class.__name__}-v0" not in gymnasium.registry:
        gymnasium.register(f"{_class.__name__}-v0", entry_point=_class)
