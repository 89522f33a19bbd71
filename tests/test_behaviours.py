"""Behaviours as probabilities, their schedules, and draws from them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from ipe import behaviours as be
from ipe import entropy as en
from ipe.behaviours.sampling import sample_at
from ipe.errors import InputError
from tests.tiers import tiered

Q = np.array([[1.0, 3.0, 2.0], [4.0, 4.0, 0.0], [-1.0, -1.0, -1.0]])
ALLOWED = np.array([[True, False, True], [True, True, True], [False, False, False]])


def test_greedy_shares_ties() -> None:
    third = 1 / 3
    np.testing.assert_array_equal(be.greedy(Q), [[0, 1, 0], [0.5, 0.5, 0], [third, third, third]])


def test_greedy_looks_only_at_allowed_actions() -> None:
    q = np.where(ALLOWED, Q, np.nan)
    np.testing.assert_array_equal(be.greedy(q, ALLOWED), [[0, 0, 1], [0.5, 0.5, 0], [0, 0, 0]])


def test_epsilon_greedy_mixes_with_the_uniform_policy() -> None:
    epsilon = np.array([0.0, 0.3, 1.0])
    expected = np.array([[0, 1, 0], [0.45, 0.45, 0.1], [1 / 3, 1 / 3, 1 / 3]])
    np.testing.assert_allclose(be.epsilon_greedy(Q, epsilon), expected, rtol=1e-15)
    np.testing.assert_allclose(be.epsilon_greedy(Q, 0.2, ALLOWED)[0], [0.1, 0, 0.9], rtol=1e-15)


def test_boltzmann_goes_from_greedy_to_uniform() -> None:
    np.testing.assert_array_equal(be.boltzmann(Q, 1e-300), be.greedy(Q))
    np.testing.assert_allclose(be.boltzmann(Q, 1e12), en.uniform(Q), rtol=1e-11)
    for temperature in (0.5, 2.0):
        pi = be.boltzmann(Q, temperature)
        np.testing.assert_allclose(np.log(pi[0, 1] / pi[0, 0]), 2.0 / temperature, rtol=1e-12)
    per_state = be.boltzmann(Q, np.array([0.1, 1.0, 10.0]))
    np.testing.assert_array_equal(per_state[1], be.boltzmann(Q[1], 1.0))
    # in float32 too, where Q / temperature is beyond the largest number
    q = Q.astype(np.float32) * 100
    np.testing.assert_array_equal(be.boltzmann(q, 1e-37), be.greedy(q))


def test_annealing_is_the_papers() -> None:
    t = np.arange(300)
    expected = np.maximum(0.1, 1 - 0.9 * t / 100)
    np.testing.assert_allclose(be.linear_schedule(t, 1.0, 0.1, 100), expected, rtol=0, atol=1e-15)
    assert be.linear_schedule(100, 1.0, 0.1, 100) == 0.1
    assert be.linear_schedule(0, 1.0, 0.1, 1) == 1.0
    assert be.linear_schedule(1, 1.0, 0.1, 1) == 0.1


def test_the_exponential_schedule_has_a_constant_factor_then_stops() -> None:
    epsilon = be.exponential_schedule(np.arange(12), 0.8, 0.1, 10)
    np.testing.assert_allclose(epsilon[1:11] / epsilon[:10], (0.1 / 0.8) ** 0.1, rtol=1e-14)
    assert epsilon[0] == 0.8
    np.testing.assert_allclose(epsilon[10:], 0.1, rtol=1e-15)


def test_conservative_update_is_a_moving_average_of_greedy_policies() -> None:
    rng = np.random.default_rng(0)
    values = rng.standard_normal((7, 3, 4))
    rate, average = 0.2, en.uniform(values[0])
    for q in values:
        average = be.conservative_update(average, q, rate)
    weights = rate * (1 - rate) ** np.arange(6, -1, -1)
    expected = 0.8**7 / 4 + np.einsum("k,ksa->sa", weights, be.greedy(values))
    np.testing.assert_allclose(average, expected, rtol=1e-14)


def test_vdbe_is_tokics_formula() -> None:
    epsilon, delta, alpha, sigma = np.array([1.0, 0.4]), np.array([-3.0, 0.1]), 0.5, 0.7
    power = np.exp(-np.abs(alpha * delta) / sigma)
    expected = 0.25 * (1 - power) / (1 + power) + 0.75 * epsilon
    np.testing.assert_allclose(be.vdbe_update(epsilon, delta, alpha, sigma, n=4), expected, rtol=1e-14)
    np.testing.assert_allclose(be.vdbe_update(epsilon, delta, alpha, sigma, n=4, rate=1.0), (1 - power) / (1 + power))
    assert be.vdbe_update(0.0, 1e9, 1.0, 1.0, n=2, rate=1.0) == 1.0


def test_epsilon_ipe_has_the_entropy_of_the_policy_but_at_ties() -> None:
    rng = np.random.default_rng(1)
    q, logits = rng.standard_normal((2, 50, 5))
    behaviour = be.epsilon_ipe(q, logits)
    np.testing.assert_allclose(en.entropy(behaviour), en.entropy_from_logits(logits), rtol=1e-12)
    np.testing.assert_array_equal(behaviour.argmax(-1), q.argmax(-1))
    np.testing.assert_allclose(en.entropy(be.ipe(logits)), en.entropy_from_logits(logits), rtol=1e-12)
    tied = be.epsilon_ipe(np.zeros((50, 5)), logits)
    assert (en.entropy(tied) > en.entropy_from_logits(logits)).all()


@pytest.mark.parametrize("dtype", tiered([np.float32, np.float64], np.float32))
def test_the_libraries_agree(dtype: Any) -> None:
    rng = np.random.default_rng(3)
    q, logits = rng.standard_normal((2, 6, 4)).astype(dtype)
    q[0] = 1.0
    allowed = np.ones((6, 4), bool)
    allowed[1, 2:] = allowed[2, 1:] = allowed[3] = False
    calls: list[Callable[[Any, Any, Any], Any]] = [
        lambda q, z, m: be.greedy(q, m),
        lambda q, z, m: be.epsilon_greedy(q, 0.3, m),
        lambda q, z, m: be.boltzmann(q, 0.3, m),
        lambda q, z, m: be.conservative_update(en.uniform(q, m), q, 0.3, m),
        lambda q, z, m: be.ipe(z, m),
        lambda q, z, m: be.epsilon_ipe(q, z, m),
    ]
    torch = pytest.importorskip("torch")
    for call in calls:
        expected = call(q, logits, allowed)
        assert expected.dtype == dtype
        np.testing.assert_allclose(expected.sum(-1), allowed.any(-1), rtol=1e-6)
        assert (expected[~allowed] == 0).all()
        by_torch = call(torch.tensor(q), torch.tensor(logits), torch.tensor(allowed))
        with jax.enable_x64(True):
            by_jax = jax.jit(jax.vmap(call))(jnp.asarray(q), jnp.asarray(logits), jnp.asarray(allowed))
            assert by_jax.dtype == dtype
        for found in (by_torch, by_jax):
            np.testing.assert_allclose(
                np.asarray(found), expected, rtol=2e-6 if dtype == np.float32 else 1e-14, atol=1e-7
            )


def test_hyperparameters_may_be_traced() -> None:
    steps = jnp.arange(5)

    @jax.jit
    def run(initial: Any, final: Any, steps_total: Any, sigma: Any, temperature: Any) -> Any:
        return (
            be.linear_schedule(steps, initial, final, steps_total),
            be.exponential_schedule(steps, initial, final, steps_total),
            be.vdbe_update(initial, jnp.float32(2.0), 0.5, sigma, n=2),
            be.boltzmann(jnp.asarray(Q, jnp.float32), temperature),
        )

    linear, exponential, vdbe, boltzmann = run(1.0, 0.1, 4, 2.0, 0.5)
    np.testing.assert_allclose(linear, [1, 0.775, 0.55, 0.325, 0.1], rtol=1e-6)
    np.testing.assert_allclose(exponential, 10.0 ** (-np.arange(5) / 4), rtol=1e-6)
    assert float(vdbe) == pytest.approx(float(be.vdbe_update(1.0, 2.0, 0.5, 2.0, n=2)), rel=1e-6)
    np.testing.assert_allclose(boltzmann, be.boltzmann(Q, 0.5), rtol=1e-5)


def test_a_diverged_value_is_not_hidden() -> None:
    q = jnp.array([[jnp.nan, 1.0], [0.0, 1.0]])
    for pi in (be.greedy(q), be.epsilon_greedy(q, 0.1), be.boltzmann(q, 1.0)):
        assert jnp.isnan(pi[0]).all()
        assert jnp.isfinite(pi[1]).all()


PI = np.array([0.5, 0.0, 0.2, 0.3, 0.0])


def draws(kind: str, pi: np.ndarray[Any, Any], count: int) -> np.ndarray[Any, Any]:
    if kind == "numpy":
        return np.asarray(be.sample(np.random.default_rng(7), np.broadcast_to(pi, (count, len(pi)))))
    keys = jax.random.split(jax.random.key(7), count)
    return np.asarray(jax.jit(jax.vmap(be.sample, in_axes=(0, None)))(keys, jnp.asarray(pi, jnp.float32)))


@pytest.mark.parametrize("kind", ["numpy", "jax"])
def test_samples_follow_the_probabilities(kind: str) -> None:
    counts = np.bincount(draws(kind, PI, 20_000), minlength=5)
    assert counts[1] == counts[4] == 0
    assert stats.chisquare(counts[PI > 0], 20_000 * PI[PI > 0]).pvalue > 1e-3


def test_an_impossible_action_is_never_drawn_however_the_sum_rounds() -> None:
    """JAX adds in blocks: its cumulated sum can rise at an action of probability 0, and fall. Draw just there."""
    rng = np.random.default_rng(0)
    pi = np.where(rng.random((20, 999)) < 0.5, 0.0, rng.random((20, 999))).astype(np.float32)
    pi /= pi.sum(-1, keepdims=True)
    cumulated = np.asarray(jnp.cumsum(jnp.asarray(pi), axis=-1))
    assert ((np.diff(cumulated) > 0) & (pi[:, 1:] == 0)).any()
    for row, draws_at in zip(pi, cumulated / cumulated.max(-1, keepdims=True), strict=True):
        at = np.minimum(draws_at, np.float32(1 - 2**-23))
        chosen = np.asarray(sample_at(jnp.broadcast_to(row, (999, 999)), jnp.asarray(at)))
        assert (chosen >= 0).all()
        assert (row[chosen] > 0).all()


@pytest.mark.parametrize("kind", ["numpy", "jax"])
def test_a_deterministic_policy_is_followed(kind: str) -> None:
    assert (draws(kind, np.eye(3)[1], 100) == 1).all()


@pytest.mark.slow
def test_one_key_per_run_gives_the_same_draw_in_every_batch() -> None:
    keys = jax.random.split(jax.random.key(1), 6)
    pi = jnp.asarray(PI, jnp.float32)
    together = jax.vmap(be.sample, in_axes=(0, None))(keys, pi)
    assert [int(be.sample(key, pi)) for key in keys] == together.tolist()
    assert be.sample(keys[0], jnp.tile(pi, (2, 3, 1))).shape == (2, 3)


def test_a_row_of_zeros_gives_no_action() -> None:
    pi = np.array([[0.0, 0.0], [0.0, 1.0]])
    assert be.sample(np.random.default_rng(0), pi).tolist() == [-1, 1]
    assert be.sample(jax.random.key(0), jnp.asarray(pi, jnp.float32)).tolist() == [-1, 1]


def test_a_numpy_generator_serves_torch() -> None:
    torch = pytest.importorskip("torch")
    assert be.sample(np.random.default_rng(0), torch.tensor([[0.0, 1.0], [1.0, 0.0]])).tolist() == [1, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: be.greedy(3.0), "q must have one entry per action"),
        (lambda: be.greedy(Q, [True, False]), r"allowed has shape \(2,\)"),
        (lambda: be.epsilon_greedy(Q, [0.1, 1.2, 0.0]), r"epsilon\[1\] = 1.2 must be in \[0, 1\]"),
        (lambda: be.epsilon_greedy(Q, [0.1, 0.2]), r"epsilon has shape \(2,\), which does not broadcast to \(3,\)"),
        (lambda: be.epsilon_ipe(Q, np.zeros((2, 3))), r"epsilon has shape \(2,\)"),
        (lambda: be.boltzmann(Q, 0.0), "temperature = 0 must be > 0"),
        (lambda: be.linear_schedule(-1, 1.0, 0.1, 100), "step = -1 must be >= 0"),
        (lambda: be.linear_schedule(0, 1.0, 0.1, 0), "steps = 0 must be > 0"),
        (lambda: be.linear_schedule(0, 2.0, 0.1, 5), r"initial = 2 must be in \[0, 1\]"),
        (lambda: be.exponential_schedule(0, 1.0, 0.0, 5), r"final = 0 must be in \(0, 1\]"),
        (lambda: be.conservative_update(Q, Q, 1.5), r"rate = 1.5 must be in \[0, 1\]"),
        (lambda: be.conservative_update(Q, np.zeros(4), 0.5), r"q has shape \(4,\)"),
        (lambda: be.vdbe_update(1.0, 1.0, 0.5, 0.0, n=2), "sigma = 0 must be > 0"),
        (lambda: be.vdbe_update(1.0, 1.0, 0.5, 1.0, n=0), "n = 0 must be >= 1"),
        (lambda: be.sample(3, PI), "key must be a numpy.random.Generator or a JAX key, found int"),
        (lambda: be.sample(np.random.default_rng(0), [0.5, 0.4]), "probabilities sums to 0.9, not to 1"),
        (lambda: be.sample(np.random.default_rng(0), [[1.5, -0.5]]), r"probabilities\[0, 1\] = -0.5"),
    ],
)
def test_wrong_input_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
