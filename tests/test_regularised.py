"""The entropy-regularised form against a direct minimisation over policies, and its optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

import ipe
from ipe.base.arrays import Array
from ipe.checks import check_q
from ipe.inverse import EvaluationPolicy, evaluation_policy, regularised_evaluation_policy
from ipe.mdp import FiniteMDP
from ipe.planning import q_from_v, uniform_policy
from tests.strategies import generators, mdps, random_mdp, random_q, random_v
from tests.tiers import examples


def objective(mdp: FiniteMDP, pi: Array, tau: float, *, v: Array | None = None, q: Array | None = None) -> float:
    """The regularised objective straight from its definition, with equal weights."""
    if v is not None:
        residuals = (np.nan_to_num(q_from_v(mdp, v)) * pi).sum(axis=1) - v
        squares = (residuals[~mdp.terminal] ** 2).mean()
    else:
        assert q is not None
        means = (pi * np.where(mdp.allowed, q, 0)).sum(axis=1)
        rows = mdp.rewards + mdp.gamma * (mdp.transitions @ means).reshape(mdp.rewards.shape) - q
        squares = (rows[mdp.allowed] ** 2).mean()
    n = mdp.allowed.sum(axis=1, keepdims=True)
    logs = np.log(np.where(pi > 0, pi * n, 1.0))
    return float(0.5 * squares + tau / mdp.n_states * (pi * logs).sum())


def direct_minimum(mdp: FiniteMDP, tau: float, **values: Array) -> float:
    """L-BFGS over logits, from uniform: the problem is convex in pi, and the logits reach every interior policy."""

    def policy(logits: Array) -> Array:
        z = np.where(mdp.allowed, logits.reshape(mdp.allowed.shape), -np.inf)
        z = np.where(mdp.allowed, z - z.max(axis=1, keepdims=True, initial=-1e300), -np.inf)
        weights = np.exp(z)
        total = weights.sum(axis=1, keepdims=True)
        return weights / np.where(total > 0, total, 1.0)

    best = minimize(
        lambda logits: objective(mdp, policy(logits), tau, **values),
        np.zeros(mdp.allowed.size),
        method="L-BFGS-B",
        options={"maxiter": 3000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-10},
    )
    return float(best.fun)


@given(mdps(max_states=4, max_actions=3), generators(), st.sampled_from([0.01, 0.3, 5.0]), st.booleans())
@examples(40)
def test_agrees_with_a_direct_minimisation(mdp: FiniteMDP, rng: np.random.Generator, tau: float, v_form: bool) -> None:
    values = {"v": random_v(rng, mdp)} if v_form else {"q": random_q(rng, mdp)}
    result = regularised_evaluation_policy(mdp, v=values.get("v"), q=values.get("q"), tau=tau)
    assert result.objective == pytest.approx(objective(mdp, result.policy, tau, **values), rel=1e-9, abs=1e-12)
    oracle = direct_minimum(mdp, tau, **values)
    assert result.objective <= oracle * (1 + 1e-6) + 1e-9
    assert oracle >= result.objective - result.gap - 1e-9 * abs(oracle)


@given(mdps(), generators(), st.sampled_from([0.01, 1.0]))
def test_the_temperatures_are_the_residuals_carried_back(mdp: FiniteMDP, rng: np.random.Generator, tau: float) -> None:
    q = random_q(rng, mdp)
    mu = rng.uniform(0.5, 2.0, mdp.n_states)
    result = regularised_evaluation_policy(mdp, q=q, tau=tau, mu=mu, rtol=1e-12)
    delta = np.where(mdp.allowed, mdp.rewards + mdp.gamma * (mdp.transitions @ result.v).reshape(q.shape) - q, 0.0)
    carried = mdp.transitions.T @ (delta.ravel() / mdp.allowed.sum())
    expected = np.where(mdp.terminal, 0.0, -mdp.gamma / (tau * mu) * carried)
    np.testing.assert_allclose(result.inverse_temperatures, expected, rtol=1e-4, atol=1e-5 / tau)
    exponents = np.where(mdp.allowed, result.inverse_temperatures[:, None] * check_q(mdp, q), -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    boltzmann = powers[~mdp.terminal] / powers[~mdp.terminal].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(result.policy[~mdp.terminal], boltzmann, atol=1e-12)
    assert not result.policy[~mdp.allowed].any()


def test_tau_leads_from_the_evaluation_policy_to_uniform() -> None:
    mdp = random_mdp(np.random.default_rng(3), 8, 3, successors=3)
    q = random_q(np.random.default_rng(4), mdp)
    exact = evaluation_policy(mdp, q=q)
    residuals, entropies = [], []
    for tau in (1e-5, 1e-3, 1e-1, 1e1, 1e3):
        result = regularised_evaluation_policy(mdp, q=q, tau=tau)
        residuals.append(result.residual)
        entropies.append(result.entropy.sum())
        assert result.residual_lower_bound <= exact.residual * (1 + 1e-9)
    assert residuals == sorted(residuals)
    assert entropies == sorted(entropies)
    assert residuals[0] == pytest.approx(exact.residual, rel=1e-4)
    np.testing.assert_allclose(result.policy, uniform_policy(mdp), atol=1e-2)


def test_small_tau_finds_the_point_of_most_entropy_among_the_minimisers() -> None:
    """Two states with the same successors everywhere: only the sum of their v matters."""
    transitions = np.zeros((3, 3, 3))
    transitions[:, :, :2] = 0.5
    mdp = FiniteMDP(transitions, np.zeros((3, 3)), 0.9)
    q = np.array([[0.0, 1.0, 2.0], [0.0, 2.0, 4.0], [0.9, 0.9, 0.9]])
    exact = evaluation_policy(mdp, q=q)
    result = regularised_evaluation_policy(mdp, q=q, tau=1e-6)
    assert exact.unique is False
    assert result.residual == pytest.approx(exact.residual, rel=1e-6)
    assert result.entropy[:2].sum() >= exact.entropy[:2].sum() - 1e-9
    assert result.inverse_temperatures[0] == pytest.approx(result.inverse_temperatures[1], rel=1e-4)


def test_gamma_zero_is_uniform() -> None:
    mdp = random_mdp(np.random.default_rng(0), gamma=0.0, masks=True, terminals=True)
    result = regularised_evaluation_policy(mdp, q=random_q(np.random.default_rng(1), mdp), tau=0.1)
    np.testing.assert_allclose(result.policy, uniform_policy(mdp), atol=1e-15)


def test_ten_thousand_states() -> None:
    mdp = ipe.zoo.garnet(10_000)
    q = 3 * np.random.default_rng(0).normal(size=(10_000, 4))
    result = regularised_evaluation_policy(mdp, q=q, tau=0.1)
    assert isinstance(result, EvaluationPolicy)
    assert result.relative_gap <= 1e-8


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tau": 0.0}, "tau must be a finite number > 0, found 0.0"),
        ({"tau": float("nan")}, "tau must be a finite number > 0, found nan"),
        ({"tau": 1.0, "mu": [1.0]}, r"mu must have shape \(2,\)"),
        ({"tau": 1.0, "mu": [1.0, 0.0]}, r"mu\[1\] = 0 is not a finite number > 0"),
        ({"tau": 1.0, "rtol": -1.0}, "rtol must be a finite number > 0"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ipe.InputError, match=message):
        regularised_evaluation_policy(ipe.zoo.switch_stay(), v=[1.0, 2.0], **arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("tau", [1e10, 1e15, 1e20, 1e40])
def test_a_large_tau_is_the_uniform_policy(tau: float) -> None:
    """What is multiplied by tau must be as exact as it is small."""
    mdp = ipe.zoo.switch_stay()
    q = np.array([[16.3, 17.0], [20.0, 15.3]])
    result = regularised_evaluation_policy(mdp, q=q, tau=tau)
    np.testing.assert_allclose(result.policy, 0.5, atol=1e-8)
    assert result.objective == pytest.approx(objective(mdp, np.full((2, 2), 0.5), 1.0, q=q), rel=1e-8)
    assert result.gap < 1e-13
