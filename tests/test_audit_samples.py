"""The audit of values per transition: what holds for every policy, and the policy that is fitted."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ipe
from ipe.audit import Fit, SampleAudit, audit, audit_contents, draw_audit, make_transitions
from ipe.audit.fitting import fit_policy, split
from ipe.errors import InputError
from ipe.figures.style import figure_bytes
from tests.audit_cases import drawn
from tests.tiers import tiered

QUICK = Fit(updates=300, width=16)


def sampled(*arguments: Any, **options: Any) -> SampleAudit:
    result = audit(*arguments, **options)
    assert isinstance(result, SampleAudit)
    return result


def batch(n: int, n_actions: int, rng: np.random.Generator, shape: tuple[int, ...] = (3,)) -> dict[str, Any]:
    return {
        "observation": rng.standard_normal((n, *shape)),
        "action": rng.integers(n_actions, size=n),
        "reward": rng.standard_normal(n),
        "next_observation": rng.standard_normal((n, *shape)),
        "terminated": rng.random(n) < 0.2,
    }


@given(st.integers(0, 10**6), st.integers(1, 4), st.sampled_from([0.0, 0.5, 0.99]))
def test_no_policy_is_below_the_floor(seed: int, n_actions: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    arrays = batch(30, n_actions, rng)
    q, q_next = 2.0 * rng.standard_normal((2, 30, n_actions))
    pi = rng.dirichlet(np.ones(n_actions), 30)
    result = sampled(arrays, q=q, q_next=q_next, gamma=gamma, policy_next=pi, deterministic=True)
    live = ~arrays["terminated"]
    v = np.where(live, np.sum(pi * q_next, axis=1), 0.0)
    q_sa = q[np.arange(30), arrays["action"]]
    delta = arrays["reward"] + gamma * v - q_sa
    assert result.evaluation.mean_squared_td_error == pytest.approx(np.mean(delta**2))
    lo, hi = (np.where(live, extreme(q_next, axis=1), 0.0) for extreme in (np.min, np.max))
    floor = np.maximum(arrays["reward"] + gamma * lo - q_sa, 0) + np.maximum(q_sa - arrays["reward"] - gamma * hi, 0)
    assert result.evaluation.floor == pytest.approx(np.mean(floor**2))
    assert result.evaluation.excess >= -1e-12
    assert result.greedy.excess >= -1e-12
    assert result.sup_residual == pytest.approx(floor.max())
    assert result.outside == pytest.approx(np.mean(floor > 1e-5 * max(1.0, np.abs(q_sa).max())))
    assert result.achievable is (False if floor.max() > 1e-5 * max(1.0, np.abs(q_sa).max()) else None)
    assert result.training is None
    assert result.estimation is None
    listed = [abs(own.delta) for own in result.worst]
    assert listed == pytest.approx(np.sort(floor[floor > 1e-5 * max(1.0, np.abs(q_sa).max())])[::-1][:10])


def test_for_deterministic_transitions_the_floor_is_below_what_no_policy_removes() -> None:
    mdp = ipe.zoo.garnet(20, 3, 1, seed=4, gamma=0.9)
    q = 3.0 * np.random.default_rng(0).standard_normal((20, 3))
    exact = ipe.evaluation_policy(mdp, q=q)
    states = drawn(mdp, np.random.default_rng(1), 2, reward_noise=0.0)
    here, there = np.asarray(states.observation), np.asarray(states.next_observation)
    one = sampled(states, q=q[here], q_next=q[there], gamma=0.9, policy_next=exact.policy[there], deterministic=True)
    assert one.evaluation.floor <= exact.residual**2
    assert one.evaluation.mean_squared_td_error == pytest.approx(exact.residual**2)
    assert one.distance_bound is not None
    assert one.distance_bound <= ipe.distance_bounds(mdp, q=q)[1]


def test_the_fitted_policy_is_the_exact_one_where_transitions_are_deterministic() -> None:
    mdp = ipe.zoo.garnet(8, 3, 1, seed=4, gamma=0.9)
    q = 3.0 * np.random.default_rng(0).standard_normal((8, 3))
    states = drawn(mdp, np.random.default_rng(1), 5, reward_noise=0.0)
    here, there = np.asarray(states.observation), np.asarray(states.next_observation)
    seen = make_transitions(
        {"observation": np.eye(8)[here], "next_observation": np.eye(8)[there], "action": states.action}
        | {"reward": states.reward, "terminated": states.terminated}
    )
    q_sa, everything = q[here, states.action], np.ones(len(seen), bool)
    pi = fit_policy(seen, q_sa, q[there], 0.9, everything, Fit(updates=1500, width=32, step_size=1e-2))
    delta = states.reward + 0.9 * np.sum(pi * q[there], axis=1) - q_sa
    exact = ipe.evaluation_policy(mdp, q=q).residual ** 2
    assert exact <= np.mean(delta**2) + 1e-6 < 1.05 * exact
    uniform = states.reward + 0.9 * q[there].mean(axis=1) - q_sa
    assert np.mean(uniform**2) > 1.3 * exact  # where it started from


@pytest.mark.slow
def test_what_is_held_out_judges_and_the_same_seed_gives_the_same_numbers() -> None:
    rng = np.random.default_rng(0)
    arrays = batch(200, 3, rng)
    q, q_next = rng.standard_normal((2, 200, 3))
    first = sampled(arrays, q=q, q_next=q_next, gamma=0.9, fit=QUICK)
    again = sampled(arrays, q=q, q_next=q_next, gamma=0.9, fit=QUICK)
    assert first.source == "fitted"
    assert first.training is not None
    assert (first.training.transitions, first.evaluation.transitions) == (140, 60)
    assert np.array_equal(first.followed, again.followed)
    # The targets are noise: a network that fits them on 140 transitions does no good on the others.
    assert first.estimation is not None
    assert first.estimation > 0
    own = first.evaluation
    whole = own.floor + (own.excess - first.estimation) + first.estimation
    assert whole == pytest.approx(own.mean_squared_td_error)
    assert first.training.excess == pytest.approx(own.excess - first.estimation)
    errors = (first.followed - first.promised)[first.held_out]
    assert np.mean(errors**2) == pytest.approx(own.mean_squared_td_error)


def test_whole_blocks_are_held_out() -> None:
    mask = split(1000, Fit(seed=3))
    assert mask.sum() == 700
    assert np.all(mask.reshape(20, 50).all(axis=1) | ~mask.reshape(20, 50).any(axis=1))
    assert not np.array_equal(mask, split(1000, Fit(seed=4)))
    assert split(2, Fit()).sum() == 1


SHAPES = [(6, 5), (6, 5, 2), (50, 60, 3), (2, 2, 2), (96, 8), (8, 96, 3), (4, 84, 84), (2, 84)]


@pytest.mark.parametrize("shape", tiered(SHAPES))
def test_images_are_taken_whatever_their_size(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    arrays = batch(40, 2, rng, shape)
    q, q_next = rng.standard_normal((2, 40, 2))
    result = sampled(arrays, q=q, q_next=q_next, gamma=0.9, fit=Fit(updates=3, width=8))
    assert result.exploration.epsilon.shape == ((~arrays["terminated"]).sum(),)


@pytest.mark.slow
def test_images_with_the_channels_first_are_those_with_the_channels_last() -> None:
    rng = np.random.default_rng(0)
    first = batch(40, 2, rng, (3, 30, 50))
    last = {name: np.moveaxis(x, 1, -1) if x.ndim == 4 else x for name, x in first.items()}
    rows = dict(zip(("q", "q_next"), rng.standard_normal((2, 40, 2)), strict=True))
    own, same = (sampled(x, gamma=0.9, fit=Fit(updates=3, width=8), **rows) for x in (first, last))
    assert np.array_equal(own.followed, same.followed)


def test_only_what_is_beyond_its_interval_is_listed_as_such() -> None:
    arrays = {"action": [0, 0, 0], "reward": [0.0, 0.0, 0.0], "terminated": [False] * 3}
    rest: dict[str, Any] = {"q_next": np.array([[0.0, 2.0]] * 3), "gamma": 0.5, "policy_next": np.full((3, 2), 0.5)}
    one = sampled(arrays, q=np.array([[0.5, 0.0], [1.5, 0.0], [1.0 + 1e-7, 0.0]]), **rest)
    assert [own.index for own in one.worst] == [1]
    assert one.worst[0].delta == pytest.approx(-0.5)
    assert "furthest from every policy" in str(one)
    none = sampled(arrays, q=np.full((3, 2), 0.5), **rest)
    assert none.worst == ()
    assert "furthest" not in str(none)
    assert str(none).endswith("No transition is beyond every policy: there is none to list.")
    assert audit_contents(none)["worst"] == []
    for result, words in ((none, ["none"]), (dataclasses.replace(one, worst=()), ["not listed"]), (one, [])):
        panel = draw_audit(result).axes[2]
        assert [own.get_text() for own in panel.texts] == words
        assert panel.axison is bool(result.worst)


@pytest.mark.slow
def test_it_prints_draws_and_turns_into_plain_data() -> None:
    rng = np.random.default_rng(0)
    arrays = batch(60, 2, rng)
    q, q_next = rng.standard_normal((2, 60, 2))
    result = sampled(arrays, q=q, q_next=q_next, gamma=0.9, fit=QUICK, deterministic=True, worst=3)
    text = str(result)
    assert "no: transitions are deterministic, and some contradict every policy" in text
    assert "estimation: held out less fitted" in text
    assert len(re.findall(r"^ +\d+ +[01] ", text, re.MULTILINE)) == 3
    content = audit_contents(result)
    assert content["kind"] == "samples"
    assert content["estimation"] == result.estimation
    assert figure_bytes(draw_audit(result, "a title"), ".png") == figure_bytes(draw_audit(result, "a title"), ".png")


def test_a_batch_that_always_terminates_has_no_policy() -> None:
    arrays = {"action": [0, 1], "reward": [1.0, 2.0], "terminated": [True, True]}
    q = np.array([[1.0, 0.0], [0.0, 2.5]])
    result = sampled(arrays, q=q, q_next=q, gamma=0.9, policy_next=np.full((2, 2), 0.5))
    assert result.evaluation.mean_squared_td_error == pytest.approx(0.125)
    assert "no policy to find" in str(result)
    draw_audit(result)
    with pytest.raises(InputError, match="next_observation is missing"):
        audit(arrays, q=q, q_next=q, gamma=0.9)
    with pytest.raises(InputError, match="nothing follows them"):
        audit({**arrays, "observation": [[0.0], [1.0]], "next_observation": [[0.0], [1.0]]}, q=q, q_next=q, gamma=0.9)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"q": np.zeros((3, 2))}, r"q must have shape \(4, actions\), a row per transition; found \(3, 2\)"),
        ({"q_next": np.zeros((4, 3))}, r"q_next must have the shape of q, \(4, 2\); found \(4, 3\)"),
        ({"q": np.full((4, 2), np.nan)}, r"q\[0, 0\] = nan is not a finite number"),
        ({"policy_next": np.zeros((4, 2))}, r"policy_next\[0\] sums to 0, not to 1"),
        ({"policy_next": [[2.0, -1.0]] * 4}, r"policy_next\[0, 1\] = -1 is not a probability"),
        ({"policy_next": np.ones((4, 3))}, r"policy_next must have shape \(4, 2\)"),
        ({"policy": np.ones((4, 2))}, "policy goes with a table of values"),
        ({"q_next": None}, "q_next is missing"),
    ],
)
def test_wrong_rows_are_refused(changes: dict[str, Any], sentence: str) -> None:
    arrays = batch(4, 2, np.random.default_rng(0)) | {"terminated": [False] * 4}
    with pytest.raises(InputError, match=sentence):
        audit(arrays, **{"q": np.zeros((4, 2)), "q_next": np.zeros((4, 2)), "gamma": 0.9, **changes})


def test_wrong_observations_are_refused() -> None:
    arrays = batch(4, 2, np.random.default_rng(0))
    rows: dict[str, Any] = {"q": np.zeros((4, 2)), "q_next": np.zeros((4, 2)), "gamma": 0.9}
    for changes, sentence in (
        ({"next_observation": np.zeros((4, 2))}, r"next_observation has the shape \(4, 2\), observation \(4, 3\)"),
        ({"observation": np.full((4, 3), np.inf)}, r"observation\[0, 0\] = inf is not a finite number"),
        ({"observation": np.full((4, 3), "x")}, "observation must hold real numbers"),
        ({"action": [0, 1, 2, 0]}, r"action\[2\] = 2, but q has the actions 0 to 1"),
    ):
        with pytest.raises(InputError, match=sentence):
            audit({**arrays, **changes}, **rows)
    for wrong, sentence in (({"updates": 0}, "updates"), ({"held_out": 1.0}, "held_out"), ({"step_size": 0.0}, "step")):
        with pytest.raises(InputError, match=sentence):
            Fit(**wrong)
