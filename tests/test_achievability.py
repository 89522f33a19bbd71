"""Whether values are those of a policy, the bounds on the distance, and the exact distance against brute force."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

from ipe.base.arrays import Array
from ipe.checks import Form
from ipe.errors import InputError, NotSolvedError
from ipe.inverse.achievability import distance_bounds, is_achievable
from ipe.inverse.distance import MAX_PAIRS, distance_to_achievable
from ipe.mdp import FiniteMDP
from ipe.planning import policy_values
from ipe.polytope import value_polytope
from ipe.zoo import dadashi, garnet, switch_stay
from tests.oracles import (
    TIGHT,
    dense_transitions,
    least_over_policies,
    look_ahead,
    optimal_value,
    policy_value,
    residual_of,
)
from tests.strategies import generators, mdps, random_mdp, random_pi, random_q, random_v
from tests.tiers import examples, tiered

FORMS: tuple[Form, ...] = ("v", "q")
GAMMA_STRATEGY = (0.0, 0.3, 0.9, 0.99)


def given_as(form: str, values: Array) -> dict[str, Any]:
    """The values as the keyword v or q."""
    return {form: values}


def values_of(rng: np.random.Generator, mdp: FiniteMDP, form: Form) -> Array:
    """The values of a random policy."""
    return policy_value(mdp, random_pi(rng, mdp))[0 if form == "v" else 1]


def any_values(rng: np.random.Generator, mdp: FiniteMDP, form: Form) -> Array:
    """Values of every kind: far from achievable, nearly so, exactly so."""
    noise = random_v(rng, mdp) if form == "v" else random_q(rng, mdp)
    scale = rng.choice([0.0, 1e-6, 0.03, 1.0])
    return noise if rng.random() < 0.4 else values_of(rng, mdp, form) + scale * noise


def scale_of(values: Array) -> float:
    return max(1.0, float(np.abs(values).max()))


def distance(mdp: FiniteMDP, form: Form, values: Array, achieved: Array) -> float:
    """The sup norm over what the MDP has."""
    present = ~mdp.terminal if form == "v" else mdp.allowed
    return float(np.abs(achieved - values)[present].max(initial=0.0))


def nearest_by_enumeration(mdp: FiniteMDP, form: Form, values: Array) -> float:
    """The least distance over all choices, per state, of an action above U(s) and one below: a program each."""
    P, gamma, n = dense_transitions(mdp), mdp.gamma, mdp.n_states
    live = np.flatnonzero(~mdp.terminal)
    fits = (
        [(np.eye(n)[s], values[s]) for s in live]
        if form == "v"
        else [(gamma * P[s, a], values[s, a] - mdp.rewards[s, a]) for s, a in np.argwhere(mdp.allowed)]
    )
    fit = [(sign * np.append(row, -sign), sign * target) for row, target in fits for sign in (1.0, -1.0)]
    options = [list(itertools.permutations(np.flatnonzero(mdp.allowed[s]), 2)) for s in live]
    only = [[(a, a) for a in np.flatnonzero(mdp.allowed[s])] for s in live]
    best = np.inf
    for choice in itertools.product(*(some or one for some, one in zip(options, only, strict=True))):
        rows, right = map(list, zip(*fit, strict=True)) if fit else ([], [])
        for s, (above, below) in zip(live, choice, strict=True):
            rows += [
                np.append(np.eye(n)[s] - gamma * P[s, above], 0.0),
                np.append(gamma * P[s, below] - np.eye(n)[s], 0.0),
            ]
            right += [mdp.rewards[s, above], -mdp.rewards[s, below]]
        bounds = [(0.0, 0.0) if ended else (None, None) for ended in mdp.terminal]
        cost = np.append(np.zeros(n), 1.0)
        found = linprog(cost, A_ub=np.array(rows), b_ub=right, bounds=[*bounds, (0.0, None)], options=TIGHT)
        if found.status == 0:
            best = min(best, found.fun)
    return best


# Membership


@given(mdps(), generators(), st.sampled_from(FORMS))
def test_the_values_of_a_policy_are_achievable(mdp: FiniteMDP, rng: np.random.Generator, form: Form) -> None:
    values = values_of(rng, mdp, form)
    answer = is_achievable(mdp, **given_as(form, values))
    assert answer.achievable is True
    assert answer.greedy.size == answer.anti_greedy.size == 0
    again = policy_value(mdp, answer.policy)[0 if form == "v" else 1]
    assert distance(mdp, form, values, again) <= 1e-8 * scale_of(values)


@given(mdps(), generators(), st.sampled_from(FORMS))
def test_membership_is_a_minimal_residual_of_zero(mdp: FiniteMDP, rng: np.random.Generator, form: Form) -> None:
    values = any_values(rng, mdp, form)
    answer = is_achievable(mdp, **given_as(form, values))
    rho = 0.0 if mdp.terminal.all() else least_over_policies(mdp, form, values, "linf", None)
    noise = 1e-8 * scale_of(values)
    assert answer.residual_lower_bound - noise <= rho <= answer.residual + noise
    assert answer.residual - answer.residual_lower_bound <= 1e-7 * max(rho, noise) + noise
    residual = np.abs(residual_of(mdp, form, values, answer.policy)).max(initial=0.0)
    assert_allclose(answer.residual, residual, atol=noise)
    if not 1e-10 < rho / scale_of(values) < 1e-8:
        assert answer.achievable is (rho < 1e-9 * scale_of(values))


@given(mdps(), generators())
def test_clipped_states_are_greedy_or_anti_greedy(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    v = random_v(rng, mdp)
    answer = is_achievable(mdp, v=v)
    q = look_ahead(mdp, v)
    live = [s for s in range(mdp.n_states) if not mdp.terminal[s]]
    assert list(answer.greedy) == [s for s in live if v[s] > np.nanmax(q[s])]
    assert list(answer.anti_greedy) == [s for s in live if v[s] < np.nanmin(q[s])]
    assert answer.achievable is (answer.greedy.size + answer.anti_greedy.size == 0)
    for states, best in ((answer.greedy, np.nanmax), (answer.anti_greedy, np.nanmin)):
        for s in states:
            assert_allclose(np.nansum(answer.policy[s] * q[s]), best(q[s]), rtol=1e-12)


def test_tolerance_is_relative_to_the_values() -> None:
    mdp = switch_stay()
    v = np.array([17.0, 20.0]) + 1e-6  # a residual of 1e-7, that is 5e-9 of the largest value
    assert is_achievable(mdp, v=v).achievable is False
    assert is_achievable(mdp, v=v, tolerance=1e-8).achievable is True
    assert is_achievable(mdp, v=v, tolerance=1e-8).greedy.size == 0


def test_a_large_mdp_is_decided_by_least_squares_or_left_open() -> None:
    mdp = garnet(1500, 3, 3, seed=0)
    rng = np.random.default_rng(0)
    q = values_of(rng, mdp, "q")
    assert is_achievable(mdp, q=q).achievable is True
    off = q + rng.normal(size=q.shape)
    answer = is_achievable(mdp, q=off)
    assert answer.achievable is False
    assert 0 < answer.residual_lower_bound < answer.residual
    between = np.sqrt(answer.residual_lower_bound * answer.residual) / scale_of(off)
    assert is_achievable(mdp, q=off, tolerance=float(between)).achievable is None


@pytest.mark.parametrize("function", [is_achievable, distance_bounds, distance_to_achievable])
def test_wrong_values_are_refused_by_name(function: Any) -> None:
    mdp = switch_stay()
    with pytest.raises(InputError, match=r"give either v .* or q"):
        function(mdp)
    with pytest.raises(InputError, match=r"give either v .* or q"):
        function(mdp, v=[1.0, 1.0], q=[[1.0, 1.0], [1.0, 1.0]])
    with pytest.raises(InputError, match=r"v must have shape \(2,\)"):
        function(mdp, v=[1.0, 1.0, 1.0])
    with pytest.raises(InputError, match=r"q\[1, 0\] = nan"):
        function(mdp, q=[[1.0, 1.0], [np.nan, 1.0]])
    ends = FiniteMDP(np.array([[[0.0, 1.0]], [[0.0, 1.0]]]), [[1.0], [0.0]], 0.9, terminal=[1])
    with pytest.raises(InputError, match="state 1 is terminal and has value 0, but 2 was given"):
        function(ends, v=[1.0, 2.0])


def test_wrong_options_are_refused_by_name() -> None:
    mdp = switch_stay()
    with pytest.raises(InputError, match="tolerance must be a finite number > 0"):
        is_achievable(mdp, v=[1.0, 1.0], tolerance=0.0)
    with pytest.raises(InputError, match="time_limit must be a finite number > 0"):
        distance_to_achievable(mdp, v=[1.0, 1.0], time_limit=-1.0)
    with pytest.raises(InputError, match="rtol must be at least 1e-05"):
        distance_to_achievable(mdp, v=[1.0, 1.0], rtol=1e-9)
    assert MAX_PAIRS == 200
    with pytest.raises(InputError, match=r"at most 200 allowed pairs .* has 202\. distance_bounds has no such limit"):
        distance_to_achievable(garnet(101, 2, 2, seed=0), v=np.zeros(101))


# Bounds on the distance


@examples(150)
@given(mdps(max_states=4, max_actions=3), generators(), st.sampled_from(FORMS))
def test_the_bounds_enclose_the_distance(mdp: FiniteMDP, rng: np.random.Generator, form: Form) -> None:
    values = any_values(rng, mdp, form)
    lower, upper = distance_bounds(mdp, **given_as(form, values))
    exact = distance_to_achievable(mdp, **given_as(form, values))
    noise = 2e-9 * scale_of(values)
    assert lower - noise <= exact.distance <= upper + exact.gap + noise
    assert lower - noise <= exact.lower_bound


def test_the_upper_bound_is_attained_above_the_optimal_values() -> None:
    # All values of policies lie below V*, so from V* + x the distance is x; and rho = x - gamma x.
    mdp = switch_stay()
    for form, best in (("v", np.array([17.0, 20.0])), ("q", np.array([[16.3, 17.0], [20.0, 15.3]]))):
        lower, upper = distance_bounds(mdp, **given_as(form, best + 3.0))
        exact = distance_to_achievable(mdp, **given_as(form, best + 3.0))
        assert_allclose(upper, 3.0, rtol=1e-9)
        assert_allclose(exact.distance, upper, rtol=1e-9)
        assert_allclose(exact.lower_bound, upper, rtol=1e-5)
        assert_allclose(exact.values, best, rtol=1e-9)
        assert_allclose(lower, 0.3 / 1.9, rtol=1e-9)


def test_the_lower_bound_is_attained_where_an_error_comes_back_with_the_other_sign() -> None:
    # Switch/switch has the values (-5.263, -4.737). Move them apart: what a state promises less, its successor
    # promises more, and the residual is x + gamma x. Its own values remain the nearest.
    mdp = switch_stay()
    v, q = policy_value(mdp, np.array([[0.0, 1.0], [0.0, 1.0]]))
    x = 0.5
    for form, truth, off in (
        ("v", v, v + np.array([-x, x])),
        ("q", q, q + np.array([[-x, -x], [x, x]])),
    ):
        lower, upper = distance_bounds(mdp, **given_as(form, off))
        exact = distance_to_achievable(mdp, **given_as(form, off))
        assert_allclose(lower, x, rtol=1e-9)
        assert_allclose(exact.distance, lower, rtol=1e-9)
        assert_allclose(exact.values, truth, rtol=1e-8)
        assert_allclose(upper, 1.9 * x / 0.1, rtol=1e-9)


def test_both_ends_are_attained_with_a_single_action() -> None:
    alone = FiniteMDP(np.ones((1, 1, 1)), [[1.0]], 0.5)  # value 2
    assert_allclose(distance_bounds(alone, v=[5.0])[1], 3.0)
    assert_allclose(distance_to_achievable(alone, v=[5.0]).distance, 3.0)
    swap = FiniteMDP(np.eye(2)[::-1][:, None], [[0.0], [0.0]], 0.5)  # value (0, 0)
    assert_allclose(distance_bounds(swap, v=[1.0, -1.0])[0], 1.0)
    assert_allclose(distance_to_achievable(swap, v=[1.0, -1.0]).distance, 1.0)


def test_the_bounds_by_least_squares_are_wider_but_hold() -> None:
    rng = np.random.default_rng(1)
    small, large = garnet(900, 2, 3, seed=1), garnet(1100, 2, 3, seed=1)
    for mdp in (small, large):
        q = values_of(rng, mdp, "q") + rng.normal(size=(mdp.n_states, 2))
        lower, upper = distance_bounds(mdp, q=q)
        # Any policy's values are a witness from above, and rho of the l-inf program is between the two.
        rho = least_rho(mdp, q)
        assert lower <= rho / (1 + mdp.gamma) + 1e-6
        assert upper >= rho / (1 - mdp.gamma) - 1e-6


def least_rho(mdp: FiniteMDP, q: Array) -> float:
    """The minimal sup-norm residual by a sparse linear program."""
    from scipy import sparse

    matrix = mdp.gamma * mdp.transitions
    one = sparse.csr_array(np.ones((matrix.shape[0], 1)))
    b = (q - mdp.rewards).ravel()
    found = linprog(
        np.append(np.zeros(mdp.n_states), 1.0),
        A_ub=sparse.vstack([sparse.hstack([matrix, -one]), sparse.hstack([-matrix, -one])]),
        b_ub=np.concatenate([b, -b]),
        bounds=[*zip(q.min(axis=1), q.max(axis=1), strict=True), (0.0, None)],
        method="highs-ipm",
    )
    return float(found.fun)


# The exact distance


@st.composite
def two_live_states(draw: st.DrawFn) -> FiniteMDP:
    rng = draw(generators())
    mdp = random_mdp(
        rng,
        draw(st.integers(2, 4)),
        draw(st.integers(1, 4)),
        successors=draw(st.sampled_from([None, 1, 2])),
        gamma=draw(st.sampled_from(GAMMA_STRATEGY)),
        masks=draw(st.booleans()),
        terminals=True,
    )
    assume(int((~mdp.terminal).sum()) == 2)
    return mdp


@examples(200)
@given(two_live_states() | mdps(min_states=2, max_states=2), generators())
def test_two_states_agree_with_the_polytope(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    assume(int((~mdp.terminal).sum()) == 2)
    v = any_values(rng, mdp, "v") * rng.choice([0.1, 1.0, 30.0])
    found = distance_to_achievable(mdp, v=v)
    polytope = value_polytope(mdp)
    _, truth = polytope.nearest(v[list(polytope.states)], norm="linf")
    assert_allclose(found.distance, float(truth), rtol=1e-8, atol=2e-9 * scale_of(v))
    assert found.lower_bound <= float(truth) + 1e-9 * scale_of(v)


@pytest.mark.parametrize("example", [1, 2, 3, 4, 5])
def test_the_mdps_of_dadashi_agree_with_the_polytope(example: int) -> None:
    mdp = dadashi(example)
    polytope = value_polytope(mdp)
    rng = np.random.default_rng(example)
    points = polytope.vertices[rng.integers(len(polytope.vertices), size=4)] + 3.0 * rng.normal(size=(4, 2))
    for point, truth in zip(points, polytope.nearest(points, norm="linf")[1], strict=True):
        assert_allclose(distance_to_achievable(mdp, v=point).distance, truth, rtol=1e-8, atol=1e-8)


@examples(100)
@given(mdps(max_states=3, max_actions=3), generators(), st.sampled_from(FORMS))
def test_the_distance_is_that_of_the_best_choice_of_actions(
    mdp: FiniteMDP, rng: np.random.Generator, form: Form
) -> None:
    values = any_values(rng, mdp, form)
    found = distance_to_achievable(mdp, **given_as(form, values))
    truth = nearest_by_enumeration(mdp, form, values)
    noise = 2e-9 * scale_of(values)
    assert_allclose(found.distance, truth, rtol=1e-7, atol=noise)
    assert found.lower_bound <= truth + noise


@pytest.mark.parametrize("seed", tiered(range(10), 0, 1))
@pytest.mark.parametrize("form", FORMS)
def test_values_far_from_every_policy_agree_with_the_enumeration(seed: int, form: Form) -> None:
    rng = np.random.default_rng(seed)
    n_states, n_actions = ((3, 3), (5, 2))[seed % 2]
    gamma = float(rng.choice([0.5, 0.9, 0.99]))
    mdp = random_mdp(rng, n_states, n_actions, successors=rng.choice([2, n_states]), gamma=gamma, masks=seed % 3 == 0)
    values = (random_v if form == "v" else random_q)(rng, mdp, scale=30.0)
    found = distance_to_achievable(mdp, **given_as(form, values))
    truth = nearest_by_enumeration(mdp, form, values)
    assert truth > 0.01
    assert_allclose(found.distance, truth, rtol=1e-8)
    assert found.lower_bound <= truth * (1 + 1e-9)


@examples(150)
@given(mdps(max_states=5, max_actions=3), generators(), st.sampled_from(FORMS))
def test_no_policy_is_nearer_and_the_one_returned_is_as_near(
    mdp: FiniteMDP, rng: np.random.Generator, form: Form
) -> None:
    values = any_values(rng, mdp, form)
    found = distance_to_achievable(mdp, **given_as(form, values))
    noise = 1e-9 * scale_of(values)
    achieved = policy_value(mdp, found.policy)[0 if form == "v" else 1]
    assert distance(mdp, form, values, achieved) <= found.distance + noise
    assert_allclose(np.nan_to_num(found.values), achieved, atol=noise)
    assert found.gap <= max(1e-5 * found.distance, noise)
    if form == "q":
        live_and_missing = ~mdp.allowed & ~mdp.terminal[:, None]
        assert_array_equal(np.isnan(found.values), live_and_missing)
    for other in local_search(rng, mdp, form, values, found.policy):
        assert other >= found.lower_bound - noise


def local_search(rng: np.random.Generator, mdp: FiniteMDP, form: Form, values: Array, start: Array) -> list[float]:
    """Distances of random policies, and of random steps downhill from them and from `start`."""
    distances = []
    for policy in [start, *(random_pi(rng, mdp) for _ in range(4))]:
        best = distance(mdp, form, values, policy_value(mdp, policy)[0 if form == "v" else 1])
        for step in (0.5, 0.1, 0.02) * 4:
            trial = (1 - step) * policy + step * random_pi(rng, mdp)
            off = distance(mdp, form, values, policy_value(mdp, trial)[0 if form == "v" else 1])
            if off < best:
                best, policy = off, trial
        distances.append(best)
    return distances


@pytest.mark.parametrize("point", [(18.0, -6.0), (14.0, 6.0), (0.0, 22.0), (-6.0, 10.0)])
def test_a_fine_grid_of_policies_comes_as_near_and_no_nearer(point: tuple[float, float]) -> None:
    mdp = switch_stay()
    found = distance_to_achievable(mdp, v=point)
    p, q = np.meshgrid(np.linspace(0, 1, 801), np.linspace(0, 1, 801), indexing="ij")  # of staying
    chain = np.array([[p, 1 - p], [1 - q, q]])
    r0, r1 = 2 * p - 1, 2 * q
    determinant = (1 - 0.9 * chain[0, 0]) * (1 - 0.9 * chain[1, 1]) - 0.81 * chain[0, 1] * chain[1, 0]
    v0 = ((1 - 0.9 * chain[1, 1]) * r0 + 0.9 * chain[0, 1] * r1) / determinant
    v1 = (0.9 * chain[1, 0] * r0 + (1 - 0.9 * chain[0, 0]) * r1) / determinant
    grid = np.maximum(np.abs(v0 - point[0]), np.abs(v1 - point[1])).min()
    assert found.lower_bound <= grid
    assert found.distance - 1e-9 <= grid <= found.distance + 0.1


@given(mdps(max_states=5), generators(), st.sampled_from(FORMS))
def test_the_distance_is_zero_iff_achievable(mdp: FiniteMDP, rng: np.random.Generator, form: Form) -> None:
    values = values_of(rng, mdp, form)
    small = 1e-9 * scale_of(values)
    assert distance_to_achievable(mdp, **given_as(form, values)).distance <= small
    off = any_values(rng, mdp, form)
    answer = is_achievable(mdp, **given_as(form, off))
    if answer.achievable is False:
        assert distance_to_achievable(mdp, **given_as(form, off)).lower_bound >= answer.residual_lower_bound / 2


@pytest.mark.parametrize("form", FORMS)
def test_nearly_achievable_values_are_told_apart(form: Form) -> None:
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, 6, 3, successors=3)
    values = optimal_value(mdp)[0 if form == "v" else 1]  # a corner: most directions lead out
    noise = random_v(rng, mdp) if form == "v" else random_q(rng, mdp)
    found = distance_to_achievable(mdp, **given_as(form, values + 1e-5 * noise))
    assert 0 < found.lower_bound <= found.distance <= 1.0001e-5 * np.abs(noise).max()
    assert found.gap <= max(1e-5 * found.distance, 1e-9 * scale_of(values))


@pytest.mark.parametrize("form", FORMS)
def test_ten_states_are_solved(form: Form) -> None:
    rng = np.random.default_rng(4)
    mdp = random_mdp(rng, 10, 3, successors=3)
    values = random_v(rng, mdp) if form == "v" else random_q(rng, mdp)
    found = distance_to_achievable(mdp, **given_as(form, values))
    lower, upper = distance_bounds(mdp, **given_as(form, values))
    assert lower < found.lower_bound <= found.distance < upper


def test_when_time_runs_out_the_error_carries_the_bounds() -> None:
    rng = np.random.default_rng(5)
    mdp = random_mdp(rng, 40, 4)
    q = random_q(rng, mdp)
    with pytest.raises(NotSolvedError, match=r"the distance lies between .* and .*rtol = 1e-05") as caught:
        distance_to_achievable(mdp, q=q, time_limit=0.05)
    result = caught.value.result
    lower, upper = distance_bounds(mdp, q=q)
    assert lower <= result.lower_bound < result.distance <= upper
    achieved = policy_value(mdp, result.policy)[1]
    assert_allclose(distance(mdp, "q", q, achieved), result.distance, rtol=1e-9)


def test_nothing_but_terminal_states() -> None:
    mdp = FiniteMDP(np.zeros((2, 1, 2)), np.zeros((2, 1)), 0.9, terminal=[0, 1])
    assert is_achievable(mdp, v=[0.0, 0.0]).achievable is True
    assert distance_bounds(mdp, q=[[0.0], [0.0]]) == (0.0, 0.0)
    assert_allclose(distance_to_achievable(mdp, v=[0.0, 0.0]).distance, 0.0, atol=1e-12)


def test_without_discount_the_distance_is_the_residual() -> None:
    mdp = switch_stay(gamma=0.0)  # V ranges over [-1, 1] x [0, 2], and Q = r
    assert_allclose(distance_to_achievable(mdp, v=[4.0, 1.0]).distance, 3.0)
    assert_allclose(distance_bounds(mdp, v=[4.0, 1.0]), (3.0, 3.0))
    assert_allclose(distance_to_achievable(mdp, q=[[1.0, -1.0], [2.0, 0.25]]).distance, 0.25)
    assert is_achievable(mdp, q=[[1.0, -1.0], [2.0, 0.0]]).achievable is True


def test_the_distance_is_found_as_far_as_float64_goes() -> None:
    """Next to gamma = 1 the values of a policy are known to less than the tolerance."""
    mdp = garnet(4, 3, 3, gamma=0.999999)
    for v in (np.zeros(4), policy_values(mdp, np.full((4, 3), 1 / 3)).v):
        assert distance_to_achievable(mdp, v=v).lower_bound == 0.0
