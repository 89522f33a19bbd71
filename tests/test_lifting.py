"""The policy of most entropy with a given mean: against the solver of finite MDPs, and closed forms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ipe.entropy import logits_from_mean, softmax
from ipe.inverse import maximum_entropy_lift


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_it_is_the_lift_of_finite_mdps(dtype: type, tolerance: float) -> None:
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 18):
        q: Any = (rng.normal(size=(500, n)) * 10 ** rng.uniform(-3, 3, (500, 1))).astype(dtype)
        v = (rng.uniform(-1.5, 1.5, 500) * abs(q).max(axis=1)).astype(dtype)
        allowed = rng.uniform(size=(500, n)) < 0.8
        allowed[:, 0] = True
        expected, _ = maximum_entropy_lift(q.astype(np.float64), v.astype(np.float64), allowed)
        logits = logits_from_mean(q, v, allowed)
        assert logits.dtype == dtype
        np.testing.assert_allclose(softmax(logits, allowed), expected, atol=tolerance)
        if n != 3:
            continue
        with jax.enable_x64(dtype is np.float64):
            compiled = jax.jit(logits_from_mean)(jnp.asarray(q), jnp.asarray(v), allowed)
            np.testing.assert_allclose(softmax(compiled, allowed), expected, atol=tolerance)


def test_two_actions_have_a_closed_form() -> None:
    v = np.linspace(1.01, 4.99, 50)
    pi = softmax(logits_from_mean(np.broadcast_to([5.0, 1.0], (50, 2)), v))
    np.testing.assert_allclose(pi[:, 0], (v - 1.0) / 4.0, rtol=1e-12)


def test_ends_ties_and_rows_without_actions() -> None:
    q = np.array([[1.0, 3.0, 3.0], [1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [1.0, 2.0, 3.0]])
    allowed = np.array([[True] * 3, [True] * 3, [True] * 3, [False] * 3])
    pi = softmax(logits_from_mean(q, [3.5, 0.5, 9.0, 2.0], allowed), allowed)
    np.testing.assert_array_equal(pi[:2], [[0.0, 0.5, 0.5], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(pi[2], 1 / 3)
    np.testing.assert_array_equal(pi[3], 0.0)


def test_a_nan_stays_one_and_leaves_other_rows_alone() -> None:
    found = np.asarray(logits_from_mean(jnp.array([[0.0, 1.0], [0.0, 1.0]]), jnp.array([jnp.nan, 0.5])))
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1], 0.0, atol=1e-7)
