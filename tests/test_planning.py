"""Bellman operators and the policies that need no solver."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipe import planning, zoo
from ipe.base.arrays import Array
from ipe.checks import check_policy
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from tests.strategies import generators, mdps, random_mdp, random_pi, random_q, random_v

untyped: Any = planning  # to call it with what it must refuse


def assert_close(found: Array, expected: Array) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def looped_q(mdp: FiniteMDP, v: Array) -> Array:
    """r + gamma P v by three loops, as users see it."""
    dense = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    q = np.full((mdp.n_states, mdp.n_actions), np.nan)
    for s in range(mdp.n_states):
        for a in range(mdp.n_actions):
            if mdp.allowed[s, a]:
                q[s, a] = mdp.rewards[s, a] + mdp.gamma * sum(dense[s, a, t] * v[t] for t in range(mdp.n_states))
        if mdp.terminal[s]:
            q[s] = 0.0
    return q


def looped_mean(mdp: FiniteMDP, pi: Array, q: Array) -> Array:
    return np.array([sum(pi[s, a] * q[s, a] for a in np.flatnonzero(mdp.allowed[s])) for s in range(mdp.n_states)])


def looped_max(mdp: FiniteMDP, q: Array) -> Array:
    return np.array([max((q[s, a] for a in np.flatnonzero(mdp.allowed[s])), default=0.0) for s in range(mdp.n_states)])


@given(mdps(), generators())
def test_operators_are_what_their_definitions_say(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    v, q, pi = random_v(rng, mdp), random_q(rng, mdp), random_pi(rng, mdp)
    q_v = looped_q(mdp, v)
    assert_close(planning.q_from_v(mdp, v), q_v)
    assert_close(planning.bellman_operator(mdp, pi, v=v), looped_mean(mdp, pi, q_v))
    assert_close(planning.optimality_operator(mdp, v=v), looped_max(mdp, q_v))
    of_policy, of_best = looped_q(mdp, looped_mean(mdp, pi, q)), looped_q(mdp, looped_max(mdp, q))
    assert_close(planning.bellman_operator(mdp, pi, q=q), of_policy)
    assert_close(planning.optimality_operator(mdp, q=q), of_best)


@given(mdps(), generators())
def test_operators_contract_and_are_monotone(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    pi = random_pi(rng, mdp)
    v, w = random_v(rng, mdp), random_v(rng, mdp)
    q, u = random_q(rng, mdp), random_q(rng, mdp)

    def apart(x: Array, y: Array) -> float:
        return float(np.nanmax(np.abs(x - y)))

    def both(x: dict[str, Array]) -> tuple[Array, Array]:
        return planning.bellman_operator(mdp, pi, **x), planning.optimality_operator(mdp, **x)

    for one, other in (({"v": v}, {"v": w}), ({"q": q}, {"q": u})):
        (name, x), y = next(iter(one.items())), next(iter(other.values()))
        for image, image_of_other, image_of_larger in zip(
            both(one), both(other), both({name: np.maximum(x, y)}), strict=True
        ):
            assert apart(image, image_of_other) <= mdp.gamma * apart(x, y) + 1e-12
            assert np.nanmax(image - image_of_larger) <= 1e-12


@given(mdps(), generators())
def test_state_values_lie_within_the_action_bounds(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    q, pi = random_q(rng, mdp), random_pi(rng, mdp)
    lo, hi = planning.action_bounds(mdp, q)
    v = planning.state_values(mdp, pi, q)
    assert_close(v, looped_mean(mdp, pi, q))
    np.testing.assert_array_equal(hi, looped_max(mdp, q))
    np.testing.assert_array_equal(lo, -looped_max(mdp, -q))
    assert (lo - 1e-12 <= v).all()
    assert (v <= hi + 1e-12).all()
    for values in (lo, hi, v):
        assert not values[mdp.terminal].any()


def test_returned_action_values_say_which_pairs_are_missing() -> None:
    mdp = random_mdp(np.random.default_rng(0), 6, 3, masks=True, terminals=True)
    missing = ~mdp.allowed & ~mdp.terminal[:, None]
    assert missing.any()
    assert mdp.terminal.any()
    q = planning.q_from_v(mdp, np.zeros(6))
    np.testing.assert_array_equal(np.isnan(q), missing)
    assert not q[mdp.terminal].any()
    np.testing.assert_array_equal(planning.optimality_operator(mdp, q=q), planning.q_from_v(mdp, looped_max(mdp, q)))


@given(mdps(), generators(), st.sampled_from(["uniform", "first"]))
def test_greedy_attains_the_maximum(mdp: FiniteMDP, rng: np.random.Generator, ties: Any) -> None:
    v, q = random_v(rng, mdp), random_q(rng, mdp)
    greedy = planning.greedy_policy(mdp, v=v, ties=ties)
    np.testing.assert_array_equal(check_policy(mdp, greedy), greedy)
    best = planning.optimality_operator(mdp, v=v)
    assert_close(planning.bellman_operator(mdp, greedy, v=v), best)
    greedy = planning.greedy_policy(mdp, q=q, ties=ties)
    assert_close(planning.state_values(mdp, greedy, q), planning.action_bounds(mdp, q)[1])
    assert not greedy[mdp.terminal].any()


def test_greedy_ties_and_tolerance() -> None:
    mdp = FiniteMDP(
        np.full((2, 4, 2), 0.5), np.zeros((2, 4)), 0.9, allowed=np.array([[True, True, True, False], [True] * 4])
    )
    q = [[1.0, 1.0, 0.5, 9.0], [0.0, -1.0, 0.0, -0.25]]
    third = 1 / 3
    for arguments, expected in (
        ({}, [[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0]]),
        ({"ties": "first"}, [[1, 0, 0, 0], [1, 0, 0, 0]]),
        ({"tolerance": 0.25}, [[0.5, 0.5, 0, 0], [third, 0, third, third]]),
        ({"tolerance": 1.0}, [[third, third, third, 0], [0.25, 0.25, 0.25, 0.25]]),
    ):
        np.testing.assert_array_equal(planning.greedy_policy(mdp, q=q, **arguments), expected)


def test_first_tie_within_the_tolerance_and_not_the_maximum() -> None:
    mdp = zoo.switch_stay()
    policy = planning.greedy_policy(mdp, q=[[1.0, 1.0 + 1e-12], [0.0, 1.0]], ties="first", tolerance=1e-9)
    np.testing.assert_array_equal(policy, [[1, 0], [0, 1]])


@given(mdps(), st.integers(0, 1000))
def test_uniform_and_random_policies(mdp: FiniteMDP, seed: int) -> None:
    uniform, random = planning.uniform_policy(mdp), planning.random_policy(mdp, seed)
    for policy in (uniform, random):
        np.testing.assert_array_equal(check_policy(mdp, policy), policy)
        assert not policy[mdp.terminal].any()
    counts = mdp.allowed.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(uniform[mdp.allowed], (1 / np.maximum(counts, 1) * mdp.allowed)[mdp.allowed])
    assert (random[mdp.allowed] > 0).all()
    np.testing.assert_array_equal(random, planning.random_policy(mdp, np.random.default_rng(seed)))


def test_random_policies_are_uniform_on_the_simplex() -> None:
    mdp = zoo.garnet(20_000, n_actions=4, successors=1)
    pi = planning.random_policy(mdp, seed=3)
    moments = [(pi**k).mean() for k in (1, 2, 3)]  # of Beta(1, 3), the marginals of Dirichlet(1, 1, 1, 1)
    np.testing.assert_allclose(moments, [1 / 4, 1 / 10, 1 / 20], rtol=0.02)
    assert not np.array_equal(pi, planning.random_policy(mdp, seed=4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: untyped.q_from_v(m, [0.0]), r"v must have shape \(2,\), one value per state; found \(1,\)"),
        (lambda m: untyped.q_from_v(m, [0.0, np.nan]), r"v\[1\] = nan is not a finite number"),
        (lambda m: untyped.bellman_operator(m, np.eye(2)), "give either v .* or q .*, and not both"),
        (lambda m: untyped.bellman_operator(m, np.eye(2), v=[0, 0], q=np.eye(2)), "give either v .* or q"),
        (lambda m: untyped.bellman_operator(m, np.ones((2, 2)), v=[0, 0]), r"policy\[0\] sums to 2, not to 1"),
        (lambda m: untyped.bellman_operator(m, np.eye(2), q=[[0, np.inf], [0, 0]]), r"q\[0, 1\] = inf is not"),
        (lambda m: untyped.optimality_operator(m), "give either v .* or q"),
        (lambda m: untyped.state_values(m, np.eye(2), [0, 0]), r"q must have shape \(2, 2\)"),
        (lambda m: untyped.action_bounds(m, [[0, 0], [0, np.nan]]), r"q\[1, 1\] = nan is not"),
        (lambda m: untyped.greedy_policy(m), "give either v .* or q"),
        (
            lambda m: untyped.greedy_policy(m, v=[0, 0], ties="last"),
            "ties must be one of uniform, first; found 'last'",
        ),
        (lambda m: untyped.greedy_policy(m, v=[0, 0], tolerance=-1.0), r"tolerance must be .* >= 0, found -1\.0"),
        (lambda m: untyped.greedy_policy(m, v=[0, 0], tolerance=np.nan), "tolerance must be .* found nan"),
        (lambda m: untyped.greedy_policy(m, v=[0, 0], tolerance="0"), "tolerance must be .* found '0'"),
        (lambda m: untyped.random_policy(m, -1), "seed must be a whole number >= 0 .* found -1"),
        (lambda m: untyped.random_policy(m, 0.5), r"seed must be a whole number >= 0 .* found 0\.5"),
        (lambda m: untyped.random_policy(m, None), "seed must be a whole number >= 0 .* found None"),
    ],
)
def test_wrong_input_is_named(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call(zoo.switch_stay())


def test_values_of_terminal_states_are_refused() -> None:
    mdp = zoo.chain(4)
    with pytest.raises(InputError, match="state 3 is terminal and has value 0, but 1 was given"):
        planning.q_from_v(mdp, [0, 0, 0, 1])
    with pytest.raises(InputError, match="state 3 is terminal and has value 0, but 2 was given"):
        planning.optimality_operator(mdp, q=[[0, 0]] * 3 + [[0, 2]])
