"""The paper's bounds against independent arithmetic and on random MDPs, and the counterexamples to its remarks."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from ipe.base.arrays import Array
from ipe.checks import Form
from ipe.errors import InputError
from ipe.inverse import counterexamples
from ipe.inverse.achievability import is_achievable
from ipe.inverse.bounds import Bound, proposition_1, proposition_2
from ipe.inverse.counterexamples import losses
from ipe.inverse.solve import evaluation_policy
from ipe.inverse.theorems import loss_bound, theorem_1, theorem_1_remark, theorem_2
from ipe.mdp import FiniteMDP
from ipe.planning import greedy_policy, policy_values
from ipe.zoo import garnet, switch_stay
from tests.oracles import look_ahead, optimal_value, policy_value, residual_of
from tests.strategies import generators, mdps, random_mdp, random_pi, random_q, random_v

FORMS: tuple[Form, ...] = ("v", "q")
PAGE = Path(__file__).parent.parent / "docs" / "bounds.md"


def given_as(form: Form, values: Any) -> dict[str, Any]:
    """The values as the keyword v or q."""
    return {form: values}


def random_values(rng: np.random.Generator, mdp: FiniteMDP, form: Form) -> Array:
    return random_v(rng, mdp) if form == "v" else random_q(rng, mdp)


def truth_of(mdp: FiniteMDP, form: Form, policy: Array) -> Array:
    return policy_value(mdp, policy)[0 if form == "v" else 1]


def best_of(mdp: FiniteMDP, form: Form) -> Array:
    return optimal_value(mdp)[0 if form == "v" else 1]


def sup(x: Array) -> float:
    return float(np.abs(x).max(initial=0.0))


def bellman_error(mdp: FiniteMDP, form: Form, values: Array, policy: Array) -> float:
    return sup(residual_of(mdp, form, values, policy))


def sweep(mdp: FiniteMDP, form: Form, values: Array) -> Array:
    """T* by its definition, 0 where the MDP has nothing."""
    q = look_ahead(mdp, values) if form == "v" else np.where(mdp.allowed, values, np.nan)
    v = np.array([0.0 if ended else np.nanmax(q[s]) for s, ended in enumerate(mdp.terminal)])
    return v if form == "v" else np.nan_to_num(look_ahead(mdp, v))


def ipe_of(mdp: FiniteMDP, form: Form, values: Array) -> Array:
    return evaluation_policy(mdp, **given_as(form, values), norm="linf").policy


def assert_holds(bound: Bound) -> None:
    assert bound.holds, bound
    assert bound.sharper_holds, bound
    assert bound.sharper is not None
    assert bound.sharper <= bound.right + bound.slack
    assert 0 <= bound.slack <= 1e-6 * (1 + bound.right)


# The propositions


@given(mdps(), generators(), st.sampled_from(FORMS))
def test_proposition_1(mdp: FiniteMDP, rng: np.random.Generator, form: Form) -> None:
    policy = random_pi(rng, mdp)
    values = random_values(rng, mdp, form)
    if rng.random() < 0.5:  # values that do approximate those of the policy
        values = truth_of(mdp, form, policy) + 0.05 * values
    bound = proposition_1(mdp, policy, **given_as(form, values))
    assert_holds(bound)
    truth, ipe = truth_of(mdp, form, policy), ipe_of(mdp, form, values)
    error, rest = bellman_error(mdp, form, values, ipe), 1 - mdp.gamma
    noise = 1e-9 * (1 + bound.right)
    assert_allclose(bound.left, sup(truth - truth_of(mdp, form, ipe)), atol=noise)
    assert_allclose(bound.right, ((1 + mdp.gamma) * sup(truth - values) + error) / rest, atol=noise)
    assert_allclose(bound.sharper or 0.0, sup(truth - values) + error / rest, atol=noise)


@given(mdps(), generators(), st.sampled_from(FORMS))
def test_proposition_2(mdp: FiniteMDP, rng: np.random.Generator, form: Form) -> None:
    one, two = random_values(rng, mdp, form), random_values(rng, mdp, form)
    if rng.random() < 0.5:
        two = one + 1e-3 * two
    bound = proposition_2(mdp, **given_as(form, (one, two)))
    assert_holds(bound)
    pis = [ipe_of(mdp, form, values) for values in (one, two)]
    error = sum(bellman_error(mdp, form, values, pi) for values, pi in zip((one, two), pis, strict=True))
    noise = 1e-9 * (1 + bound.right)
    assert_allclose(bound.left, sup(truth_of(mdp, form, pis[0]) - truth_of(mdp, form, pis[1])), atol=noise)
    assert_allclose(bound.right, ((1 + mdp.gamma) * sup(one - two) + error) / (1 - mdp.gamma), atol=noise)
    assert_allclose(bound.sharper or 0.0, sup(one - two) + error / (1 - mdp.gamma), atol=noise)


@given(mdps(), generators(), st.sampled_from(FORMS))
def test_both_sides_of_proposition_1_vanish_at_the_values_of_the_policy(
    mdp: FiniteMDP, rng: np.random.Generator, form: Form
) -> None:
    policy = random_pi(rng, mdp)
    values = truth_of(mdp, form, policy)
    bound = proposition_1(mdp, policy, **given_as(form, values))
    assert bound.holds
    assert bound.left <= 1e-7 * (1 + sup(values))
    assert bound.right <= 1e-6 * (1 + sup(values)) / (1 - mdp.gamma)


# The theorems


@given(mdps(), generators(), st.sampled_from(FORMS), st.integers(0, 12))
def test_theorem_1(mdp: FiniteMDP, rng: np.random.Generator, form: Form, k: int) -> None:
    start = random_values(rng, mdp, form)
    bound = theorem_1(mdp, k, **given_as(form, start))
    assert_holds(bound)
    best, first = best_of(mdp, form), sweep(mdp, form, start)
    gamma, noise = mdp.gamma, 1e-8 * (1 + bound.right)
    right = gamma**k * sup(first - start) * (1 + gamma / (1 - gamma)) + gamma**k * sup(start - best)
    assert_allclose(bound.right, right, atol=noise)
    last = start
    for _ in range(k):
        last = sweep(mdp, form, last)
    assert_allclose(bound.left, sup(truth_of(mdp, form, ipe_of(mdp, form, last)) - best), atol=noise)


@given(mdps(), generators(), st.sampled_from(FORMS), st.integers(0, 8))
def test_theorem_2(mdp: FiniteMDP, rng: np.random.Generator, form: Form, k: int) -> None:
    start = random_values(rng, mdp, form)
    size = rng.choice([0.01, 0.3, 3.0])
    errors = [size * random_values(rng, mdp, form) for _ in range(k)]
    bound = theorem_2(mdp, errors, **given_as(form, start))
    assert_holds(bound)
    gamma, best = mdp.gamma, best_of(mdp, form)
    e = {i + 1: error for i, error in enumerate(errors)}  # as in the paper, from 1
    first = sweep(mdp, form, start) + (e[1] if k else 0.0)
    fit = gamma**k * sup(first - start) + (sup(e[k]) if k else 0.0)
    fit += sum(gamma**t * sup(e[k - t + 1] - e[k - t]) for t in range(1, k))
    drift = gamma**k * sup(start - best) + sum(gamma**t * sup(e[k - t]) for t in range(k))
    assert_allclose(bound.right, (1 + gamma / (1 - gamma)) * fit + drift, rtol=1e-8, atol=1e-8)
    last = start
    for error in errors:
        last = sweep(mdp, form, last) + error
    pi = ipe_of(mdp, form, last)
    sharper = sup(last - best) + bellman_error(mdp, form, last, pi) / (1 - gamma)
    assert_allclose(bound.sharper or 0.0, sharper, rtol=1e-8, atol=1e-8)
    assert_allclose(bound.left, sup(truth_of(mdp, form, pi) - best), atol=1e-8 * (1 + bound.right))


def test_theorem_2_without_errors_is_theorem_1() -> None:
    mdp = garnet(7, 3, 2, seed=0)
    v = np.arange(7.0)
    one, two = theorem_1(mdp, 4, v=v), theorem_2(mdp, np.zeros((4, 7)), v=v)
    assert (one.left, one.right, one.sharper) == (two.left, two.right, two.sharper)


@given(mdps(), generators(), st.sampled_from(FORMS), st.integers(0, 6))
def test_what_holds_of_a_policy_that_fits_as_well_as_an_optimal_one(
    mdp: FiniteMDP, rng: np.random.Generator, form: Form, k: int
) -> None:
    start = random_values(rng, mdp, form)
    best, last = best_of(mdp, form), start
    for _ in range(k):
        last = sweep(mdp, form, last)
    optimal = greedy_policy(mdp, q=best_of(mdp, "q"))
    wanted = bellman_error(mdp, form, last, optimal)
    # The policy furthest from optimal, on the way to a random one, that fits as well.
    other = random_pi(rng, mdp)
    for step in np.linspace(1.0, 0.0, 9):
        policy = (1 - step) * optimal + step * other
        if bellman_error(mdp, form, last, policy) <= wanted:
            break
    bound = theorem_1_remark(mdp, k, policy, **given_as(form, start))
    assert_holds(bound)
    assert_allclose(bound.right, 2 * mdp.gamma**k * sup(start - best) / (1 - mdp.gamma), rtol=1e-8, atol=1e-8)
    assert bound.right <= theorem_1(mdp, k, **given_as(form, start)).right / (1 - mdp.gamma) + bound.slack
    assert_allclose(bound.left, sup(truth_of(mdp, form, policy) - best), atol=1e-8 * (1 + bound.right))


@given(mdps(), generators(), st.sampled_from(["ipe", "greedy"]))
def test_the_loss_of_acting_on_values(mdp: FiniteMDP, rng: np.random.Generator, policy: Any) -> None:
    best = best_of(mdp, "v")
    v = best + random_v(rng, mdp)
    bound = loss_bound(mdp, v=v, policy=policy)
    assert bound.holds, bound
    constant = 1 + mdp.gamma**2 if policy == "ipe" else 2 * mdp.gamma
    assert_allclose(bound.right, constant / (1 - mdp.gamma) * sup(v - best), rtol=1e-8, atol=1e-8)


@given(mdps(gammas=(0.3, 0.9, 0.99)), generators())
def test_improvement_is_monotone_while_the_iterates_are_achievable(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    v = policy_value(mdp, random_pi(rng, mdp))[0]
    lost = losses(mdp, 6, v=v)
    before = False
    for k in range(7):
        now = is_achievable(mdp, v=v).achievable is True
        if now:
            assert_allclose(lost[k], sup(v - best_of(mdp, "v")), atol=1e-7 * (1 + sup(v)))
        if now and before:
            assert lost[k] <= mdp.gamma * lost[k - 1] + 1e-7 * (1 + sup(v))
        before, v = now, sweep(mdp, "v", v)


# The counterexamples


def test_improvement_is_not_monotone() -> None:
    lost = losses(switch_stay(), 5, v=[18.0, -6.0])
    assert_allclose(lost, [7.0, 9.248, 7.279, 7.0, 7.0, 2.493], atol=5e-4)
    rights = [theorem_1(switch_stay(), k, v=[18.0, -6.0]).right for k in range(6)]
    assert (np.diff(rights) < 0).all()


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("k", [0, 1, 7])
def test_the_remark_breaks_theorem_1(k: int, gamma: float) -> None:
    edge = 0.001 * gamma**k
    mdp, v, policy = counterexamples.remark(k, gamma, edge)
    best = best_of(mdp, "v")
    assert_allclose(best, [edge, 0.0, 0.0], atol=1e-12)
    last = v
    for _ in range(k):
        last = sweep(mdp, "v", last)
    optimal = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert bellman_error(mdp, "v", last, policy) <= bellman_error(mdp, "v", last, optimal) + 1e-12
    held, claimed = theorem_1_remark(mdp, k, policy, v=v), theorem_1(mdp, k, v=v)
    assert claimed.holds  # the theorem itself does, with the evaluation policy
    assert held.left > claimed.right + claimed.slack
    assert_allclose(held.left / claimed.right, (1 - 0.0005) / (1 - gamma), rtol=1e-9)
    assert_holds(held)


def test_a_policy_that_fits_worse_than_an_optimal_one_is_refused() -> None:
    mdp, v, _ = counterexamples.remark(0)
    with pytest.raises(
        InputError, match=r"error of 1\.9 on iterate 0, which is more than the 1\.89 of an optimal policy"
    ):
        theorem_1_remark(mdp, 0, [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], v=v)


@pytest.mark.parametrize(("n", "gamma"), [(1, 0.9), (100, 0.5), (500, 0.5), (2000, 0.9)])
def test_proposition_1_fails_in_the_euclidean_norm(n: int, gamma: float) -> None:
    mdp, v, policy = counterexamples.hub(n, gamma)
    euclidean = proposition_1(mdp, policy, v=v, norm="l2")
    ratio = gamma * (1 - gamma) * np.sqrt(n) / 2
    assert_allclose(euclidean.ratio, ratio, rtol=1e-9)
    assert_allclose([euclidean.left, euclidean.right], [gamma * np.sqrt(n), 2 / (1 - gamma)], rtol=1e-9)
    assert euclidean.holds == (ratio <= 1)
    assert_holds(proposition_1(mdp, policy, v=v))


def test_the_hub_of_500_states() -> None:
    mdp, v, policy = counterexamples.hub()
    assert round(proposition_1(mdp, policy, v=v, norm="l2").ratio, 3) == 2.795


def test_evaluation_policies_jump() -> None:
    mdp, tie = switch_stay(), 14 + 2 / 0.9
    for tiny in (1e-4, 1e-8, 1e-12):
        bound = proposition_2(mdp, v=([14.0, tie - tiny], [14.0, tie + tiny]))
        assert_allclose(bound.left, 3.318, atol=1e-3)
        assert_holds(bound)
    assert_allclose(proposition_2(mdp, v=([14.0, tie + 1e-12], [14.0, tie + 2e-12])).left, 0.0, atol=1e-9)


@pytest.mark.parametrize("gamma", [0.5, 0.9, 0.99])
def test_the_worst_case_attains_both_constants(gamma: float) -> None:
    edge = 1e-7
    mdp, v, policy = counterexamples.worst_case(gamma, edge)
    assert_allclose(policy_values(mdp, policy).v, 0.0, atol=1e-12)
    assert_allclose(best_of(mdp, "v"), 0.0, atol=1e-12)
    ipe, greedy = loss_bound(mdp, v=v), loss_bound(mdp, v=v, policy="greedy")
    assert_allclose(ipe.left, (1 + gamma**2 - gamma * edge) / (1 - gamma), rtol=1e-9)
    assert_allclose(greedy.left, (2 * gamma - edge) / (1 - gamma), rtol=1e-9)
    for bound in (ipe, greedy):
        assert bound.holds
        assert bound.ratio > 1 - 1e-6


def test_greedy_is_ahead_on_most_iterates_from_low_values_and_equal_from_high_ones() -> None:
    rng = np.random.default_rng(0)
    behind = []
    for _ in range(20):
        mdp = random_mdp(rng, 8, 3, successors=3)
        low, high = random_v(rng, mdp), np.full(8, 100.0)
        behind.append(losses(mdp, 15, v=low) > losses(mdp, 15, v=low, policy="greedy") + 1e-9)
        assert_allclose(losses(mdp, 15, v=high), losses(mdp, 15, v=high, policy="greedy"), atol=1e-9)
    assert np.mean(behind) > 0.8


# Input and page


def test_wrong_input_is_refused_by_name() -> None:
    mdp = switch_stay()
    pi, v = [[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0]
    with pytest.raises(InputError, match=r"policy\[0\] sums to 0\.5"):
        proposition_1(mdp, [[0.5, 0.0], [1.0, 0.0]], v=v)
    with pytest.raises(InputError, match="norm must be one of linf, l2; found 'l1'"):
        proposition_1(mdp, pi, v=v, norm="l1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="give either v"):
        proposition_1(mdp, pi)
    with pytest.raises(InputError, match=r"give either v \(two state-value functions\)"):
        proposition_2(mdp)
    with pytest.raises(InputError, match=r"v must be two value functions: v=\(v1, v2\)"):
        proposition_2(mdp, v=[v])
    with pytest.raises(InputError, match=r"q\[1\] must have shape \(2, 2\)"):
        proposition_2(mdp, q=(np.zeros((2, 2)), np.zeros(2)))
    for wrong in (-1, 1.5, True):
        with pytest.raises(InputError, match="k must be a whole number >= 0"):
            theorem_1(mdp, wrong, v=v)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="k must be a whole number >= 0"):
            losses(mdp, wrong, v=v)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"errors\[1\] must have shape \(2,\)"):
        theorem_2(mdp, [[0.0, 0.0], [0.0]], v=v)
    with pytest.raises(InputError, match=r"errors\[0\]\[1\] = nan"):
        theorem_2(mdp, [[0.0, np.nan]], v=v)
    with pytest.raises(InputError, match="errors must be a sequence of value functions, found 3"):
        theorem_2(mdp, 3, v=v)
    with pytest.raises(InputError, match="policy must be one of ipe, greedy"):
        loss_bound(mdp, v=v, policy="best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="policy must be one of ipe, greedy"):
        losses(mdp, 1, v=v, policy="best")  # type: ignore[arg-type]


def test_wrong_parameters_of_the_counterexamples_are_refused_by_name() -> None:
    with pytest.raises(InputError, match="n must be a whole number >= 1"):
        counterexamples.hub(0)
    with pytest.raises(InputError, match=r"gamma must lie in \[0, 1\)"):
        counterexamples.hub(3, gamma=-0.5)
    with pytest.raises(InputError, match=r"gamma must lie in \[0, 1\)"):
        counterexamples.hub(3, gamma=1.0)
    with pytest.raises(InputError, match=r"edge must be at most 2 gamma\^k = 0\.25, found 0\.5"):
        counterexamples.remark(3, gamma=0.5, edge=0.5)
    with pytest.raises(InputError, match="edge must be a finite number > 0"):
        counterexamples.worst_case(edge=0.0)
    with pytest.raises(InputError, match=r"edge must be below 2 gamma = 1, found 1"):
        counterexamples.worst_case(gamma=0.5, edge=1.0)


def test_a_bound_of_nothing() -> None:
    assert Bound("", 0.0, 0.0, None, 0.0).ratio == 0.0
    assert Bound("", 1.0, 0.0, None, 0.0).ratio == float("inf")
    assert Bound("", 1.0, 2.0, None, 0.0).sharper_holds is None
    assert not Bound("", 1.0, 0.5, None, 0.1).holds


@pytest.mark.parametrize("gamma", [0.0, 0.9])
def test_terminal_states_alone_are_no_trouble(gamma: float) -> None:
    ended = FiniteMDP(np.zeros((2, 1, 2)), np.zeros((2, 1)), gamma, terminal=[0, 1])
    bound = theorem_1(ended, 2, v=[0.0, 0.0])
    assert bound.holds
    assert bound.left == bound.right == bound.ratio == 0.0


@pytest.mark.slow
def test_the_page_of_examples() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) >= 10
    names: dict[str, Any] = {}
    for i, block in enumerate(blocks):
        test = doctest.DocTestParser().get_doctest(block, names, f"{PAGE.name}, block {i}", str(PAGE), 0)
        output: list[str] = []
        runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
        runner.run(test, out=output.append, clear_globs=False)
        assert runner.tries > 0
        assert runner.failures == 0, "".join(output)
        names = test.globs
