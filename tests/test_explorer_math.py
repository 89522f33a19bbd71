"""The explorer's mathematics, run by node, equals the library's on up to a thousand random cases and in whole runs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from ipe.base.arrays import Array
from ipe.behaviours import epsilon_greedy
from ipe.cli.polytope import grid_around
from ipe.entropy import boltzmann_from_logits, entropy_from_logits, epsilon_from_logits, epsilon_from_probabilities
from ipe.explorer.models import page_model
from ipe.inverse.achievability import distance_bounds, is_achievable
from ipe.inverse.lift import maximum_entropy_lift
from ipe.inverse.result import EvaluationPolicy
from ipe.inverse.solve import evaluation_policy
from ipe.mdp import FiniteMDP
from ipe.planning import greedy_policy, policy_values
from ipe.planning.evaluation import many_policy_values
from ipe.planning.operators import backup
from ipe.polytope import value_map, value_polytope
from ipe.polytope.boundary import two_states
from ipe.tabular import TabularRuns, simulate
from ipe.tabular.numbers import pair, streams
from ipe.updates import Transition, paper_update
from ipe.zoo import make, switch_stay
from tests.explorer_cases import VALUE_KINDS, Case, compact, node, random_case, whole
from tests.tiers import share, tiered

CASES = share(1000)
BEHAVIOURS: dict[str, dict[str, float]] = {
    "epsilon-greedy": {"epsilon": 0.2},
    "linear": {"anneal_steps": 13.0, "final_epsilon": 0.1},
    "ipe": {"alpha_pi": 0.3},
    "epsilon-ipe": {"alpha_pi": 0.3},
    "tau-ipe": {"alpha_pi": 0.3},
}
SETTINGS = {"alphaQ": 0.5, "alphaPi": 0.3, "epsilon": 0.2, "annealSteps": 13.0, "finalEpsilon": 0.1}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    rng = np.random.default_rng(6)
    return [random_case(rng) for _ in range(CASES)]


@pytest.fixture(scope="module")
def models(cases: list[Case]) -> list[dict[str, Any]]:
    return [page_model(case.mdp, f"case {k}") for k, case in enumerate(cases)]


@pytest.fixture(scope="module")
def pages(cases: list[Case], models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return node([["evaluationPolicy", model, case.v] for case, model in zip(cases, models, strict=True)])


@pytest.fixture(scope="module")
def library(cases: list[Case]) -> list[EvaluationPolicy]:
    return [evaluation_policy(case.mdp, v=whole(case.mdp, case.v)) for case in cases]


def close(found: Any, expected: Any, size: float, what: str, case: Case, rtol: float = 1e-11) -> None:
    """Equal up to rounding relative to `size`, the numbers that went into them."""
    note = f"{what} of {case.mdp!r} at {case.v} ({case.kind})"
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol * size, err_msg=note)


def magnitude(case: Case) -> float:
    """How large the numbers are that a value is computed from: what rounding is relative to."""
    return max(float(np.abs(case.v).max()), float(np.abs(case.mdp.rewards).max()) / (1 - case.mdp.gamma))


def test_the_cases_are_of_every_kind(cases: list[Case]) -> None:
    assert {case.kind for case in cases} == set(VALUE_KINDS)
    assert {case.mdp.n_actions for case in cases} == {2, 3, 4}
    assert any(case.mdp.terminal.any() for case in cases)
    assert any(not case.mdp.allowed[~case.mdp.terminal].all() for case in cases)
    assert any(case.mdp.transition_rewards is not None for case in cases)
    assert any(case.mdp.gamma == 0 for case in cases)


def test_every_model_is_one_that_the_page_accepts(models: list[dict[str, Any]]) -> None:
    assert node([["findProblem", model] for model in models]) == [None] * CASES


def test_action_values_and_policies(cases: list[Case], pages: list[Any], library: list[EvaluationPolicy]) -> None:
    for case, page, ours in zip(cases, pages, library, strict=True):
        mdp = case.mdp
        q = compact(mdp, backup(mdp, whole(mdp, case.v)))
        for s, state in enumerate(two_states(mdp)):
            width = float(np.ptp(q[s]))
            close(page["q"][s], q[s], magnitude(case), "q", case, 1e-13)
            # A rounding of v moves the policy by as much as v is large compared with the range of q.
            blur = 1e-13 * magnitude(case) / width if width > 0 else 0.0
            close(page["policy"][s], compact(mdp, ours.policy)[s], max(1.0, blur / 1e-9), "policy", case, 1e-9)
            close(page["oneStep"][s], ours.v[state], magnitude(case), "v", case, 1e-13)


def test_temperatures(cases: list[Case], pages: list[Any], library: list[EvaluationPolicy]) -> None:
    compared = {"finite": 0, "infinite": 0}
    for case, page, ours in zip(cases, pages, library, strict=True):
        q = compact(case.mdp, backup(case.mdp, whole(case.mdp, case.v)))
        for s, state in enumerate(two_states(case.mdp)):
            width, eta = float(np.ptp(q[s])), float(ours.inverse_temperatures[state])
            steep = page["eta"][s] * width if width > 0 else 0.0
            if not np.isfinite(eta) or abs(eta * width) > 25:  # so near to an end that rounding decides
                assert np.sign(page["eta"][s]) == np.sign(eta)
                assert abs(steep) > 20
                compared["infinite"] += 1
                continue
            blur = 1e-13 * magnitude(case) / width if width > 0 else 0.0
            slack = 1e-9 + blur * np.exp(abs(eta * width))
            assert steep == pytest.approx(eta * width, rel=1e-9, abs=slack), (case, page["eta"][s], eta)
            compared["finite"] += 1
    assert min(compared.values()) > 0.3 * CASES


def test_entropy_and_matched_epsilon(cases: list[Case], pages: list[Any], library: list[EvaluationPolicy]) -> None:
    for case, page, ours in zip(cases, pages, library, strict=True):
        for s, state in enumerate(two_states(case.mdp)):
            pi = np.array(page["policy"][s])  # its own: the policies have been compared
            assert page["entropy"][s] == pytest.approx(float(ours.entropy[state]), abs=1e-6)
            assert page["epsilon"][s] == pytest.approx(float(epsilon_from_probabilities(pi)), rel=1e-12, abs=1e-13)


def test_true_values_of_evaluation_and_greedy_policy(
    cases: list[Case], pages: list[Any], library: list[EvaluationPolicy]
) -> None:
    for case, page, ours in zip(cases, pages, library, strict=True):
        mdp, states = case.mdp, list(two_states(case.mdp))
        greedy = greedy_policy(mdp, v=whole(mdp, case.v))
        assert page["greedy"] == compact(mdp, greedy), case
        q = backup(mdp, whole(mdp, case.v))[states]
        width = min((float(np.ptp(row)) for row in q if np.ptp(row) > 0), default=1.0)
        steady = max(1.0, 1e-13 * magnitude(case) / width / 1e-9)  # as the policies are
        close(page["values"], ours.values[states], magnitude(case) * steady, "V of the policy", case, 1e-9)
        close(page["greedyValues"], policy_values(mdp, greedy).v[states], magnitude(case), "V of greedy", case)


def test_residuals_bounds_and_achievability(
    cases: list[Case], pages: list[Any], library: list[EvaluationPolicy]
) -> None:
    seen = set()
    for case, page, ours in zip(cases, pages, library, strict=True):
        mdp, v = case.mdp, whole(case.mdp, case.v)
        close(page["residual"], ours.residual, magnitude(case), "residual", case, 1e-13)
        close(page["supResidual"], ours.sup_residual, magnitude(case), "sup residual", case, 1e-13)
        gamma = mdp.gamma
        close(page["distanceBounds"], distance_bounds(mdp, v=v), magnitude(case) / (1 - gamma), "bounds", case, 1e-13)
        answer = is_achievable(mdp, v=v)
        assert page["achievable"] == answer.achievable, case
        states = two_states(mdp)
        for key, theirs in (("promisesTooMuch", answer.greedy), ("promisesTooLittle", answer.anti_greedy)):
            assert [s for s, mark in zip(states, page[key], strict=True) if mark] == theirs.tolist(), case
        seen.add(page["achievable"])
        if case.kind in ("inside", "edge", "corner"):
            assert page["achievable"]
    assert seen == {True, False}


def test_polytope_distance_and_grid(cases: list[Case], models: list[Any], pages: list[Any]) -> None:
    found = node([["valuePolytope", model] for model in models])
    calls: list[Any] = []
    for case, theirs, page in zip(cases, found, pages, strict=True):
        calls += [["nearestAchievable", theirs, case.v, page["achievable"], norm] for norm in ("l2", "linf")]
        calls.append(["gridAround", theirs["vertices"]])
    answers = node(calls)
    for k, (case, theirs) in enumerate(zip(cases, found, strict=True)):
        ours = value_polytope(case.mdp)
        size = magnitude(case)
        close(theirs["vertices"], ours.vertices, size, "vertices", case)
        places = [np.flatnonzero(case.mdp.allowed[s]) for s in two_states(case.mdp)]
        actions = [[int(places[s][a]) for s, a in enumerate(pair_)] for pair_ in theirs["policies"]]
        assert actions == ours.deterministic_policies.tolist()
        close(theirs["segments"], ours.segments, size, "segments", case)
        assert [len(polygon) for polygon in theirs["polygons"]] == [len(polygon) for polygon in ours.polygons]
        for one, other in zip(theirs["polygons"], ours.polygons, strict=True):
            close(one, other, size, "polygon", case)
        by_l2, by_sup, grid = answers[3 * k : 3 * k + 3]
        point, distance = ours.nearest(case.v, norm="l2")
        close(by_l2["point"], point, size, "nearest point", case, 1e-9)
        close(by_l2["distance"], distance, size, "l2 distance", case)
        close(by_sup["distance"], ours.nearest(case.v, norm="linf")[1], size, "sup distance", case)
        close(grid["points"], grid_around(ours.vertices), size, "grid", case)


def test_value_map(cases: list[Case], models: list[Any]) -> None:
    policies = ("ipe", "greedy")
    calls = [
        ["valueMap", model, case.v, policy] for case, model in zip(cases, models, strict=True) for policy in policies
    ]
    found = iter(node(calls))
    for case in cases:
        q = backup(case.mdp, whole(case.mdp, case.v))[list(two_states(case.mdp))]
        width = min((float(np.ptp(row)) for row in q if np.ptp(row) > 0), default=1.0)
        steady = max(1.0, 1e-13 * magnitude(case) / width / 1e-9)
        for policy in policies:
            ours = value_map(case.mdp, case.v, policy)  # type: ignore[arg-type]
            close(next(found), ours, magnitude(case) * steady, policy, case, 1e-9)


def test_lift_at_its_corners() -> None:
    rng = np.random.default_rng(1)
    rows, values = [], []
    for _ in range(600):
        q = 10.0 ** rng.integers(-8, 9) * rng.normal(size=int(rng.integers(1, 5)))
        at = rng.choice([0.0, 1e-14, 1e-9, 1e-3, 0.5, 1 - 1e-6, 1.0, 2.0, -1.0])
        rows.append(q)
        values.append(q.min() + at * np.ptp(q))
    asked = zip(rows, values, strict=True)
    for q, v, found in zip(rows, values, node([["maximumEntropyLift", *x] for x in asked]), strict=True):
        pi, eta = maximum_entropy_lift(q[None], np.array([v]), np.ones((1, len(q)), dtype=bool))
        np.testing.assert_allclose(found["pi"], pi[0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found["eta"], eta[0], rtol=1e-9)


def test_epsilon_keeps_its_digits_at_both_ends() -> None:
    rng = np.random.default_rng(2)
    logits = [10.0 ** rng.integers(-12, 3) * rng.normal(size=int(rng.integers(2, 5))) for _ in range(600)] + [
        np.zeros(3),
        np.array([0.0, -800.0, -900.0]),
        np.array([40.0, 0.0, 0.0, 0.0]),
    ]
    for theta, found in zip(logits, node([["epsilonFromLogits", theta] for theta in logits]), strict=True):
        assert found == pytest.approx(float(epsilon_from_logits(theta)), rel=1e-11, abs=1e-14), theta


def test_matched_boltzmann_policies() -> None:
    rng = np.random.default_rng(8)
    given = []
    for _ in range(300):
        n = int(rng.integers(1, 6))
        q, theta = rng.normal(size=n), rng.choice([1e-6, 0.1, 1.0, 5.0, 60.0, 900.0]) * rng.normal(size=n)
        ties = rng.random() < 0.3
        given.append((10.0 ** rng.integers(-3, 4) * (np.round(q) if ties else q), theta))
    given += [(np.zeros(3), np.arange(3.0)), (np.array([1.0, 1.0, 0.0]), np.array([5.0, 0.0, 0.0]))]
    given += [(np.array([1.0, 2.0, 0.0]), np.zeros(3)), (np.array([1e308, -1e308, 0.0]), np.array([3.0, 0.0, 1.0]))]
    found = node([["boltzmannFromLogits", q, theta] for q, theta in given])
    for (q, theta), pi in zip(given, found, strict=True):
        np.testing.assert_allclose(pi, boltzmann_from_logits(q, theta), rtol=1e-9, atol=1e-12, err_msg=f"{q} {theta}")
    entropies = [float(entropy_from_logits(theta)) for _, theta in given]
    assert np.ptp(entropies) > 1.0, "the cases hardly differ"


def test_paper_update_from_random_tables() -> None:
    rng = np.random.default_rng(3)
    given = []
    for _ in range(500):
        n = int(rng.integers(1, 5))
        theta, q = rng.choice([0.1, 3.0, 60.0]) * rng.normal(size=n), 10.0 ** rng.integers(-2, 3) * rng.normal(size=n)
        given.append((theta, q, *rng.normal(size=2).tolist(), float(rng.random()), float(rng.random())))
    found = node([["paperUpdate", *arguments] for arguments in given])
    for (theta, q, q_sa, reward, gamma, alpha), new in zip(given, found, strict=True):
        ours = paper_update(theta, Transition(q_sa, reward, gamma, False, q), alpha).theta
        np.testing.assert_allclose(new, ours, rtol=1e-11, atol=1e-13 * max(1.0, float(np.abs(q).max()) ** 2))


def run_numbers(seed: int, run: int, steps: int) -> tuple[float, list[list[float]]]:
    """The random numbers that `simulate` uses: for the start, and for each step the action's and the next state's."""
    with jax.enable_x64(True):
        random = streams(np.int64(seed), np.uint32(run))
        start = float(pair(random.starts, np.int32(0))[0])
        both = jax.vmap(lambda t: pair(random.steps, t))(np.arange(steps, dtype=np.int32))
    return start, np.stack(both, axis=-1).tolist()


def learning_mdp(rng: np.random.Generator, actions: int) -> FiniteMDP:
    return FiniteMDP(rng.dirichlet([1.0, 1.0], (2, actions)), rng.normal(size=(2, actions)), 0.9)


@pytest.mark.parametrize("behaviour", tiered(BEHAVIOURS, "epsilon-ipe"))
@pytest.mark.parametrize("actions", tiered([2, 3, 4], 2))
def test_every_step_of_algorithm_1(behaviour: str, actions: int) -> None:
    rng = np.random.default_rng(actions)
    steps, runs = 20, 3
    update = "paper" if "ipe" in behaviour else "none"
    calls: list[Any] = []
    expected: list[tuple[TabularRuns, int, int]] = []
    for seed in range(6):
        mdp = learning_mdp(rng, actions)
        options: dict[str, Any] = {
            "initial_q": rng.normal(size=(2, actions)),
            "initial_theta": rng.normal(size=(2, actions)),
            "update": update,
            **BEHAVIOURS[behaviour],
        }
        result = simulate(mdp, behaviour, steps=steps, runs=runs, seed=seed, record="trajectory", threads=1, **options)
        model = page_model(mdp, "learning")
        for run in range(runs):
            _, numbers = run_numbers(seed, run, steps)
            for t in range(steps):
                before = {
                    "behaviour": behaviour, "q": result.q[0, run, t], "theta": result.theta[0, run, t],
                    "state": int(result.states[0, run, t]), "steps": t, "total": 0.0, "last": None,
                }  # fmt: skip
                calls.append(["stepRun", model, before, SETTINGS, numbers[t]])
                calls.append(["behaviourPolicy", before, SETTINGS])
                calls.append(["behaviourEpsilon", before, SETTINGS])
                expected.append((result, run, t))
    found = node(calls)
    for k, (result, run, t) in enumerate(expected):
        after, policy, epsilon = found[3 * k : 3 * k + 3]
        np.testing.assert_allclose(policy, result.probabilities[0, run, t], rtol=1e-12, atol=1e-14)
        if epsilon is None:
            assert np.isnan(result.epsilon[0, run, t]).all()
        else:
            np.testing.assert_allclose(epsilon, result.epsilon[0, run, t], rtol=1e-11, atol=1e-14)
        assert after["last"]["action"] == result.actions[0, run, t]
        assert after["last"]["reward"] == pytest.approx(result.rewards[0, run, t], rel=1e-15)
        assert after["state"] == after["last"]["next"] == result.next_states[0, run, t]
        np.testing.assert_allclose(after["q"], result.q[0, run, t + 1], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(after["theta"], result.theta[0, run, t + 1], rtol=1e-11, atol=1e-13)
        assert after["steps"] == t + 1


@pytest.mark.slow
@pytest.mark.parametrize("name", tiered(["switch-stay", "dadashi-5"], "switch-stay"))
@pytest.mark.parametrize("behaviour", tiered(BEHAVIOURS, "epsilon-ipe"))
def test_a_whole_run_of_figure_2a(name: str, behaviour: str) -> None:
    mdp, steps = make(name), 500
    update = "paper" if "ipe" in behaviour else "none"
    options: dict[str, Any] = {**BEHAVIOURS[behaviour], "update": update, "threads": 1}
    result = simulate(mdp, behaviour, steps=steps, runs=2, seed=0, record="trajectory", **options)
    for run in range(2):
        start, numbers = run_numbers(0, run, steps)
        found = node([["replay", page_model(mdp, name), behaviour, SETTINGS, start, numbers]])[0]
        np.testing.assert_allclose(found["estimates"], result.estimates[0, run, :-1], rtol=1e-8, atol=1e-8)
        values: Array = many_policy_values(mdp, result.probabilities[0, run])
        np.testing.assert_allclose(found["values"], values, rtol=1e-8, atol=1e-8)
        assert found["run"]["total"] / steps == pytest.approx(float(result.reward[0, run]))


def test_episodes_end_and_start_again() -> None:
    p = np.zeros((3, 2, 3))
    p[:2, 0, 2], p[0, 1, 1], p[1, 1, 0], p[2, :, 2] = 1.0, 1.0, 1.0, 1.0
    rewards = np.zeros((3, 2, 3))
    rewards[0, 0, 2], rewards[1, 0, 2] = 3.0, 5.0
    mdp = FiniteMDP(p, rewards, 0.5, terminal=[2], start=[0.25, 0.75, 0.0])
    model = page_model(mdp, "ends")
    run = {"behaviour": "ipe", "q": [[0, 0], [0, 0]], "theta": [[0, 0], [0, 0]], "state": 0, "steps": 0, "total": 0}
    first, second = node([["stepRun", model, run, SETTINGS, [0.1, 0.5, u]] for u in (0.2, 0.3)])
    assert first["last"] == {"state": 0, "action": 0, "reward": 3, "next": 2}
    assert (first["state"], second["state"]) == (0, 1)
    assert first["q"] == [[1.5, 0], [0, 0]]  # no value beyond the end
    assert first["theta"] == [[0, 0], [0, 0]]  # no policy there either


def test_greedy_behaviour_shares_ties() -> None:
    run = {"behaviour": "epsilon-greedy", "q": [[1, 1, 0], [2, 0, 0]], "theta": [[0] * 3] * 2, "steps": 0}
    found = node([["behaviourPolicy", run, SETTINGS]])[0]
    np.testing.assert_allclose(found, epsilon_greedy(np.array(run["q"], dtype=float), 0.2), rtol=1e-15)


def test_random_numbers_are_uniform_and_differ_between_seeds() -> None:
    n = 4000
    found = np.array(node([["uniform", seed, k] for seed in (0, 1, 2**31 - 1) for k in range(n)])).reshape(3, n)
    assert ((found >= 0) & (found < 1)).all()
    counts = np.stack([np.histogram(row, bins=20, range=(0, 1))[0] for row in found])
    assert (np.abs(counts - n / 20) < 5 * np.sqrt(n / 20)).all()
    assert np.abs(np.corrcoef(found)[np.triu_indices(3, 1)]).max() < 0.08
    assert abs(np.corrcoef(found[0, 1:], found[0, :-1])[0, 1]) < 0.08


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("gamma", 1.0, "gamma must lie in [0, 1), found 1"),
        ("gamma", float("nan"), "gamma must lie in [0, 1), found none"),
        ("actions.0.1.reward", float("nan"), "r(s0, switch) must be a number within ±1000000000, found none"),
        ("actions.1.0.next.0", -0.1, "P(s0 | s1, stay) must lie in [0, 1], found -0.1"),
        ("actions.1.0.next.0", 0.5, "P(· | s1, stay) sums to 1.5, not to 1"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: float, sentence: str) -> None:
    model = page_model(switch_stay(), "x")
    edited = node([["withField", model, field, value]])[0]
    found = node([["findProblem", edited]])[0]
    assert found["message"] == sentence
    assert field.startswith(found["field"])
    assert node([["findProblem", model]]) == [None]


def test_editing_a_reward_of_the_next_state() -> None:
    rewards = np.zeros((2, 2, 2))
    rewards[0, 0] = [1.0, 3.0]
    p = np.full((2, 2, 2), 0.5)
    model = page_model(FiniteMDP(p, rewards, 0.9), "x")
    assert model["actions"][0][0] == {"name": "a0", "reward": 2.0, "next": [0.5, 0.5, 0.0], "rewards": [1.0, 3.0, 2.0]}
    moved, fixed = node(
        [["withField", model, "actions.0.0.next.0", 0.0], ["withField", model, "actions.0.0.reward", 7]]
    )
    assert moved["actions"][0][0]["reward"] == 1.5  # the mean of what is left, until the row is whole again
    assert fixed["actions"][0][0] == {"name": "a0", "reward": 7, "next": [0.5, 0.5, 0], "rewards": None}
