"""Audits of trained runs, of Stable-Baselines3's DQN and of Minari's data sets, against the direct computation."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ipe.audit import (
    Fit,
    SampleAudit,
    TableAudit,
    audit,
    audit_run,
    audit_sb3,
    make_transitions,
    minari_transitions,
)
from ipe.deep import paper_settings
from ipe.deep.collecting import collect_run
from ipe.deep.environments import make_environment
from ipe.deep.networks import forward, initial_parameters
from ipe.deep.programs import architecture
from ipe.entropy import softmax
from ipe.errors import InputError
from ipe.experiments.trained import read_trained
from tests.old_layout import create_run

QUICK = Fit(updates=50, width=8)


def make_run(folder: Path, env_id: str, behaviour: Any, **changes: Any) -> Path:
    """A run with the networks that training begins with, of two seeds."""
    settings = paper_settings(env_id, behaviour, **{"frames": 60, "width": 8, "batch": 4, "replay": 500, **changes})
    create_run(folder, settings, [[3, 5]])
    environment = make_environment(settings.environment, 0)
    environment.close()
    generators = [np.random.default_rng(seed) for seed in (3, 5)]
    networks = {
        f"{name}.{part}": np.asarray(array)
        for name in (("q", "policy") if settings.learns_policy else ("q",))
        for part, array in initial_parameters(architecture(settings, environment.spec), generators).items()
    }
    save_file(networks, folder / "networks.safetensors")
    return folder


def outputs(folder: Path, seed: int, name: str, observations: Any) -> Any:
    trained = read_trained(folder)
    inputs = np.asarray(observations, np.float32)[None]
    return forward(architecture(trained.settings, trained.spec), trained.networks[seed][name], inputs)[0][0]


def test_a_run_is_audited_with_its_own_networks_and_new_transitions(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "CartPole-v1", "epsilon-ipe")
    result = audit_run(folder, seed=5, frames=60, deterministic=True)
    assert isinstance(result, SampleAudit)
    assert result.source == "network"
    assert result.transitions == 60
    batch = collect_run(read_trained(folder), 5, 60)
    assert np.array_equal(batch.reward, np.ones(60))
    q = np.asarray(outputs(folder, 5, "q", batch.observation))
    q_next = np.asarray(outputs(folder, 5, "q", batch.next_observation))
    pi = softmax(np.asarray(outputs(folder, 5, "policy", batch.next_observation), np.float64))
    direct = audit(batch, q=q, q_next=q_next, gamma=0.99, policy_next=pi, deterministic=True)
    assert isinstance(direct, SampleAudit)
    assert result.evaluation.mean_squared_td_error == pytest.approx(direct.evaluation.mean_squared_td_error, rel=1e-5)
    other = audit_run(folder, frames=60, deterministic=True)  # seed 3, the first
    assert isinstance(other, SampleAudit)
    assert other.evaluation.mean_squared_td_error != result.evaluation.mean_squared_td_error
    given = audit_run(folder, seed=5, transitions=batch, deterministic=True)
    assert isinstance(given, SampleAudit)
    assert given.evaluation == result.evaluation
    fitted = audit_run(folder, seed=5, transitions=batch, refit=True, fit=QUICK)
    assert isinstance(fitted, SampleAudit)
    assert fitted.source == "fitted"


def test_a_run_without_a_policy_network_gets_a_fitted_one(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "CartPole-v1", "epsilon-greedy")
    result = audit_run(folder, frames=60, fit=QUICK)
    assert isinstance(result, SampleAudit)
    assert result.source == "fitted"


def test_a_run_with_numbered_states_is_audited_as_a_table(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "FrozenLake-v1", "epsilon-ipe")
    result = audit_run(folder, seed=3, frames=400)
    assert isinstance(result, TableAudit)
    assert result.policy.shape == (16, 4)
    assert np.allclose(result.model.q[:16], outputs(folder, 3, "q", np.eye(16)), atol=1e-6)
    assert result.given is not None  # its policy network, beside the exact one
    assert result.evaluation.measured <= result.given.measured
    batch = {"state": [0, 0], "action": [1, 1], "reward": [0, 0], "next_state": [4, 4], "terminated": [0, 0]}
    again = audit_run(folder, transitions=make_transitions(batch))
    assert isinstance(again, TableAudit)
    assert len(again.model.count) == 1
    with pytest.raises(InputError, match="refit is not for numbered states: there Q is a table"):
        audit_run(folder, transitions=make_transitions(batch), refit=True)
    with pytest.raises(InputError, match=r"next_state\[1\] = 16, but FrozenLake-v1 has 16 states"):
        audit_run(folder, transitions=make_transitions({**batch, "next_state": [4, 16]}))


def test_runs_that_cannot_be_audited_are_refused(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", "CartPole-v1", "epsilon-ipe")
    vectors = {"observation": np.zeros((2, 3)), "next_observation": np.zeros((2, 3))}
    rest = {"action": [0, 1], "reward": [0.0, 0.0], "terminated": [False, False]}
    for options, sentence in (
        ({"seed": 4}, "the run has no seed 4; it has 3, 5"),
        ({"frames": 0}, "frames must be a whole number >= 1"),
        ({"draws": -1}, "draws must be a whole number"),
        ({"transitions": make_transitions(vectors | rest)}, r"observation has the shape \(3,\) .* shows \(4,\)"),
        ({"transitions": make_transitions(rest)}, "observation is missing"),
    ):
        with pytest.raises(InputError, match=sentence):
            audit_run(folder, **options)
    networks = load_file(folder / "networks.safetensors")
    networks["q.rest"][0, 0] = np.nan
    save_file(networks, folder / "networks.safetensors")
    with pytest.raises(InputError, match="seed 3 cannot be evaluated: it diverged"):
        audit_run(folder, seed=3)


@pytest.mark.slow
def test_a_saved_dqn_is_audited(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import DQN, PPO

    model = DQN("MlpPolicy", "CartPole-v1", policy_kwargs={"net_arch": [8]}, buffer_size=100, seed=0)
    model.exploration_rate = 0.5
    model.save(tmp_path / "dqn.zip")
    result = audit_sb3(tmp_path / "dqn.zip", env="CartPole-v1", frames=80, fit=QUICK)
    assert isinstance(result, SampleAudit)
    assert (result.source, result.transitions, result.gamma) == ("fitted", 80, 0.99)
    with gymnasium.make("CartPole-v1") as env:
        same = audit_sb3(model, env=env, frames=80, fit=QUICK)
    assert isinstance(same, SampleAudit)
    assert same.evaluation == result.evaluation
    observations = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)
    batch = make_transitions(
        {"observation": observations, "next_observation": observations[::-1], "action": [0, 1, 0, 1, 0]}
        | {"reward": np.ones(5), "terminated": np.zeros(5)}
    )
    given = audit_sb3(model, transitions=batch, fit=QUICK)
    assert isinstance(given, SampleAudit)
    with torch.no_grad():
        q = model.q_net(torch.as_tensor(observations)).numpy()
    assert np.allclose(given.promised, q[np.arange(5), [0, 1, 0, 1, 0]])
    with pytest.raises(InputError, match="env: its observation space is Discrete"):
        audit_sb3(model, env="FrozenLake-v1")
    with pytest.raises(InputError, match="env: Nowhere-v0 cannot be made"):
        audit_sb3(model, env="Nowhere-v0")
    with pytest.raises(InputError, match="give either env"):
        audit_sb3(model)
    PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8, policy_kwargs={"net_arch": [4]}).save(tmp_path / "ppo.zip")
    with pytest.raises(InputError, match=r"ppo\.zip: it is a saved model, but not of a DQN"):
        audit_sb3(tmp_path / "ppo.zip", env="CartPole-v1")
    (tmp_path / "text.zip").write_text("no")
    with pytest.raises(InputError, match=r"text\.zip: it is no model that Stable-Baselines3 saved"):
        audit_sb3(tmp_path / "text.zip", env="CartPole-v1")
    with pytest.raises(InputError, match=r"none\.zip: there is no such file"):
        audit_sb3(tmp_path / "none.zip", env="CartPole-v1")
    with pytest.raises(InputError, match="model must be a DQN"):
        audit_sb3(7, env="CartPole-v1")


@pytest.mark.slow
def test_the_policy_network_of_epsilon_ipe_is_used_and_numbered_states_are_a_table(tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.envs import FakeImageEnv

    from ipe.integrations.stable_baselines3 import EpsilonIPEDQN

    small: dict[str, Any] = {"buffer_size": 100, "policy_kwargs": {"net_arch": [8]}, "seed": 0}
    model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **small)
    model.save(tmp_path / "epsilon-ipe.zip")
    result = audit_sb3(tmp_path / "epsilon-ipe.zip", env="CartPole-v1", frames=40)
    assert isinstance(result, SampleAudit)
    assert result.source == "network"
    lake = EpsilonIPEDQN("MlpPolicy", "FrozenLake-v1", **small)
    table = audit_sb3(lake, env="FrozenLake-v1", frames=300)
    assert isinstance(table, TableAudit)
    assert table.given is not None
    assert np.allclose(table.model.q[3], lake.q_net(lake.policy.obs_to_tensor(np.array([3]))[0]).detach().numpy())
    beyond = {"state": [16], "next_state": [0], "action": [0], "reward": [0.0], "terminated": [False]}
    with pytest.raises(InputError, match=r"state\[0\] = 16, but the model has 16 states"):
        audit_sb3(lake, transitions=make_transitions(beyond))
    images = FakeImageEnv(screen_height=36, screen_width=36, n_channels=1, discrete=True)
    seen = audit_sb3(EpsilonIPEDQN("CnnPolicy", images, buffer_size=10), env=images, frames=12, refit=True, fit=QUICK)
    assert isinstance(seen, SampleAudit)
    assert seen.source == "fitted"


def test_without_stable_baselines3_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(InputError, match="needs stable_baselines3, which is not installed: pip install torch"):
        audit_sb3(tmp_path / "model.zip", env="CartPole-v1")


@pytest.fixture
def minari(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = pytest.importorskip("minari")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return found


def recorded(minari: Any, env_id: str, name: str, frames: int) -> None:
    """A local data set of random behaviour."""
    env = minari.DataCollector(gymnasium.make(env_id))
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(frames):
        _, _, terminated, truncated, _ = env.step(env.action_space.sample())
        if terminated or truncated:
            env.reset()
    env.create_dataset(name, algorithm_name="random", author="ipe", author_email="none", code_permalink="none")
    env.close()


@pytest.mark.filterwarnings("ignore")
def test_a_minari_data_set_becomes_transitions(minari: Any) -> None:
    recorded(minari, "FrozenLake-v1", "lake/random-v0", 200)
    batch = minari_transitions("lake/random-v0")
    assert batch.discrete
    assert len(batch) == 200
    here, there = np.asarray(batch.observation), np.asarray(batch.next_observation)
    ended = np.isin(there, [5, 7, 11, 12, 15])
    assert np.array_equal(batch.terminated, ended)
    follows = ~ended[:-1]
    assert np.array_equal(here[1:][follows], there[:-1][follows])
    assert len(minari_transitions("lake/random-v0", limit=50)) == 50
    result = audit(batch, q=np.zeros((16, 4)), gamma=0.9)
    assert isinstance(result, TableAudit)
    recorded(minari, "CartPole-v1", "pole/random-v0", 60)
    vectors = minari_transitions("pole/random-v0")
    assert vectors.observation is not None
    assert vectors.observation.shape == (60, 4)
    recorded(minari, "Pendulum-v1", "pendulum/random-v0", 10)
    with pytest.raises(InputError, match="pendulum/random-v0: its actions are Box"):
        minari_transitions("pendulum/random-v0")
    recorded(minari, "Blackjack-v1", "jack/random-v0", 10)
    with pytest.raises(InputError, match="jack/random-v0: the observations are Tuple"):
        minari_transitions("jack/random-v0")
    with pytest.raises(InputError, match="there is no Minari data set 'none-v0'"):
        minari_transitions("none-v0")
    with pytest.raises(InputError, match="limit must be a whole number"):
        minari_transitions("lake/random-v0", limit=0)


def test_without_minari_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(InputError, match="needs minari, which is not installed"):
        minari_transitions("lake/random-v0")
