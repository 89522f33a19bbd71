"""Epsilon-IPE used as Stable-Baselines3's own DQN is: saving, resuming, callbacks, every kind of environment."""

from __future__ import annotations

import io
import re
import sys
import types
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="stable-baselines3 (and torch) is not installed")

import torch as th
from stable_baselines3 import DQN, HerReplayBuffer
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import BitFlippingEnv, FakeImageEnv, IdentityEnv, SimpleMultiObsEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from ipe.errors import InputError
from ipe.integrations.stable_baselines3 import EpsilonIPEDQN, EpsilonIPEPolicy

SMALL: dict[str, Any] = {"buffer_size": 300, "learning_starts": 10, "policy_kwargs": {"net_arch": [8]}, "seed": 0}


def trained(frames: int = 60, **settings: Any) -> EpsilonIPEDQN:
    model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **SMALL | settings)
    model.learn(frames)
    return model


def same(a: Any, b: Any) -> bool:
    """Equal bytes, through dictionaries and lists."""
    if isinstance(a, th.Tensor):
        return bool(th.equal(a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def saved_and_loaded(model: EpsilonIPEDQN, **settings: Any) -> EpsilonIPEDQN:
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    loaded: EpsilonIPEDQN = EpsilonIPEDQN.load(file, **settings)
    return loaded


def state_of(model: EpsilonIPEDQN) -> Any:
    assert model.generator is not None
    return model.generator.bit_generator.state


# Save, load, resume


def test_a_loaded_model_is_the_same_and_explores_on() -> None:
    model = trained(policy_update="absolute", entropy_bonus=0.1, delta_q="online", policy_learning_rate=2e-3)
    copy = saved_and_loaded(model)
    assert same(model.get_parameters(), copy.get_parameters())
    assert copy.get_parameters()["policy.policy_optimizer"]["state"]
    assert (copy.policy_update, copy.entropy_bonus, copy.delta_q) == ("absolute", 0.1, "online")
    assert copy.policy_lr_schedule(1) == 2e-3
    observations = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    for deterministic in (True, False, False):  # the generator goes on where it was, in both
        one, two = (m.predict(observations, deterministic=deterministic)[0] for m in (model, copy))
        assert one.tobytes() == two.tobytes()
    assert model.behaviour(observations).epsilon.tobytes() == copy.behaviour(observations).epsilon.tobytes()


def test_learning_goes_on_from_a_file_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    """With its replay, the same minibatches give the same networks: both optimisers went on."""
    model = trained()
    model.save_replay_buffer(tmp_path / "replay")
    copy = saved_and_loaded(model, env=model.get_env())
    copy.load_replay_buffer(tmp_path / "replay")
    copy.set_logger(model.logger)
    for one in (model, copy):
        np.random.seed(3)  # noqa: NPY002  the replay buffer of Stable-Baselines3 draws from NumPy's global generator
        one.train(gradient_steps=10, batch_size=8)
    assert same(model.get_parameters(), copy.get_parameters())
    fresh = saved_and_loaded(model)
    fresh.policy.policy_optimizer.state.clear()
    fresh.replay_buffer = model.replay_buffer
    fresh.set_logger(model.logger)
    for one in (model, fresh):
        np.random.seed(3)  # noqa: NPY002
        one.train(gradient_steps=1, batch_size=8)
    assert not same(model.policy.policy_net.state_dict(), fresh.policy.policy_net.state_dict())


def test_exploration_goes_on_where_it_was() -> None:
    """No second warm-up, no schedule that starts again: the first action after a resume is epsilon-IPE's."""
    model = trained(200, learning_starts=100)
    resumed = saved_and_loaded(model, env=gymnasium.make("CartPole-v1"))
    rates: list[float] = []

    def watch(seen: dict[str, Any], _: dict[str, Any]) -> bool:
        rates.append(seen["self"].exploration_rate)
        return True

    resumed.learn(40, callback=watch, reset_num_timesteps=False)
    assert resumed.num_timesteps == 240
    assert len(rates) == 40
    assert all(rate < 1.0 for rate in rates)
    assert abs(np.mean(rates) - model.behaviour(resumed.replay_buffer.observations[:40, 0]).epsilon.mean()) < 0.1


def test_another_seed_may_be_given_when_loading() -> None:
    model = trained()
    states = [state_of(m) for m in (model, saved_and_loaded(model), saved_and_loaded(model, seed=7))]
    assert states[0] == states[1] != states[2]
    assert states[2] == np.random.default_rng(7).bit_generator.state


def test_what_is_left_out_of_a_file_is_made_anew() -> None:
    model, file = trained(), io.BytesIO()
    model.save(file, exclude=["generator", "entropy_bonus"])
    file.seek(0)
    copy = EpsilonIPEDQN.load(file)
    assert copy.entropy_bonus == 0.0
    assert state_of(copy) == np.random.default_rng(0).bit_generator.state
    assert same(model.get_parameters(), copy.get_parameters())


def test_a_wrong_setting_in_load_is_refused() -> None:
    with pytest.raises(InputError, match="delta_q must be one of target, online, dqn"):
        saved_and_loaded(trained(20), delta_q="none")


def test_parameters_are_got_and_set() -> None:
    one, two = trained(seed=0), trained(seed=1)
    assert not same(one.get_parameters(), two.get_parameters())
    two.set_parameters(one.get_parameters())
    assert same(one.get_parameters(), two.get_parameters())
    assert set(one.get_parameters()) == {"policy", "policy.optimizer", "policy.policy_optimizer"}
    with pytest.raises(ValueError, match="invalid object name"):
        two.set_parameters({**one.get_parameters(), "nonsense": {}})


def test_a_plain_dqn_gives_its_values_when_asked(tmp_path: Path) -> None:
    plain = DQN("MlpPolicy", "CartPole-v1", **SMALL).learn(60)
    plain.save(tmp_path / "dqn")
    with pytest.raises(InputError, match="parameters of a DQN without a policy network"):
        EpsilonIPEDQN.load(tmp_path / "dqn")
    with pytest.raises(InputError, match="exploration_final_eps: epsilon-IPE has no schedule of epsilon"):
        EpsilonIPEDQN.load(tmp_path / "dqn", exploration_final_eps=0.5)
    model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **SMALL)
    with pytest.raises(InputError, match="parameters of a DQN without a policy network"):
        model.set_parameters(str(tmp_path / "dqn"))
    untouched = {name: value.clone() for name, value in model.policy.policy_net.state_dict().items()}
    model.set_parameters(str(tmp_path / "dqn"), exact_match=False)
    assert same(model.q_net.state_dict(), plain.q_net.state_dict())
    assert same(model.policy.optimizer.state_dict()["state"], plain.policy.optimizer.state_dict()["state"])
    assert model.policy.optimizer.param_groups[0]["fused"]
    assert same(model.policy.policy_net.state_dict(), untouched)
    model.learn(40)


def test_the_policy_can_be_saved_alone(tmp_path: Path) -> None:
    model = trained()
    model.policy.save(str(tmp_path / "policy"))
    policy = EpsilonIPEPolicy.load(str(tmp_path / "policy"))
    observation = np.zeros((5, 4), np.float32)
    assert same(policy.state_dict(), model.policy.state_dict())
    assert (
        policy.predict(observation, deterministic=True)[0].tolist()
        == model.predict(observation, deterministic=True)[0].tolist()
    )


@pytest.mark.slow
def test_the_behaviour_is_kept_and_may_be_changed_when_loading(tmp_path: Path) -> None:
    env = DummyVecEnv([lambda: IdentityEnv(4)])
    model = EpsilonIPEDQN("MlpPolicy", env, behaviour="tau-ipe", **SMALL).learn(40)
    states = np.arange(4)
    copy, other = saved_and_loaded(model), saved_and_loaded(model, behaviour="ipe")
    assert (copy.behaviour_name, other.behaviour_name) == ("tau-ipe", "ipe")
    assert copy.behaviour(states).pi.tobytes() == model.behaviour(states).pi.tobytes()
    assert other.behaviour(states).pi.tobytes() != model.behaviour(states).pi.tobytes()
    model.policy.save(str(tmp_path / "policy"))
    alone = EpsilonIPEPolicy.load(str(tmp_path / "policy"))
    seen = alone.behaviour(alone.obs_to_tensor(states)[0])
    assert seen.pi.tobytes() == model.behaviour(states).pi.tobytes()


# Determinism


def test_the_same_seed_gives_the_same_bytes() -> None:
    one, two, other = trained(150, seed=4), trained(150, seed=4), trained(150, seed=5)
    assert same(one.get_parameters(), two.get_parameters())
    assert one.replay_buffer.actions.tobytes() == two.replay_buffer.actions.tobytes()
    assert one.replay_buffer.actions.tobytes() != other.replay_buffer.actions.tobytes()
    one.set_random_seed(9)
    two.set_random_seed(9)
    states = np.zeros((100, 4), np.float32)
    assert one.predict(states)[0].tobytes() == two.predict(states)[0].tobytes()


# Environments, policies, frequencies


@pytest.mark.parametrize(
    "settings",
    [
        {"train_freq": (1, "episode")},
        {"train_freq": 1, "gradient_steps": 2},
        {"gradient_steps": -1},
        {"n_steps": 3},
        {"optimize_memory_usage": True, "replay_buffer_kwargs": {"handle_timeout_termination": False}},
        {"tau": 0.5, "target_update_interval": 5},
    ],
    ids=str,
)
def test_ways_to_train(settings: dict[str, Any]) -> None:
    before = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **SMALL | settings)
    start = {name: value.clone() for name, value in before.policy.policy_net.state_dict().items()}
    model = before.learn(60)
    assert model._n_updates > 0
    assert not same(model.policy.policy_net.state_dict(), start)


