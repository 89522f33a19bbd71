"""Optimal values: closed forms, independent solvers, and whether the stated error bounds are such."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from ipe import zoo
from ipe.base.arrays import Array
from ipe.errors import InputError, NotSolvedError
from ipe.mdp import FiniteMDP
from ipe.planning import OptimalValues, greedy_policy, optimal_values, policy_values, q_from_v
from ipe.planning.optimal import PlanningMethod
from tests.planning_oracles import distance, exact_optimal_values, exact_policy_values
from tests.strategies import mdps, random_mdp
from tests.tiers import examples

METHODS = get_args(PlanningMethod)
methods = st.sampled_from(METHODS)
untyped: Any = optimal_values
small_mdps = mdps(max_states=6, max_actions=3, gammas=(0.0, 0.5, 0.99, 0.9999))


def assert_bounds_hold(mdp: FiniteMDP, result: OptimalValues) -> None:
    """Both error bounds, checked without any rounding."""
    best = exact_optimal_values(mdp)
    assert distance(best, result.v) <= Fraction(result.error_bound)
    of_policy = exact_policy_values(mdp, result.policy)
    loss = max((b - p for b, p in zip(best, of_policy, strict=True)), default=Fraction(0))
    rows = Fraction(1e-15) * max(map(abs, of_policy)) / Fraction(1 - mdp.gamma)  # that sum to one but for rounding
    assert loss <= Fraction(result.policy_error_bound) + rows


@pytest.mark.parametrize("method", METHODS)
def test_switch_stay(method: Any) -> None:
    result = optimal_values(zoo.switch_stay(), method=method)
    np.testing.assert_allclose(result.v, [17, 20], rtol=0, atol=1e-8)
    np.testing.assert_allclose(result.q, [[16.3, 17], [20, 15.3]], rtol=0, atol=1e-8)
    np.testing.assert_array_equal(result.policy, [[0, 1], [1, 0]])
    assert result.error_bound <= 1e-8
    assert result.q is result.q
    np.testing.assert_array_equal(result.q, q_from_v(zoo.switch_stay(), result.v))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("terminal", [True, False])
def test_chain_closed_form(method: Any, terminal: bool) -> None:
    n, gamma = 12, 0.9
    result = optimal_values(zoo.chain(n, terminal=terminal, gamma=gamma), method=method)
    left = np.maximum(n - 2 - np.arange(n), 0)
    expected = np.where(np.arange(n) < n - 1, gamma**left, 0.0) if terminal else gamma**left / (1 - gamma)
    np.testing.assert_allclose(result.v, expected, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(result.policy[: n - 1], np.eye(2)[np.ones(n - 1, dtype=int)])
    np.testing.assert_array_equal(result.policy[n - 1], [0, 0] if terminal else [0, 1])


@examples(80)
@given(mdps(max_states=6, max_actions=3, gammas=(0.0, 0.5, 0.99, 0.998)), methods, st.sampled_from([1.0, 1e-3, 1e-6]))
def test_the_error_bounds_hold(mdp: FiniteMDP, method: Any, tol: float) -> None:
    result = optimal_values(mdp, method=method, tol=tol)
    assert result.error_bound <= tol
    assert_bounds_hold(mdp, result)
    assert not result.v[mdp.terminal].any()
    assert not result.policy[~mdp.allowed].any()
    q = np.where(mdp.allowed, result.q, -np.inf)
    slack = (1 - mdp.gamma) * result.error_bound * (1 + 1e-9) + 1e-12
    assert mdp.terminal.any() or (q >= q.max(axis=1, keepdims=True) - slack)[result.policy > 0].all()


@examples(60)
@given(small_mdps, methods, st.integers(1, 6))
def test_the_error_bounds_of_an_early_stop_hold(mdp: FiniteMDP, method: Any, max_iterations: int) -> None:
    try:
        result = optimal_values(mdp, method=method, tol=1e-6, max_iterations=max_iterations)
        missed = ""
    except NotSolvedError as error:
        result, missed = error.result, str(error)
    assert (result.error_bound > 1e-6) == (f"{max_iterations} iterations were too few" in missed)
    assert result.iterations <= max_iterations
    assert_bounds_hold(mdp, result)


@examples(60)
@given(small_mdps, methods)
def test_a_tolerance_below_float64_is_refused_with_the_best_there_is(mdp: FiniteMDP, method: Any) -> None:
    with pytest.raises(NotSolvedError, match="not to tol = 1e-300: float64 guarantees hardly more") as caught:
        optimal_values(mdp, method=method, tol=1e-300)
    result = caught.value.result
    scale = np.abs(mdp.rewards).max() + np.abs(result.v).max()
    assert result.error_bound <= 2.1 * (mdp.n_states + 6) * 2.0**-53 * scale / (1 - mdp.gamma) + 1e-300
    assert_bounds_hold(mdp, result)


def linear_program(mdp: FiniteMDP) -> Array:
    """V*: the least v with v >= r_a + gamma P_a v for every allowed pair."""
    pairs = np.flatnonzero(mdp.allowed.ravel())
    own = np.zeros((pairs.size, mdp.n_states))
    own[np.arange(pairs.size), pairs // mdp.n_actions] = 1.0
    bounds = [(0, 0) if end else (None, None) for end in mdp.terminal]
    solution = linprog(
        np.ones(mdp.n_states),
        A_ub=mdp.gamma * mdp.transitions[pairs].toarray() - own,
        b_ub=-mdp.rewards.ravel()[pairs],
        bounds=bounds,
        method="highs",
    )
    assert solution.success
    values: Array = solution.x
    return values


@given(mdps(max_states=10), methods)
def test_methods_agree_with_a_linear_program(mdp: FiniteMDP, method: Any) -> None:
    expected = linear_program(mdp) if mdp.allowed.any() else np.zeros(mdp.n_states)
    np.testing.assert_allclose(optimal_values(mdp, method=method).v, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("terminals", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 0.95, 0.999])
def test_methods_agree_with_each_other(gamma: float, terminals: bool) -> None:
    mdp = zoo.garnet(2000, gamma=gamma, seed=5)
    if terminals:
        rows = mdp.transitions.toarray().reshape(2000, 4, 2000)[:600]
        inside = rows[:, :, :600] + np.pad(rows[:, :, 600:].sum(axis=2)[..., None], ((0, 0), (0, 0), (599, 0)))
        inside[599] = 0.0  # whatever left the first 600 states ends in the last of them
        rewards = mdp.rewards[:600] * (np.arange(600) < 599)[:, None]
        mdp = FiniteMDP(inside, rewards, gamma, terminal=[599])
    results = [optimal_values(mdp, method=method, tol=1e-7) for method in METHODS]
    for result in results:
        assert result.error_bound <= 1e-7
        assert result.policy_error_bound <= 4e-7
        assert np.abs(result.v - results[0].v).max() <= result.error_bound + results[0].error_bound
        of_policy = policy_values(mdp, result.policy)
        loss = np.abs(of_policy.v - results[2].v).max()
        assert loss <= result.policy_error_bound + of_policy.error_bound + results[2].error_bound


def test_auto_evaluates_exactly_where_sweeps_are_slow() -> None:
    n = 600
    around = np.roll(np.eye(n), 1, axis=1)
    rewards = np.random.default_rng(0).normal(size=n)
    mdp = FiniteMDP(np.stack([around, around], axis=1), np.stack([rewards, rewards - 1], axis=1), 0.9995)
    auto = optimal_values(mdp, tol=1e-6)
    sweeps = optimal_values(mdp, method="modified-policy-iteration", tol=1e-6)
    assert auto.method == sweeps.method
    assert auto.iterations < 10 < 100 < sweeps.iterations
    assert np.abs(auto.v - sweeps.v).max() <= auto.error_bound + sweeps.error_bound


@examples(40)
@given(st.integers(0, 10**6), st.booleans())
def test_policy_iteration_ends_after_few_policies_even_among_ties(seed: int, terminals: bool) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 8, 4, successors=1, gamma=0.999, terminals=terminals, masks=True)
    mdp = FiniteMDP(mdp.transitions, np.sign(mdp.rewards), 0.999, allowed=mdp.allowed, terminal=mdp.terminal)
    result = optimal_values(mdp, method="policy-iteration", tol=1e-6)
    assert result.iterations <= 12
    assert_bounds_hold(mdp, result)


def slippery_grid(k: int, slip: float, gamma: float) -> FiniteMDP:
    """k by k cells, every step costs 1 but in the last cell: symmetric, so full of ties."""
    s = np.arange(k * k)
    x, y = s % k, s // k
    moves = [np.clip(x + dx, 0, k - 1) + k * np.clip(y + dy, 0, k - 1) for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1))]
    transitions = np.zeros((k * k, 4, k * k))
    for a in range(4):
        for b, target in enumerate(moves):
            transitions[s, a, target] += slip / 4 + (1 - slip) * (a == b)
    return FiniteMDP(transitions, np.repeat(-1.0 * (s < k * k - 1)[:, None], 4, axis=1), gamma)


def test_sweeps_finish_where_the_evaluation_reaches_its_floor_among_ties() -> None:
    mdp = slippery_grid(25, 0.2, 0.999)
    loose = optimal_values(mdp, method="policy-iteration", tol=1e-4)
    close = optimal_values(mdp, method="policy-iteration", tol=1e-9)
    assert close.iterations > loose.iterations + 10
    assert close.error_bound <= 1e-9
    assert np.abs(close.v - loose.v).max() <= close.error_bound + loose.error_bound


def test_tied_actions_share_the_probability() -> None:
    transitions = np.zeros((3, 3, 3))
    transitions[:2, :2, 2], transitions[:2, 2, 1] = 1.0, 1.0
    rewards = np.array([[0.1 + 0.2, 0.3, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    mdp = FiniteMDP(transitions, rewards, 0.3, terminal=[2])
    policy = optimal_values(mdp).policy  # 0.1 + 0.2 > 0.3 in float64
    np.testing.assert_array_equal(policy, [[0, 0, 1], [0, 0, 1], [0, 0, 0]])
    allowed = np.repeat([[True, True, False]], 3, axis=0)
    mdp = FiniteMDP(transitions, rewards, 0.3, allowed=allowed, terminal=[2])
    np.testing.assert_array_equal(optimal_values(mdp).policy, [[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 0]])
    np.testing.assert_array_equal(greedy_policy(mdp, v=np.zeros(3)), [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 0]])


@pytest.mark.parametrize("method", METHODS)
def test_corner_cases(method: Any) -> None:
    one = FiniteMDP(np.ones((1, 1, 1)), [[3.0]], 0.75)
    np.testing.assert_allclose(optimal_values(one, method=method).v, [12.0], rtol=0, atol=1e-8)
    ended = FiniteMDP(np.zeros((2, 3, 2)), np.zeros((2, 3)), 0.9, terminal=[0, 1])
    result = optimal_values(ended, method=method)
    assert not result.v.any()
    assert not result.policy.any()
    assert result.policy_error_bound < 1e-300
    nothing = FiniteMDP(np.full((2, 2, 2), 0.5), np.zeros((2, 2)), 0.99)
    assert not optimal_values(nothing, method=method).v.any()
    myopic = zoo.garnet(20, gamma=0.0)
    np.testing.assert_allclose(optimal_values(myopic, method=method).v, myopic.rewards.max(axis=1), rtol=1e-15)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("value-iteration", "value_iteration"),
        ("policy-iteration", "policy_iteration"),
        ("modified-policy-iteration", "modified_policy_iteration"),
    ],
)
@pytest.mark.filterwarnings("ignore")  # numba's, while it compiles
def test_quantecon_agrees(ours: Any, theirs: str) -> None:
    markov = pytest.importorskip("quantecon.markov")
    mdp = random_mdp(np.random.default_rng(7), 12, 3, gamma=0.95, masks=True)
    pairs = np.flatnonzero(mdp.allowed.ravel())
    ddp = markov.DiscreteDP(mdp.rewards.ravel()[pairs], mdp.transitions[pairs].toarray(), 0.95, pairs // 3, pairs % 3)
    solved = ddp.solve(method=theirs, epsilon=1e-9, max_iter=10_000)
    result = optimal_values(mdp, method=ours, tol=1e-9)
    np.testing.assert_allclose(result.v, solved.v, rtol=0, atol=2e-9)
    np.testing.assert_array_equal(result.policy.argmax(axis=1), solved.sigma)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "simplex"}, "method must be one of auto, .* found 'simplex'"),
        ({"tol": -1.0}, r"tol must be a finite number > 0, found -1\.0"),
        ({"tol": None}, "tol must be a finite number > 0, found None"),
        ({"max_iterations": 0}, "max_iterations must be a whole number >= 1 or None, found 0"),
        ({"max_iterations": 2.5}, r"max_iterations must be .* found 2\.5"),
    ],
)
def test_wrong_input_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        untyped(zoo.switch_stay(), **arguments)


def test_models_without_finite_values_are_refused() -> None:
    mdp = FiniteMDP([[[0.5, 0.5]], [[0.5, 0.6]]], np.ones((2, 1)), 0.95, tolerance=0.2)
    with pytest.raises(InputError, match=r"gamma = 0\.95 times the sum 1\.1 of a row .* in state 1 is not below 1"):
        optimal_values(mdp)
    with pytest.raises(InputError, match=r"rewards of size 1e\+299 with gamma = 0\.99 make values as large as"):
        optimal_values(FiniteMDP(np.ones((1, 1, 1)), [[1e299]], 0.99))


@pytest.mark.slow
def test_a_million_states() -> None:
    mdp = zoo.garnet(1_000_000)
    result = optimal_values(mdp, tol=1e-6)
    assert result.error_bound <= 1e-6
    assert result.policy_error_bound <= 4e-6
    of_policy = policy_values(mdp, result.policy, tol=1e-6)
    assert (
        np.abs(of_policy.v - result.v).max() <= of_policy.error_bound + result.error_bound + result.policy_error_bound
    )
