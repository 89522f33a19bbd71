"""The audit of a table: against the true model, by simulation, and by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ipe
from ipe.audit import (
    TableAudit,
    Transitions,
    audit,
    decomposition,
    load_transitions,
    make_transitions,
    save_transitions,
)
from ipe.audit.decomposition import Decomposition, crossed_residual, decompose, fit_optimism, pair_errors
from ipe.audit.empirical import empirical_model
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.planning import action_bounds, bellman_operator, greedy_policy, policy_values, random_policy
from tests.audit_cases import drawn, switch_stay_batch
from tests.tiers import examples

OPTIMAL = [[16.3, 17.0], [20.0, 15.3]]


def tabled(*arguments: Any, **options: Any) -> TableAudit:
    result = audit(*arguments, **options)
    assert isinstance(result, TableAudit)
    return result


@pytest.fixture(scope="module")
def garnet() -> FiniteMDP:
    return ipe.zoo.garnet(12, 3, 3, seed=2, gamma=0.9)


@pytest.fixture(scope="module")
def perturbed(garnet: FiniteMDP) -> Array:
    """Values that no policy has."""
    q = policy_values(garnet, random_policy(garnet, 1)).q
    return np.asarray(q + 0.7 * np.random.default_rng(5).standard_normal(q.shape))


def evaluation_of(batch: Transitions, q: Any, gamma: float) -> tuple[Decomposition, float, float]:
    """What the audit computes for the evaluation policy: the parts, o, and the crossed residual."""
    model = empirical_model(batch, q, gamma)
    solution = ipe.evaluation_policy(model.mdp, q=model.q, weights=model.weights)
    lo, hi = action_bounds(model.mdp, model.q)
    errors = pair_errors(model, solution.v)
    o = fit_optimism(model, errors, (solution.v > lo + 1e-9) & (solution.v < hi - 1e-9))
    return decompose(model, errors, o), o, crossed_residual(model)


def mean_and_error(values: list[float]) -> tuple[float, float]:
    return float(np.mean(values)), float(np.std(values) / np.sqrt(len(values)))


def test_the_optimal_values_of_switch_stay_are_those_of_the_optimal_policy() -> None:
    result = tabled(switch_stay_batch(), q=OPTIMAL, gamma=0.9, deterministic=True)
    assert result.achievable is True
    assert np.array_equal(result.policy, [[0.0, 1.0], [1.0, 0.0]])
    assert result.evaluation.mean_squared_td_error < 1e-28
    assert result.exploration.mean_epsilon == 0.0
    assert "yes" in str(result)


def test_a_promise_that_nothing_keeps_is_found_by_state_and_action() -> None:
    result = tabled(switch_stay_batch(), q=[[16.3, 19.0], [20.0, 15.3]], gamma=0.9, deterministic=True)
    # Nothing follows (0, switch) but -1 + 0.9 * 20 = 17: 2 are missing. v(s0) = 17 would explain (1, switch), and
    # (16.3 - 1) / 0.9 = 17 (0, stay).
    assert result.achievable is False
    assert (result.worst[0].state, result.worst[0].action) == (0, 1)
    assert result.worst[0].delta == pytest.approx(-2.0)
    assert result.unachievable == pytest.approx(1.0) == result.evaluation.mean_squared_td_error
    assert result.sup_residual == pytest.approx((2.0, 2.0))
    assert result.distance_bounds == pytest.approx((2.0 / 1.9, 20.0))
    assert result.greedy.residual == pytest.approx((1.8**2 + 2.0**2 + 1.8**2) / 4)


def test_the_parts_are_those_of_plain_loops_and_sum_to_the_whole(garnet: FiniteMDP, perturbed: Array) -> None:
    batch = drawn(garnet, np.random.default_rng(3), 6)
    result = tabled(batch, q=perturbed, gamma=0.9, policy=np.full((12, 3), 1 / 3))
    assert batch.observation is not None
    assert batch.next_observation is not None
    assert result.given is not None
    for v, found in (
        (perturbed.max(axis=1), result.greedy),
        (perturbed.mean(axis=1), result.given),
        (result.solution.v[:-1], result.evaluation),
    ):
        groups: dict[tuple[int, int], list[float]] = {}
        for s, a, r, following in zip(
            batch.observation, batch.action, batch.reward, batch.next_observation, strict=True
        ):
            groups.setdefault((s, a), []).append(r + 0.9 * v[following] - perturbed[s, a])
        total = np.mean([x**2 for group in groups.values() for x in group])
        noise = np.mean([np.var(group) for group in groups.values()])
        of_mean = np.mean([np.mean(group) ** 2 for group in groups.values()])
        assert found.mean_squared_td_error == pytest.approx(total)
        assert found.noise == pytest.approx(noise)
        assert found.measured == pytest.approx(of_mean)
        assert found.noise + found.estimation + found.residual == pytest.approx(total)
    by_n = np.mean([np.var(group, ddof=1) / 6 for group in groups.values()])
    assert result.evaluation.estimation < by_n  # the fit has taken its part


def test_a_fixed_policys_residual_is_estimated_without_bias(garnet: FiniteMDP, perturbed: Array) -> None:
    rng = np.random.default_rng(0)
    pi = greedy_policy(garnet, q=perturbed)
    true = float(np.mean((bellman_operator(garnet, pi, q=perturbed) - perturbed) ** 2))
    found, measured, errors = [], [], []
    for _ in range(1000):
        model = empirical_model(drawn(garnet, rng, 4), perturbed, 0.9)
        own = decompose(model, pair_errors(model, np.append(perturbed.max(axis=1), 0.0)))
        found.append(own.residual)
        measured.append(own.measured)
        errors.append(own.standard_error)
    mean, error = mean_and_error(found)
    assert abs(mean - true) < 4 * error
    assert np.mean(measured) - true > 4 * error  # what is not corrected is off
    assert np.std(found) == pytest.approx(np.mean(errors), rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["achievable", "perturbed"])
def test_what_no_policy_removes_is_estimated_without_bias(garnet: FiniteMDP, perturbed: Array, kind: str) -> None:
    q = perturbed if kind == "perturbed" else policy_values(garnet, random_policy(garnet, 1)).q
    true = ipe.evaluation_policy(garnet, q=q).residual ** 2
    rng = np.random.default_rng(0)
    found, optimism, crossed = [], [], []
    for _ in range(200):
        own, o, judged = evaluation_of(drawn(garnet, rng, 8), q, 0.9)
        found.append(own.residual)
        optimism.append(o)
        crossed.append(judged)
    mean, error = mean_and_error(found)
    assert abs(mean - true) < 4 * error
    assert np.mean(optimism) > 6 * error  # without it, the estimate would be that far off
    over, over_error = mean_and_error(crossed)
    assert over > true + 4 * over_error  # a policy fitted to half of this batch is not yet the best


def test_the_verdict_rarely_accuses_and_mostly_convicts(garnet: FiniteMDP, perturbed: Array) -> None:
    rng = np.random.default_rng(1)
    innocent = policy_values(garnet, random_policy(garnet, 1)).q
    accused = [tabled(drawn(garnet, rng, 8), q=innocent, gamma=0.9).achievable is False for _ in range(25)]
    assert sum(accused) <= 3
    assert not any(tabled(drawn(garnet, rng, 8), q=perturbed, gamma=0.9).achievable for _ in range(3))
    assert tabled(drawn(garnet, rng, 40), q=perturbed, gamma=0.9).achievable is False


def test_a_deterministic_batch_gives_the_exact_solution_and_distance() -> None:
    mdp = ipe.zoo.switch_stay()
    q = np.array([[3.0, 8.0], [9.0, -1.0]])
    result = tabled(drawn(mdp, np.random.default_rng(0), 2, reward_noise=0.0), q=q, gamma=0.9)
    exact = ipe.evaluation_policy(mdp, q=q)
    assert result.model.deterministic
    assert result.model.left_out == 0
    assert np.allclose(result.policy, exact.policy)
    assert result.evaluation.residual == pytest.approx(exact.residual**2)
    assert result.evaluation.noise == result.evaluation.standard_error == 0.0
    assert result.crossed == result.evaluation.residual
    distance = ipe.distance_to_achievable(mdp, q=q).distance
    assert result.distance_bounds[0] <= distance <= result.distance_bounds[1]


def test_termination_ends_the_value() -> None:
    batch = {"state": [0, 1], "action": [0, 0], "reward": [1.0, 5.0], "next_state": [1, 0], "terminated": [False, True]}
    result = tabled(batch, q=[[5.5], [5.0]], gamma=0.9, deterministic=True)
    assert result.achievable is True
    assert result.exploration.weights.tolist() == [1.0]
    longer = tabled({**batch, "terminated": [False, False]}, q=[[5.5], [5.0]], gamma=0.9, deterministic=True)
    assert longer.worst[0].delta == pytest.approx(0.9 * 5.5)


def test_an_unseen_action_is_open_to_policies_and_a_nan_is_not() -> None:
    batch = {"state": [0], "action": [0], "reward": [0.0], "next_state": [1], "terminated": [False]}
    q = np.array([[9.0, 0.0], [1.0, 12.0]])
    assert tabled(batch, q=q, gamma=0.9, deterministic=True).policy[1] == pytest.approx([2 / 11, 9 / 11])
    q[1, 1] = np.nan
    closed = tabled(batch, q=q, gamma=0.9, deterministic=True)
    assert closed.policy[1].tolist() == [1.0, 0.0]
    assert closed.worst[0].delta == pytest.approx(0.9 - 9.0)


def test_pairs_seen_once_are_left_out_of_a_stochastic_batch_and_counted() -> None:
    arrays = switch_stay_batch()
    batch = {name: [*values, *values[:2], values[0]] for name, values in arrays.items()}
    batch["reward"][4] = 3.0
    result = tabled(batch, q=OPTIMAL, gamma=0.9)
    assert not result.model.deterministic
    assert result.model.left_out == 2
    assert len(result.model.count) == 2
    assert "left out" in str(result)
    assert [(own.state, own.visits) for own in result.worst] == [(0, 5)]


def test_for_many_free_states_the_correction_is_drawn(
    garnet: FiniteMDP, perturbed: Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = drawn(garnet, np.random.default_rng(0), 6)
    _, trace, _ = evaluation_of(batch, perturbed, 0.9)
    monkeypatch.setattr(decomposition, "MOST_FREE", 0)
    monkeypatch.setattr(decomposition, "DRAWS", 2000)
    _, mean, _ = evaluation_of(batch, perturbed, 0.9)
    assert mean == pytest.approx(trace, rel=0.05)


@pytest.mark.slow
def test_a_large_batch_is_audited_without_bias() -> None:
    mdp = ipe.zoo.garnet(1500, 2, 3, seed=0, gamma=0.9)
    q = policy_values(mdp, random_policy(mdp, 0)).q
    result = tabled(drawn(mdp, np.random.default_rng(0), 8), q=q, gamma=0.9)
    assert abs(result.unachievable) < 4 * result.evaluation.standard_error
    assert result.achievable is None


@examples(40)
@given(st.integers(0, 10**6), st.integers(2, 5), st.sampled_from([0.0, 0.5, 0.9, 0.99]))
def test_in_every_batch_the_evaluation_policy_beats_all_others(seed: int, n_states: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    mdp = ipe.zoo.garnet(n_states, 2, 2, seed=seed, gamma=gamma)
    batch = drawn(mdp, rng, 3, reward_noise=float(rng.choice([0.0, 1.0])))
    q, pi = rng.standard_normal((n_states, 2)) * 3, random_policy(mdp, seed)
    result = tabled(batch, q=q, gamma=gamma, policy=pi)
    assert result.given is not None
    least = result.evaluation.measured
    assert least <= result.greedy.measured * (1 + 1e-6) + 1e-9
    assert least <= result.given.measured * (1 + 1e-6) + 1e-9
    assert result.solution.residual**2 == pytest.approx(least, rel=1e-6, abs=1e-9)
    own = result.evaluation
    assert own.noise + own.estimation + own.residual == pytest.approx(own.mean_squared_td_error)
    assert result.sup_residual[0] <= result.sup_residual[1] <= np.abs(result.evaluation_errors.mean).max() + 1e-9
    assert [state.residual for state in result.worst] == sorted((s.residual for s in result.worst), reverse=True)
    assert result.exploration.weights.sum() == pytest.approx(1.0)


def test_transitions_go_to_a_file_and_come_back(tmp_path: Path) -> None:
    batch = make_transitions(switch_stay_batch())
    save_transitions(batch, tmp_path / "batch.npz")
    back = load_transitions(tmp_path / "batch.npz")
    for name in ("observation", "action", "reward", "next_observation", "terminated"):
        assert np.array_equal(getattr(batch, name), getattr(back, name))
    assert back.discrete
    images = make_transitions(
        {"observation": np.zeros((2, 4, 4)), "next_observation": np.ones((2, 4, 4)), "action": [0, 1]}
        | {"reward": [0, 1], "terminated": [0, 1], "truncated": [1, 0]}
    )
    save_transitions(images, tmp_path / "images.npz")
    assert not load_transitions(tmp_path / "images.npz").discrete
    with pytest.raises(InputError, match=r"batch\.csv: the suffix must be"):
        save_transitions(batch, tmp_path / "batch.csv")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"action": [0, 1, 0, 2]}, r"action\[3\] = 2, but q has the actions 0 to 1"),
        ({"action": [0, 1, 0, -1]}, r"action\[3\] = -1 is negative"),
        ({"action": [0.5, 1, 0, 1]}, "action must be whole numbers"),
        ({"action": np.array([0, 1, 0, 2**63], np.uint64)}, r"action\[3\] = 9223372036854775808 is too large"),
        ({"next_state": np.array([0, 2**64 - 1, 1, 0], np.uint64)}, r"next_state\[1\] = 18446744073709551615 is too"),
        ({"action": []}, "there are no transitions"),
        ({"state": [0, 0, 1, 7]}, r"state\[3\] = 7, but q has the states 0 to 1"),
        ({"next_state": [0, 1, 9, 0]}, r"next_state\[2\] = 9, but q has the states 0 to 1"),
        ({"reward": [1.0, float("nan"), 2.0, 0.0]}, r"reward\[1\] = nan is not a finite number"),
        ({"reward": [1.0, 2.0]}, "reward must have one entry per transition, 4; found 2 entries"),
        ({"reward": ["a", "b", "c", "d"]}, "reward must be numbers"),
        ({"terminated": [0, 1, 2, 0]}, r"terminated\[2\] = 2 is neither 0 nor 1"),
        ({"rewards": [0.0] * 4}, "unknown key 'rewards' .*did you mean reward"),
        ({"observation": [0, 1, 0, 1]}, "give state and next_state, or observation and next_observation, not both"),
    ],
)
def test_wrong_transitions_are_refused_by_array_and_index(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        audit(switch_stay_batch(**changes), q=OPTIMAL, gamma=0.9)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"q": [1.0, 2.0]}, r"q must have shape \(states, actions\), found \(2,\)"),
        ({"q": [[1.0, np.inf], [0.0, 0.0]]}, r"q\[0, 1\] = inf is not a finite number"),
        ({"q": [[1.0, np.nan], [0.0, 0.0]]}, r"q\[0, 1\] is NaN, .* but transition 1 takes it"),
        ({"q": [[1.0, 1.0], [np.nan, np.nan]]}, r"q\[1, 0\] is NaN"),
        ({"gamma": 1.0}, "gamma must lie in"),
        ({"worst": -1}, "worst must be a whole number"),
        ({"tolerance": 0.0}, "tolerance must be"),
        ({"deterministic": None}, "none of the 4 pairs .* is there twice"),
        ({"policy": [[1.0, 0.0]]}, r"policy must have shape \(2, 2\)"),
        ({"policy": [[1.0, 0.5], [1.0, 0.0]]}, r"policy\[0\] sums to 1.5"),
        ({"policy_next": [[1.0, 0.0]]}, "policy_next goes with q_next"),
    ],
)
def test_wrong_values_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        audit(switch_stay_batch(), **{"q": OPTIMAL, "gamma": 0.9, "deterministic": True, **options})


def test_missing_arrays_and_a_false_claim_are_refused() -> None:
    arrays = switch_stay_batch()
    del arrays["next_state"]
    with pytest.raises(InputError, match="next_state is missing"):
        audit(arrays, q=OPTIMAL, gamma=0.9)
    batch = {name: [*values, values[0]] for name, values in switch_stay_batch().items()}
    batch["reward"][4] = 3.0
    with pytest.raises(InputError, match="transition 4 has another reward or successor than transition 0"):
        audit(batch, q=OPTIMAL, gamma=0.9, deterministic=True)
    lost = {"state": [0], "action": [0], "reward": [0.0], "next_state": [1], "terminated": [False]}
    with pytest.raises(InputError, match=r"q\[1\] is NaN for all actions, but transition 0 leads there"):
        audit(lost, q=[[1.0], [np.nan]], gamma=0.9, deterministic=True)
