"""Networks: outputs and gradients against a plain forward pass and `jax.grad`, and where the parameters start."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ipe.deep.networks import Architecture, backward, features, forward, initial_parameters, joined, split
from ipe.deep.randomness import network_generator
from tests import deep_oracle
from tests.tiers import tiered

VECTORS = [Architecture((8,), 16, 16, 4), Architecture((1,), 5, 1, 2), Architecture((3,), 1, 1, 1)]
IMAGES = [Architecture((5, 6, 2), 12, 3, 4), Architecture((3, 3, 1), 4, 2, 2), Architecture((10, 10, 7), 24, 16, 6)]


@lru_cache
def parameters_of(net: Architecture, seeds: int) -> Any:
    return initial_parameters(net, [network_generator(seed) for seed in range(seeds)])


def inputs_of(net: Architecture, seeds: int, batch: int) -> Any:
    return np.random.default_rng(batch).normal(size=(seeds, batch, *net.inputs)).astype(np.float32)


def plain(net: Architecture, layers: Any, x: Any) -> Any:
    """One seed's outputs for a batch, with XLA's own convolution."""
    (w0, b0), (w1, b1), (w2, b2) = layers
    if net.image:
        kernel = w0.reshape(3, 3, net.inputs[2], net.channels)
        axes = ("NHWC", "HWIO", "NHWC")
        x = jax.lax.conv_general_dilated(x, kernel, (1, 1), "VALID", dimension_numbers=axes, precision="highest")
        x = jax.nn.relu(x + b0).reshape(x.shape[0], -1)
    else:
        x = jax.nn.relu(jnp.einsum("bi,io->bo", x, w0) + b0)
    x = jax.nn.relu(jnp.einsum("bi,io->bo", x, w1) + b1)
    return jnp.einsum("bi,io->bo", x, w2) + b2


def assert_near(found: Any, expected: Any, tolerance: float) -> None:
    """To a fraction of the largest entry: sums of many terms of both signs leave small entries fewer digits."""
    expected = np.asarray(expected)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=tolerance * max(abs(expected).max(), 1e-3))


@partial(jax.jit, static_argnums=0)
def ours(net: Architecture, parameters: Any, x: Any, error: Any) -> Any:
    """Outputs and gradients of all seeds."""
    outputs, seen = forward(net, parameters, features(net, x))
    return outputs, split(net, backward(net, parameters, seen, error))


@partial(jax.jit, static_argnums=0)
def by_jax(net: Architecture, layers: Any, x: Any, error: Any) -> Any:
    """Those of one seed."""
    outputs, pullback = jax.vjp(lambda own: plain(net, own, x), layers)
    return outputs, pullback(error)[0]


@pytest.mark.parametrize("net", tiered(VECTORS + IMAGES, VECTORS[0], IMAGES[-1]))
@pytest.mark.parametrize(("seeds", "batch"), [pytest.param(1, 1, marks=pytest.mark.slow), (3, 7)])
def test_outputs_and_gradients_are_those_of_a_plain_network(net: Architecture, seeds: int, batch: int) -> None:
    parameters, x = parameters_of(net, seeds), inputs_of(net, seeds, batch)
    error = np.random.default_rng(1).normal(size=(seeds, batch, net.actions)).astype(np.float32)
    outputs, found = ours(net, parameters, x, error)
    assert outputs.shape == error.shape
    layers = split(net, parameters)
    for seed in range(seeds):
        own = [(w[seed], b[seed]) for w, b in layers]
        expected, wanted = by_jax(net, own, x[seed], error[seed])
        assert_near(outputs[seed], expected, 1e-5)
        for (w, b), (w_wanted, b_wanted) in zip(found, wanted, strict=True):
            assert_near(w[seed], w_wanted, 1e-5)
            assert_near(b[seed], b_wanted, 1e-5)


@pytest.mark.parametrize("net", tiered(VECTORS + IMAGES, VECTORS[0]))
def test_the_oracle_of_the_other_tests_agrees(net: Architecture) -> None:
    parameters, x = parameters_of(net, 3), inputs_of(net, 3, 7)
    error = np.random.default_rng(1).normal(size=(3, 7, net.actions)).astype(np.float32)
    outputs, found = ours(net, parameters, x, error)
    for seed in range(3):
        network = [np.asarray(a[seed], np.float64) for layer in split(net, parameters) for a in layer]
        expected, hidden = deep_oracle.forward(network, np.asarray(x[seed], np.float64))
        assert_near(outputs[seed], expected, 1e-5)
        wanted = deep_oracle.gradient(network, np.asarray(x[seed], np.float64), hidden, error[seed])
        for array, w in zip([a[seed] for layer in found for a in layer], wanted, strict=True):
            assert_near(array, w, 1e-5)


@pytest.mark.parametrize("net", [VECTORS[0], IMAGES[0]])
def test_parameters_start_uniform_within_one_over_the_root_of_the_fan_in(net: Architecture) -> None:
    fan_ins = [9 * net.inputs[2] if net.image else net.inputs[0], net.layers[1][0], net.width]
    for fan_in, (w, b) in zip(fan_ins, split(net, parameters_of(net, 300)), strict=True):
        for part in (w, b):
            scaled = np.asarray(part, np.float64).ravel() * np.sqrt(fan_in)
            assert abs(scaled).max() <= 1 + 1e-6
            assert stats.kstest(scaled, stats.uniform(-1, 2).cdf).pvalue > 1e-3


@pytest.mark.parametrize("net", [VECTORS[0], IMAGES[0]])
def test_parameters_depend_on_the_seed_alone(net: Architecture) -> None:
    together = initial_parameters(net, [network_generator(seed) for seed in (5, 0, 9)])
    for place, seed in enumerate((5, 0, 9)):
        alone = initial_parameters(net, [network_generator(seed)])
        assert all(np.array_equal(together[name][place], alone[name][0]) for name in together)
    assert not np.array_equal(together["matrix"][0], together["matrix"][1])


@pytest.mark.parametrize("net", tiered(VECTORS + IMAGES, VECTORS[0], IMAGES[-1]))
def test_layers_are_kept_and_found_again(net: Architecture) -> None:
    generator = np.random.default_rng(0)
    layers = [
        (jnp.asarray(generator.normal(size=(2, i, o))), jnp.asarray(generator.normal(size=(2, o))))
        for i, o in net.layers
    ]
    for layer, found in zip(layers, split(net, joined(layers)), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(layer, found, strict=True))


def test_the_shapes_and_the_work_of_the_papers_networks() -> None:
    freeway = Architecture((10, 10, 7), 128, 16, 6)
    assert freeway.layers == [(63, 16), (8 * 8 * 16, 128), (128, 6)]
    assert freeway.multiplications == 64 * 63 * 16 + 1024 * 128 + 128 * 6
    lander = Architecture((8,), 256, 16, 4)
    assert lander.layers == [(8, 256), (256, 256), (256, 4)]
    assert lander.multiplications == 8 * 256 + 256 * 256 + 256 * 4


@pytest.mark.slow
def test_bfloat16_rounds_the_factors_of_products_alone() -> None:
    net = VECTORS[0]._replace(width=64)
    parameters, x = parameters_of(net, 2), inputs_of(net, 2, 32)
    rough = net._replace(precision="bfloat16")
    exact, seen = forward(net, parameters, features(net, x))
    rounded, seen_rounded = forward(rough, parameters, features(rough, x))
    gradient = backward(net, parameters, seen, exact)
    gradient_rounded = backward(rough, parameters, seen_rounded, rounded)
    for a, b in [(exact, rounded), *((gradient[name], gradient_rounded[name]) for name in gradient)]:
        assert b.dtype == jnp.float32
        # Eight bits; and where a ReLU's input is next to 0 it may open or close.
        assert 0 < np.linalg.norm(a - b) < 0.05 * np.linalg.norm(a)
