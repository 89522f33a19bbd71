"""`EpsilonIPEDQN.from_dqn`: everything of a plain DQN goes on but its schedule."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="stable-baselines3 (and torch) is not installed")

import torch as th
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv, IdentityEnv
from stable_baselines3.common.vec_env import VecNormalize
from stable_baselines3.dqn.policies import DQNPolicy
from stable_baselines3.her import HerReplayBuffer

from ipe.errors import InputError
from ipe.integrations.stable_baselines3 import EpsilonIPEDQN

SMALL: dict[str, Any] = {"buffer_size": 300, "learning_starts": 10, "policy_kwargs": {"net_arch": [8]}, "seed": 0}


def plain(frames: int = 60, env: Any = "CartPole-v1", **settings: Any) -> DQN:
    return DQN("MlpPolicy", env, **SMALL | settings).learn(frames)


def same_weights(one: Any, two: Any) -> bool:
    return all(th.equal(a, b) for a, b in zip(one.state_dict().values(), two.state_dict().values(), strict=True))


def test_it_goes_on_where_the_dqn_stopped() -> None:
    old = plain(gamma=0.9, train_freq=2, target_update_interval=30, learning_rate=3e-4, tau=0.5, max_grad_norm=1.0)
    new = EpsilonIPEDQN.from_dqn(old, policy_learning_rate=5e-3, behaviour="ipe", entropy_bonus=0.1, delta_q="online")
    assert same_weights(new.q_net, old.q_net)
    assert same_weights(new.q_net_target, old.q_net_target)
    assert new.replay_buffer is old.replay_buffer
    assert new.get_env() is old.get_env()
    assert new._last_obs.tobytes() == old._last_obs.tobytes()
    for name in ("gamma", "train_freq", "target_update_interval", "learning_rate", "tau", "max_grad_norm", "_n_calls"):
        assert getattr(new, name) == getattr(old, name), name
    assert (new.num_timesteps, new._n_updates, new._episode_num) == (
        old.num_timesteps,
        old._n_updates,
        old._episode_num,
    )
    assert (new.behaviour_name, new.entropy_bonus, new.delta_q) == ("ipe", 0.1, "online")
    assert new.policy.policy_optimizer.param_groups[0]["lr"] == 5e-3
    assert not new.policy.policy_optimizer.state  # it starts anew


def test_the_q_network_takes_the_dqns_next_steps() -> None:
    """Same minibatches, Adam's state taken over: the Q-network moves as the plain DQN's does, which stays apart."""
    old = plain(policy_kwargs={"net_arch": [8], "optimizer_kwargs": {"fused": True}})
    new = EpsilonIPEDQN.from_dqn(old)
    fresh = EpsilonIPEDQN.from_dqn(old)
    fresh.policy.optimizer.state.clear()
    for model in (new, fresh, old):  # the DQN last: had it been touched, it would differ
        model.set_logger(old.logger)
        np.random.seed(3)  # noqa: NPY002  the replay of Stable-Baselines3 draws from NumPy's global generator
        model.train(gradient_steps=5, batch_size=16)
    assert same_weights(new.q_net, old.q_net)
    assert not same_weights(fresh.q_net, old.q_net)


def test_learning_goes_on_without_a_second_warm_up() -> None:
    old = plain(100)
    new = EpsilonIPEDQN.from_dqn(old)
    rates: list[float] = []

    def watch(seen: dict[str, Any], _: dict[str, Any]) -> bool:
        rates.append(seen["self"].exploration_rate)
        return True

    new.learn(40, callback=watch, reset_num_timesteps=False)
    assert new.num_timesteps == new.replay_buffer.size() == 140
    assert all(rate < 1 for rate in rates)
    file = io.BytesIO()
    new.save(file)
    file.seek(0)
    assert EpsilonIPEDQN.load(file).num_timesteps == 140


@pytest.mark.parametrize("form", ["text", "path", "file"])
def test_a_saved_dqn_is_taken_over(form: str, tmp_path: Path) -> None:
    old = plain()
    old.save(tmp_path / "dqn")
    old.save_replay_buffer(tmp_path / "replay")
    given: Any = {"text": str(tmp_path / "dqn"), "path": tmp_path / "dqn.zip"}.get(form)
    if form == "file":
        given = io.BytesIO((tmp_path / "dqn.zip").read_bytes())
    new = EpsilonIPEDQN.from_dqn(given, make_vec_env("CartPole-v1", 1))
    assert same_weights(new.q_net, old.q_net)
    assert (
        new.policy.optimizer.state_dict()["state"][0]["step"] == old.policy.optimizer.state_dict()["state"][0]["step"]
    )
    assert new.replay_buffer.size() == 0
    new.load_replay_buffer(tmp_path / "replay")
    new.learn(20, reset_num_timesteps=False)
    assert new.num_timesteps == 80
    assert EpsilonIPEDQN.from_dqn(tmp_path / "dqn").get_env() is None  # for predict


def test_another_environment() -> None:
    old = plain()
    env = make_vec_env("CartPole-v1", 1, seed=9)
    new = EpsilonIPEDQN.from_dqn(old, env)
    assert new.get_env() is env
    assert new._last_obs is None
    new.learn(20, reset_num_timesteps=False)
    assert old.get_env() is not env
    with pytest.raises(InputError, match="env: Observation spaces do not match"):
        EpsilonIPEDQN.from_dqn(old, "MountainCar-v0")
    with pytest.raises(InputError, match="env: 2 environments side by side, and the model's replay was filled by 1"):
        EpsilonIPEDQN.from_dqn(old, make_vec_env("CartPole-v1", 2))
    old.replay_buffer.reset()
    new = EpsilonIPEDQN.from_dqn(old, make_vec_env("CartPole-v1", 2)).learn(40, reset_num_timesteps=False)
    assert new.replay_buffer.n_envs == 2


@pytest.mark.slow
def test_vectorised_normalised_and_hindsight() -> None:
    env = VecNormalize(make_vec_env("CartPole-v1", 2, seed=0))
    new = EpsilonIPEDQN.from_dqn(plain(env=env)).learn(20, reset_num_timesteps=False)
    assert new._vec_normalize_env is env
    old = DQN("MultiInputPolicy", BitFlippingEnv(n_bits=3), replay_buffer_class=HerReplayBuffer, **SMALL).learn(40)
    new = EpsilonIPEDQN.from_dqn(old, BitFlippingEnv(n_bits=3)).learn(20, reset_num_timesteps=False)
    assert new.replay_buffer.env is new.get_env()


class _Tuned(DQN):  # type: ignore[misc]
    pass


class _Policy(DQNPolicy):  # type: ignore[misc]
    pass


def test_what_cannot_be_taken_over_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="model: a DQN or the file of a saved one is needed, found PPO"):
        EpsilonIPEDQN.from_dqn(PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8))
    with pytest.raises(InputError, match="model: _Tuned is a class of its own"):
        EpsilonIPEDQN.from_dqn(_Tuned("MlpPolicy", "CartPole-v1", **SMALL))
    with pytest.raises(InputError, match="model: EpsilonIPEDQN is a class of its own"):
        EpsilonIPEDQN.from_dqn(EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **SMALL))
    with pytest.raises(InputError, match="policy: _Policy has no policy network"):
        EpsilonIPEDQN.from_dqn(DQN(_Policy, "CartPole-v1", **SMALL))
    with pytest.raises(InputError, match=r"model: there is no file .*nothing"):
        EpsilonIPEDQN.from_dqn(tmp_path / "nothing")
    PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8).save(tmp_path / "ppo")
    with pytest.raises(InputError, match="model: the file's policy is ActorCriticPolicy"):
        EpsilonIPEDQN.from_dqn(tmp_path / "ppo")
    EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **SMALL).save(tmp_path / "ours")
    with pytest.raises(
        InputError, match=r"model: the file holds an EpsilonIPEDQN already; EpsilonIPEDQN\.load reads it"
    ):
        EpsilonIPEDQN.from_dqn(tmp_path / "ours")
    with pytest.raises(InputError, match="entropy_bonus must be a finite number >= 0, found -1"):
        EpsilonIPEDQN.from_dqn(plain(20), entropy_bonus=-1)
    plain(20).save(tmp_path / "dqn")
    with pytest.raises(InputError, match="env: "):
        EpsilonIPEDQN.from_dqn(tmp_path / "dqn", make_vec_env(lambda: IdentityEnv(3), 1))
