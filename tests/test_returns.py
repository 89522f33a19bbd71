"""Returns of Q-learning that reach further, or less far: traces, and lambda and the discount from entropy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from ipe.base.arrays import Array
from ipe.entropy import distrust
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.tabular import simulate
from ipe.tabular.returns import Returns, discount
from ipe.zoo import garnet, switch_stay
from tests.strategies import random_mdp
from tests.tabular_oracle import Oracle, entropy, matched_epsilon, softmax
from tests.tiers import examples, tiered, tiered_rows


def coin(pi: Array) -> float:
    """The distrust of a policy as a coin, by bisection."""
    if len(pi) == 1:
        return 0.0
    goal = np.log(2) * entropy(pi) / np.log(len(pi))
    if goal >= np.log(2) * (1 - 1e-12):
        return 1.0
    return float(2 * brentq(lambda x: entropy(np.array([x, 1 - x])) - goal, 0.0, 0.5, xtol=1e-16))


class TracingOracle(Oracle):
    """The plain loop with traces and discounts, one pair after the other."""

    rule = Returns()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.e: dict[tuple[int, int], float] = {}

    def distrust(self, s: int, source: str) -> float:
        if not len(self.actions(s)):
            return 0.0
        return matched_epsilon(self.policy(s)) if source == "actions" else coin(self.policy(s))

    def gamma(self, s: int) -> float:
        p = self.parameters
        if self.rule.discount_from == "number":
            return p.get("learning_gamma", p["gamma"])
        least = p.get("least_gamma", 0.0)
        return least + (p["gamma"] - least) * (1 - self.distrust(s, self.rule.discount_from))

    def decay(self, s: int) -> float:
        source = self.rule.trace_decay_from
        return self.parameters.get("trace_decay", 0.9) if source == "number" else self.distrust(s, source)

    def _learn(self, s: int, a: int, reward: float, following: int, best: float) -> float:
        alpha, before = self.parameters["alpha_q"], float(self.q[s, a])
        ended = bool(self.mdp.terminal[following])
        target = reward + (0.0 if ended else self.gamma(following) * best)
        if self.rule.traces == "none":
            self.q[s, a] += alpha * (target - before)
            return alpha * (target - before)
        value = float(self.q[s, self.actions(s)].max())
        kept = self.gamma(s) * self.decay(s)
        greedy = before == value
        error = target - (before if self.rule.traces == "watkins" else value)
        for pair in list(self.e):
            self.e[pair] *= kept if greedy or self.rule.traces == "peng" else 0.0
            if pair != (s, a):
                self.q[pair] += alpha * self.e[pair] * error
        self.q[s, a] += alpha * (target - before)
        self.e[s, a] = 1.0
        if ended:
            self.e.clear()
        return alpha * (target - before)


CASES: list[tuple[Returns, dict[str, float]]] = [
    (Returns("watkins", "actions", "coin"), {"least_gamma": 0.3}),
    (Returns("peng", "coin", "actions"), {}),
    (Returns("watkins"), {"trace_decay": 0.7}),
    (Returns("peng"), {"trace_decay": 0.7, "learning_gamma": 0.5}),
    (Returns("none", "number", "actions"), {"least_gamma": 0.5}),
]


@pytest.mark.parametrize(("returns", "numbers"), tiered_rows(CASES))
def test_every_step_is_that_of_a_plain_loop(returns: Returns, numbers: dict[str, float]) -> None:
    mdp = random_mdp(np.random.default_rng(3), 6, 3, masks=True, terminals=True, successors=2)
    given: dict[str, Any] = {"alpha_q": 0.3, "alpha_pi": 2.0, **numbers}
    runs, steps = 2, 80
    result = simulate(
        mdp, "epsilon-ipe", steps=steps, runs=runs, seed=5, record="trajectory", **returns._asdict(), **given
    )
    for i in range(runs):
        oracle = TracingOracle(mdp, "epsilon-ipe", seed=5, run=i, steps=steps, given=given)
        oracle.rule = returns
        for t in range(steps):
            s, a, _, following = oracle.step()
            seen = (result.states[0, i, t], result.actions[0, i, t], result.next_states[0, i, t])
            assert (s, a, following) == tuple(int(x) for x in seen), f"run {i}, step {t}"
            q = np.where(mdp.allowed, oracle.q, np.where(mdp.terminal[:, None], 0.0, np.nan))
            np.testing.assert_allclose(result.q[0, i, t + 1], q, rtol=1e-9, atol=1e-9, err_msg=f"run {i}, step {t}")
    assert mdp.terminal[result.next_states].any(), "no episode ended: the test shows less than it should"


def path(length: int) -> FiniteMDP:
    """States in a row, one action, a reward of 1 at the end."""
    transitions = np.zeros((length + 1, 1, length + 1))
    transitions[np.arange(length), 0, np.arange(1, length + 1)] = 1.0
    rewards = np.zeros((length + 1, 1))
    rewards[length - 1] = 1.0
    terminal = np.arange(length + 1) == length
    start = np.eye(length + 1)[0]
    return FiniteMDP(transitions, rewards, 0.9, terminal=terminal, start=start)


@pytest.mark.parametrize("traces", ["watkins", "peng"])
def test_after_one_episode_of_a_path_the_values_are_powers_of_gamma_lambda(traces: Any) -> None:
    for decay in (0.0, 0.5, 1.0):
        runs = simulate(
            path(6), "greedy", steps=6, runs=2, traces=traces, trace_decay=decay, alpha_q=0.5, update="none"
        )
        expected = 0.5 * (0.9 * decay) ** np.arange(5, -1, -1.0)
        np.testing.assert_allclose(runs.q[0, :, :6, 0], np.tile(expected, (2, 1)), rtol=1e-12)


@pytest.mark.parametrize("traces", tiered(["watkins", "peng"], "peng"))
def test_a_lambda_of_zero_is_q_learning(traces: Any) -> None:
    options: dict[str, Any] = {"steps": 60, "runs": 4, "seed": 1}
    plain = simulate(switch_stay(), "epsilon-ipe", **options)
    zero = simulate(switch_stay(), "epsilon-ipe", traces=traces, trace_decay=0.0, **options)
    np.testing.assert_allclose(zero.q, plain.q, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_with_a_greedy_behaviour_no_trace_is_cut() -> None:
    """Then Watkins's traces and Peng's are the same: each action's value is its state's."""
    options: dict[str, Any] = {"steps": 100, "runs": 4, "update": "none", "trace_decay": 0.8, "initial_q": 5.0}
    watkins, peng = (simulate(garnet(6, 3, 2), "greedy", traces=traces, **options).q for traces in ("watkins", "peng"))
    np.testing.assert_allclose(watkins, peng, rtol=1e-9, atol=1e-9)


@given(st.integers(1, 8), st.integers(0, 2**32 - 1), st.floats(-3, 6))
@examples(100)
def test_distrust_is_a_probability_that_matches_its_entropy(n: int, seed: int, scale: float) -> None:
    logits = np.random.default_rng(seed).normal(size=n) * np.exp(scale)
    pi = softmax(logits)
    for over, oracle in (("actions", matched_epsilon), ("coin", coin)):
        found = float(distrust(logits, over=over))  # type: ignore[arg-type]
        assert 0.0 <= found <= 1.0
        assert found == pytest.approx(oracle(pi), abs=1e-6)
    wider = np.append(logits, 100.0)
    allowed = np.append(np.ones(n, bool), False)
    assert float(distrust(wider, allowed, "coin")) == pytest.approx(float(distrust(logits, over="coin")), abs=1e-12)
    assert float(distrust(np.zeros(n), over="coin")) == (0.0 if n == 1 else 1.0)


@given(st.integers(0, 2**32 - 1), st.floats(0, 0.99), st.floats(0, 1))
@examples(60)
def test_the_learning_target_contracts_by_its_largest_discount(seed: int, gamma: float, share: float) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 5, 3, successors=2).with_gamma(gamma)
    logits = rng.normal(size=(5, 3)) * 10
    numbers = {"gamma": gamma, "least_gamma": share * gamma}
    discounts = np.asarray(discount(Returns(discount_from="actions"), numbers, logits, None))
    assert ((discounts >= share * gamma - 1e-12) & (discounts <= gamma + 1e-12)).all()

    def target(q: Array) -> Array:
        backed: Array = mdp.rewards + (mdp.transitions @ (discounts * q.max(axis=1))).reshape(q.shape)
        return backed

    q, other = rng.normal(size=(2, 5, 3)) * 10
    assert np.abs(target(q) - target(other)).max() <= discounts.max() * np.abs(q - other).max() + 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"traces": "sarsa"}, "traces.*'sarsa'"),
        ({"traces": "watkins", "trace_decay": 1.5}, "trace_decay"),
        ({"trace_decay": 0.5}, "trace_decay has no effect with traces = 'none'"),
        ({"trace_decay_from": "actions"}, "trace_decay_from = 'actions' has no effect with traces = 'none'"),
        ({"traces": "peng", "trace_decay_from": "coin", "update": "none"}, "needs a policy"),
        ({"discount_from": "coin", "update": "none"}, "discount_from = 'coin' needs a policy"),
        ({"discount_from": "dice"}, "discount_from.*'dice'"),
        ({"discount_from": "coin", "learning_gamma": 0.5}, "learning_gamma has no effect"),
        ({"least_gamma": 0.5}, "least_gamma has no effect"),
        ({"traces": "watkins", "behaviour": "munchausen"}, "'munchausen' has a value target of its own"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(switch_stay(), **{"behaviour": "epsilon-greedy", "steps": 2, "runs": 1, **options})
