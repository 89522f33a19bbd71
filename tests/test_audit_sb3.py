"""Audits of Stable-Baselines3's DQN: under VecNormalize, on images, and in environments that fail."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from ipe.audit import Fit, SampleAudit, TableAudit, audit_sb3, make_transitions
from ipe.audit.sb3 import collect_sb3
from ipe.errors import InputError

torch = pytest.importorskip("torch")
pytest.importorskip("stable_baselines3")

QUICK = Fit(updates=50, width=8)


def vectorised(env_id: str = "CartPole-v1") -> Any:
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([lambda: gymnasium.make(env_id)])


def normalising(**options: Any) -> Any:
    """A VecNormalize that has seen 100 frames."""
    from stable_baselines3.common.vec_env import VecNormalize

    venv = VecNormalize(vectorised(), **options)
    venv.seed(0)
    venv.reset()
    for i in range(100):
        venv.step(np.array([i % 2]))
    return venv


def small(env: Any, kind: Any = None, policy: str = "MlpPolicy", **changes: Any) -> Any:
    from stable_baselines3 import DQN

    layers = {"net_arch": [8], **changes}
    model = (kind or DQN)(policy, env, policy_kwargs=layers, buffer_size=100, seed=0)
    model.exploration_rate = 0.5
    return model


def sampled(model: Any, **options: Any) -> SampleAudit:
    result = audit_sb3(model, **{"frames": 60, "fit": QUICK, **options})
    assert isinstance(result, SampleAudit)
    return result


def statistics(venv: Any) -> list[float]:
    return [*venv.obs_rms.mean, *venv.obs_rms.var, venv.obs_rms.count, venv.ret_rms.var, venv.ret_rms.count]


@pytest.mark.parametrize("epsilon_ipe", [False, True])
def test_a_model_under_vec_normalize_is_audited_on_what_it_was_trained_on(epsilon_ipe: bool) -> None:
    from ipe.integrations.stable_baselines3 import EpsilonIPEDQN

    venv = normalising(clip_obs=2.0, clip_reward=0.1)
    model = small(venv, EpsilonIPEDQN if epsilon_ipe else None)
    before = statistics(venv)
    result = sampled(model, env="CartPole-v1")
    raw = collect_sb3(model, "CartPole-v1", 60)
    assert statistics(venv) == before
    assert np.array_equal(raw.reward, np.ones(60))
    with torch.no_grad():
        q, q_next = (
            model.q_net(torch.as_tensor(venv.normalize_obs(np.asarray(x)))).numpy()
            for x in (raw.observation, raw.next_observation)
        )
    assert np.allclose(result.promised, q[np.arange(60), raw.action])
    reward = np.minimum(1.0 / np.sqrt(venv.ret_rms.var + venv.epsilon), 0.1)
    assert np.allclose(result.greedy_followed, reward + np.where(raw.terminated, 0.0, 0.99 * q_next.max(axis=1)))
    given = sampled(model, transitions=raw)
    assert given.evaluation == result.evaluation


@pytest.mark.slow
def test_the_statistics_of_a_saved_model_are_loaded_beside_it(tmp_path: Path) -> None:
    from stable_baselines3 import DQN
    from stable_baselines3.common.vec_env import VecNormalize

    venv = normalising()
    model = small(venv)
    model.save(tmp_path / "model.zip")
    venv.save(str(tmp_path / "statistics.pkl"))
    expected = sampled(model, env="CartPole-v1").greedy
    assert sampled(tmp_path / "model.zip", env="CartPole-v1").greedy != expected  # nothing in it says so
    again = VecNormalize.load(str(tmp_path / "statistics.pkl"), vectorised())
    assert sampled(DQN.load(tmp_path / "model.zip", env=again), env="CartPole-v1").greedy == expected
    plain = DQN.load(tmp_path / "model.zip")
    plain.set_env(again)
    assert sampled(plain, env="CartPole-v1").greedy == expected


def test_only_what_vec_normalize_normalises_is_normalised() -> None:
    from stable_baselines3.common.vec_env import VecNormalize

    model = small(normalising(norm_obs=False, norm_reward=False))
    model._vec_normalize_env = None
    raw = sampled(model, env="CartPole-v1")
    assert sampled(small(normalising(norm_obs=False, norm_reward=False)), env="CartPole-v1").greedy == raw.greedy
    lake = VecNormalize(vectorised("FrozenLake-v1"), norm_obs=False)
    lake.ret_rms.var = np.array(0.25)
    batch = {"state": [0, 0], "action": [1, 1], "reward": [1, 1], "next_state": [4, 4], "terminated": [0, 0]}
    table = audit_sb3(small(lake), transitions=make_transitions(batch))
    assert isinstance(table, TableAudit)
    delta = 2.0 + 0.99 * table.model.q[4].max() - table.model.q[0, 1]
    assert table.greedy.mean_squared_td_error == pytest.approx(delta**2)


@pytest.mark.slow
def test_normalised_images_are_turned_as_the_statistics_are() -> None:
    from stable_baselines3.common.envs import FakeImageEnv
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize, VecTransposeImage

    images = FakeImageEnv(screen_height=36, screen_width=40, n_channels=3, discrete=True)
    venv = VecNormalize(VecTransposeImage(DummyVecEnv([lambda: images])))
    venv.obs_rms.mean, venv.obs_rms.var = np.full((3, 36, 40), 127.0), np.full((3, 36, 40), 5000.0)
    result = sampled(small(venv, policy="CnnPolicy", normalize_images=False), env=images, frames=12)
    assert result.transitions == 12


@pytest.mark.slow
@pytest.mark.parametrize("channels_first", [True, False])
def test_images_are_audited_whichever_way_round(channels_first: bool) -> None:
    from stable_baselines3.common.envs import FakeImageEnv

    images = FakeImageEnv(40, 52, n_channels=4, discrete=True, channel_first=channels_first)
    result = sampled(small(images, policy="CnnPolicy"), env=images, frames=12)
    assert (result.source, result.transitions) == ("fitted", 12)


def test_a_vectorised_environment_and_a_refit_of_a_table_are_refused() -> None:
    model = small("CartPole-v1")
    for env, found in (
        (model.get_env(), "DummyVecEnv"),
        (gymnasium.make_vec("CartPole-v1"), "CartPoleVectorEnv"),
        (7, "int"),
    ):
        with pytest.raises(InputError, match=f"env must be an id or a Gymnasium environment.* found a {found}"):
            audit_sb3(model, env=env)
    with pytest.raises(InputError, match="draws must be a whole number"):
        audit_sb3(model, env="CartPole-v1", draws=-1)
    with pytest.raises(InputError, match="refit is not for numbered states: there Q is a table"):
        audit_sb3(small("FrozenLake-v1"), env="FrozenLake-v1", refit=True)


class Failing(gymnasium.Env):  # type: ignore[misc]
    """What it does at frame 3, if it is not a failure of reset."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, failure: str) -> None:
        self.failure, self.frame, self.array = failure, 0, np.zeros(2, np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        if self.failure == "reset" or (self.failure == "second reset" and seed is None):
            raise RuntimeError("no\nstart")
        return self.array, {}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        failure = self.failure if self.frame == 3 else ""
        if failure == "step":
            raise ValueError("out of fuel")
        self.frame += 1
        self.array[:] = np.nan if failure == "observation" else self.frame
        found = np.zeros(3) if failure == "shape" else self.array
        return found, np.inf if failure == "reward" else 0.0, failure == "second reset", False, {}


@pytest.mark.parametrize(
    ("failure", "sentence"),
    [
        ("reset", "env: Failing failed at frame 0: RuntimeError: no start"),
        ("second reset", "env: Failing failed at frame 3: RuntimeError: no start"),
        ("step", "env: Failing failed at frame 3: ValueError: out of fuel"),
        ("observation", "env: Failing failed at frame 3: the observation is not finite"),
        ("shape", r"env: Failing failed at frame 3: the observation has the shape \(3,\), expected \(2,\)"),
        ("reward", "env: Failing failed at frame 3: the reward is inf, expected a finite number"),
    ],
)
def test_an_environment_that_fails_is_named_with_the_frame(failure: str, sentence: str) -> None:
    model = small(Failing(""))
    with pytest.raises(InputError, match=f"^{sentence}$"):
        audit_sb3(model, env=Failing(failure), frames=10)


def test_observations_are_copied_before_the_next_step() -> None:
    env = Failing("")
    batch = collect_sb3(small(env), env, 4)
    assert np.array_equal(np.asarray(batch.observation)[:, 0], [0, 1, 2, 3])
    assert np.array_equal(np.asarray(batch.next_observation)[:, 0], [1, 2, 3, 4])
