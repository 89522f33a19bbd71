"""The network of Mnih et al. (2015): outputs in plain NumPy, gradients by `jax.grad`, and all that is done with it."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats

pytest.importorskip("gymnasium")

import ipe
from ipe.deep import evaluate, paper_settings, train
from ipe.deep.convolutions import ATARI, Convolution, smallest_side
from ipe.deep.loop import Loop
from ipe.deep.native import library
from ipe.deep.networks import Architecture, backward, features, forward, initial_parameters, split
from ipe.deep.randomness import network_generator
from tests.deep_helpers import advance, result, run, small

FILM = "tests.deep_environments:Film-v0"
NET = Architecture((36, 41, 3), 512, 16, 5, network="atari")


@lru_cache
def parameters(seeds: int = 2) -> Any:
    return initial_parameters(NET, [network_generator(seed) for seed in range(seeds)])


def in_numpy(layers: Any, x: Any) -> Any:
    """One seed's outputs in double precision: each position's patch, times the weights."""
    x = np.asarray(x, np.float64)
    for (weights, bias), (size, stride, channels) in zip(layers, [(8, 4, 32), (4, 2, 64), (3, 1, 64)], strict=False):
        patches = np.lib.stride_tricks.sliding_window_view(x, (size, size), axis=(1, 2))[:, ::stride, ::stride]
        kernel = np.asarray(weights, np.float64).reshape(size, size, x.shape[3], channels)
        x = np.maximum(np.einsum("nyxcij,ijco->nyxo", patches, kernel) + np.asarray(bias), 0.0)
    x = x.reshape(len(x), -1)
    (w, b), (w_last, b_last) = layers[-2:]
    return np.maximum(x @ np.asarray(w, np.float64) + b, 0.0) @ np.asarray(w_last, np.float64) + b_last


def by_xla(layers: Any, x: Any) -> Any:
    """The same by XLA's convolution of whole images, with channels first: for `jax.grad`."""
    x = x.transpose(0, 3, 1, 2)
    for (weights, bias), (size, stride, channels) in zip(layers, ATARI, strict=False):
        kernel = weights.reshape(size, size, x.shape[1], channels).transpose(3, 2, 0, 1)
        x = jax.lax.conv(x, kernel, (stride, stride), "VALID") + bias[:, None, None]
        x = jax.nn.relu(x)
    x = x.transpose(0, 2, 3, 1).reshape(len(x), -1)
    (w, b), (w_last, b_last) = layers[-2:]
    return jax.nn.relu(x @ w + b) @ w_last + b_last


@pytest.mark.slow
def test_outputs_and_gradients_are_those_of_plain_formulations() -> None:
    generator = np.random.default_rng(0)
    x = generator.random((2, 3, *NET.inputs), dtype=np.float32)
    error = generator.normal(size=(2, 3, NET.actions)).astype(np.float32)

    @jax.jit
    def ours(own: Any) -> Any:
        outputs, seen = forward(NET, own, features(NET, x))
        return outputs, split(NET, backward(NET, own, seen, error))

    by_jax = jax.jit(jax.grad(lambda own, x, error: (by_xla(own, x) * error).sum()))
    outputs, found = ours(parameters())
    for seed in range(2):
        layers = [(w[seed], b[seed]) for w, b in split(NET, parameters())]
        np.testing.assert_allclose(outputs[seed], in_numpy(layers, x[seed]), atol=1e-6)
        wanted = by_jax(layers, x[seed], error[seed])
        for own, expected in zip(found, wanted, strict=True):
            for a, b in zip(own, expected, strict=True):
                np.testing.assert_allclose(a[seed], b, rtol=0, atol=2e-5 * abs(np.asarray(b)).max())


def test_its_sizes_are_those_of_the_paper() -> None:
    atari = Architecture((84, 84, 4), 512, 16, 18, network="atari")
    assert atari.layers == [(8 * 8 * 4, 32), (4 * 4 * 32, 64), (3 * 3 * 64, 64), (7 * 7 * 64, 512), (512, 18)]
    assert atari.applied == [20 * 20, 9 * 9, 7 * 7, 1, 1]
    assert smallest_side(ATARI) == 36
    assert smallest_side((Convolution(3, 1, 16),)) == 3


