"""Networks of Stable-Baselines3 on observations that are prepared once: the same outputs as when they are called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
import torch as th
from gymnasium import spaces
from stable_baselines3.common.envs import FakeImageEnv, SimpleMultiObsEnv
from stable_baselines3.common.vec_env import DummyVecEnv

from ipe.integrations.stable_baselines3 import EpsilonIPEDQN
from ipe.integrations.stable_baselines3.networks import halves, joined, output, prepared


def images(channels: int = 2) -> FakeImageEnv:
    return FakeImageEnv(action_dim=3, screen_height=40, screen_width=40, n_channels=channels)


CASES: dict[str, tuple[str, Any]] = {
    "vectors": ("MlpPolicy", "CartPole-v1"),
    "images": ("CnnPolicy", lambda: DummyVecEnv([images])),
    "grey images": ("CnnPolicy", lambda: DummyVecEnv([lambda: images(1)])),
    "numbers": ("MlpPolicy", "FrozenLake-v1"),
    "dictionaries": ("MultiInputPolicy", lambda: DummyVecEnv([lambda: SimpleMultiObsEnv(random_start=True)])),
}


def model_of(case: str) -> EpsilonIPEDQN:
    policy, environment = CASES[case]
    made = environment if isinstance(environment, str) else environment()
    return EpsilonIPEDQN(policy, made, learning_starts=10, buffer_size=100, seed=0).learn(20)


def observations_of(model: EpsilonIPEDQN, n: int) -> Any:
    space = model.observation_space
    space.seed(3)
    drawn = [space.sample() for _ in range(n)]
    if isinstance(space, spaces.Dict):
        return {name: th.as_tensor(np.stack([each[name] for each in drawn])) for name in space.spaces}
    return th.as_tensor(np.stack(drawn))


@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_the_networks_when_they_are_called(case: str) -> None:
    model = model_of(case)
    networks = (model.q_net, model.q_net_target, model.policy.policy_net)
    first, second = observations_of(model, 4), observations_of(model, 8)
    second = {name: rows[4:] for name, rows in second.items()} if isinstance(second, dict) else second[4:]
    given = prepared(networks, joined(first, second))
    assert given.plain
    for network in networks:
        for rows, part in zip((first, second), halves(given), strict=True):
            # Images lie in memory in another order, which is another order of sums.
            th.testing.assert_close(output(network, part), network(rows), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_gradients_are_those_of_the_networks_when_they_are_called(case: str) -> None:
    model = model_of(case)
    network, observations = model.q_net, observations_of(model, 4)
    found = []
    for outputs in (output(network, prepared((network,), observations)), network(observations)):
        network.zero_grad()
        (outputs * th.arange(outputs.numel()).reshape(outputs.shape)).sum().backward()
        found.append([parameter.grad.clone() for parameter in network.parameters()])
    for ours, theirs in zip(*found, strict=True):
        th.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", ["images", "grey images"])
def test_images_have_their_channels_last_in_memory(case: str) -> None:
    model = model_of(case)
    observations = observations_of(model, 3)
    for rows in (observations, observations.contiguous(memory_format=th.channels_last)):
        given = prepared((model.q_net,), rows).given
        assert given.stride() == (given[0].numel(), 1, 40 * given.shape[1], given.shape[1])


def test_other_layers_before_the_last_rectifier_can_be_learned_through() -> None:
    model = model_of("images")
    layers = list(model.q_net.features_extractor.cnn)
    model.q_net.features_extractor.cnn = th.nn.Sequential(*layers[:-2], th.nn.Tanh(), *layers[-2:])
    observations = observations_of(model, 3)
    found = output(model.q_net, prepared((model.q_net,), observations))
    th.testing.assert_close(found, model.q_net(observations), rtol=1e-5, atol=1e-6)
    found.sum().backward()


def test_images_are_left_as_they_are() -> None:
    model = model_of("images")
    observations = observations_of(model, 3)
    before = observations.clone()
    prepared((model.q_net,), observations)
    assert th.equal(observations, before)


def test_memory_for_images_is_used_again_and_shared_by_no_other_model() -> None:
    first, second = model_of("images"), model_of("images")
    observations = observations_of(first, 4)
    given = prepared((first.q_net,), observations).given
    kept = given.clone()
    prepared((first.q_net,), observations_of(first, 2))  # as when the model acts between two updates
    other = prepared((second.q_net,), 255 - observations).given
    assert th.equal(given, kept)
    assert th.allclose(other, 1.0 - kept, atol=1e-6)
    again = prepared((first.q_net,), observations).given
    assert again.data_ptr() == given.data_ptr() != other.data_ptr()


def test_a_model_that_acted_in_inference_mode_can_learn() -> None:
    model = model_of("images")
    observations = observations_of(model, 7)
    with th.inference_mode():
        model.policy.explore(observations)
    model.policy.explore(observations)
    networks = (model.q_net, model.policy.policy_net)
    assert not any(prepared(networks, observations).given.is_inference() for _ in range(2))
    model.learn(20, reset_num_timesteps=False)


@pytest.mark.parametrize("part", ["network", "features", "layers", "layer"])
def test_hooks_are_heard(part: str) -> None:
    """Somebody who watches a part of the network sees it act and learn."""
    model = model_of("vectors")
    network = model.policy.policy_net
    seen: list[Any] = []
    watched = {
        "network": network, "features": network.features_extractor, "layers": network.q_net, "layer": network.q_net[2],
    }[part]  # fmt: skip
    watched.register_forward_hook(lambda module, given, found: seen.append(found))
    model.behaviour(np.zeros((1, 4), np.float32))
    assert len(seen) == 1
    model.train(2, 8)
    assert len(seen) == 3


def test_a_derived_network_is_called_as_it_is() -> None:
    model = model_of("vectors")

    class Doubled(type(model.q_net)):  # type: ignore[misc]
        def forward(self, obs: Any) -> Any:
            return 2.0 * super().forward(obs)

    observations = observations_of(model, 3)
    plain = model.q_net(observations)
    model.q_net.__class__ = Doubled
    given = prepared((model.q_net, model.policy.policy_net), observations)
    assert not given.plain
    assert th.equal(output(model.q_net, given), 2.0 * plain)
