"""Deep sea against the behaviour suite's rules, and finite MDPs as Gymnasium environments."""

from __future__ import annotations

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ipe import zoo
from ipe.cli import main
from ipe.deep.environments import make_environment
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.planning import optimal_values, policy_values, uniform_policy

gymnasium = pytest.importorskip("gymnasium")


def dive(n: int, seed: int, actions: list[int]) -> tuple[list[tuple[int, int]], list[float]]:
    """Deep sea by the rules in the behaviour suite's documentation, step by step: cells and rewards."""
    right = np.random.RandomState(seed).binomial(1, 0.5, [n, n])
    column = 0
    cells, rewards = [(0, 0)], []
    for row, action in enumerate(actions):
        goes_right = action == right[row, column]
        reward = 0.0
        if goes_right:
            reward -= 0.01 / n
            if column == n - 1:
                reward += 1.0
        column = min(column + 1, n - 1) if goes_right else max(column - 1, 0)
        cells.append((row + 1, column))
        rewards.append(reward)
    return cells, rewards


@pytest.mark.parametrize(("n", "seed"), [(2, 0), (4, 1), (6, 42)])
def test_deep_sea_is_that_of_the_behaviour_suite(n: int, seed: int) -> None:
    env = zoo.to_gymnasium(zoo.deep_sea(n, seed=seed), observations="index")
    for actions in itertools.product((0, 1), repeat=n):
        cells, rewards = dive(n, seed, list(actions))
        assert env.reset(seed=0)[0] == 0
        steps = [env.step(action) for action in actions]
        assert [step[0] for step in steps] == [n * row + column for row, column in cells[1:-1]] + [n * n]
        assert [step[1] for step in steps] == pytest.approx(rewards, abs=1e-15)
        assert [step[2] for step in steps] == [False] * (n - 1) + [True]


def test_deep_sea_pays_only_on_the_diagonal() -> None:
    n = 8
    mdp = zoo.deep_sea(n, seed=3, gamma=0.99)
    best = 0.99 ** (n - 1) - (0.01 / n) * (1 - 0.99**n) / (1 - 0.99)
    assert optimal_values(mdp).v[0] == pytest.approx(best, abs=1e-9)
    # A uniform policy finds the treasure in one of 2^n episodes, and goes right half of the time.
    found = policy_values(mdp, uniform_policy(mdp)).v[0]
    assert found == pytest.approx(0.99 ** (n - 1) / 2**n - (0.005 / n) * (1 - 0.99**n) / (1 - 0.99), abs=1e-9)
    straight = zoo.deep_sea(n, seed=None)
    assert np.array_equal(straight.rewards[: n * n, 0], np.zeros(n * n))
    with pytest.raises(InputError, match="n must be"):
        zoo.deep_sea(1)


def masked() -> FiniteMDP:
    """Two live states; the second action is not allowed in the first, and the end pays."""
    p = np.zeros((3, 2, 3))
    p[0, 0] = [0.2, 0.8, 0.0]
    p[1, 0] = [0.0, 0.5, 0.5]
    p[1, 1] = [0.3, 0.0, 0.7]
    allowed = np.array([[True, False], [True, True], [False, False]])
    return FiniteMDP(p, [[0.0, 0.0], [1.0, 2.0], [0.0, 0.0]], 0.9, allowed=allowed, terminal=[2], start=[0.25, 0.75, 0])


MDPS: dict[str, Any] = {
    "switch-stay": zoo.switch_stay,
    "river-swim": zoo.river_swim,
    "chain": lambda: zoo.chain(4, slip=0.2),
    "garnet": lambda: zoo.garnet(8, 3, 3),
    "deep-sea": lambda: zoo.deep_sea(4),
    "frozen-lake": lambda: zoo.make("frozen-lake"),
}


@pytest.mark.parametrize("observations", ["one-hot", "index"])
@pytest.mark.parametrize("name", [*MDPS, "masked"])
def test_gymnasiums_own_checker_passes(name: str, observations: Any) -> None:
    from gymnasium.utils.env_checker import check_env

    mdp = masked() if name == "masked" else MDPS[name]()
    how: Any = "replace" if name == "masked" else "refuse"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", ".*not have a `spec`.*|.*spec is None.*|.*No render modes.*")
        check_env(zoo.to_gymnasium(mdp, observations=observations, limit=20, not_allowed=how), skip_render_check=True)


