"""MinAtar's five games behind Gymnasium's interface (Young and Tian, 2019), from the `minatar` package.

Observations are 10 x 10 x n booleans, one channel per kind of object. What the package leaves to chance is fixed here:

- A reset with a seed gives the same game whatever happened before. The package's own wrapper keeps the last action,
  which a sticky action then repeats, over resets, and its generator is seeded only if one asks.
- Only the game's own module is loaded. The package itself imports seaborn and pyplot, which nothing here needs.

With a probability of `sticky_action_prob` an action is replaced by the previous one, as decided by the first draw
of each step from the generator that the game uses too: step by step what the package does, from the same state.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.base.numbers import finite_number, true_or_false
from ipe.base.packages import missing_package
from ipe.base.words import did_you_mean
from ipe.errors import InputError

try:
    from gymnasium import Env
    from gymnasium.spaces import Box, Discrete
except ImportError:  # `make_environment` says so; without Gymnasium this module is there to be read
    Env = object

GAMES = {
    "minatar/Asterix": "asterix",
    "minatar/Breakout": "breakout",
    "minatar/Freeway": "freeway",
    "minatar/Seaquest": "seaquest",
    "minatar/SpaceInvaders": "space_invaders",
}

_OPTIONS = {"sticky_action_prob": 0.1, "difficulty_ramping": True, "minimal_actions": False, "end": "termination"}
_ENDS = ("termination", "truncation")
_CELL = 20
# Paul Tol's light scheme and white, on black: told apart with any colour vision. One per channel, at most ten.
_COLOURS = np.array(
    [
        [0, 0, 0],
        [255, 255, 255],
        [238, 136, 102],
        [119, 170, 221],
        [238, 221, 136],
        [255, 170, 187],
        [153, 221, 255],
        [68, 187, 153],
        [187, 204, 51],
        [170, 170, 0],
        [221, 221, 221],
    ],
    dtype=np.uint8,
)


class MinAtar(Env):  # type: ignore[misc]
    """A game of MinAtar as a Gymnasium environment.

    Args:
        name: one of the keys of `GAMES`.
        render_mode: "rgb_array" or None.
        sticky_action_prob: the probability with which the previous action is repeated.
        difficulty_ramping: whether the games that can get harder do.
        minimal_actions: leave out actions that do nothing in this game; by default all six (nothing, left, up, right,
            down, fire), as in the paper's experiments.
        end: what Freeway's end is, "termination" or "truncation". Its clock stops at the 2501st step (the package's
            documentation says 2500). The other games end when they are lost, always a termination.

    Raises:
        InputError: an option is wrong, or the package is not installed.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012  (Gymnasium's attribute)

    def __init__(self, name: str, render_mode: str | None = None, **options: Any) -> None:
        chosen = _checked(name, options)
        self.render_mode = render_mode
        self._module = _load(name)
        self._sticky = float(chosen["sticky_action_prob"])
        self._ramping = chosen["difficulty_ramping"]
        self._truncates = chosen["end"] == "truncation"
        self._random = np.random.RandomState()  # what the games draw from
        self._game = self._module.Env(ramping=self._ramping)
        self._action_set = list(self._game.minimal_action_set()) if chosen["minimal_actions"] else list(range(6))
        self._last = 0
        self.action_space = Discrete(len(self._action_set))
        self.observation_space = Box(0, 1, shape=tuple(self._game.state_shape()), dtype=np.bool_)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin a new game. The same seed gives the same game; without a seed, the generator goes on."""
        super().reset(seed=seed)
        if seed is not None:
            self._random = np.random.RandomState(seed)
        self._game = self._module.Env(ramping=self._ramping)  # nothing left of the last game
        self._game.random = self._random
        self._game.reset()
        self._last = 0
        return self._game.state(), {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action for one frame."""
        game_action = self._action_set[action]
        if self._random.random_sample() < self._sticky:
            game_action = self._last
        self._last = game_action
        reward, over = self._game.act(game_action)
        return self._game.state(), float(reward), over and not self._truncates, over and self._truncates, {}

    def render(self) -> NDArray[np.uint8] | None:
        """Draw the board, 20 pixels a cell, a colour per channel; the first channel, the player, is on top."""
        if self.render_mode is None:
            return None
        return draw(self._game.state())


def draw(state: NDArray[Any]) -> NDArray[np.uint8]:
    """Draw a game's state, (height, width, channels) booleans, as a picture, (20 height, 20 width, 3) of uint8.

    Example:
        >>> state = np.zeros((10, 10, 4), dtype=bool)
        >>> state[0, 1, 2:] = True
        >>> picture = draw(state)
        >>> picture.shape, picture[0, 20].tolist(), picture[0, 0].tolist()
        ((200, 200, 3), [119, 170, 221], [0, 0, 0])
    """
    colour = np.where(state.any(axis=2), 1 + np.argmax(state, axis=2), 0)
    return np.kron(_COLOURS[colour], np.ones((_CELL, _CELL, 1), dtype=np.uint8))


@cache
def _load(name: str) -> Any:
    """Load the module of one game by its file: importing it by name would import the whole package."""
    package = importlib.util.find_spec("minatar")
    if package is None or not package.submodule_search_locations:
        raise missing_package(name, "the package minatar", extra="minatar")
    file = Path(package.submodule_search_locations[0]) / "environments" / f"{GAMES[name]}.py"
    spec = importlib.util.spec_from_file_location(f"{__name__}.{GAMES[name]}", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise missing_package(name, f"a minatar with environments/{file.name}", extra="minatar")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _checked(name: str, options: dict[str, Any]) -> dict[str, Any]:
    if name not in GAMES:
        games = [game.removeprefix("minatar/") for game in GAMES]
        close = did_you_mean(name[len("minatar/") :], games, prefix="minatar/")
        raise InputError(f"there is no environment {name!r}{close}; MinAtar has {', '.join(GAMES)}")
    for key in options:
        if key not in _OPTIONS:
            raise InputError(f"{name} has no option {key!r}{did_you_mean(key, _OPTIONS)}; it has {', '.join(_OPTIONS)}")
    chosen = _OPTIONS | options
    finite_number(chosen["sticky_action_prob"], f"{name}: sticky_action_prob", 0, 1)
    for key in ("difficulty_ramping", "minimal_actions"):
        true_or_false(chosen[key], f"{name}: {key}")
    if chosen["end"] not in _ENDS:
        raise InputError(f"{name}: end must be {' or '.join(_ENDS)}, found {chosen['end']!r}")
    if chosen["end"] == "truncation" and name != "minatar/Freeway":
        raise InputError(f"{name}: end must be termination (the game is lost then); only Freeway ends by a clock")
    return chosen
