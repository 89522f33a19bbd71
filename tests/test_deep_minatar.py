"""MinAtar's games: step by step those of the package, the same from the same seed whatever happened before."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")
if importlib.util.find_spec("minatar") is None:
    pytest.skip("the package minatar is not installed", allow_module_level=True)

from ipe.deep.environments import episode_seed
from ipe.deep.environments import minatar as games
from tests.environment_helpers import make, random_actions, refusal, trace
from tests.tiers import tiered_rows

CHANNELS = {"Asterix": 4, "Breakout": 4, "Freeway": 7, "Seaquest": 10, "SpaceInvaders": 6}
MINIMAL = {"Asterix": 5, "Breakout": 3, "Freeway": 3, "Seaquest": 6, "SpaceInvaders": 4}


@pytest.fixture(scope="module")
def original() -> Any:
    """The package itself, which imports seaborn and pyplot and lets them warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("minatar")


@pytest.mark.parametrize("game", CHANNELS)
@pytest.mark.parametrize(
    ("sticky", "ramping", "minimal"),
    tiered_rows([(0.1, True, False), (0.0, False, True), (0.6, True, True)], (0.1, True, False)),
)
def test_step_by_step_the_package(original: Any, game: str, sticky: float, ramping: bool, minimal: bool) -> None:
    options: dict[str, Any] = {"sticky_action_prob": sticky, "difficulty_ramping": ramping, "minimal_actions": minimal}
    environment = make(f"minatar/{game}", seed=8, **options)
    steps = 0
    while steps < 3000:
        x = environment.reset()
        theirs = original.Environment(games.GAMES[f"minatar/{game}"], sticky, ramping)
        theirs.seed(episode_seed(8, environment.episode))
        theirs.reset()
        actions = theirs.minimal_action_set() if minimal else list(range(6))
        assert environment.spec.actions == len(actions)
        np.testing.assert_array_equal(x, theirs.state())
        over = False
        for action in random_actions(environment, 5000, environment.episode):
            step = environment.step(action)
            reward, over = theirs.act(actions[action])
            np.testing.assert_array_equal(step.observation, theirs.state())
            assert (step.reward, step.terminated, step.truncated) == (reward, over, False)
            steps += 1
            if over:
                break
        assert over


@pytest.mark.parametrize("game", CHANNELS)
def test_specs(game: str) -> None:
    spec = make(f"minatar/{game}").spec
    assert spec.observation_shape == (10, 10, CHANNELS[game])
    assert (spec.dtype, spec.image, spec.binary, spec.scale) == (np.dtype(np.uint8), True, True, 1.0)
    assert spec.actions == 6
    assert make(f"minatar/{game}", minimal_actions=True).spec.actions == MINIMAL[game]


@pytest.mark.parametrize("game", CHANNELS)
def test_a_seed_gives_the_same_game_whatever_happened_before(game: str) -> None:
    def play(env: Any) -> list[Any]:
        seen: list[Any] = [env.reset(seed=77)[0].tobytes()]
        for action in np.random.default_rng(1).integers(6, size=300):
            state, reward, terminated, truncated, _ = env.step(int(action))
            seen.append((state.tobytes(), reward, terminated, truncated))
        return seen

    untouched = play(games.MinAtar(f"minatar/{game}", sticky_action_prob=0.9))
    for history in ([], [1], [3] * 40, [5, 2] * 200):
        np.random.seed(len(history))  # noqa: NPY002  (that the games must not depend on)
        env = games.MinAtar(f"minatar/{game}", sticky_action_prob=0.9)
        env.reset(seed=3)
        for action in history:
            env.step(action)
        assert play(env) == untouched
    assert play(games.MinAtar(f"minatar/{game}", sticky_action_prob=0.2)) != untouched


def test_the_first_sticky_action_of_a_game_is_to_do_nothing() -> None:
    environment = make("minatar/Freeway", sticky_action_prob=1.0)
    for _ in range(2):  # in the second episode too: nothing is left of the first
        environment.reset()
        for _ in range(30):
            step = environment.step(2)
            assert step.observation[9, 4, 0] == 1


def test_without_a_seed_the_generator_goes_on() -> None:
    env = games.MinAtar("minatar/Freeway")
    boards = [env.reset(seed=5)[0].tobytes(), env.reset()[0].tobytes(), env.reset()[0].tobytes()]
    assert len(set(boards)) == 3
    assert [env.reset(seed=5)[0].tobytes(), env.reset()[0].tobytes(), env.reset()[0].tobytes()] == boards