def test_several_environments() -> None:
    env = make_vec_env("CartPole-v1", 4, seed=0)
    model = EpsilonIPEDQN("MlpPolicy", env, **SMALL | {"gradient_steps": -1}).learn(200)
    assert model.num_timesteps == model._n_updates == 208  # collected 16 at a time, and as many updates after
    assert model.behaviour(env.reset()).epsilon.shape == (4,)
    other = saved_and_loaded(model, env=make_vec_env("CartPole-v1", 2, seed=0)).learn(20, reset_num_timesteps=False)
    assert other.num_timesteps == 232


def test_images() -> None:
    env = FakeImageEnv(action_dim=3, screen_height=40, screen_width=40)
    settings = SMALL | {"policy_kwargs": {"features_extractor_kwargs": {"features_dim": 8}}, "buffer_size": 60}
    model = EpsilonIPEDQN("CnnPolicy", env, **settings).learn(40)
    assert any(isinstance(part, th.nn.Conv2d) for part in model.policy.policy_net.modules())
    copy = saved_and_loaded(model)
    image = env.observation_space.sample()[None]
    assert copy.behaviour(image).pi.tobytes() == model.behaviour(image).pi.tobytes()
    assert model.behaviour(image).pi.shape == (1, 3)
    assert model.predict(env.observation_space.sample())[0].shape == ()


