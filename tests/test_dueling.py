"""Dueling networks: the published formula by hand, gradients by automatic differentiation, bytes, exports, refusals."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("gymnasium")

import ipe
from ipe.cli.program import main
from ipe.deep import evaluate, paper_settings, train
from ipe.deep.convolutions import ATARI, convolve
from ipe.deep.loop import Loop
from ipe.deep.networks import (
    Architecture,
    backward,
    dueling_errors,
    dueling_values,
    features,
    forward,
    initial_parameters,
    split,
)
from ipe.entropy import softmax
from tests.deep_helpers import DRIFT, advance, result, run, small
from tests.environment_helpers import OWN

NETS = [
    Architecture((8,), 16, 16, 4, dueling=True),
    pytest.param(Architecture((1,), 2, 1, 1, dueling=True), marks=pytest.mark.slow),
    pytest.param(Architecture((5, 6, 2), 12, 3, 5, dueling=True), marks=pytest.mark.slow),
    pytest.param(Architecture((36, 41, 3), 512, 16, 5, network="atari", dueling=True), marks=pytest.mark.slow),
]


def test_values_and_errors_by_hand() -> None:
    value, advantage = jnp.array([[[2.0]]]), jnp.array([[[1.0, 3.0, 8.0]]])  # the mean advantage is 4
    assert dueling_values(value, advantage).tolist() == [[[-1.0, 1.0, 6.0]]]
    of_value, of_advantage = dueling_errors(jnp.array([[[0.0, 6.0, 0.0]]]))
    assert of_value.tolist() == [[[6.0]]]
    assert of_advantage.tolist() == [[[-2.0, 4.0, -2.0]]]


def test_the_shapes_are_those_of_the_paper() -> None:
    corridor = Architecture((4,), 50, 1, 10, dueling=True)  # two streams of 25 units, after a layer of 50
    assert corridor.layers == [(4, 50), (50, 50), (25, 1), (25, 10)]
    atari = Architecture((84, 84, 4), 512, 16, 18, network="atari", dueling=True)
    assert atari.layers[-3:] == [(7 * 7 * 64, 1024), (512, 1), (512, 18)]
    assert atari.of("policy").layers[-2:] == [(7 * 7 * 64, 512), (512, 18)]
    assert corridor.names == ("first", "middle", "last.value", "last.advantage")


def plain(net: Architecture, layers: Any, x: Any) -> Any:
    """The outputs of one seed, layer by layer."""
    *before, middle, value, advantage = layers
    if net.atari:
        for shape, (w, b) in zip(ATARI, before, strict=True):
            x = jax.nn.relu(convolve(shape, x[None], w[None])[0] + b)
    elif net.image:
        kernel = before[0][0].reshape(3, 3, net.inputs[2], net.channels)
        axes = ("NHWC", "HWIO", "NHWC")
        found = jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=axes, precision="highest")
        x = jax.nn.relu(found + before[0][1])
    else:
        x = jax.nn.relu(x @ before[0][0] + before[0][1])
    x = jax.nn.relu(x.reshape(len(x), -1) @ middle[0] + middle[1])
    half = x.shape[1] // 2
    v, a = x[:, :half] @ value[0] + value[1], x[:, half:] @ advantage[0] + advantage[1]
    return v + (a - a.mean(axis=1, keepdims=True))


@partial(jax.jit, static_argnums=0)
def ours(net: Architecture, parameters: Any, x: Any, error: Any) -> Any:
    outputs, seen = forward(net, parameters, features(net, x))
    return outputs, split(net, backward(net, parameters, seen, error))


@partial(jax.jit, static_argnums=0)
def theirs(net: Architecture, layers: Any, x: Any, error: Any) -> Any:
    outputs, pullback = jax.vjp(partial(plain, net, x=x), layers)
    return outputs, pullback(error)[0]


@pytest.mark.parametrize("net", NETS, ids=str)
def test_outputs_and_gradients_are_those_of_automatic_differentiation(net: Architecture) -> None:
    parameters = initial_parameters(net, [np.random.default_rng(seed) for seed in range(2)])
    draw = np.random.default_rng(0)
    x = draw.normal(size=(2, 3, *net.inputs)).astype(np.float32)
    error = draw.normal(size=(2, 3, net.actions)).astype(np.float32)
    outputs, found = ours(net, parameters, x, error)
    for seed in range(2):
        layers = [(w[seed], b[seed]) for w, b in split(net, parameters)]
        expected, gradient = theirs(net, layers, x[seed], error[seed])
        np.testing.assert_allclose(outputs[seed], expected, atol=1e-5)
        for mine, other in zip(found, gradient, strict=True):
            for a, b in zip(mine, other, strict=True):
                np.testing.assert_allclose(a[seed], b, atol=1e-4 * max(1e-2, float(jnp.abs(b).max())))


def test_a_constant_in_the_advantages_changes_nothing() -> None:
    net = NETS[0]
    assert isinstance(net, Architecture)
    parameters = initial_parameters(net, [np.random.default_rng(0)])
    x = features(net, np.random.default_rng(1).normal(size=(1, 5, 8)).astype(np.float32))
    shifted = {**parameters, "rest": parameters["rest"].at[:, -net.actions :].add(3.0)}
    np.testing.assert_allclose(forward(net, parameters, x)[0], forward(net, shifted, x)[0], atol=1e-5)


# ---- training


@pytest.mark.slow
@pytest.mark.parametrize("changes", [
    {"width": 32}, pytest.param({"width": 18}, marks=pytest.mark.slow),
    pytest.param({"width": 32, "optimiser": {"kind": "adam"}}, marks=pytest.mark.slow),
])  # fmt: skip
def test_a_seed_depends_neither_on_its_batch_nor_on_a_stop(changes: dict[str, Any]) -> None:
    settings = small(DRIFT, dueling=True, environment={"frame_limit": 20}, **changes)
    together = run(settings, [0, 1, 2], 120)
    for i in (0, 2):
        assert result(run(settings, [i], 120), 0) == result(together, i)
    loop = run(settings, [0, 1, 2], 60)
    loop = Loop(loop.settings, loop.seeds, loop.checkpoint())
    advance(loop, 60)
    assert [result(loop, i) for i in range(3)] == [result(together, i) for i in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize(("environment", "actions"), [("CartPole-v1", 2), (OWN + "Catch-v0", 3)])
def test_what_was_trained_is_read_evaluated_audited_and_exported(
    environment: str, actions: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes: dict[str, Any] = {"width": 32, "channels": 16, "batch": 8, "replay": 64, "frames": 40}
    train(paper_settings(environment, dueling=True, **changes), out=tmp_path / "run", processes=0, progress=False)
    agent = ipe.load_agent(tmp_path / "run")
    shape = (50, 4) if environment == "CartPole-v1" else (50, *agent._trained.spec.observation_shape)
    shown = np.random.default_rng(0).integers(0, 2, shape)
    tensors = agent.tensors
    assert tensors["q.last.value.weight"].shape == (1, 16)
    assert tensors["q.last.advantage.weight"].shape == (actions, 16)
    assert tensors["policy.last.weight"].shape == (actions, 32)
    x = agent.encode(shown).astype(np.float64)
    if environment == "CartPole-v1":
        hidden = np.maximum(x @ tensors["q.first.weight"].T + tensors["q.first.bias"], 0.0)
        hidden = np.maximum(hidden @ tensors["q.middle.weight"].T + tensors["q.middle.bias"], 0.0)
        v = hidden[:, :16] @ tensors["q.last.value.weight"].T + tensors["q.last.value.bias"]
        a = hidden[:, 16:] @ tensors["q.last.advantage.weight"].T + tensors["q.last.advantage.bias"]
        np.testing.assert_allclose(agent.values(shown), v + a - a.mean(axis=1, keepdims=True), atol=1e-5)
    assert agent.policy(shown).shape == (50, actions)
    assert evaluate(tmp_path / "run", episodes=1).seeds[0].returns.size == 1
    assert main(["audit", str(tmp_path / "run"), "--frames", "200", "--out", str(tmp_path / "audit.json")]) == 0
    capsys.readouterr()

    torch = pytest.importorskip("torch")
    module = agent.to_torch()
    with torch.no_grad():
        np.testing.assert_allclose(module(torch.from_numpy(agent.encode(shown))), agent.values(shown), atol=1e-5)
    assert set(module.state_dict()) == set(tensors)


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["CartPole-v1", OWN + "Catch-v0"])
def test_the_onnx_file_equals_the_agent(environment: str, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    changes: dict[str, Any] = {"width": 32, "channels": 16, "batch": 8, "replay": 64, "frames": 20}
    train(paper_settings(environment, dueling=True, **changes), out=tmp_path / "run", processes=0, progress=False)
    agent = ipe.load_agent(tmp_path / "run")
    agent.to_onnx(tmp_path / "agent.onnx")
    session = runtime.InferenceSession(tmp_path / "agent.onnx", providers=["CPUExecutionProvider"])
    spec = agent._trained.spec
    encoded = np.random.default_rng(0).integers(0, 2, (20, *spec.observation_shape)).astype(spec.dtype)
    values, policy = session.run(["values", "policy"], {"observation": encoded})
    q = forward(agent._net, agent._parameters["q"], features(agent._net, encoded[None].astype(np.float32)))[0][0]
    theta = forward(agent._net.of("policy"), agent._parameters["policy"],
                    features(agent._net, encoded[None].astype(np.float32)))[0][0]  # fmt: skip
    np.testing.assert_allclose(values, q, atol=1e-5)
    np.testing.assert_allclose(policy, softmax(np.asarray(theta)), atol=1e-5)


def test_an_odd_width_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "CartPole-v1", "--dueling", "--width", "33", "--frames", "10", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert "width must be even for dueling, whose streams have half of it each, found 33" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
