"""Entropy matching with Boltzmann policies against 50 digits of mpmath, on NumPy, JAX and torch, in both precisions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipe import entropy as en
from ipe.behaviours import epsilon_ipe
from ipe.errors import InputError
from tests.test_entropy import BACKENDS, Floats, backend, mpmath
from tests.tiers import tiered


def exact_softmax(numbers: list[Any]) -> list[Any]:
    powers = [mpmath.exp(x - max(numbers)) for x in numbers]
    total = mpmath.fsum(powers)
    return [power / total for power in powers]


def exact_entropy(b: list[Any]) -> Any:
    return -mpmath.fsum(p * mpmath.log(p) for p in b if p > 0)


def exact_boltzmann(q: Floats, logits: Floats) -> tuple[list[Any], Any]:
    """The Boltzmann policy in 50 digits, and what an error of the entropy does to its probabilities, max |db/dH|."""
    numbers = [mpmath.mpf(float(x)) for x in q]
    h = exact_entropy(exact_softmax([mpmath.mpf(float(x)) for x in logits]))
    best, spread = max(numbers), max(numbers) - min(numbers)
    if spread == 0:
        return [mpmath.mpf(1) / len(numbers)] * len(numbers), 0
    z = [(x - best) / spread for x in numbers]
    ties = sum(x == 0 for x in z)
    if h <= mpmath.log(ties):
        return [mpmath.mpf(x == 0) / ties for x in z], 0
    low, high = mpmath.mpf(-60), mpmath.mpf(60)
    for _ in range(110):
        middle = (low + high) / 2
        above = exact_entropy(exact_softmax([mpmath.exp(middle) * x for x in z])) > h
        low, high = (middle, high) if above else (low, middle)
    eta = mpmath.exp(low)
    b = exact_softmax([eta * x for x in z])
    mean = mpmath.fsum(p * x for p, x in zip(b, z, strict=True))
    variance = mpmath.fsum(p * (x - mean) ** 2 for p, x in zip(b, z, strict=True))
    return b, max(abs(p * (x - mean)) for p, x in zip(b, z, strict=True)) / (eta * variance)


@cache
def rows(n: int, kind: str, dtype: str, count: int = 8) -> tuple[Floats, Floats, list[tuple[list[Any], Any]]]:
    """Action values of all scales, logits from nearly uniform to nearly deterministic, and the exact answers."""
    rng = np.random.default_rng(n)
    q = rng.standard_normal((count, n)) * np.geomspace(1e-3, 1e3, count)[:, None]
    if kind == "near ties" and n > 2:
        q[:, 0] = q.max(axis=1)
        q[:, 1] = q[:, 0] - np.ptp(q, axis=1) * np.geomspace(1e-6, 1e-1, count)
    if kind == "ties" and n > 2:
        q[:, 0] = q[:, 1] = q.max(axis=1)
    logits = rng.standard_normal((count, n)) * rng.permutation(np.geomspace(1e-4, 20, count))[:, None]
    q, logits = q.astype(dtype), logits.astype(dtype)
    return q, logits, [exact_boltzmann(*row) for row in zip(q, logits, strict=True)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", tiered(["spread", "near ties", "ties"], "near ties"))
@pytest.mark.parametrize("name", tiered(BACKENDS, "numpy"))
def test_probabilities_are_as_accurate_as_the_entropy_allows(name: str, kind: str, dtype: str) -> None:
    unit = float(np.finfo(dtype).eps)
    with backend(name) as (array, run):
        for n in (3, 18) if name == "jax" else (2, 3, 4, 18):  # each is a program to compile
            q, logits, exact = rows(n, kind, dtype)
            found = np.asarray(run(en.boltzmann_from_logits)(array(q), array(logits)))
            assert found.dtype == dtype
            for i, (b, sensitivity) in enumerate(exact):
                error = max(abs(mpmath.mpf(float(x)) - y) for x, y in zip(found[i], b, strict=True))
                h = float(en.entropy_from_logits(logits[i].astype(np.float64)))
                rounding = min(max(h, unit), np.log(n) - h + unit)
                assert error <= 8 * unit * (1 + float(sensitivity) * rounding), (n, i)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_entropy_is_the_policys(dtype: str) -> None:
    bound = {"float32": 1.5e-6, "float64": 1e-14}[dtype]
    rng = np.random.default_rng(3)
    for n in (2, 3, 4, 6, 18, 200):
        q = rng.standard_normal((2000, n)).astype(dtype)
        logits = (rng.standard_normal((2000, n)) * np.geomspace(1e-4, 8, 2000)[:, None]).astype(dtype)
        b = en.boltzmann_from_logits(q, logits).astype(np.float64)
        h = en.entropy_from_logits(logits.astype(np.float64))
        assert np.max(np.abs(en.entropy(b / b.sum(-1, keepdims=True)) - h)) <= bound * max(1.0, np.log(n))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_two_actions_give_epsilon_ipe(dtype: str) -> None:
    rng = np.random.default_rng(0)
    q = rng.standard_normal((5000, 2)).astype(dtype)
    logits = (rng.standard_normal((5000, 2)) * np.geomspace(1e-4, 30, 5000)[:, None]).astype(dtype)
    assert np.max(np.abs(en.boltzmann_from_logits(q, logits) - epsilon_ipe(q, logits))) <= 1e-6


def test_scale_and_shift_of_the_values_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    q, logits = rng.standard_normal((50, 5)), rng.standard_normal((50, 5))
    b = en.boltzmann_from_logits(q, logits)
    np.testing.assert_array_equal(en.boltzmann_from_logits(1024.0 * q, logits), b)
    np.testing.assert_allclose(en.boltzmann_from_logits(1e-200 * q, logits), b, atol=1e-13)
    np.testing.assert_allclose(en.boltzmann_from_logits(3.0 * q - 7.0, logits), b, atol=1e-12)
    eta = en.inverse_temperature_from_logits(q, logits)
    np.testing.assert_allclose(en.inverse_temperature_from_logits(4.0 * q, logits), eta / 4.0, rtol=1e-13)


def test_the_inverse_temperature_gives_the_policy() -> None:
    rng = np.random.default_rng(2)
    q, logits = rng.standard_normal((50, 5)), rng.standard_normal((50, 5))
    eta = en.inverse_temperature_from_logits(q, logits)
    np.testing.assert_allclose(en.softmax(eta[:, None] * q), en.boltzmann_from_logits(q, logits), atol=1e-13)
    ends = en.inverse_temperature_from_logits(
        np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0], [1.0, 1.0, 1.0]]), np.array([[0, 0, 0], [999, 0, 0], [9, 0, 0.0]])
    )
    np.testing.assert_array_equal(ends, [0.0, np.inf, 0.0])


def test_the_ends() -> None:
    q = np.array([[3.0, 1.0, 3.0, 0.0]] * 4)
    logits = np.array([[0.0] * 4, [900.0, 0.0, 0.0, 0.0], [5.0, 5.0, -90.0, -90.0], [0.3, 0.0, 0.0, 0.0]])
    b = en.boltzmann_from_logits(q, logits)
    np.testing.assert_array_equal(b[0], 0.25)
    np.testing.assert_array_equal(b[1], [0.5, 0.0, 0.5, 0.0])  # below the entropy of the two that tie
    np.testing.assert_allclose(b[2], [0.5, 0.0, 0.5, 0.0], atol=1e-9)
    assert (np.diff(b[3][[3, 1, 0]]) > 0).all()
    np.testing.assert_array_equal(en.boltzmann_from_logits(np.ones((1, 3)), np.array([[4.0, 0.0, 0.0]])), 1 / 3)
    np.testing.assert_array_equal(en.boltzmann_from_logits(np.array([[7.0]]), np.array([[0.0]])), 1.0)
    huge = en.boltzmann_from_logits(np.array([1.7e308, -1.7e308, 0.0]), np.array([0.0, 1.0, 0.0]))
    assert np.isfinite(huge).all()


@pytest.mark.parametrize("name", BACKENDS)
def test_a_mask_is_the_same_as_leaving_the_actions_out(name: str) -> None:
    rng = np.random.default_rng(4)
    q, logits = rng.standard_normal((40, 6)), rng.standard_normal((40, 6))
    allowed = rng.random((40, 6)) < 0.6
    q[~allowed], logits[~allowed] = 1e9, np.nan if name == "numpy" else 7.0
    with backend(name) as (array, run):
        found = np.asarray(run(en.boltzmann_from_logits)(array(q), array(logits), array(allowed)))
    for i, kept in enumerate(allowed):
        np.testing.assert_array_equal(found[i, ~kept], 0.0)
        if kept.any():
            np.testing.assert_allclose(
                found[i, kept], en.boltzmann_from_logits(q[i, kept], logits[i, kept]), atol=1e-14
            )


@given(st.integers(0, 2**32 - 1), st.integers(2, 7), st.floats(-3, 2))
def test_no_policy_of_this_entropy_has_a_larger_expected_value(seed: int, n: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    q, logits = rng.standard_normal(n), rng.standard_normal(n) * 10.0**scale
    pi, b = en.softmax(logits), en.boltzmann_from_logits(q, logits)
    assert b @ q >= pi @ q - 1e-9
    order = np.argsort(q)
    assert (np.diff(b[order]) >= -1e-15).all()
    np.testing.assert_allclose(en.boltzmann_from_probabilities(q, pi), b, atol=1e-6)


@pytest.mark.slow
def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(6)
    q, logits = rng.standard_normal((64, 4)).astype("float32"), rng.standard_normal((64, 4)).astype("float32")
    q[1, :2] = 5.0, 5.0 - 2e-6  # takes many iterations
    solve = jax.jit(en.boltzmann_from_logits)
    whole = np.asarray(solve(jnp.asarray(q), jnp.asarray(logits)))
    halves = [np.asarray(solve(jnp.asarray(q[i : i + 32]), jnp.asarray(logits[i : i + 32]))) for i in (0, 32)]
    np.testing.assert_array_equal(whole, np.concatenate(halves))
    mapped = np.asarray(jax.jit(jax.vmap(en.boltzmann_from_logits))(jnp.asarray(q), jnp.asarray(logits)))
    np.testing.assert_allclose(mapped, whole, atol=1e-6)


def test_nan_stays_nan_where_it_cannot_be_refused() -> None:
    q, logits = jnp.array([[jnp.nan, 1.0, 2.0], [0.0, 1.0, 2.0]]), jnp.array([[0.0, 0.0, 0.5], [0.0, jnp.nan, 0.0]])
    assert np.isnan(np.asarray(jax.jit(en.boltzmann_from_logits)(q, logits))).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: en.boltzmann_from_logits([[1.0, 2.0]], [0.0, 0.0, 0.0]), "logits has shape"),
        (lambda: en.boltzmann_from_probabilities([1.0, 2.0], [0.5, 0.6]), "sums to 1.1"),
        (lambda: en.boltzmann_from_logits([1.0, "a"], [0.0, 0.0]), "q must hold real numbers"),
    ],
)
def test_wrong_input_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
