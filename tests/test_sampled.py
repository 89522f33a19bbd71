"""The minimiser of the paper's sampled objective, and how it differs from the evaluation policy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize

import ipe
from ipe.inverse import evaluation_policy, sampled_minimiser, sampled_objective
from ipe.mdp import FiniteMDP
from ipe.planning import greedy_policy, optimal_values, policy_values
from tests.strategies import generators, mdps, random_pi, random_q
from tests.tiers import examples


@given(mdps(), generators())
def test_no_policy_has_a_smaller_sampled_objective(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    q = random_q(rng, mdp)
    drawn = np.where(mdp.allowed, rng.exponential(size=q.shape) * (rng.random(q.shape) < 0.8), 0.0)
    weights = drawn if drawn.any() else None
    result = sampled_minimiser(mdp, q=q, weights=weights)
    best = sampled_objective(mdp, result.policy, q=q, weights=weights)
    for _ in range(20):
        assert best <= sampled_objective(mdp, random_pi(rng, mdp), q=q, weights=weights) * (1 + 1e-9) + 1e-12


@given(mdps(max_states=5), generators())
@examples(30)
def test_objective_agrees_with_a_bounded_minimisation(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    q = random_q(rng, mdp)
    result = sampled_minimiser(mdp, q=q)
    lo = np.where(mdp.terminal, 0.0, np.where(mdp.allowed, q, np.inf).min(axis=1))
    hi = np.where(mdp.terminal, 0.0, np.where(mdp.allowed, q, -np.inf).max(axis=1))
    dense = mdp.transitions.toarray()
    d = mdp.allowed.ravel() / mdp.allowed.sum()

    def objective(v: np.ndarray) -> float:
        errors = (mdp.rewards - q).reshape(-1, 1) + mdp.gamma * v
        return float((d[:, None] * dense * errors**2).sum())

    oracle = minimize(objective, (lo + hi) / 2, bounds=np.stack([lo, hi], axis=1), method="L-BFGS-B")
    assert sampled_objective(mdp, result.policy, q=q) == pytest.approx(objective(result.v), rel=1e-9, abs=1e-12)
    assert objective(result.v) <= oracle.fun * (1 + 1e-9) + 1e-12


@given(mdps(deterministic=True), generators())
def test_it_is_the_evaluation_policy_where_transitions_are_deterministic(
    mdp: FiniteMDP, rng: np.random.Generator
) -> None:
    q = random_q(rng, mdp)
    exact, sampled = evaluation_policy(mdp, q=q), sampled_minimiser(mdp, q=q)
    np.testing.assert_allclose(sampled.policy, exact.policy, atol=1e-6)
    assert sampled.residual == pytest.approx(exact.residual, rel=1e-9, abs=1e-12)


@given(mdps(), generators())
def test_its_gap_is_a_true_bound_in_the_exact_problem(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    q = random_q(rng, mdp)
    exact, sampled = evaluation_policy(mdp, q=q), sampled_minimiser(mdp, q=q)
    assert sampled.objective - exact.objective <= sampled.gap + 1e-9 * (1 + exact.objective)
    assert sampled.residual_lower_bound <= exact.residual * (1 + 1e-9) + 1e-12


def test_the_bias_on_garnet_mdps() -> None:
    """After 20 sweeps the Bellman error is about .0076 exact and .23 at the sampled minimiser; it stays at Q*."""
    exact, sampled = [], []
    for seed in range(5):
        mdp = ipe.zoo.garnet(200, 4, 3, seed=seed)
        q = np.zeros((200, 4))
        for _ in range(20):
            q = mdp.rewards + mdp.gamma * (mdp.transitions @ q.max(axis=1)).reshape(q.shape)
        exact.append(evaluation_policy(mdp, q=q).residual)
        sampled.append(sampled_minimiser(mdp, q=q).residual)
    assert max(exact) < 0.05 < 0.15 < min(sampled)
    optimum = optimal_values(mdp, tol=1e-10)
    assert evaluation_policy(mdp, q=optimum.q).residual < 1e-8
    assert sampled_minimiser(mdp, q=optimum.q).residual > 0.1


def test_rewards_that_depend_on_the_next_state_are_used() -> None:
    """One state, two actions, a coin for the next state: given the side, the reward is known."""
    transitions = np.full((2, 2, 2), 0.5)
    rewards = np.zeros((2, 2, 2))
    rewards[:, :, 1] = 1.0
    mdp = FiniteMDP(transitions, rewards, 0.5)
    q = np.array([[0.0, 4.0], [0.0, 4.0]])
    result = sampled_minimiser(mdp, q=q)
    np.testing.assert_allclose(result.v, [4.0, 2.0])  # E[Q - R]/gamma = 2/.5 and 1/.5
    expected = sampled_minimiser(FiniteMDP(transitions, rewards.mean(axis=2), 0.5), q=q)
    np.testing.assert_allclose(expected.v, [3.0, 3.0])


def test_gamma_zero_is_uniform() -> None:
    mdp = ipe.zoo.switch_stay(gamma=0.0)
    result = sampled_minimiser(mdp, q=[[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_allclose(result.policy, 0.5)


def test_at_optimal_values_the_policy_loses_value() -> None:
    mdp = ipe.zoo.garnet(200, 4, 3, seed=1)
    optimum = optimal_values(mdp, tol=1e-10)
    loss = (optimum.v - policy_values(mdp, sampled_minimiser(mdp, q=optimum.q).policy).v).mean()
    assert loss > 1.0
    greedy = policy_values(mdp, greedy_policy(mdp, q=optimum.q)).v
    np.testing.assert_allclose(greedy, optimum.v, atol=1e-8)


def test_a_wrong_q_is_refused() -> None:
    with pytest.raises(ipe.InputError, match=r"q\[1, 0\] = nan is not a finite number"):
        sampled_minimiser(ipe.zoo.switch_stay(), q=[[0.0, 1.0], [np.nan, 0.0]])