def test_dictionaries_of_observations() -> None:
    env = SimpleMultiObsEnv(random_start=False)
    settings = SMALL | {"policy_kwargs": {"net_arch": [8], "features_extractor_kwargs": {"cnn_output_dim": 8}}}
    model = EpsilonIPEDQN("MultiInputPolicy", DummyVecEnv([lambda: env]), **settings).learn(40)
    assert model.behaviour(model.get_env().reset()).pi.shape == (1, 4)


def test_hindsight_replay() -> None:
    env = BitFlippingEnv(n_bits=3)
    model = EpsilonIPEDQN("MultiInputPolicy", env, replay_buffer_class=HerReplayBuffer, **SMALL).learn(60)
    assert model._n_updates > 0


def test_normalised_observations_and_rewards() -> None:
    env = VecNormalize(make_vec_env("CartPole-v1", 2, seed=0))
    assert EpsilonIPEDQN("MlpPolicy", env, **SMALL).learn(60)._n_updates > 0


# Callbacks and evaluation


def test_callbacks_and_evaluation(tmp_path: Path) -> None:
    evaluation = EvalCallback(
        make_vec_env("CartPole-v1", 1, seed=1), eval_freq=40, n_eval_episodes=2, log_path=str(tmp_path), verbose=0,
        best_model_save_path=str(tmp_path / "best"),
    )  # fmt: skip
    checkpoints = CheckpointCallback(50, str(tmp_path), name_prefix="ipe", save_replay_buffer=True)
    model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **SMALL).learn(100, callback=[evaluation, checkpoints])
    assert np.load(tmp_path / "evaluations.npz")["timesteps"].tolist() == [40, 80]
    assert EpsilonIPEDQN.load(tmp_path / "ipe_100_steps").num_timesteps == 100
    EpsilonIPEDQN.load(tmp_path / "best" / "best_model")
    env = make_vec_env("CartPole-v1", 2, seed=2)
    first, _ = evaluate_policy(model, env, 4)
    env.seed(2)
    second, _ = evaluate_policy(model, env, 4)
    assert first == second
    exploring, _ = evaluate_policy(model, env, 4, deterministic=False)
    assert exploring >= 8


@pytest.mark.filterwarnings("ignore:rich is experimental")
def test_the_progress_bar(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    pytest.importorskip("rich")
    EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **SMALL).learn(20, progress_bar=True)
    assert "20/20" in "".join(capfd.readouterr())


