"""Entropy matching against 50 digits of mpmath, on NumPy, JAX and torch, float32 and float64."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipe import entropy as en
from ipe.errors import InputError
from tests.tiers import tiered

mpmath: Any = importlib.import_module("mpmath")
mpmath.mp.dps = 50

Floats: TypeAlias = np.ndarray[Any, Any]

BACKENDS = ("numpy", "jax", "torch")
ERROR = {"float32": 3e-7, "float64": 1e-14}


@contextmanager
def backend(name: str) -> Iterator[tuple[Callable[..., Any], Callable[..., Any]]]:
    """How to make an array, and how to run a function, in a library."""
    if name == "numpy":
        yield np.asarray, lambda f: f
    elif name == "torch":
        torch = pytest.importorskip("torch")
        yield torch.tensor, lambda f: f
    else:
        with jax.enable_x64(True):
            yield jnp.asarray, jax.jit


def exact_entropy(weights: Floats, *, logits: bool) -> tuple[Any, Any]:
    """H and D = ln n - H of the exact policy that the floating-point numbers stand for."""
    numbers = [mpmath.mpf(float(w)) for w in weights]
    powers = [mpmath.exp(x) for x in numbers] if logits else numbers
    total = mpmath.fsum(powers)
    h = -mpmath.fsum(p / total * mpmath.log(p / total) for p in powers if p > 0)
    return h, mpmath.log(len(numbers)) - h


def exact_epsilon(h: Any, n: int) -> Any:
    """The root: bisection of the exponent, then Newton's method in 50 digits."""
    if n == 1 or h <= 0:
        return mpmath.mpf(0)
    if mpmath.log(n) - h < mpmath.mpf(10) ** -40:
        return mpmath.mpf(1)

    def value(x: Any) -> Any:
        return -(1 - x) * mpmath.log(1 - x) - x * mpmath.log(x) + x * mpmath.log(n - 1)

    low, high = mpmath.mpf(-1200), mpmath.log(mpmath.mpf(n - 1) / n)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if value(mpmath.exp(middle)) < h else (low, middle)
    x = mpmath.exp((low + high) / 2)
    for _ in range(8):
        x -= (value(x) - h) / mpmath.log((1 - x) * (n - 1) / x)
    assert abs(value(x) - h) <= mpmath.mpf(10) ** -25 * h
    return x * n / (n - 1)