@pytest.mark.slow
def test_parameters_start_uniform_within_one_over_the_root_of_the_fan_in() -> None:
    fan_ins = [8 * 8 * 3, 4 * 4 * 32, 3 * 3 * 64, NET.layers[3][0], 512]
    for fan_in, (weights, _) in zip(fan_ins, split(NET, parameters()), strict=True):
        scaled = np.asarray(weights, np.float64).ravel() * np.sqrt(fan_in)
        assert abs(scaled).max() <= 1 + 1e-6
        assert stats.kstest(scaled[:20_000], stats.uniform(-1, 2).cdf).pvalue > 1e-3
    biases = [np.asarray(bias).ravel() for _, bias in split(NET, parameters())]
    scaled = np.concatenate([bias * n**0.5 for n, bias in zip(fan_ins, biases, strict=True)])
    assert abs(scaled).max() <= 1 + 1e-6
    assert stats.kstest(scaled, stats.uniform(-1, 2).cdf).pvalue > 1e-3


@pytest.mark.slow
def test_bfloat16_rounds_its_factors() -> None:
    x = np.random.default_rng(0).random((1, 2, *NET.inputs), dtype=np.float32)
    one = jax.tree.map(lambda array: array[:1], parameters())
    exact, rough = (
        np.asarray(jax.jit(lambda own, net=net: forward(net, own, x)[0])(one))
        for net in (NET, NET._replace(precision="bfloat16"))
    )
    assert 0 < abs(exact - rough).max() < 0.02 * abs(exact).max()


def test_its_products_are_xlas() -> None:
    assert library.reason(NET) == "the network atari has XLA's convolutions"


@pytest.mark.slow
def test_a_run_of_it_is_resumed_to_the_byte() -> None:
    environment = {"options": {"height": 36, "width": 36, "truncate": 3}, "stack": 4}
    own = small(FILM, environment=environment, replay=8, batch=2)
    straight, loop = run(own, [0], 24), run(own, [0], 11)
    assert loop.program.architecture.network == "atari"
    again = Loop([own], [0], loop.checkpoint())
    advance(again, 13)
    assert result(again, 0) == result(straight, 0)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of eight frames on stacks of two frames of 36 x 36 pixels."""
    folder = tmp_path_factory.mktemp("atari") / "run"
    environment = {"options": {"height": 36, "width": 36, "truncate": 4}, "stack": 2}
    own = paper_settings(FILM, environment=environment, frames=8, batch=2, replay=20)
    train(own, out=folder, processes=0, progress=False)
    return folder


def shown(n: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, (n, 2, 36, 36), dtype=np.uint8)


@pytest.mark.slow
def test_an_agent_of_it_tells_its_values(trained: Path) -> None:
    agent = ipe.load_agent(trained)
    shapes = {name: array.shape for name, array in agent.tensors.items() if name.startswith("q.")}
    assert shapes["q.first.weight"] == (32, 2, 8, 8)
    assert shapes["q.second.weight"] == (64, 32, 4, 4)
    assert shapes["q.third.weight"] == (64, 64, 3, 3)
    assert shapes["q.middle.weight"] == (512, 64)
    layers = [(w[0], b[0]) for w, b in split(agent._net, agent._parameters["q"])]
    observations = shown(20)
    expected = in_numpy(layers, observations.transpose(0, 2, 3, 1) / 255.0)
    np.testing.assert_allclose(agent.values(observations), expected, atol=1e-5)
    assert agent.act(observations).tolist() == expected.argmax(axis=1).tolist()


@pytest.mark.slow
def test_the_module_of_torch_and_the_onnx_file_equal_the_agent(trained: Path, tmp_path: Path) -> None:
    torch, onnxruntime = pytest.importorskip("torch"), pytest.importorskip("onnxruntime")
    agent, observations = ipe.load_agent(trained), shown(1000)
    module, encoded = agent.to_torch(), agent.encode(observations)
    assert set(module.state_dict()) == set(agent.tensors)
    agent.to_onnx(tmp_path / "agent.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "agent.onnx"))
    values, policy = session.run(["values", "policy"], {"observation": encoded})
    with torch.no_grad():
        found = module(torch.from_numpy(encoded)).numpy(), module.policy(torch.from_numpy(encoded)).numpy()
    for own in (found, (values, policy)):
        np.testing.assert_allclose(own[0], agent.values(observations), atol=1e-5)
        np.testing.assert_allclose(own[1], agent.policy(observations), atol=1e-5)


@pytest.mark.slow
def test_it_is_evaluated_and_audited(trained: Path) -> None:
    from ipe.audit import audit_run

    assert np.isfinite(evaluate(trained, episodes=2).mean)
    assert audit_run(trained, frames=40).transitions == 40
