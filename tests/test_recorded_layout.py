"""What the paths of runs say: the layouts of RL-Zoo, CleanRL and Stable-Baselines3, what people write, and patterns."""

from __future__ import annotations

from typing import Any

import pytest

from ipe.analysis.recorded.layout import match_path, pattern_of, read_path
from ipe.errors import InputError


@pytest.mark.parametrize(
    ("path", "setting", "environment", "run", "varied"),
    [
        ("dqn/CartPole-v1_2", "dqn", "CartPole-v1", "2", {}),  # RL-Zoo
        ("CartPole-v1__dqn__1__1700000000", "dqn", "CartPole-v1", "1", {}),  # CleanRL
        ("ALE/Pong-v5__dqn_atari__3__1700000000", "dqn_atari", "ALE/Pong-v5", "3", {}),
        ("MiniGrid-Empty-5x5-v0__ppo__3__1700000000", "ppo", "MiniGrid-Empty-5x5-v0", "3", {}),
        ("DQN_1", "DQN", "", "1", {}),  # Stable-Baselines3
        ("dqn/seed_0/tb/DQN_1", "dqn", "", "0", {}),
        ("dqn/3/eval", "dqn", "", "3", {}),
        ("dqn/0", "dqn", "", "0", {}),
        ("dqn-s12", "dqn", "", "12", {}),
        ("dqn_seed7", "dqn", "", "7", {}),
        ("CartPole-v1/dqn/seed=3", "dqn", "CartPole-v1", "3", {}),
        ("width_64/seed_0", "width_64", "", "0", {}),
        ("lr=0.001,width=64/2", "", "", "2", {"lr": 0.001, "width": 64}),
        ("ppo/lr=1e-4/run-5", "ppo", "", "5", {"lr": 1e-4}),
        ("lr=0.1_seed=3", "", "", "3", {"lr": 0.1}),
        ("double-dqn", "double-dqn", "", "", {}),
        ("big/ppo", "big/ppo", "", "", {}),
    ],
)
def test_layouts_that_people_use(path: str, setting: str, environment: str, run: str, varied: dict[str, Any]) -> None:
    named = read_path(path.split("/"))
    found = ("/".join(named.setting), named.environment, named.run, named.varied)
    assert found == (setting, environment, run, varied)


def test_an_environment_that_is_known_is_no_part_of_the_setting() -> None:
    assert read_path(["MyGame", "dqn", "1"], "MyGame").setting == ("dqn",)
    assert read_path(["dqn", "CartPole-v1_1"], "CartPole-v1").environment == "CartPole-v1"


def test_a_pattern_says_what_is_what() -> None:
    layout = "{environment}/{algo}/w{width}-*_s{seed}"
    named = match_path(["Maze", "dqn", "w64-x_s3"], pattern_of(layout), layout)
    assert (named.environment, named.run, named.varied) == ("Maze", "3", {"algo": "dqn", "width": 64})
    deep = "**/{setting}/{run}"
    assert match_path(["a", "b", "c", "7"], pattern_of(deep), deep).setting == ("c",)


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("{setting}/{setting}", "{setting} stands twice"),
        ("{set ting}", "{set ting} in '{set ting}' is no name"),
        ("a/b", "'a/b' names nothing"),
        ("{setting", "a brace is missing"),
    ],
)
def test_a_wrong_pattern_is_refused(layout: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        pattern_of(layout)
    assert str(error.value).startswith("layout: ")
    assert said in str(error.value)


def test_a_path_that_does_not_fit_is_refused_with_both() -> None:
    with pytest.raises(InputError, match=r"layout: 'dqn/x' does not fit '\{setting\}/s\{seed\}'"):
        match_path(["dqn", "x"], pattern_of("{setting}/s{seed}"), "{setting}/s{seed}")
