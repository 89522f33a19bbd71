"""Environments: what they show, how episodes start and end, and that a restored one goes on bit for bit."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("gymnasium")

from ipe.deep.environments import EnvironmentFailure, EnvironmentSpec, Step, episode_seed
from ipe.errors import InputError
from tests.environment_helpers import OWN, make, random_actions, refusal, trace
from tests.environments import SPACES, Catch, mark

# ---- what an environment shows


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "image", "binary", "scale"),
    [
        ("box", (3,), np.float32, False, False, 1.0),
        ("integers", (3,), np.float32, False, False, 1.0),
        ("bytes", (3,), np.float32, False, False, 1.0),
        ("picture", (4, 5, 3), np.uint8, True, False, 1 / 255),
        ("grey", (4, 5, 1), np.uint8, True, False, 1 / 255),
        ("float_picture", (4, 5, 1), np.float32, True, False, 1.0),
        ("integer_picture", (4, 5, 1), np.float32, True, False, 1.0),
        ("boolean_picture", (4, 5, 2), np.uint8, True, True, 1.0),
        ("bits", (7,), np.uint8, False, True, 1.0),
        ("bit_picture", (4, 5, 1), np.uint8, True, True, 1.0),
        ("multi_binary", (7,), np.uint8, False, True, 1.0),
        ("multi_binary_picture", (4, 5, 2), np.uint8, True, True, 1.0),
        ("discrete", (4,), np.uint8, False, True, 1.0),
        ("discrete_from_3", (4,), np.uint8, False, True, 1.0),
    ],
)
def test_each_space_gives_its_spec_and_its_observations(
    name: str, shape: tuple[int, ...], dtype: Any, image: bool, binary: bool, scale: float
) -> None:
    environment = make(OWN + "Spaces-v0", seed=4, observation=name)
    assert environment.spec == EnvironmentSpec(
        OWN + "Spaces-v0", shape, np.dtype(dtype), image, binary, scale, actions=4
    )
    shown = [environment.reset(), *(environment.step(0).observation for _ in range(20))]
    SPACES[name].seed(episode_seed(4, 0))
    start = getattr(SPACES[name], "start", 0)
    for x in shown:
        drawn = np.asarray(SPACES[name].sample())
        expected = np.eye(4)[drawn - start] if name.startswith("discrete") else drawn
        assert x.dtype == dtype
        assert x.flags.c_contiguous
        np.testing.assert_array_equal(x, expected.reshape(shape).astype(dtype))


def test_actions_count_from_zero_whatever_the_environment_calls_them() -> None:
    environment = make(OWN + "Counting-v0", start=7)
    environment.reset()
    assert [environment.step(a).reward for a in (0, 2, 1)] == [0.0, 5.0, 7.0]
    for action in (-1, 3):
        with pytest.raises(InputError, match=f"action must be one of 0 to 2, found {action}"):
            environment.step(action)
    assert environment.step(np.int32(1)).reward == 10.0  # type: ignore[arg-type]


def test_observations_are_the_callers_own() -> None:
    environment = make(OWN + "Counting-v0")  # which returns one and the same array at every step
    shown = [environment.reset(), *(environment.step(0).observation for _ in range(3))]
    assert [float(x[1]) for x in shown] == [0.0, 1.0, 2.0, 3.0]


# ---- episodes


def test_episodes_have_seeds_of_their_own() -> None:
    seeds = {episode_seed(seed, episode) for seed in range(40) for episode in range(40)}
    assert len(seeds) == 1600
    assert all(0 <= s < 2**31 for s in seeds)
    environment = make(OWN + "Counting-v0", seed=11, terminate_after=1)
    assert environment.episode == -1
    for episode in range(5):
        assert float(environment.reset()[0]) == mark(11, episode)
        assert environment.episode == episode
        assert environment.step(0).terminated


def test_the_end_is_told_apart_and_shows_the_true_last_observation() -> None:
    def last(**arguments: Any) -> Step:
        environment = make(OWN + "Counting-v0", **arguments)
        environment.reset()
        steps = [environment.step(1)]
        while not (steps[-1].terminated or steps[-1].truncated):
            steps.append(environment.step(1))
        assert float(steps[-1].observation[0]) == mark(0, 0)
        assert float(steps[-1].observation[1]) == len(steps)
        return steps[-1]

    terminated, truncated = last(terminate_after=4), last(terminate_after=0, truncate_after=3)
    assert (terminated.terminated, terminated.truncated, terminated.observation[1]) == (True, False, 4.0)
    assert (truncated.terminated, truncated.truncated, truncated.observation[1]) == (False, True, 3.0)
    limited = last(frame_limit=2)
    assert (limited.terminated, limited.truncated, limited.observation[1]) == (False, True, 2.0)
    both = last(frame_limit=4, terminate_after=4)
    assert (both.terminated, both.truncated) == (True, True)


def test_the_frame_limit_replaces_the_environments_own() -> None:
    def length(frame_limit: int | None) -> int:
        environment = make("MountainCar-v0", frame_limit=frame_limit)
        environment.reset()
        return next(t for t in range(1, 2000) if environment.step(1).truncated)

    assert (length(None), length(37), length(300)) == (200, 37, 300)


def test_no_step_outside_of_an_episode() -> None:
    environment = make(OWN + "Counting-v0", terminate_after=1)
    with pytest.raises(RuntimeError, match="call reset"):
        environment.step(0)
    environment.reset()
    environment.step(0)
    with pytest.raises(RuntimeError, match="call reset"):
        environment.step(0)


# ---- state and restore

RESTORED = [
    ("LunarLander-v3", {"frame_limit": 5000}),
    ("LunarLander-v3", {"frame_limit": 40, "enable_wind": True}),
    ("CartPole-v1", {}),
    ("FrozenLake-v1", {}),
    (OWN + "Counting-v0", {"vary": True, "terminate_after": 30}),
    (OWN + "Catch-v0", {}),
]


@pytest.mark.parametrize(("env_id", "arguments"), RESTORED)
@pytest.mark.parametrize("before", [0, 1, 137, 333])
def test_a_restored_environment_goes_on_bit_for_bit(env_id: str, arguments: dict[str, Any], before: int) -> None:
    environment = make(env_id, seed=5, **arguments)
    environment.reset()
    trace(environment, random_actions(environment, before, 0))
    state = json.loads(json.dumps({key: np.asarray(value).tolist() for key, value in environment.state().items()}))
    went_on = trace(environment, random_actions(environment, 400, 1))

    fresh = make(env_id, seed=5, **arguments)
    used = make(env_id, seed=5, **arguments)
    used.reset()
    trace(used, random_actions(used, 211, 2))
    for other in (fresh, used):
        other.restore(state)
        assert trace(other, random_actions(other, 400, 1)) == went_on
    elsewhere = make(env_id, seed=6, **arguments)
    elsewhere.reset()
    assert trace(elsewhere, random_actions(elsewhere, 400, 1)) != went_on


def test_restoring_returns_the_observation_of_the_moment() -> None:
    environment = make("LunarLander-v3", seed=3)
    x = environment.reset()
    for action in random_actions(environment, 30, 0):
        x = environment.step(action).observation
    state = environment.state()
    assert state["episode"] == 0
    assert state["actions"].dtype == np.int32
    assert state["actions"].tolist() == random_actions(environment, 30, 0)
    assert make("LunarLander-v3", seed=3).restore(state).tobytes() == x.tobytes()


def test_restoring_at_the_end_of_an_episode() -> None:
    environment = make(OWN + "Counting-v0", terminate_after=3)
    environment.reset()
    environment.reset()
    for _ in range(3):
        x = environment.step(2).observation
    other = make(OWN + "Counting-v0", terminate_after=3)
    np.testing.assert_array_equal(other.restore(environment.state()), x)
    with pytest.raises(RuntimeError, match="call reset"):
        other.step(0)
    np.testing.assert_array_equal(other.reset(), environment.reset())


@given(st.lists(st.integers(0, 2), max_size=40), st.lists(st.integers(0, 2), max_size=40), st.integers(0, 2**40))
def test_any_moment_can_be_restored(before: list[int], after: list[int], seed: int) -> None:
    environment = make(OWN + "Catch-v0", seed=seed)
    environment.reset()
    trace(environment, before)
    other = make(OWN + "Catch-v0", seed=seed)
    other.restore(environment.state())
    assert trace(other, after) == trace(environment, after)
    assert other.episode == environment.episode
    np.testing.assert_array_equal(other.state()["actions"], environment.state()["actions"])


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ({"episode": -1, "actions": []}, "episode must be 0 or more, found -1"),
        ({"episode": 0, "actions": [0, 3]}, r"actions\[1\] = 3 is not one of the actions 0 to 2"),
        ({"episode": 0, "actions": [0.5]}, "actions must be a vector of integers, found float64"),
        ({"episode": 0, "actions": [[0]]}, "actions must be a vector of integers"),
        ({"actions": []}, "episode"),
        ({"episode": "x", "actions": []}, "episode"),
    ],
)
def test_a_state_that_is_none(state: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        make(OWN + "Counting-v0").restore(state)


def test_an_environment_that_ignores_its_seed() -> None:
    with pytest.warns(UserWarning, match="Unseeded-v0 does not repeat itself"):
        environment = make(OWN + "Unseeded-v0")
    state = {"episode": 0, "actions": np.zeros(400, dtype=np.int32)}
    with pytest.raises(EnvironmentFailure, match="episode 0 had gone on for 400 steps, and ended after"):
        environment.restore(state)


# ---- pictures


def test_pictures() -> None:
    environment = make("LunarLander-v3", frame_limit=100, render_mode="rgb_array")
    environment.reset()
    first = environment.render()
    assert first.shape == (400, 600, 3)
    assert first.dtype == np.uint8
    trace(environment, [2] * 10)
    assert not np.array_equal(first, environment.render())
    environment.close()
    assert "cannot be drawn: it has no render mode rgb_array" in refusal(OWN + "Counting-v0", render_mode="rgb_array")
    assert "render_mode must be rgb_array or None, found 'human'" in refusal("CartPole-v1", render_mode="human")
    with pytest.raises(InputError, match='without render_mode="rgb_array"'):
        make("CartPole-v1").render()


def test_pictures_that_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = make(OWN + "Catch-v0", render_mode="rgb_array")
    environment.reset()
    assert environment.render().shape == (5, 5, 3)
    monkeypatch.setattr(Catch, "render", lambda self: np.zeros((5, 5)))
    with pytest.raises(EnvironmentFailure, match=r"drew the shape \(5, 5\), expected \(height, width, 3\)"):
        environment.render()
    monkeypatch.setattr(Catch, "render", lambda self: self.no_such_thing)
    with pytest.raises(EnvironmentFailure, match="cannot be drawn: AttributeError"):
        environment.render()


def test_drawing_does_not_change_the_game() -> None:
    drawn, plain = make("LunarLander-v3", render_mode="rgb_array"), make("LunarLander-v3")
    assert drawn.reset().tobytes() == plain.reset().tobytes()
    for action in random_actions(plain, 40, 0):
        drawn.render()
        assert trace(drawn, [action]) == trace(plain, [action])


# ---- the tests' own environments


def test_catch_is_won_by_following_the_ball() -> None:
    environment = make(OWN + "Catch-v0")
    for _ in range(20):
        x, total, over = environment.reset(), 0.0, False
        while not over:
            paddle, ball = np.argmax(x[4, :, 0]), np.argmax(x[:, :, 1].any(axis=0))
            step = environment.step(1 + int(np.sign(int(ball) - int(paddle))))
            x, total, over = step.observation, total + step.reward, step.terminated
        assert total == 3.0


def test_catch_is_lost_at_random() -> None:
    environment = make(OWN + "Catch-v0")
    environment.reset()
    seen = [s for s in trace(environment, random_actions(environment, 6000, 0)) if len(s) == 4]
    per_episode = sum(s[1] for s in seen) / sum(s[2] for s in seen)
    assert -2.2 < per_episode < -1.2


def test_the_corridor_is_one_hot() -> None:
    environment = make(OWN + "Corridor-v0", n=4, start=10)
    np.testing.assert_array_equal(environment.reset(), [1, 0, 0, 0])
    steps = [environment.step(a) for a in (1, 0, 1, 1, 1)]
    assert [int(np.argmax(step.observation)) for step in steps] == [1, 0, 1, 2, 3]
    assert [step.reward for step in steps] == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert steps[-1].terminated
