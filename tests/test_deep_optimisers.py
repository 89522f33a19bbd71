"""RMSprop, Adam and clipping: PyTorch's, by numbers that it gave (`record_torch.py`), and by itself if it is here."""

from __future__ import annotations

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ipe.deep.optimisers import clipped, initial_moments, step
from tests.record_torch import ADAM, FILE, NORMS, RMSPROP, SHOWN, START, STEPS, gradient, record

CASES = {"rmsprop": RMSPROP, "adam": ADAM}


@pytest.fixture(scope="module")
def recorded() -> Any:
    return json.loads(FILE.read_text())


def network(numbers: Any, seeds: int) -> dict[str, Any]:
    """Seven numbers in the two arrays of a network, the same for every seed."""
    row = jnp.asarray(numbers, jnp.float32)
    return {
        "matrix": jnp.broadcast_to(row[:4].reshape(2, 2), (seeds, 2, 2)),
        "rest": jnp.broadcast_to(row[4:], (seeds, 3)),
    }


def numbers(parameters: Any) -> Any:
    """(seeds, 7)."""
    return np.concatenate([np.asarray(parameters[name]).reshape(-1, n) for name, n in (("matrix", 4), ("rest", 3))], 1)


def our_steps(kind: str) -> Any:
    """What our optimiser does with every case at once, a case per seed: (cases, shown, 7)."""
    cases = CASES[kind]

    def column(name: str) -> Any:
        return jnp.asarray([case.get(name, 0.0) for case in cases], jnp.float32)

    hyper = {f"optimiser_{name}": column(name) for name in ("decay", "momentum", "epsilon")}

    @jax.jit
    def advance(parameters: Any, moments: Any, slope: Any, updates: Any) -> Any:
        slope = clipped(slope, column("clip"))
        return step(kind, parameters, slope, moments, column("step_size"), hyper, updates)

    parameters = network(START, len(cases))
    moments = initial_moments(kind, parameters)
    shown = []
    for t in range(STEPS):
        parameters, moments = advance(parameters, moments, network(gradient(t), len(cases)), jnp.float32(t))
        if t + 1 in SHOWN:
            shown.append(numbers(parameters))
    return np.stack(shown, axis=1)


@pytest.mark.parametrize("kind", ["rmsprop", "adam"])
def test_a_hundred_steps_are_those_that_torch_took(kind: str, recorded: Any) -> None:
    found, expected = our_steps(kind), np.array(recorded[kind])
    assert found.shape == expected.shape == (4, len(SHOWN), 7)
    # A hundred steps, each rounded once to the parameter's seven digits.
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-7)


def test_a_step_is_not_that_of_an_epsilon_inside_the_root(recorded: Any) -> None:
    """What the comparison must be able to tell: at gradients of 1e-5 the two differ a hundredfold."""
    moved = np.array(recorded["rmsprop"])[0, 0] - np.array(START, np.float32)
    g = gradient(0).astype(np.float64)
    inside = -1e-3 * g / np.sqrt(0.01 * g**2 + 1e-8)
    outside = -1e-3 * g / (np.sqrt(0.01 * g**2) + 1e-8)
    np.testing.assert_allclose(moved, outside, atol=3e-7)
    assert abs(moved - inside).max() > 5e-3


def test_clipping_is_torchs(recorded: Any) -> None:
    found = clipped(network(gradient(0), len(NORMS)), jnp.asarray(NORMS, jnp.float32))
    np.testing.assert_allclose(numbers(found), np.array(recorded["clipped"]), rtol=1e-6)
    lengths = np.linalg.norm(numbers(found), axis=1)
    np.testing.assert_allclose(lengths[:2], NORMS[:2], rtol=1e-5)
    assert np.array_equal(numbers(found)[2], gradient(0))


def test_a_norm_of_zero_leaves_that_seed_alone() -> None:
    found = numbers(clipped(network(gradient(0), 2), jnp.asarray([0.0, 1.0], jnp.float32)))
    assert np.array_equal(found[0], gradient(0))
    assert np.linalg.norm(found[1]) == pytest.approx(1.0, rel=1e-5)


def test_a_gradient_of_zero_moves_nothing() -> None:
    for kind in ("rmsprop", "adam"):
        parameters = network(START, 2)
        values = {"decay": 0.9, "momentum": 0.9, "epsilon": 1e-8}
        hyper = {f"optimiser_{name}": jnp.full(2, x) for name, x in values.items()}
        zeros = network(np.zeros(7), 2)
        moments = initial_moments(kind, parameters)
        new, _ = step(kind, parameters, zeros, moments, jnp.ones(2), hyper, jnp.float32(0))
        assert np.array_equal(numbers(new), numbers(parameters))


def test_the_recorded_numbers_are_those_of_the_torch_that_is_here(recorded: Any) -> None:
    live = record(pytest.importorskip("torch"))
    for kind in ("rmsprop", "adam", "clipped"):
        np.testing.assert_allclose(live[kind], recorded[kind], rtol=2e-6, atol=2e-7)
