"""The values of a policy: closed forms, independent solvers, and whether the stated error bound is one."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from ipe import zoo
from ipe.base.arrays import Array
from ipe.errors import InputError, NotSolvedError
from ipe.mdp import FiniteMDP
from ipe.planning import bellman_operator, linear, policy_values, q_from_v, random_policy, uniform_policy
from ipe.planning.krylov import bicgstab
from tests.planning_oracles import distance, exact_policy_values
from tests.strategies import generators, mdps, random_pi
from tests.tiers import examples

METHODS = ("auto", "direct", "krylov")
methods = st.sampled_from(METHODS)
untyped: Any = policy_values


def one_action(matrix: Any, rewards: Array, gamma: float) -> FiniteMDP:
    return FiniteMDP(sparse.csr_array(matrix), rewards[:, None], gamma)


def cycle(n: int, gamma: float, jump: float = 0.0, seed: int = 0) -> FiniteMDP:
    """Round and round; with probability `jump` to some other fixed state instead."""
    rng = np.random.default_rng(seed)
    s = np.arange(n)
    entries = (np.r_[np.full(n, 1 - jump), np.full(n, jump)], (np.r_[s, s], np.r_[(s + 1) % n, rng.permutation(n)]))
    return one_action(sparse.coo_array(entries, shape=(n, n)), rng.normal(size=n), gamma)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("actions", "values"),
    [((0, 0), (10, 20)), ((1, 0), (17, 20)), ((0, 1), (10, 9)), ((1, 1), (-100 / 19, -90 / 19))],
)
def test_switch_stay(method: Any, actions: tuple[int, int], values: tuple[float, float]) -> None:
    result = policy_values(zoo.switch_stay(), np.eye(2)[list(actions)], method=method)
    np.testing.assert_allclose(result.v, values, rtol=0, atol=result.error_bound + 1e-14)
    assert result.error_bound <= 1e-10


@pytest.mark.parametrize("method", METHODS)
def test_a_corridor_is_a_geometric_series(method: Any) -> None:
    n, gamma = 40, 0.97
    mdp = FiniteMDP(np.eye(n, k=1)[:, None, :], np.r_[np.ones(n - 1), 0.0][:, None], gamma, terminal=[n - 1])
    result = policy_values(mdp, np.ones((n, 1)), method=method)
    left = np.arange(n - 1, -1, -1)
    np.testing.assert_allclose(result.v, (1 - gamma**left) / (1 - gamma), rtol=0, atol=1e-10)
    assert result.v[-1] == 0.0


@given(mdps(max_states=12), generators(), methods)
def test_methods_agree_with_a_dense_solve(mdp: FiniteMDP, rng: np.random.Generator, method: Any) -> None:
    pi = random_pi(rng, mdp)
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    chain = np.einsum("sa,sat->st", pi, dense)
    chain[:, mdp.terminal] = 0.0
    expected = np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * chain, (pi * mdp.rewards).sum(axis=1))
    result = policy_values(mdp, pi, method=method)
    np.testing.assert_allclose(result.v, expected, rtol=1e-10, atol=1e-10)
    assert not result.v[mdp.terminal].any()
    true_residual = np.abs(bellman_operator(mdp, pi, v=result.v) - result.v).max()
    assert abs(result.residual - true_residual) <= 1e-12
    assert result.residual / (1 - mdp.gamma) <= result.error_bound * (1 + 1e-9) or mdp.terminal.any()


@examples(60)
@given(
    mdps(max_states=6, max_actions=3, gammas=(0.0, 0.5, 0.99, 0.9999)),
    generators(),
    methods,
    st.sampled_from([1.0, 1e-3, 1e-10, 1e-300]),
)
def test_the_error_bound_holds_without_any_rounding_left_out(
    mdp: FiniteMDP, rng: np.random.Generator, method: Any, tol: float
) -> None:
    pi = random_pi(rng, mdp)
    if rng.random() < 0.5:  # a policy that leaves actions out
        pi = np.where(pi == pi.max(axis=1, keepdims=True), 1.0, 0.0) * mdp.allowed
    result = policy_values(mdp, pi, method=method, tol=tol)
    assert distance(exact_policy_values(mdp, pi), result.v) <= Fraction(result.error_bound)
    scale = np.abs(mdp.rewards).max() + np.abs(result.v).max()
    roundings = mdp.n_states * mdp.n_actions + mdp.n_actions + 5
    floor = 5.01 * roundings * 2.0**-53 * scale / (1 - mdp.gamma) + 1e-300
    assert result.error_bound <= max(tol, floor)


def test_krylov_on_a_larger_garnet_agrees_with_the_factors() -> None:
    mdp = zoo.garnet(1500, gamma=0.99)
    pi = random_policy(mdp, 1)
    auto, direct = policy_values(mdp, pi), policy_values(mdp, pi, method="direct")
    assert (auto.method, direct.method) == ("krylov", "direct")
    assert np.abs(auto.v - direct.v).max() <= auto.error_bound + direct.error_bound
    assert auto.error_bound <= 1e-10


@pytest.mark.parametrize("gamma", [0.95, 0.999, 0.99999])
def test_a_long_cycle_where_krylov_stalls(gamma: float) -> None:
    n = 3000
    mdp = cycle(n, gamma)
    result = policy_values(mdp, np.ones((n, 1)), method="krylov")
    assert result.method == "direct"
    powers = gamma ** np.arange(n)
    expected = np.array([powers @ np.roll(mdp.rewards[:, 0], -s) for s in (0, 1, n - 1)]) / (1 - gamma**n)
    np.testing.assert_allclose(result.v[[0, 1, n - 1]], expected, rtol=0, atol=result.error_bound + 1e-11)


def test_a_tangled_cycle_is_swept() -> None:
    mdp = cycle(2000, 0.98, jump=1e-3)
    result = policy_values(mdp, np.ones((2000, 1)))
    assert result.method == "sweeps"
    assert result.error_bound <= 1e-10
    direct = policy_values(mdp, np.ones((2000, 1)), method="direct")
    assert np.abs(result.v - direct.v).max() <= result.error_bound + direct.error_bound


def test_actions_without_probability_do_not_matter() -> None:
    mdp = zoo.garnet(50, 4, 5, seed=2)
    alone = FiniteMDP(mdp.transitions[2::4], mdp.rewards[:, 2:3], mdp.gamma)
    of_all = policy_values(mdp, np.eye(4)[np.full(50, 2)])
    np.testing.assert_allclose(of_all.v, policy_values(alone, np.ones((50, 1))).v, rtol=1e-13)


@pytest.mark.parametrize("method", METHODS)
def test_no_discount_no_future(method: Any) -> None:
    mdp = zoo.garnet(30, gamma=0.0)
    pi = random_policy(mdp, 0)
    result = policy_values(mdp, pi, method=method)
    np.testing.assert_allclose(result.v, (pi * mdp.rewards).sum(axis=1), rtol=1e-15)


def test_nothing_but_terminal_states() -> None:
    mdp = FiniteMDP(np.zeros((3, 2, 3)), np.zeros((3, 2)), 0.9, terminal=[0, 1, 2])
    result = policy_values(mdp, np.zeros((3, 2)))
    assert not result.v.any()
    assert not result.q.any()
    assert result.error_bound <= 1e-300


def test_action_values_are_computed_once_and_show_what_is_missing() -> None:
    mdp = FiniteMDP(np.full((2, 2, 2), 0.5), np.ones((2, 2)), 0.5, allowed=np.array([[True, False], [True, True]]))
    result = policy_values(mdp, uniform_policy(mdp))
    assert result.q is result.q
    np.testing.assert_array_equal(result.q, q_from_v(mdp, result.v))
    np.testing.assert_allclose(result.q, [[2.0, np.nan], [2.0, 2.0]])
    assert "mdp" not in repr(result)


def test_a_miss_is_raised_with_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    mdp = zoo.garnet(40)
    pi = random_policy(mdp, 0)
    monkeypatch.setattr(linear, "FLOOR", 1e-3)  # now more is asked for than float64 can hold
    with pytest.raises(NotSolvedError, match=r"known to .* only, not to tol = 1e-300: direct stopped") as caught:
        policy_values(mdp, pi, tol=1e-300)
    result = caught.value.result
    assert 0 < result.residual < 1e-13
    assert result.error_bound < 1e-11
    with pytest.raises(NotSolvedError, match="not to tol"):
        policy_values(mdp, pi, method="krylov", tol=1e-300)


def test_bicgstab_stops_at_its_target_and_at_a_breakdown() -> None:
    rng = np.random.default_rng(0)
    matrix, b = np.eye(30) + 0.02 * rng.normal(size=(30, 30)), rng.normal(size=30)
    x, products = bicgstab(lambda y: matrix @ y, b, 1e-9, 100)
    assert np.abs(matrix @ x - b).max() <= 2e-9
    assert products < 40
    counts = [bicgstab(lambda y: matrix @ y, b, 10.0**-k, 100)[1] for k in range(1, 12)]
    assert counts == sorted(counts)
    assert {count % 2 for count in counts} == {0, 1}  # it may stop after either half of an iteration
    with_kernel = np.array([[1.0, 0.0], [1.0, 0.0]])  # the first half leaves a residual that it maps to 0
    x, products = bicgstab(lambda y: with_kernel @ y, np.array([1.0, 0.0]), 1e-9, 100)
    assert products == 2
    np.testing.assert_array_equal(x, [1.0, 0.0])
    rotation = np.array([[0.0, 1.0], [-1.0, 0.0]])  # orthogonal to every right side: breaks down at once
    x, products = bicgstab(lambda y: rotation @ y, np.array([1.0, 2.0]), 1e-9, 100)
    assert products == 1
    assert not x.any()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"method": "lu"}, "method must be one of auto, direct, krylov; found 'lu'"),
        ({"tol": 0.0}, r"tol must be a finite number > 0, found 0\.0"),
        ({"tol": np.inf}, "tol must be a finite number > 0, found inf"),
        ({"tol": "small"}, "tol must be a finite number > 0, found 'small'"),
        ({"policy": np.full((2, 2), 0.6)}, r"policy\[0\] sums to 1\.2, not to 1 \(off by 0\.2\)"),
        ({"policy": [[1.5, -0.5], [1, 0]]}, r"policy\[0, 1\] = -0\.5 is not a probability"),
        ({"policy": [1, 0]}, r"policy must have shape \(2, 2\); found \(2,\)"),
    ],
)
def test_wrong_input_is_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        untyped(zoo.switch_stay(), **({"policy": np.eye(2)} | arguments))


def test_rows_that_do_not_contract_are_refused() -> None:
    mdp = FiniteMDP([[[0.5, 0.5]], [[0.5, 0.6]]], np.ones((2, 1)), 0.95, tolerance=0.2)
    with pytest.raises(InputError, match=r"gamma = 0\.95 times the sum 1\.1 of a row .* in state 1 is not below 1"):
        policy_values(mdp, np.ones((2, 1)))


def test_rows_a_little_off_are_accounted_for() -> None:
    mdp = FiniteMDP([[[0.5, 0.501]], [[0.5, 0.499]]], np.array([[1.0], [2.0]]), 0.99, tolerance=0.01)
    result = policy_values(mdp, np.ones((2, 1)), tol=1e-3)
    assert distance(exact_policy_values(mdp, np.ones((2, 1))), result.v) <= Fraction(result.error_bound)


def test_values_beyond_float64_are_refused() -> None:
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[1e300]], 0.9)
    with pytest.raises(InputError, match=r"rewards of size 1e\+300 with gamma = 0\.9 make values as large as"):
        policy_values(mdp, [[1.0]])
