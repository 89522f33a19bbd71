"""What Stable-Baselines3's test suite asks of DQN, asked of `EpsilonIPEDQN` in its place, and of DQN beside it.

The suite is not in Stable-Baselines3's wheel; these are its questions in our words. Where a test takes `algorithm`, the
plain DQN answers too, so that a question that no longer holds in a later version of Stable-Baselines3 shows as such.
`test_sb3.py` and `test_sb3_use.py` ask what is special to epsilon-IPE.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="stable-baselines3 (and torch) is not installed")

import torch as th
from gymnasium import spaces
from stable_baselines3 import DQN
from stable_baselines3.common import callbacks
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import FakeImageEnv, IdentityEnv, SimpleMultiObsEnv
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, NatureCNN
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize, VecTransposeImage

from ipe.integrations.stable_baselines3 import EpsilonIPEDQN, EpsilonIPEPolicy

ALGORITHMS = pytest.mark.parametrize("algorithm", [EpsilonIPEDQN, DQN])
SMALL: dict[str, Any] = {"buffer_size": 200, "learning_starts": 10, "policy_kwargs": {"net_arch": [8]}, "seed": 0}
TINY_IMAGE: dict[str, Any] = {"features_extractor_kwargs": {"features_dim": 8}}


def made(algorithm: Any, env: Any = "CartPole-v1", policy: str = "MlpPolicy", **settings: Any) -> Any:
    return algorithm(policy, env, **SMALL | settings)


def identity(n: int = 2, copies: int = 1) -> Any:
    return DummyVecEnv([lambda: Monitor(IdentityEnv(n, ep_length=10))] * copies)


class InSpace(gymnasium.Env):  # type: ignore[misc, type-arg, unused-ignore]
    """Observations at random from a space, five steps an episode."""

    def __init__(self, observation_space: Any, actions: int = 2) -> None:
        self.observation_space, self.action_space, self.steps = observation_space, spaces.Discrete(actions), 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.observation_space.sample(), 1.0, False, self.steps == 5, {"is_success": bool(action)}


# Spaces and policies

SPACES = {
    "discrete": spaces.Discrete(3),
    "multi-discrete": spaces.MultiDiscrete([2, 3]),
    "binary": spaces.MultiBinary(4),
    "binary table": spaces.MultiBinary([2, 3]),
    "float64": spaces.Box(-1, 1, (3,), np.float64),
    "matrix": spaces.Box(-1, 1, (2, 3), np.float32),
}


@ALGORITHMS
@pytest.mark.parametrize("space", SPACES)
def test_observation_spaces(algorithm: Any, space: str) -> None:
    env = InSpace(SPACES[space])
    model = made(algorithm, env).learn(20)
    observation = env.observation_space.sample()
    assert model.predict(observation)[0].shape == ()
    assert env.action_space.contains(int(model.predict(observation, deterministic=True)[0]))


@pytest.mark.slow
@ALGORITHMS
@pytest.mark.parametrize("channels_first", [True, False])
def test_images_are_transposed_and_stacked(algorithm: Any, channels_first: bool) -> None:
    def image() -> Any:
        return FakeImageEnv(3, 36, 36, n_channels=1, channel_first=channels_first)

    model = made(algorithm, image(), "CnnPolicy", policy_kwargs=TINY_IMAGE).learn(14)
    assert isinstance(model.get_env(), VecTransposeImage) != channels_first
    observation = image().observation_space.sample()
    actions = {int(model.predict(observation, deterministic=True)[0]) for _ in range(3)}
    assert len(actions) == 1
    stacked = VecFrameStack(DummyVecEnv([image] * 2), 4)
    model = made(algorithm, stacked, "CnnPolicy", policy_kwargs=TINY_IMAGE, buffer_size=40).learn(14)
    assert model.predict(stacked.reset(), deterministic=True)[0].shape == (2,)


def test_images_that_are_not_scaled_and_extractors_of_ones_own() -> None:
    env = InSpace(spaces.Box(0, 1, (1, 36, 36), np.float32))
    kwargs = TINY_IMAGE | {"normalize_images": False, "features_extractor_class": NatureCNN}
    kwargs["features_extractor_kwargs"] = {"features_dim": 8, "normalized_image": True}
    model = made(EpsilonIPEDQN, env, "CnnPolicy", policy_kwargs=kwargs).learn(14)
    assert isinstance(model.policy.policy_net.features_extractor, NatureCNN)


@pytest.mark.slow
@ALGORITHMS
@pytest.mark.parametrize("wrapped", ["plain", "stacked", "normalised", "wide"])
def test_dictionaries(algorithm: Any, wrapped: str) -> None:
    env: Any = DummyVecEnv(
        [lambda: SimpleMultiObsEnv(random_start=False, channel_last=False)] * (3 if wrapped == "wide" else 1)
    )
    env = VecFrameStack(env, 2) if wrapped == "stacked" else env
    env = VecNormalize(env, norm_obs_keys=["vec"]) if wrapped == "normalised" else env
    kwargs = {"net_arch": [8], "features_extractor_kwargs": {"cnn_output_dim": 8}}
    model = made(algorithm, env, "MultiInputPolicy", policy_kwargs=kwargs).learn(30)
    observation = env.reset()
    assert model.predict(observation)[0].shape == (env.num_envs,)
    alone = {name: values[0] for name, values in observation.items()}
    assert model.predict(alone)[0].shape == ()


class Doubled(BaseFeaturesExtractor):  # type: ignore[misc]
    def __init__(self, observation_space: Any, factor: int = 2) -> None:
        super().__init__(observation_space, features_dim=4 * factor)
        self.factor = factor

    def forward(self, observations: Any) -> Any:
        return observations.repeat(1, self.factor)


POLICIES: dict[str, dict[str, Any]] = {
    "no layers": {"net_arch": []},
    "three layers": {"net_arch": [4, 5, 6]},
    "tanh": {"net_arch": [4], "activation_fn": th.nn.Tanh},
    "extractor": {"features_extractor_class": Doubled, "features_extractor_kwargs": {"factor": 3}},
    "adamw": {"net_arch": [4], "optimizer_class": th.optim.AdamW, "optimizer_kwargs": {"weight_decay": 0.1}},
    "foreach": {"net_arch": [4], "optimizer_kwargs": {"foreach": True}},
    "sgd": {"net_arch": [4], "optimizer_class": th.optim.SGD, "optimizer_kwargs": {"momentum": 0.5}},
    "adagrad": {"net_arch": [4], "optimizer_class": th.optim.Adagrad},
    "rmsprop of TensorFlow": {"net_arch": [4], "optimizer_class": RMSpropTFLike, "optimizer_kwargs": {"eps": 1e-5}},
}


@pytest.mark.parametrize("kind", POLICIES)
def test_custom_networks_and_optimisers(kind: str, tmp_path: Path) -> None:
    model = made(EpsilonIPEDQN, policy_kwargs=POLICIES[kind]).learn(30)
    model.save(tmp_path / "model")
    copy = EpsilonIPEDQN.load(tmp_path / "model", env=model.get_env()).learn(20, reset_num_timesteps=False)
    assert copy.num_timesteps == 52
    for optimizer in (copy.policy.optimizer, copy.policy.policy_optimizer):
        assert type(optimizer) is POLICIES[kind].get("optimizer_class", th.optim.Adam)
        assert bool(optimizer.param_groups[0].get("fused")) == (kind not in ("foreach", "rmsprop of TensorFlow"))


def test_a_policy_class_of_ones_own() -> None:
    class Own(EpsilonIPEPolicy):
        def __init__(self, *arguments: Any, **others: Any) -> None:
            super().__init__(*arguments, **{**others, "net_arch": [3]})

    model = EpsilonIPEDQN(Own, "CartPole-v1", buffer_size=50, learning_starts=5).learn(20)
    assert model.policy.policy_net.q_net[0].out_features == 3


# Predict


@ALGORITHMS
@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("copies", [1, 3])
def test_predict(algorithm: Any, deterministic: bool, copies: int) -> None:
    env = make_vec_env("CartPole-v1", copies, seed=0)
    model = made(algorithm, env)
    actions, state = model.predict(env.reset(), deterministic=deterministic)
    assert isinstance(actions, np.ndarray)
    assert (actions.shape, actions.dtype.kind, state) == ((copies,), "i", None)
    env.step(actions)
    assert model.predict(env.reset()[0], deterministic=deterministic)[0].shape == ()
    assert model.predict(np.zeros((7, 4), np.float32), deterministic=deterministic)[0].shape == (7,)
    with pytest.raises(ValueError, match="Unexpected observation shape"):
        model.predict(np.zeros((2, 3), np.float32))


@ALGORITHMS
def test_the_new_resets_tuple_is_explained(algorithm: Any) -> None:
    model = made(algorithm)
    with pytest.raises(ValueError, match="You have passed a tuple to the predict"):
        model.predict(gymnasium.make("CartPole-v1").reset(), deterministic=True)


# Save, load and parameters


@ALGORITHMS
@pytest.mark.parametrize("replay", [True, False])
@pytest.mark.parametrize("form", ["str", "Path"])
def test_save_and_load(algorithm: Any, replay: bool, form: str, tmp_path: Path) -> None:
    name: Any = {"str": str, "Path": Path}[form]
    model = made(algorithm, identity(4)).learn(60)
    model.save(name(tmp_path / "model"))
    before = model.get_parameters()
    states = np.arange(4)
    greedy = model.predict(states, deterministic=True)[0]
    copy = algorithm.load(name(tmp_path / "model"))
    assert copy.get_env() is None
    assert copy.policy.optimizer.state_dict().keys() == model.policy.optimizer.state_dict().keys()
    for key, value in before["policy"].items():
        assert th.equal(value, copy.get_parameters()["policy"][key]), key
    assert (copy.predict(states, deterministic=True)[0] == greedy).all()
    assert copy.replay_buffer.size() == 0
    if replay:
        model.save_replay_buffer(name(tmp_path / "replay"))
        copy.load_replay_buffer(name(tmp_path / "replay"))
        assert copy.replay_buffer.observations.tobytes() == model.replay_buffer.observations.tobytes()
        assert copy.replay_buffer.pos == model.replay_buffer.pos
    with pytest.raises(AssertionError, match="You must set the environment"):
        copy.learn(10)
    copy.set_env(identity(4))
    assert copy.learn(20, reset_num_timesteps=False).num_timesteps == 80


@ALGORITHMS
def test_parameters_are_set_in_full_or_in_part(algorithm: Any) -> None:
    one, two = made(algorithm, seed=1), made(algorithm, seed=2)
    parameters = {name: dict(value) for name, value in one.get_parameters().items()}
    for broken in ({"policy": parameters["policy"]}, {**parameters, "other": {}}):
        with pytest.raises(ValueError, match=r"do not match agents' parameters|invalid object name"):
            made(algorithm).set_parameters(broken | {n: v for n, v in parameters.items() if "_optimizer" in n})
    first = next(name for name in parameters["policy"] if name.startswith("q_net."))
    two.set_parameters({"policy": {first: parameters["policy"][first]}}, exact_match=False)
    assert th.equal(two.get_parameters()["policy"][first], parameters["policy"][first])
    two.set_parameters(parameters)
    assert all(th.equal(two.get_parameters()["policy"][k], v) for k, v in parameters["policy"].items())


@ALGORITHMS
def test_saving_with_exclusions_and_custom_objects(algorithm: Any, tmp_path: Path) -> None:
    model = made(algorithm, learning_rate=lambda left: 1e-3 * left)
    model.save(tmp_path / "model", exclude=["gamma"], include=["verbose"])
    copy = algorithm.load(tmp_path / "model", custom_objects={"learning_rate": 0.5, "lr_schedule": lambda _: 0.5})
    assert copy.learning_rate == 0.5
    assert copy.lr_schedule(1) == 0.5
    with pytest.raises(ValueError, match="specified policy kwargs do not equal the stored"):
        algorithm.load(tmp_path / "model", policy_kwargs={"net_arch": [9]})


@ALGORITHMS
def test_another_environment_must_fit(algorithm: Any, tmp_path: Path) -> None:
    model = made(algorithm)
    model.set_env(make_vec_env("CartPole-v1", 1))
    with pytest.raises(AssertionError, match="number of environments to be set is different"):
        model.set_env(make_vec_env("CartPole-v1", 2))
    with pytest.raises(ValueError, match="spaces do not match"):
        model.set_env(identity())
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match="spaces do not match"):
        algorithm.load(tmp_path / "model", env=identity())


# Seeds, rates, frequencies


@ALGORITHMS
@pytest.mark.parametrize("copies", [1, 2])
def test_two_trainings_with_one_seed_are_one(algorithm: Any, copies: int) -> None:
    results = []
    for seed in (3, 3, 4):
        env = make_vec_env("CartPole-v1", copies, seed=0)
        model = made(algorithm, env, seed=seed, train_freq=2).learn(80)
        reward = evaluate_policy(model, env, 3)[0]
        results.append(
            (model.replay_buffer.actions.tobytes(), reward, float(model.q_net.q_net[0].weight.detach().sum()))
        )
    assert results[0] == results[1] != results[2]


@ALGORITHMS
def test_learning_rates_follow_their_schedules(algorithm: Any, tmp_path: Path) -> None:
    schedules: dict[str, Any] = {"learning_rate": lambda left: 1e-2 * left}
    if algorithm is EpsilonIPEDQN:
        schedules["policy_learning_rate"] = lambda left: 1e-3 * left
    model = made(algorithm, train_freq=1, **schedules)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    model.learn(50, log_interval=1)
    model.logger.dump(50)
    model.logger.close()
    rows = np.genfromtxt(tmp_path / "progress.csv", delimiter=",", names=True, deletechars="")
    for name, schedule in schedules.items():
        assert np.atleast_1d(rows[f"train/{name}"])[-1] == pytest.approx(schedule(0.0), abs=1e-9)


@ALGORITHMS
@pytest.mark.parametrize(
    ("settings", "frames", "updates"),
    [
        ({"train_freq": (5, "step"), "gradient_steps": 2}, 25, 6),
        ({"train_freq": (1, "episode"), "gradient_steps": 3}, 30, 6),
        ({"train_freq": 3, "gradient_steps": -1}, 21, 12),
        ({"gradient_steps": 0}, 20, 0),
        ({"train_freq": 1, "n_steps": 3}, 20, 10),
    ],
    ids=str,
)
def test_frequencies(algorithm: Any, settings: dict[str, Any], frames: int, updates: int) -> None:
    model = made(algorithm, identity(), **settings).learn(frames)
    assert (model.num_timesteps, model._n_updates) == (frames, updates)


@ALGORITHMS
def test_wrong_frequencies(algorithm: Any) -> None:
    for wrong in ((1, "epoch"), ("one", "step")):
        with pytest.raises(ValueError, match="train_freq"):
            made(algorithm, train_freq=wrong)
    with pytest.raises(AssertionError, match="You must use only one env when doing episodic training"):
        made(algorithm, identity(copies=2), train_freq=(1, "episode")).learn(10)


@ALGORITHMS
def test_the_target_network_follows_at_its_interval(algorithm: Any) -> None:
    weights: list[float] = []

    def note(names: dict[str, Any], _: dict[str, Any]) -> bool:
        weights.append(float(sum(parameter.detach().sum() for parameter in names["self"].q_net_target.parameters())))
        return True

    model = made(algorithm, train_freq=1, target_update_interval=20, learning_starts=0).learn(50, callback=note)
    assert [frame for frame in range(1, 50) if weights[frame] != weights[frame - 1]] == [20, 40]
    assert not th.equal(model.q_net.q_net[0].weight, model.q_net_target.q_net[0].weight)


class Normalised(BaseFeaturesExtractor):  # type: ignore[misc]
    def __init__(self, observation_space: Any) -> None:
        super().__init__(observation_space, features_dim=4)
        self.norm, self.drop = th.nn.BatchNorm1d(4), th.nn.Dropout(0.5)

    def forward(self, observations: Any) -> Any:
        return self.drop(self.norm(observations))


@ALGORITHMS
def test_batch_normalisation_and_dropout(algorithm: Any) -> None:
    kwargs = {"net_arch": [8], "features_extractor_class": Normalised}
    model = made(algorithm, policy_kwargs=kwargs, learning_starts=0, target_update_interval=1, tau=0.0)
    states = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    first = model.predict(states, deterministic=True)[0]
    assert (model.predict(states, deterministic=True)[0] == first).all()  # no dropout when acting
    running = model.q_net.features_extractor.norm.running_mean
    start = running.clone()
    model.predict(states)
    assert th.equal(start, running)
    model.learn(30)
    assert not th.equal(start, running)
    model._on_step()
    assert th.equal(running, model.q_net_target.features_extractor.norm.running_mean)  # copied whatever tau is
    if algorithm is EpsilonIPEDQN:
        assert not th.equal(model.policy.policy_net.features_extractor.norm.running_mean, start)


# Callbacks and logs


@ALGORITHMS
def test_callbacks_of_every_kind(algorithm: Any, tmp_path: Path) -> None:
    events: list[str] = []

    class Noting(callbacks.BaseCallback):  # type: ignore[misc]
        def _on_training_start(self) -> None:
            events.append("start")

        def _on_rollout_start(self) -> None:
            events.append("rollout")

        def _on_step(self) -> bool:
            events.append("step")
            return True

        def _on_rollout_end(self) -> None:
            events.append("rollout end")

        def _on_training_end(self) -> None:
            events.append("end")

    evaluation = callbacks.EvalCallback(
        identity(), n_eval_episodes=1, eval_freq=30, log_path=str(tmp_path),
        best_model_save_path=str(tmp_path), verbose=0,
        callback_on_new_best=callbacks.StopTrainingOnRewardThreshold(1000.0),
        callback_after_eval=callbacks.StopTrainingOnNoModelImprovement(50, min_evals=1),
    )  # fmt: skip
    every = callbacks.EveryNTimesteps(25, callbacks.CheckpointCallback(1, str(tmp_path), name_prefix="every"))
    model = made(algorithm, identity())
    model.learn(60, callback=callbacks.CallbackList([Noting(), evaluation, every]))
    assert (events[0], events[-1]) == ("start", "end")
    assert (events.count("step"), events.count("rollout"), events.count("rollout end")) == (60, 15, 15)
    assert np.load(tmp_path / "evaluations.npz")["results"].shape == (2, 1)
    assert algorithm.load(tmp_path / "best_model").num_timesteps in (30, 60)
    assert sorted(path.name for path in tmp_path.glob("every*")) == ["every_25_steps.zip", "every_50_steps.zip"]


@ALGORITHMS
@pytest.mark.parametrize("how", ["function", "episodes"])
def test_a_callback_stops_training(algorithm: Any, how: str) -> None:
    stop = {
        "function": lambda names, _: names["self"].num_timesteps < 17,
        "episodes": callbacks.StopTrainingOnMaxEpisodes(2),
    }[how]
    model = made(algorithm, identity()).learn(1000, callback=stop)
    assert model.num_timesteps == {"function": 17, "episodes": 20}[how]


@ALGORITHMS
def test_the_success_rate_is_logged(algorithm: Any) -> None:
    model = made(algorithm, Monitor(InSpace(spaces.Box(-1, 1, (3,))), info_keywords=("is_success",)))
    rates: list[Any] = []
    original = model.dump_logs

    def dump() -> None:
        rates.append(np.mean(model.ep_success_buffer))
        original()

    model.dump_logs = dump
    model.learn(60, log_interval=2)
    assert len(rates) == 6
    assert 0 <= rates[-1] <= 1


@ALGORITHMS
def test_tensorboard_has_the_algorithms_name(algorithm: Any, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    model = made(algorithm, identity(), tensorboard_log=str(tmp_path))
    model.learn(20, log_interval=1).learn(20, tb_log_name="other", reset_num_timesteps=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{algorithm.__name__}_1", "other_1"]


@pytest.mark.slow
@ALGORITHMS
@pytest.mark.parametrize("copies", [1, 4])
def test_it_learns_the_identity(algorithm: Any, copies: int) -> None:
    env = identity(3, copies)
    model = algorithm(
        "MlpPolicy", env, learning_rate=1e-3, gamma=0.4, learning_starts=100, train_freq=1, target_update_interval=100,
        buffer_size=2000, gradient_steps=-1, policy_kwargs={"net_arch": [64]}, seed=0,
    ).learn(2500)  # fmt: skip
    assert evaluate_policy(model, env, 5)[0] > 9
