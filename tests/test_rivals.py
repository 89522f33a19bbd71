"""The known rules of exploration beside epsilon-IPE, each against a case computed by hand or another solution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta as beta_distribution
from scipy.stats import t as student

import ipe
from ipe.behaviours import BEHAVIOURS, Beliefs, Outcome, View, bmc_update, ebe_epsilon, munchausen_target, vdbe_softmax
from ipe.behaviours import zeta_duration as duration
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.zoo import switch_stay

DEEP = ("fixed-epsilon", "ebe", "epsilon-bmc", "ez-greedy", "ez-epsilon-ipe", "munchausen", "munchausen-softmax")
REMEMBERING = ("epsilon-bmc", "ez-greedy", "ez-epsilon-ipe")


def test_ebe_is_the_entropy_in_units_of_its_maximum() -> None:
    q = np.log([[0.5, 0.25, 0.25], [1.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    allowed = np.array([[True] * 3, [True] * 3, [False, True, False]])
    # H(1/2, 1/4, 1/4) = 1.5 ln 2; uniform; a single action
    np.testing.assert_allclose(ebe_epsilon(q, allowed=allowed), [1.5 * np.log(2) / np.log(3), 1.0, 0.0], rtol=1e-12)
    np.testing.assert_allclose(ebe_epsilon(10.0 * q, 10.0, allowed), ebe_epsilon(q, 1.0, allowed), rtol=1e-12)
    assert ebe_epsilon(np.array([0.0, 1e300]), 1e-300) == 0.0
    acting = BEHAVIOURS["ebe"].act(View(np.log([0.75, 0.25])), {"temperature": 1.0})
    assert acting.epsilon == pytest.approx(0.8112781244591328)  # in bits
    np.testing.assert_allclose(acting.probabilities, [1 - 0.8112781244591328 / 2, 0.8112781244591328 / 2])


def test_vdbe_softmax_explores_by_scaled_values() -> None:
    e = np.e
    total = 1 + e + e**2
    expected = 0.25 * np.array([1, e, e**2]) / total + [0.0, 0.0, 0.75]
    for scale, shift in ((1.0, 0.0), (1e6, -3.0), (1e-6, 7.0)):
        np.testing.assert_allclose(vdbe_softmax(scale * np.array([0.0, 0.5, 1.0]) + shift, 0.25), expected, rtol=1e-8)
    np.testing.assert_array_equal(vdbe_softmax(np.array([2.0, 2.0, 9.0]), 0.5, [True, True, False]), [0.5, 0.5, 0.0])


def test_bmc_by_hand() -> None:
    # epsilon 1/4, G = 3; a = 1.5, b = 1 + 4.5 / 2; e_U / e_Q = ((1 + 1/6.5) / (1 + 9/6.5))^2
    ratio = ((1 + 1 / 6.5) / (1 + 9 / 6.5)) ** 2
    w = ratio / (ratio + 3)
    after = bmc_update(Beliefs(1.0, 3.0, 0.0, 0.0, 0.0), 4.0, 0.0, certainty=1.0)
    assert after.epsilon == pytest.approx((1 + w) / 5, rel=1e-12)
    assert (after.returns, after.mean, after.squares) == (1.0, 3.0, 0.0)


@pytest.mark.parametrize("seed", range(5))
def test_bmc_has_the_moments_of_the_posterior(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b, certainty, greedy, even = rng.uniform(0.5, 6.0, 5)
    before = Beliefs(a, b, 0.0, 0.0, 0.0)
    after = bmc_update(before, greedy, even, certainty)
    seen = greedy - before.epsilon * (greedy - even)
    shape, rate = certainty + 0.5, certainty + 0.25 * seen**2
    e_u, e_q = (student.pdf(seen, 2 * shape, at, np.sqrt(rate / shape)) for at in (even, greedy))

    def moment(k: int) -> float:
        def density(x: float) -> float:
            return float(x**k * (x * e_u + (1 - x) * e_q) * beta_distribution.pdf(x, a, b))

        return float(quad(density, 0.0, 1.0, limit=200)[0])

    mean, square = moment(1) / moment(0), moment(2) / moment(0)
    found = beta_distribution(after.uniform, after.greedy)
    assert found.mean() == pytest.approx(mean, rel=1e-6)
    assert found.var() == pytest.approx(square - mean**2, rel=1e-5)


def test_bmc_falls_and_does_so_in_float32_too() -> None:
    def run(dtype: Any) -> list[float]:
        rng = np.random.default_rng(0)
        beliefs = Beliefs(*(np.asarray(x, dtype) for x in (5.0, 5.01, 0.0, 0.0, 0.0)))
        epsilons = []
        for _ in range(5000):
            even = dtype(rng.normal())
            beliefs = bmc_update(beliefs, even + dtype(3.0 * rng.random()), even, dtype(5.0))
            epsilons.append(float(beliefs.epsilon))
        return epsilons

    exact, single = run(np.float64), run(np.float32)
    assert (np.diff(exact) < 0.0).all()  # the paper's monotone convergence
    assert exact[-1] < 0.01
    np.testing.assert_allclose(single, exact, rtol=5e-3)


@pytest.mark.parametrize("longest", [1, 2, 5, 10_000])
def test_durations_are_zeta_distributed(longest: int) -> None:
    weights = 1.0 / np.arange(1, longest + 1) ** 2
    cumulated = np.cumsum(weights) / weights.sum()
    chances = np.random.default_rng(longest).random(20_000)
    expected = 1 + np.searchsorted(cumulated, chances, side="right")
    np.testing.assert_array_equal(duration(chances, longest), expected)
    single = np.asarray(duration(jnp.asarray(chances, jnp.float32), jnp.float32(longest)))
    assert single.max() <= longest
    assert np.mean(single == expected) > 0.999
    assert np.allclose(single, expected, rtol=0.2)


@pytest.mark.slow
def test_ez_greedy_repeats_as_long_as_it_says() -> None:
    runs = ipe.simulate(switch_stay(), "ez-greedy", epsilon=1.0, longest=3, runs=400, steps=200, record="trajectory")
    held = runs.probabilities.max(axis=-1)[..., 0] == 1.0  # in every state the same: the memory is the agent's
    assert (runs.actions[..., 1:] == runs.actions[..., :-1])[held[..., 1:]].all()
    # the mean duration is (1 * 36 + 2 * 9 + 3 * 4) / 49
    assert 1.0 - held.mean() == pytest.approx(49 / 66, abs=0.005)
    fresh = runs.actions[~held]
    assert fresh.mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.slow
def test_ez_greedy_without_repeats_is_epsilon_greedy() -> None:
    pairs: list[tuple[str, dict[str, Any], str]] = [
        ("ez-greedy", {}, "epsilon-greedy"),
        ("ez-epsilon-ipe", {}, "epsilon-ipe"),
    ]
    for extended, options, plain in pairs:
        ours = ipe.simulate(switch_stay(), extended, longest=1, runs=20, steps=100, **options)
        theirs = ipe.simulate(switch_stay(), plain, runs=20, steps=100, **options)
        assert ours.q.tobytes() == theirs.q.tobytes(), extended


def test_munchausen_by_hand() -> None:
    tau = 2.0
    here, there = View(tau * np.log([[0.25, 0.75], [0.25, 0.75]])), View(tau * np.log([[1.0, 3.0], [1.0, 3.0]]))
    bonus, value = munchausen_target(Outcome(here, np.eye(2, dtype=bool), there), 0.5, tau, 1.0)
    np.testing.assert_allclose(bonus, [-0.5, 0.5 * tau * np.log(0.75)])  # tau ln(1/4) = -2.77 is cut to -1
    np.testing.assert_allclose(value, tau * np.log(4.0))
    masked = View(np.array([1.0, 5.0]), allowed=np.array([True, False]))
    assert munchausen_target(Outcome(masked, np.array([True, False]), masked)) == (0.0, 1.0)
    large = View(np.array([1e30, -1e30]))
    bonus, value = munchausen_target(Outcome(large, np.array([False, True]), large))
    assert (bonus, value) == (-0.9, 1e30)


@pytest.mark.slow
def test_munchausen_learns_its_fixed_point() -> None:
    rewards, gamma = np.array([[0.3, 0.0, 0.1]]), 0.5
    mdp = FiniteMDP(np.ones((1, 3, 1)), rewards, gamma)
    weight, tau = 0.4, 0.2
    runs = ipe.simulate(
        mdp, "munchausen", epsilon=0.5, runs=3, steps=3000, munchausen_weight=weight, munchausen_temperature=tau
    )
    for q in runs.q[0, :, 0]:
        powers = np.exp(q / tau)
        target = rewards[0] + weight * tau * np.log(powers / powers.sum()) + gamma * tau * np.log(powers.sum())
        np.testing.assert_allclose(q, target, atol=1e-9)


@pytest.fixture(scope="module")
def settings() -> Callable[..., Any]:
    pytest.importorskip("gymnasium")
    from tests.deep_helpers import small

    def make(behaviour: str, **changes: Any) -> Any:
        return small("CartPole-v1", behaviour, **changes)

    return make


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", DEEP)
def test_a_seed_is_the_same_in_every_batch_and_after_a_checkpoint(behaviour: str, settings: Callable[..., Any]) -> None:
    from ipe.deep.loop import Loop
    from tests.deep_helpers import advance, result, run

    own = settings(behaviour, warm_up=5)
    together = run(own, [0, 1, 2], 60)
    for seeds in ([0], [1, 2]):
        alone = run(own, seeds, 60)
        for i, seed in enumerate(seeds):
            assert result(alone, i) == result(together, seed)
            for name, array in alone._state.get("memory", {}).items():
                assert np.asarray(array)[i] == np.asarray(together._state["memory"][name])[seed], name
    stopped = run(own, [0, 1, 2], 25)
    resumed = Loop([own] * 3, [0, 1, 2], stopped.checkpoint())
    advance(resumed, 35)
    assert [result(resumed, i) for i in range(3)] == [result(together, i) for i in range(3)]
    assert bool(together._state.get("memory")) == (behaviour in REMEMBERING)


@pytest.mark.slow
def test_what_remembers_is_evaluated_greedily(settings: Callable[..., Any], tmp_path: Path) -> None:
    run = tmp_path / "run"
    ipe.deep.train(settings("epsilon-bmc", frames=300), seeds=1, out=run, processes=0)
    assert ipe.deep.evaluate(run, episodes=1).seeds
    assert ipe.deep.load_agent(run).act(np.zeros(4, np.float32)) in (0, 1)
    with pytest.raises(InputError, match="epsilon-bmc goes by what it remembers of its training"):
        ipe.deep.evaluate(run, episodes=1, behaviour=True)
    with pytest.raises(InputError, match="epsilon-bmc goes by what it remembers of its training"):
        ipe.deep.load_agent(run).act(np.zeros(4, np.float32), greedy=False)


def test_double_q_makes_no_sense_with_soft_values(settings: Callable[..., Any]) -> None:
    with pytest.raises(InputError, match="double_q has no effect with the behaviour munchausen"):
        settings("munchausen", double_q=True)
