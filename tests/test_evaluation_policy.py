"""What `evaluation_policy` promises, on random MDPs of every kind, against independent solvers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ipe import EvaluationPolicy, NotSolvedError, evaluation_policy
from ipe.inverse.choice import METHODS_OF
from ipe.inverse.problem import Norm
from ipe.mdp import FiniteMDP
from ipe.planning import optimality_operator
from ipe.zoo import garnet
from tests.cases import ALL_METHODS, NORMS, RTOL, Case, cases, objective_of
from tests.oracles import (
    box_problem,
    least_in_box,
    least_over_policies,
    norm_of,
    optimal_value,
    policy_value,
    residual_of,
)
from tests.strategies import generators, mdps, random_pi
from tests.tiers import examples


def check_result(case: Case, norm: Norm, result: EvaluationPolicy) -> None:
    """The policy is one; the residual is its residual; the bounds hold against the oracle."""
    mdp, pi = case.mdp, result.policy
    least, d = case.least(norm)
    size = case.size * float(d.max())
    unit = objective_of(size, norm)
    assert (pi >= 0).all()
    assert (pi[~mdp.allowed] == 0).all()
    assert_allclose(pi.sum(axis=1), (~mdp.terminal).astype(float), atol=1e-14)
    delta = residual_of(mdp, case.form, case.values, pi)
    assert_allclose(result.residual, norm_of(delta, d, norm), rtol=1e-9, atol=1e-12 * size)
    assert_allclose(result.sup_residual, np.abs(delta).max(), rtol=1e-9, atol=1e-12 * case.size)
    assert_allclose(result.objective, objective_of(result.residual, norm), rtol=1e-9, atol=1e-13 * unit)
    assert result.gap >= 0
    assert result.residual_lower_bound <= least + 1e-10 * size
    assert objective_of(result.residual, norm) - objective_of(least, norm) <= result.gap + 1e-12 * unit
    assert least <= result.residual + 1e-8 * size  # the oracle is as good
    check_bounds(case, result)


def check_bounds(case: Case, result: EvaluationPolicy) -> None:
    """`achievable` and `distance_bounds` against the oracle's least sup-norm residual rho."""
    mdp = case.mdp
    rho, _ = least_in_box(*box_problem(mdp, case.form, case.values, "linf", None))
    lower, upper = result.distance_bounds
    assert 0 <= lower <= upper
    assert lower <= rho / (1 + mdp.gamma) + 1e-9 * case.size
    assert upper >= rho / (1 - mdp.gamma) - 1e-9 * case.size
    tolerance = 1e-9 * max(1.0, float(np.abs(case.values).max()))
    if result.achievable is True:
        assert rho <= tolerance * 1.001
    if result.achievable is False:
        assert rho > tolerance * 0.999
    v, q = policy_value(mdp, result.policy)
    distance = np.abs((v if case.form == "v" else q) - case.values).max()
    assert distance <= upper * (1 + 1e-9) + 1e-11 * case.size / (1 - mdp.gamma)


@pytest.mark.parametrize("norm", NORMS)
@given(case=cases())
@examples(100)
def test_agrees_with_an_independent_solver(norm: Norm, case: Case) -> None:
    result = case.solve(norm)
    assert result.converged
    check_result(case, norm, result)
    least, d = case.least(norm)
    assert_allclose(result.residual, least, rtol=1e-8, atol=1e-8 * case.size * float(d.max()))


@pytest.mark.slow
@pytest.mark.parametrize("norm", NORMS)
@given(case=cases(max_states=25, max_actions=6))
@examples(600)
def test_agrees_with_an_independent_solver_more_widely(norm: Norm, case: Case) -> None:
    check_result(case, norm, case.solve(norm))


@pytest.mark.slow
def test_methods_agree_on_larger_problems() -> None:
    mdp = garnet(500, 4, 5, seed=1)
    q = np.zeros((500, 4))
    for _ in range(10):
        q = optimality_operator(mdp, q=q)  # an iterate of value iteration
    for norm in NORMS:
        reference = evaluation_policy(mdp, q=q, norm=norm)
        assert reference.relative_gap <= 1e-8
        for method in METHODS_OF[norm][1:]:
            result = evaluation_policy(mdp, q=q, norm=norm, method=method, rtol=1e-3)  # type: ignore[arg-type]
            assert_allclose(result.residual, reference.residual, rtol=1e-3)
            assert result.residual_lower_bound <= reference.residual * (1 + 1e-9)


@pytest.mark.parametrize(("norm", "method"), ALL_METHODS)
@given(case=cases())
@examples(25)
def test_every_method_agrees(norm: Norm, method: str, case: Case) -> None:
    if method == "closed-form" and not case.closed:
        return
    result = case.solve(norm, method=method)
    check_result(case, norm, result)
    least, d = case.least(norm)
    assert_allclose(result.residual, least, rtol=RTOL.get(method, 1e-8), atol=1e-8 * case.size * float(d.max()))


@pytest.mark.parametrize("norm", NORMS)
@given(case=cases(max_states=4, max_actions=3))
@examples(40)
def test_the_reduction_to_states_loses_nothing(norm: Norm, case: Case) -> None:
    """Among the policies themselves no smaller residual is found, and one as small."""
    result = case.solve(norm)
    least = least_over_policies(case.mdp, case.form, case.values, norm, case.weights)
    size = case.size * float(case.least(norm)[1].max())
    assert result.residual <= least + 1e-9 * size
    assert least <= result.residual + 1e-5 * size  # SLSQP's own accuracy