@pytest.mark.parametrize("game", CHANNELS)
@pytest.mark.parametrize(("frame_limit", "before"), [(None, 1700), (60, 0), (60, 95)])
def test_a_restored_game_goes_on_bit_for_bit(game: str, frame_limit: int | None, before: int) -> None:
    environment = make(f"minatar/{game}", seed=2, frame_limit=frame_limit)
    environment.reset()
    trace(environment, random_actions(environment, before, 0))
    state = environment.state()
    went_on = trace(environment, random_actions(environment, 1500, 1))
    used = make(f"minatar/{game}", seed=2, frame_limit=frame_limit)
    used.reset()
    trace(used, random_actions(used, 33, 2))
    for other in (make(f"minatar/{game}", seed=2, frame_limit=frame_limit), used):
        other.restore(state)
        assert trace(other, random_actions(other, 1500, 1)) == went_on
    assert environment.episode > state["episode"]  # the next episodes too


@pytest.mark.parametrize(
    ("arguments", "end"),
    [
        ({}, (2501, True, False)),
        ({"end": "truncation"}, (2501, False, True)),
        ({"frame_limit": 100}, (100, False, True)),
        ({"frame_limit": 2501}, (2501, True, True)),
    ],
)
def test_the_end_of_freeway(arguments: dict[str, Any], end: tuple[int, bool, bool]) -> None:
    environment = make("minatar/Freeway", **arguments)
    environment.reset()
    for t in range(1, 3000):
        step = environment.step(2)
        if step.terminated or step.truncated:
            assert (t, step.terminated, step.truncated) == end
            return
    pytest.fail("it did not end")


@pytest.mark.parametrize(
    ("game", "options", "said"),
    [
        ("freeway", {}, "there is no environment 'minatar/freeway' (did you mean minatar/Freeway?)"),
        ("Frewey", {}, "(did you mean minatar/Freeway?)"),
        ("Space_Invaders", {}, "(did you mean minatar/SpaceInvaders?)"),
        ("Pong", {}, "there is no environment 'minatar/Pong'; MinAtar has minatar/Asterix, minatar/Breakout"),
        ("Chess", {}, "MinAtar has minatar/Asterix, minatar/Breakout"),
        ("Freeway", {"sticky_prob": 0.1}, "has no option 'sticky_prob' (did you mean sticky_action_prob?)"),
        ("Freeway", {"sticky_action_prob": 1.1}, "sticky_action_prob must be a number from 0 to 1, found 1.1"),
        ("Freeway", {"sticky_action_prob": True}, "sticky_action_prob must be a number from 0 to 1, found True"),
        ("Freeway", {"minimal_actions": 1}, "minimal_actions must be true or false, found 1"),
        ("Freeway", {"difficulty_ramping": "no"}, "difficulty_ramping must be true or false, found 'no'"),
        ("Freeway", {"end": "never"}, "end must be termination or truncation, found 'never'"),
        ("Breakout", {"end": "truncation"}, "only Freeway ends by a clock"),
    ],
)
def test_wrong_names_and_options(game: str, options: dict[str, Any], said: str) -> None:
    assert said in refusal(f"minatar/{game}", **options)


def test_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    games._load.cache_clear()
    monkeypatch.setitem(sys.modules, "minatar", None)
    sentence = 'needs the package minatar, which is not installed: pip install "ipe-rl[minatar]"'
    assert sentence in refusal("minatar/Freeway")


def test_only_the_game_is_imported() -> None:
    code = (
        "import sys; from ipe.deep.environments import make_environment as make;"
        "from ipe.deep.setting_groups import EnvironmentSettings as Settings;"
        "make(Settings(id='minatar/Freeway'), 0).reset();"
        "print([m for m in ('minatar', 'seaborn', 'matplotlib.pyplot', 'pandas') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


@pytest.mark.parametrize("game", CHANNELS)
def test_pictures(game: str) -> None:
    environment = make(f"minatar/{game}", render_mode="rgb_array", frame_limit=1000)
    x = environment.reset()
    for action in random_actions(environment, 20, 0):
        x = environment.step(action).observation
    picture = environment.render()
    assert picture.shape == (200, 200, 3)
    assert picture.dtype == np.uint8
    cells = picture.reshape(10, 20, 10, 20, 3)
    assert np.array_equal(cells, np.broadcast_to(cells[:, :1, :, :1], cells.shape))  # one colour a cell
    np.testing.assert_array_equal(cells[:, 0, :, 0].any(axis=2), x.any(axis=2))
    assert len(np.unique(games._COLOURS, axis=0)) == len(games._COLOURS) > max(CHANNELS.values())