@cache
def cases(dtype: str) -> list[tuple[Floats, Floats, Floats, Floats]]:
    """For several n: rows of logits, rows of probabilities, and the exact epsilons of both."""
    rng = np.random.default_rng(5)
    found = []
    for n, count in ((1, 1), (2, 12), (3, 12), (4, 12), (18, 12), (100, 8), (1000, 5), (10_000, 2)):
        least, most = (1e-6, 0.0) if n < 1000 else (2.0, 9.0)
        random = rng.standard_normal((count, n)) * np.geomspace(least, 20, count)[:, None]
        one = np.where(np.arange(n) == n // 2, np.linspace(most, 14 + np.log(n), count)[:, None], 0.0)
        levels = np.where(rng.random((count, n)) < 0.3, 0.0, -np.linspace(0.1, 15, count)[:, None])
        logits = np.concatenate([random, one, levels]).astype(dtype)
        powers = np.exp(logits.astype(np.float64) - logits.max(-1, keepdims=True))
        pi = (powers / powers.sum(-1, keepdims=True)).astype(dtype)
        by_logits = [float(exact_epsilon(exact_entropy(row, logits=True)[0], n)) for row in logits]
        by_pi = [float(exact_epsilon(exact_entropy(row, logits=False)[0], n)) for row in pi]
        found.append((logits, pi, np.array(by_logits), np.array(by_pi)))
    return found


@pytest.mark.parametrize("dtype", tiered(["float32", "float64"], "float32"))
@pytest.mark.parametrize("name", ["numpy", "torch"])
def test_epsilon_is_as_accurate_as_promised(name: str, dtype: str) -> None:
    with backend(name) as (array, _):
        for logits, pi, by_logits, by_pi in cases(dtype):
            for found, exact in (
                (en.epsilon_from_logits(array(logits)), by_logits),
                (en.epsilon_from_probabilities(array(pi)), by_pi),
            ):
                assert dtype in str(found.dtype)
                np.testing.assert_allclose(np.asarray(found, np.float64), exact, rtol=0, atol=ERROR[dtype])


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_epsilon_is_as_accurate_when_compiled_and_masked(dtype: str) -> None:
    """Rows of different n in one array: one program for the small ones, one for the large ones."""
    for group in (cases(dtype)[:-2], cases(dtype)[-2:]):
        width = max(logits.shape[-1] for logits, *_ in group)
        logits, pi, allowed = (
            np.concatenate([np.pad(a, ((0, 0), (0, width - a.shape[-1]))) for a in arrays])
            for arrays in zip(*((z, p, np.ones_like(z, bool)) for z, p, *_ in group), strict=True)
        )
        by_logits, by_pi = (np.concatenate([case[k] for case in group]) for k in (2, 3))
        with jax.enable_x64(True):
            for function, given, exact in (
                (en.epsilon_from_logits, logits, by_logits),
                (en.epsilon_from_probabilities, pi, by_pi),
            ):
                found = jax.jit(jax.vmap(function))(jnp.asarray(given), jnp.asarray(allowed))
                assert found.dtype == dtype
                np.testing.assert_allclose(np.asarray(found, np.float64), exact, rtol=0, atol=ERROR[dtype])


@pytest.mark.parametrize("name", tiered(BACKENDS, "numpy"))
@pytest.mark.parametrize("n", tiered([4, 10, 1000], 4))
def test_float32_holds_on_dense_sweeps(n: int, name: str) -> None:
    """Many equal actions, whose roundings do not average out; the reference is float64, itself held to mpmath above."""
    rng = np.random.default_rng(0)
    one = np.where(np.arange(n) == 0, np.linspace(0, 12 + np.log(n), 800)[:, None], 0.0)
    levels = np.where(rng.random((800, n)) < 0.3, 0.0, -np.linspace(0, 20, 800)[:, None])
    logits = np.concatenate([one, levels]).astype(np.float32)
    exact = en.epsilon_from_logits(logits.astype(np.float64))
    with backend(name) as (array, _):
        found = np.asarray(en.epsilon_from_logits(array(logits)), np.float64)
    np.testing.assert_allclose(found, exact, rtol=0, atol=ERROR["float32"])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", tiered(BACKENDS, "numpy"))
def test_epsilon_keeps_its_digits_when_small(name: str, dtype: str) -> None:
    with backend(name) as (array, run):
        solve = run(en.epsilon_from_logits)
        for n in (2, 3, 30):
            for gap in (5.0, 20.0, 60.0):
                logits = np.where(np.arange(n) == 0, gap, 0.0).astype(dtype)
                exact = exact_epsilon(exact_entropy(logits, logits=True)[0], n)
                found = float(solve(array(logits)))
                assert found == pytest.approx(float(exact), rel=100 * float(np.finfo(dtype).eps))


@pytest.mark.parametrize("n", [2, 3, 7, 1000])
def test_epsilon_from_entropy_inverts_epsilon_greedy_entropy(n: int) -> None:
    epsilon = np.concatenate([np.geomspace(1e-12, 0.1, 40), np.linspace(0.1, 0.99, 40)])
    h = en.epsilon_greedy_entropy(epsilon, n)
    np.testing.assert_allclose(en.epsilon_from_entropy(h, n), epsilon, rtol=1e-12)
    pi = np.repeat((epsilon / n)[:, None], n, axis=1)
    pi[:, 0] += 1 - epsilon
    np.testing.assert_allclose(h, en.entropy(pi), rtol=1e-12)


def test_the_deficit_gives_back_the_digits_that_the_entropy_has_lost() -> None:
    y = np.float64(1e-4)
    pi = np.full(4, (1 - y) / 4)
    pi[0] += y
    h = np.float32(en.entropy(pi))
    alone = float(en.epsilon_from_entropy(h, 4))
    known = float(en.epsilon_from_entropy(h, 4, deficit=np.float32(en.entropy_deficit(pi))))
    assert abs(alone - (1 - y)) < 5e-4
    assert abs(known - (1 - y)) < 1e-7


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_entropy_and_deficit_are_accurate_relative_to_themselves(dtype: str) -> None:
    rtol = 64 * float(np.finfo(dtype).eps)
    for logits in ([0.0, -30.0, -31.0], [1e-5, 0.0, 2e-5], [3.0, 1.0, 0.0], [0.0, 0.0, -14.0], [0.0, -5.0]):
        z = np.array(logits, dtype)
        h, d = exact_entropy(z, logits=True)
        assert float(en.entropy_from_logits(z)) == pytest.approx(float(h), rel=rtol)
        assert float(en.entropy_deficit_from_logits(z)) == pytest.approx(float(d), rel=rtol)
        pi = en.softmax(z.astype(np.float64))
        h, _ = exact_entropy(pi, logits=False)
        assert float(en.entropy(pi)) == pytest.approx(float(h), rel=1e-14)
    pi = np.array([0.25 + 1e-7, 0.25 - 1e-7, 0.25, 0.25])
    assert float(en.entropy_deficit(pi)) == pytest.approx(float(exact_entropy(pi, logits=False)[1]), rel=1e-8)


def test_softmax_and_its_logarithm() -> None:
    rng = np.random.default_rng(0)
    logits = rng.standard_normal((5, 40)) * 30
    pi = en.softmax(logits)
    np.testing.assert_allclose(pi.sum(-1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(pi, np.asarray(jax.nn.softmax(logits)), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(np.exp(en.log_softmax(logits)), pi, rtol=1e-12)
    np.testing.assert_array_equal(en.softmax([0.0, -np.inf]), [1.0, 0.0])
    np.testing.assert_array_equal(en.softmax([1e300, -1e300]), [1.0, 0.0])
    assert en.log_softmax([0.0, -50.0])[0] == pytest.approx(-np.exp(-50.0), rel=1e-14)


@pytest.mark.parametrize("name", tiered(BACKENDS, "numpy"))
def test_a_mask_is_the_same_as_leaving_the_actions_out(name: str) -> None:
    rng = np.random.default_rng(2)
    allowed = np.array([[True] * 6, [True, True, False, True, False, False], [False, True, True] + [False] * 3,
                        [False] * 5 + [True], [False] * 6])  # fmt: skip
    logits = rng.standard_normal((5, 6))
    pi = np.where(allowed, en.softmax(logits, allowed), 0.0)
    logits_given = np.where(allowed, logits, np.nan)
    functions = (en.softmax, en.entropy_from_logits, en.entropy_deficit_from_logits, en.epsilon_from_logits)
    with backend(name) as (array, run):
        mask = array(allowed)
        for function in (*functions, en.entropy, en.entropy_deficit, en.epsilon_from_probabilities):
            given = logits_given if function in functions else pi
            found = np.asarray(run(function)(array(given), mask))
            for row, keep in zip(range(4), allowed[:4], strict=True):
                expected = function(given[row][keep])
                got = found[row][keep] if function is en.softmax else found[row]
                np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-15, err_msg=function.__name__)
            assert (found[4] == 0).all()
        assert (np.asarray(en.softmax(array(logits_given), mask))[~allowed] == 0).all()
        assert (np.asarray(en.log_softmax(array(logits_given), mask))[~allowed] == -np.inf).all()
        np.testing.assert_array_equal(
            np.asarray(en.uniform(array(logits_given), mask))[1], [1 / 3, 1 / 3, 0, 1 / 3, 0, 0]
        )


def test_rows_with_one_and_two_allowed_actions() -> None:
    allowed = np.array([[True, False, False, False], [True, False, False, True]])
    pi = np.array([[1.0, 0, 0, 0], [0.3, 0, 0, 0.7]])
    np.testing.assert_array_equal(en.epsilon_from_probabilities(pi, allowed), [0.0, 0.6])


EXTREMES = [
    [0.0, 0.0, 0.0],
    [0.0, -1e30, -1e30],
    [1e30, 1e30, 0.0],
    [-np.inf, 0.0, -np.inf],
    [0.0, 0.0, -200.0],
    [0.0, -88.0, -88.0],
    [0.0, -104.0, -104.0],
    [1e-20, 0.0, 0.0],
    [0.0, -1e-7, 0.0],
]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_no_nan_in_values_or_gradients(dtype: Any) -> None:
    with jax.enable_x64(True):
        logits = jnp.array(EXTREMES, dtype)
        allowed = jnp.array([True, True, False])
        for mask in (None, allowed):

            def solve(z: Any, mask: Any = mask) -> Any:
                return en.epsilon_from_logits(z, mask)

            epsilon, gradient = jax.jit(jax.vmap(jax.value_and_grad(solve)))(logits)
            assert ((epsilon >= 0) & (epsilon <= 1)).all()
            assert jnp.isfinite(gradient).all()
            np.testing.assert_allclose(epsilon, solve(np.array(EXTREMES, dtype)), rtol=1e-5, atol=1e-37)
        pi = jnp.array([[1.0, 0, 0], [1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0], [1 - 1e-7, 1e-7, 0]], dtype)
        for function in (en.epsilon_from_probabilities, en.entropy):
            values, gradients = jax.jit(jax.vmap(jax.value_and_grad(function)))(pi)
            assert jnp.isfinite(values).all()
            assert jnp.isfinite(gradients).all()


@pytest.mark.slow
def test_gradients_agree_with_differences() -> None:
    logits = np.array([[1.0, 0.0, -1.0, 0.5], [6.0, 0.0, -1.0, 0.5], [0.1, 0.0, -0.1, 0.0], [2.0, 2.0, 0.0, 0.0]])
    steps = 1e-6 * np.eye(4)
    for function in (en.epsilon_from_logits, en.entropy_from_logits, en.entropy_deficit_from_logits):
        with jax.enable_x64(True):
            gradients = np.asarray(jax.jit(jax.vmap(jax.grad(function)))(jnp.asarray(logits)))
        rows = logits[:, None, :]
        differences = (function(rows + steps) - function(rows - steps)) / 2e-6
        np.testing.assert_allclose(gradients, differences, rtol=1e-5, atol=1e-8)


@pytest.mark.slow
def test_torch_gradients_are_those_of_jax() -> None:
    torch = pytest.importorskip("torch")
    logits = np.array([1.0, 0.0, -1.0, 0.5])
    tensor = torch.tensor(logits, requires_grad=True)
    en.epsilon_from_logits(tensor).backward()
    with jax.enable_x64(True):
        expected = np.asarray(jax.jit(jax.grad(en.epsilon_from_logits))(jnp.asarray(logits)))
    np.testing.assert_allclose(tensor.grad.numpy(), expected, rtol=1e-12)


def test_the_end_points_are_exact() -> None:
    for n in (1, 2, 3, 7, 10, 1000):
        for dtype in (np.float32, np.float64):
            one_hot = np.eye(n, dtype=dtype)[0]
            uniform = np.full(n, 1 / n, dtype)
            assert en.epsilon_from_probabilities(one_hot) == 0
            assert en.epsilon_from_logits(np.zeros(n, dtype)) == (n > 1)
            assert en.epsilon_from_probabilities(uniform) == pytest.approx(float(n > 1), abs=2e-7)
            assert en.epsilon_from_entropy(dtype(0), n) == 0
            assert en.epsilon_from_entropy(np.log(dtype(n)), n) == (n > 1)


@pytest.mark.slow
def test_nan_stays_nan_where_it_cannot_be_refused() -> None:
    bad = jnp.array([jnp.nan, 0.2, 0.3])
    for function in (en.entropy, en.epsilon_from_probabilities, en.epsilon_from_logits, en.softmax):
        assert jnp.isnan(function(bad)).all(), function.__name__
    assert jnp.isnan(en.epsilon_from_entropy(jnp.nan * jnp.ones(()), 4))


def test_jax_arrays_stay_in_float32_and_plain_numbers_follow() -> None:
    assert en.epsilon_from_entropy(jnp.float32(0.3), 4).dtype == jnp.float32
    assert en.epsilon_from_entropy(0.3, jnp.array(4)).dtype == jnp.float32
    assert en.epsilon_from_logits(np.zeros(3, np.float32)).dtype == np.float32
    assert en.entropy(np.array([1, 0])) == 0


@given(st.lists(st.floats(-30, 30), min_size=1, max_size=12))
def test_the_matched_policy_has_the_entropy_of_the_given_one(logits: list[float]) -> None:
    z = np.array(logits)
    epsilon = en.epsilon_from_logits(z)
    assert 0 <= epsilon <= 1
    assert en.epsilon_greedy_entropy(epsilon, len(z)) == pytest.approx(
        float(en.entropy_from_logits(z)), rel=1e-9, abs=1e-15
    )
    assert en.epsilon_from_probabilities(en.softmax(z)) == pytest.approx(float(epsilon), abs=1e-13)


@pytest.mark.parametrize("name", BACKENDS)
def test_the_table_takes_the_nearest_entropy(name: str) -> None:
    h = np.linspace(0, np.log(3), 50)
    grid = np.linspace(0, 1, 21)
    entropies = en.epsilon_greedy_entropy(grid, 3)
    nearest = [grid[min(range(21), key=lambda i: abs(entropies[i] - x))] for x in h]
    with backend(name) as (array, run):
        found = run(lambda x: en.epsilon_table(x, 3, size=21))(array(h))
        np.testing.assert_array_equal(np.asarray(found), nearest)


def test_the_table_approaches_the_solution_and_holds_hundredths_by_default() -> None:
    h = np.linspace(0, np.log(4) * 0.999, 200)
    exact = en.epsilon_from_entropy(h, 4)
    coarse, fine = (np.abs(en.epsilon_table(h, 4, size=size) - exact).max() for size in (11, 1001))
    assert fine < 0.02 * coarse
    assert coarse <= 0.1
    table = en.epsilon_table(h, 4)
    np.testing.assert_allclose(table, np.round(table, 2), atol=1e-15)
    assert len(np.unique(table)) > 50
    np.testing.assert_array_equal(en.epsilon_table([0.0, 0.2, 0.2], [1, 2, 5]), [0.0, 0.1, 0.04])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: en.entropy([[0.5, 0.5], [1.5, -0.5]]), r"probabilities\[1, 1\] = -0.5 must be >= 0"),
        (lambda: en.entropy([[0.5, 0.5], [0.5, 0.4]]), r"probabilities\[1\] sums to 0.9, not to 1 \(off by -0.1\)"),
        (lambda: en.epsilon_from_probabilities([0.5, np.nan]), r"probabilities\[1\] = nan must be >= 0"),
        (lambda: en.entropy(0.5), r"probabilities must have one entry per action .* shape \(\)"),
        (lambda: en.softmax(np.zeros((3, 0))), r"logits must have one entry per action .* shape \(3, 0\)"),
        (lambda: en.softmax(["a", "b"]), "logits must hold real numbers"),
        (lambda: en.softmax([[1.0], [1.0, 2.0]]), "logits is not an array of numbers"),
        (lambda: en.softmax([0.0, 1.0], allowed=[1, 0]), "allowed must be boolean"),
        (lambda: en.softmax([0.0, 1.0], allowed=[True] * 3), r"allowed has shape \(3,\), .* broadcast to \(2,\)"),
        (lambda: en.epsilon_from_entropy([0.1, 0.9], 2), r"entropy\[1\] = 0.9 is outside .* \[0, 0.693147\]"),
        (lambda: en.epsilon_from_entropy(-0.1, 2), r"entropy = -0.1 is outside"),
        (lambda: en.epsilon_from_entropy(0.0, 0), "n = 0 must be >= 1"),
        (lambda: en.epsilon_from_entropy([0.1, 0.1], [2, 2, 2]), r"n has shape \(3,\)"),
        (lambda: en.epsilon_from_entropy(0.1, 2, deficit=-1.0), "deficit = -1 must be"),
        (lambda: en.epsilon_table(0.1, 2, size=1), "size must be a whole number >= 2, found 1"),
        (lambda: en.epsilon_greedy_entropy(1.5, 2), r"epsilon = 1.5 must be in \[0, 1\]"),
    ],
)  # fmt: skip
def test_wrong_input_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_shapes_are_checked_under_jit_too() -> None:
    with pytest.raises(InputError, match="allowed has shape"):
        jax.jit(en.softmax)(jnp.zeros(3), jnp.ones(2, bool))
