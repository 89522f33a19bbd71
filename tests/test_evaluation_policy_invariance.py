"""What must not matter: units, shifts, names, the second call; and what must not get lost in small numbers."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ipe import EvaluationPolicy, evaluation_policy
from ipe.base.arrays import Array
from ipe.inverse.problem import Norm
from ipe.mdp import FiniteMDP
from tests.cases import ALL_METHODS, NORMS, Case, cases, solve_form
from tests.oracles import (
    policy_value,
)
from tests.strategies import generators, random_mdp, random_pi, random_q
from tests.tiers import examples


@given(cases(deterministic=True, gammas=(0.3, 0.9)), st.sampled_from([1e6, 1e-6]))
@examples(60)
def test_scaling_the_numbers_changes_nothing_deterministic(case: Case, scale: float) -> None:
    check_scaled(case, scale)


@given(cases(deterministic=False, gammas=(0.3, 0.9)), st.sampled_from([1e6, 1e-6, 1e-12]))
@examples(60)
def test_scaling_the_numbers_changes_nothing_stochastic(case: Case, scale: float) -> None:
    check_scaled(case, scale)


def check_scaled(case: Case, scale: float) -> None:
    mdp = case.mdp
    big = FiniteMDP(mdp.transitions, scale * mdp.rewards, mdp.gamma, allowed=mdp.allowed, terminal=mdp.terminal)
    for norm in NORMS:
        one = case.solve(norm)
        other = solve_form(big, case.form, scale * case.values, norm=norm, weights=case.weights)
        size = case.size * max(float(case.least(norm)[1].max()), 1.0)
        assert_allclose(other.residual / scale, one.residual, rtol=1e-7, atol=1e-9 * size)
        assert_allclose(other.values / scale, policy_value(mdp, other.policy)[0], rtol=0, atol=1e-8 * case.size)
        if one.unique and (norm == "l2" or case.closed):
            assert_allclose(other.v / scale, one.v, rtol=0, atol=1e-6 * case.size)
        if case.closed and case.kind in ("any", "ties"):  # elsewhere a rounding decides between an end and not
            assert_allclose(other.policy, one.policy, atol=1e-7)


@given(cases(form="q", gammas=(0.3, 0.9)), st.sampled_from([-100.0, 3.0]))
@examples(60)
def test_shifting_the_values_changes_nothing(case: Case, shift: float) -> None:
    """Q + c with rewards r + (1 - gamma) c is the same problem, as long as no state is terminal."""
    mdp = case.mdp
    if mdp.terminal.any():
        return
    moved = FiniteMDP(mdp.transitions, mdp.rewards + (1 - mdp.gamma) * shift, mdp.gamma, allowed=mdp.allowed)
    for norm in NORMS:
        one = case.solve(norm)
        other = evaluation_policy(moved, q=case.values + shift, norm=norm, weights=case.weights)
        size = (case.size + abs(shift)) * float(case.least(norm)[1].max())
        assert_allclose(other.residual, one.residual, rtol=1e-7, atol=1e-9 * size)
        if one.unique and case.kind == "any" and (norm == "l2" or case.closed):
            assert_allclose(other.v, one.v + shift, rtol=0, atol=1e-5 * (case.size + abs(shift)))


@given(cases(gammas=(0.0, 0.3, 0.9)), generators())
@examples(60)
def test_renaming_states_and_actions_permutes_the_result(case: Case, rng: np.random.Generator) -> None:
    mdp = case.mdp
    s, a = rng.permutation(mdp.n_states), rng.permutation(mdp.n_actions)
    P = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    renamed = FiniteMDP(
        P[s][:, a][:, :, s],
        mdp.rewards[s][:, a],
        mdp.gamma,
        allowed=mdp.allowed[s][:, a],
        terminal=mdp.terminal[s],
    )

    def rename(x: Array) -> Array:
        return x[s] if x.ndim == 1 else x[s][:, a]

    weights = None if case.weights is None else rename(case.weights)
    for norm in NORMS:
        one = case.solve(norm)
        other = solve_form(renamed, case.form, rename(case.values), norm=norm, weights=weights)
        size = case.size * float(case.least(norm)[1].max())
        assert_allclose(other.residual, one.residual, rtol=1e-7, atol=1e-9 * size)
        if one.unique and case.kind == "any" and (norm == "l2" or case.closed):
            assert_allclose(other.v, rename(one.v), rtol=0, atol=1e-5 * case.size)
            assert_allclose(other.policy, rename(one.policy), atol=1e-4)


@pytest.mark.parametrize(("norm", "method"), ALL_METHODS)
def test_the_same_call_gives_the_same_bytes(norm: Norm, method: str) -> None:
    rng = np.random.default_rng(5)
    mdp = random_mdp(rng, 12, 3, successors=1 if method == "closed-form" else 3, masks=True, terminals=True)
    q, weights = random_q(rng, mdp), rng.random((12, 3))
    first, second = (evaluation_policy(mdp, q=q, norm=norm, weights=weights, method=method) for _ in range(2))  # type: ignore[arg-type]
    for field in fields(EvaluationPolicy):
        one, other = getattr(first, field.name), getattr(second, field.name)
        if isinstance(one, np.ndarray):
            assert one.tobytes() == other.tobytes()
        else:
            assert one == other or one is other
    assert first.values.tobytes() == second.values.tobytes()
    assert str(first) == str(second)


@pytest.mark.parametrize("gamma", [0.5, 0.99, 0.999])
def test_long_horizons_and_tiny_numbers_keep_their_accuracy(gamma: float) -> None:
    rng = np.random.default_rng(1)
    for unit in (1e-12, 1.0, 1e12):
        mdp = random_mdp(rng, 20, 3, successors=4, gamma=gamma)
        mdp = FiniteMDP(mdp.transitions, unit * mdp.rewards, gamma)
        q = policy_value(mdp, random_pi(rng, mdp))[1]
        for norm in NORMS:
            result = evaluation_policy(mdp, q=q, norm=norm)
            assert result.achievable
            assert_allclose(result.action_values, q, rtol=0, atol=1e-9 * np.abs(q).max())


def test_weights_need_no_scale() -> None:
    rng = np.random.default_rng(2)
    mdp = random_mdp(rng, 6, 3, successors=3)
    q, w = random_q(rng, mdp), rng.random((6, 3))
    for norm in NORMS:
        one, other = (evaluation_policy(mdp, q=q, norm=norm, weights=k * w) for k in (1.0, 1e6))
        assert_allclose(one.v, other.v, atol=1e-8)
        assert_allclose(other.residual, one.residual * (1e6 if norm == "linf" else 1.0), rtol=1e-8)
    unweighted, even = evaluation_policy(mdp, q=q), evaluation_policy(mdp, q=q, weights=np.full((6, 3), 7.0))
    assert_allclose(unweighted.v, even.v, atol=1e-9)