@pytest.mark.parametrize("name", MDPS)
def test_steps_follow_the_mdp(name: str) -> None:
    """The frequencies of next states and starts are the probabilities, and the rewards are the MDP's."""
    mdp: FiniteMDP = MDPS[name]()
    env = zoo.to_gymnasium(mdp, observations="index", limit=30)
    p = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, -1)
    counts, starts = np.zeros(p.shape), np.zeros(mdp.n_states)
    rng = np.random.default_rng(0)
    state, _ = env.reset(seed=1)
    starts[state] += 1
    for _ in range(6000):
        action = int(rng.integers(mdp.n_actions))
        following, reward, ended, cut_off, info = env.step(action)
        counts[state, action, following] += 1
        assert p[state, action, following] > 0
        assert ended == mdp.terminal[following]
        assert info["state"] == following
        if mdp.transition_rewards is None:
            assert reward == mdp.rewards[state, action]
        state = following
        if ended or cut_off:
            state, _ = env.reset()
            starts[state] += 1
    n = counts.sum(axis=-1, keepdims=True)
    error = np.sqrt(p * (1 - p) / np.maximum(n, 1))
    assert (np.abs(counts / np.maximum(n, 1) - p)[n[..., 0] > 0] <= 5 * error[n[..., 0] > 0] + 1e-12).all()
    live = ~mdp.terminal
    start = live / live.sum() if mdp.start is None else mdp.start
    assert (starts[start == 0] == 0).all()
    assert np.abs(starts / starts.sum() - start).max() <= 5 * np.sqrt(0.25 / starts.sum())


def test_the_same_seed_and_actions_give_the_same_episode() -> None:
    def episode(seed: int) -> list[Any]:
        env = zoo.to_gymnasium(zoo.garnet(20, 2, 4), observations="index")
        seen: list[Any] = [env.reset(seed=seed)[0]]
        return seen + [env.step(t % 2)[:2] for t in range(50)]

    assert episode(3) == episode(3) != episode(4)


def test_an_episode_is_cut_off_and_not_ended_by_its_limit() -> None:
    env = zoo.to_gymnasium(zoo.switch_stay(), observations="index", limit=3)
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]
    last = zoo.to_gymnasium(zoo.chain(2), observations="index", limit=1)
    last.reset(seed=0)
    assert last.step(1)[2:4] == (True, False)  # over for good, whatever the limit


def test_an_action_that_is_not_allowed_is_refused_or_replaced() -> None:
    env = zoo.to_gymnasium(masked(), observations="index")
    while env.reset()[0] != 0:
        pass
    with pytest.raises(InputError, match=r"action 1 \(a1\) is not allowed in state 0 \(s0\)"):
        env.step(1)
    assert env.step(0)[4]["action_mask"].tolist() in ([1, 0], [1, 1])
    other = zoo.to_gymnasium(masked(), observations="index", not_allowed="replace")
    seed = next(seed for seed in range(50) if other.reset(seed=seed)[0] == 0)
    replaced = [other.reset(seed=seed) and other.step(action)[0] for action in (0, 1)]
    assert replaced[0] == replaced[1]


def test_what_makes_no_sense_is_refused() -> None:
    env = zoo.to_gymnasium(zoo.chain(3))
    with pytest.raises(InputError, match="call reset before step"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(InputError, match="action must be one of 0 to 1, found 2"):
        env.step(2)
    wrong: Any
    for wrong in ({"observations": "picture"}, {"limit": 0}, {"not_allowed": "guess"}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            zoo.to_gymnasium(zoo.chain(3), **wrong)


def test_mdps_of_the_zoo_are_environments_by_name() -> None:
    env = make_environment(EnvironmentSettings(id="zoo/deep-sea", options={"n": 5}), 0)
    assert (env.spec.actions, env.reset().shape) == (2, (26,))
    limited = make_environment(EnvironmentSettings(id="zoo/switch-stay", frame_limit=7), 0)
    limited.reset()
    assert [limited.step(0).truncated for _ in range(7)] == [False] * 6 + [True]
    for wrong, sentence in (
        (EnvironmentSettings(id="zoo/deep-see"), r"the zoo has no 'deep-see' \(did you mean deep-sea\?\)"),
        (EnvironmentSettings(id="zoo/deep-sea", options={"size": 5}), "deep-sea has no parameter 'size'"),
    ):
        with pytest.raises(InputError, match=sentence):
            make_environment(wrong, 0)


@pytest.mark.slow
def test_the_zoo_can_be_trained_on(tmp_path: Path) -> None:
    words = ["train", "zoo/deep-sea", "--environment.options", "n=4", "--frames", "300", "--width", "8"]
    assert main([*words, "--batch", "4", "--replay", "100", "--processes", "0", "--out", str(tmp_path / "run")]) == 0