@pytest.mark.parametrize(("norm", "method"), [m for m in ALL_METHODS if m[1] != "closed-form"])
@given(case=cases(deterministic=False, gammas=(0.3, 0.9, 0.99)))
@examples(20)
def test_bounds_hold_for_solves_stopped_early(norm: Norm, method: str, case: Case) -> None:
    result = case.solve(norm, method=method, rtol=0.3, on_miss="flag")
    check_result(case, norm, result)
    if result.converged and result.gap > 1e-9 * objective_of(case.size, norm):
        assert result.relative_gap <= 0.3


@given(cases(form="q", deterministic=False, gammas=(0.9,)))
@examples(20)
def test_a_missed_tolerance_raises_or_is_flagged(case: Case) -> None:
    for norm, method in (("l2", "auto"), ("l1", "pdhg")):
        flagged = case.solve(norm, method=method, rtol=1e-300, atol=1e-300, on_miss="flag")  # type: ignore[arg-type]
        assert flagged.converged == (flagged.gap <= max(1e-300 * flagged.objective, 1e-300))
        check_result(case, norm, flagged)  # type: ignore[arg-type]
        assert ("NOT CONVERGED" in str(flagged)) != flagged.converged
        if flagged.converged:
            continue
        with pytest.raises(NotSolvedError, match=r"stopped after .* with a gap of") as caught:
            case.solve(norm, method=method, rtol=1e-300, atol=1e-300)  # type: ignore[arg-type]
        assert_array_equal(caught.value.result.policy, flagged.policy)
        assert caught.value.result.gap == flagged.gap


@pytest.mark.parametrize("norm", NORMS)
@given(mdp=mdps(), rng=generators(), kind=st.sampled_from(["random", "deterministic", "half"]), scaled=st.booleans())
@examples(60)
def test_achievable_in_same_values_out(
    norm: Norm, mdp: FiniteMDP, rng: np.random.Generator, kind: str, scaled: bool
) -> None:
    pi = random_pi(rng, mdp)
    chosen = np.where(mdp.allowed, rng.random(mdp.allowed.shape), -1.0).argmax(axis=1)
    sure = np.eye(mdp.n_actions)[chosen] * ~mdp.terminal[:, None]
    if kind != "random":
        pi = np.where((kind == "deterministic") | (rng.random((mdp.n_states, 1)) < 0.5), sure, pi)
    v, q = policy_value(mdp, pi)
    weights = (rng.random(mdp.n_states) + 0.01, rng.random(q.shape) + 0.01) if scaled else (None, None)
    from_v = evaluation_policy(mdp, v=v, norm=norm, weights=weights[0])
    from_q = evaluation_policy(mdp, q=q, norm=norm, weights=weights[1])
    for result in (from_v, from_q):
        assert result.achievable
        assert result.residual_lower_bound == 0 or result.residual_lower_bound <= 1e-9 * np.abs(q).max()
        assert_allclose(np.where(mdp.allowed, result.action_values, 0.0), q, rtol=0, atol=1e-9 * np.abs(q).max())
    assert_allclose(from_v.values, v, rtol=0, atol=1e-9 * np.abs(v).max())
    if from_q.unique:  # in the states that something leads to: elsewhere any policy has the values Q
        P = mdp.transitions.toarray()
        reached = (P > 0).any(axis=0) & (mdp.gamma > 0)
        assert_allclose(from_q.values[reached], v[reached], rtol=0, atol=1e-8 * np.abs(v).max())


@pytest.mark.parametrize("norm", NORMS)
@given(mdp=mdps())
@examples(40)
def test_optimal_values_give_an_optimal_policy(norm: Norm, mdp: FiniteMDP) -> None:
    v, q = optimal_value(mdp)
    from_q, from_v = evaluation_policy(mdp, q=q, norm=norm), evaluation_policy(mdp, v=v, norm=norm)
    size = max(1.0, float(np.abs(q).max()))
    for result in (from_q, from_v):
        assert result.achievable
        assert result.residual <= 1e-9 * size
        assert_allclose(np.where(mdp.allowed, result.action_values, 0.0), q, rtol=0, atol=1e-9 * size)
    assert_allclose(from_v.values, v, rtol=0, atol=1e-9 * size)
    # only actions that are as good as optimal are taken
    loss = (from_v.policy * np.where(mdp.allowed, v[:, None] - q, 0.0)).sum(axis=1)
    assert (loss <= 1e-9 * size).all()


@given(case=cases(max_states=6))
@examples(60)
def test_distance_bounds_contain_the_distance_to_every_policy(case: Case) -> None:
    """No policy's values are nearer than the lower bound."""
    rng = np.random.default_rng(0)
    mdp, index = case.mdp, 0 if case.form == "v" else 1
    for norm in NORMS:
        lower, upper = case.solve(norm).distance_bounds
        nearest = np.inf
        for _ in range(30):
            pi = random_pi(rng, mdp)
            pi = pi**3 / np.maximum((pi**3).sum(axis=1, keepdims=True), 1e-300)  # towards the corners
            nearest = min(nearest, float(np.abs(policy_value(mdp, pi)[index] - case.values).max()))
        assert lower <= nearest + 1e-9 * case.size
        assert lower <= upper


def test_distance_bounds_are_attained() -> None:
    """One state: rho / (1 - gamma) for values above what both actions give, rho / (1 + gamma) on a two-cycle."""
    loop = FiniteMDP(np.ones((1, 1, 1)), [[1.0]], 0.9)
    assert_allclose(evaluation_policy(loop, v=[12.0]).distance_bounds[1], 2.0)  # V = 10 is the only value
    cycle = FiniteMDP(np.eye(2)[[[1], [0]]], [[0.0], [0.0]], 0.9)
    assert_allclose(evaluation_policy(cycle, v=[1.0, -1.0]).distance_bounds[0], 1.0)  # V = (0, 0)