def test_its_table_is_dqns_with_two_lines_more(capsys: pytest.CaptureFixture[str]) -> None:
    model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **SMALL | {"verbose": 1}).learn(100, log_interval=1)
    assert model._episode_num > 0
    text = capsys.readouterr().out
    for name in ("ep_rew_mean", "exploration_rate", "epsilon", "entropy", "ipe_error", "n_updates"):
        assert f" {name} " in text
    EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **SMALL).learn(100, log_interval=1)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_the_documentation_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (Path(__file__).parent.parent / "docs" / "stable-baselines3.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) >= 4
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)  # noqa: S102
    assert names["model"].num_timesteps == 300  # of the saved DQN 200
    assert names["seen"].pi.shape == (1, 2)


def test_the_lines_for_the_zoo_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the Zoo's table and a stand-in for its program, which makes a model as its `exp_manager.py` does."""
    yaml = pytest.importorskip("yaml")
    text = (Path(__file__).parent.parent / "docs" / "stable-baselines3.md").read_text()
    (script,) = re.findall(r"```py\n(.*?)```", text, flags=re.DOTALL)
    (settings,) = re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)
    zoo, program = types.ModuleType("rl_zoo3"), types.ModuleType("rl_zoo3.train")
    made: list[Any] = []

    def train() -> None:
        (environment, values), *_ = yaml.safe_load(settings).items()
        frames = int(values.pop("n_timesteps"))
        values["policy_kwargs"] = eval(values["policy_kwargs"])  # noqa: S307  as the Zoo does
        env = make_vec_env(environment, 1, seed=0)
        made.append((frames, zoo.ALGOS["epsilon_ipe"](env=env, tensorboard_log=None, seed=0, verbose=0, **values)))

    zoo.ALGOS, zoo.train, program.train = {"dqn": DQN}, program, train  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rl_zoo3", zoo)
    monkeypatch.setitem(sys.modules, "rl_zoo3.train", program)
    exec(script, {"__name__": "__main__"})  # noqa: S102
    ((frames, model),) = made
    assert (frames, type(model), model.policy_learning_rate) == (50_000, EpsilonIPEDQN, 1e-3)
    assert model.policy.policy_net.q_net[0].out_features == 256


# It learns


LEARNS: dict[str, Any] = {
    "learning_rate": 5e-4, "policy_learning_rate": 1e-3, "gamma": 0.98, "train_freq": 1, "target_update_interval": 100,
    "buffer_size": 12_000, "learning_starts": 200, "policy_kwargs": {"net_arch": [64, 64]}, "seed": 0,
}  # fmt: skip


def greedy_return(**settings: Any) -> float:
    model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", **LEARNS | settings).learn(12_000)
    return float(evaluate_policy(model, make_vec_env("CartPole-v1", 1, seed=1), 10)[0])


@pytest.mark.slow
def test_it_learns_cartpole() -> None:
    assert np.mean([greedy_return(seed=seed) for seed in range(3)]) > 150


@pytest.mark.slow
def test_a_broken_update_does_not_learn_cartpole(monkeypatch: pytest.MonkeyPatch) -> None:
    loss = th.nn.functional.smooth_l1_loss
    monkeypatch.setattr("torch.nn.functional.smooth_l1_loss", lambda a, b: -loss(a, b).clamp(max=1.0))
    assert greedy_return() < 60


def test_it_learns_which_action_is_the_state() -> None:
    """The identity environment, in seconds: 1 per step at best, a half at random."""
    env = DummyVecEnv([lambda: IdentityEnv(2, ep_length=20)])
    model = EpsilonIPEDQN(
        "MlpPolicy", env, learning_rate=1e-2, gamma=0.0, policy_kwargs={"net_arch": []}, target_update_interval=20,
        train_freq=1, buffer_size=1000, learning_starts=50, seed=0,
    )  # fmt: skip
    model.learn(500)
    assert evaluate_policy(model, env, 3, warn=False)[0] == 20.0


class _Normalised(FlattenExtractor):  # type: ignore[misc]
    """Features that depend on running statistics."""

    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space)
        self.norm = th.nn.BatchNorm1d(self.features_dim)

    def forward(self, observations: Any) -> Any:
        return self.norm(super().forward(observations))


@pytest.mark.parametrize("delta_q", ["target", "online", "dqn"])
def test_the_policys_update_does_not_move_the_statistics_of_q(delta_q: Any) -> None:
    settings = {**SMALL, "policy_kwargs": {"features_extractor_class": _Normalised, "net_arch": [8]}}
    model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", delta_q=delta_q, **settings).learn(60)
    norm = model.q_net.features_extractor.norm
    before = int(norm.num_batches_tracked)
    model.train(1, 16)
    assert int(norm.num_batches_tracked) == before + 1
    assert norm.training
