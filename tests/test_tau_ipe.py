"""Tau-IPE as a behaviour: what it is on two actions, on scaled rewards, and what it earns beside epsilon-IPE."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ipe
from ipe.behaviours import BEHAVIOURS, View, epsilon_ipe, tau_ipe
from ipe.zoo import garnet, switch_stay


def test_the_declared_behaviour_is_the_function() -> None:
    rng = np.random.default_rng(0)
    q, logits = rng.standard_normal((9, 5)), rng.standard_normal((9, 5))
    acting = BEHAVIOURS["tau-ipe"].act(View(q, logits), {})
    np.testing.assert_array_equal(acting.probabilities, tau_ipe(q, logits))
    np.testing.assert_allclose(ipe.entropy.entropy(tau_ipe(q, logits)), ipe.entropy.entropy_from_logits(logits))


def test_better_actions_are_more_likely_where_epsilon_ipe_has_them_equal() -> None:
    q, logits = np.array([3.0, 2.0, 0.0, 1.0]), np.array([0.0, 0.0, 1.0, -1.0])
    assert (np.diff(tau_ipe(q, logits)[np.argsort(q)]) > 0.01).all()
    assert np.ptp(np.sort(epsilon_ipe(q, logits))[:3]) == 0.0


@pytest.mark.slow
def test_with_two_actions_the_runs_are_those_of_epsilon_ipe() -> None:
    runs = {name: ipe.simulate(switch_stay(), name, runs=40, steps=300) for name in ("tau-ipe", "epsilon-ipe")}
    np.testing.assert_allclose(runs["tau-ipe"].q, runs["epsilon-ipe"].q, atol=1e-9)


@pytest.mark.slow
def test_it_earns_more_than_epsilon_ipe_on_a_garnet_mdp() -> None:
    mdp = garnet(30, 4, 3, seed=0, gamma=0.9)
    sweep = {"alpha_pi": [0.1, 1.0, 3.0]}
    tau, epsilon = (
        ipe.simulate(mdp, name, runs=60, steps=1000, sweep=sweep).reward for name in ("tau-ipe", "epsilon-ipe")
    )
    difference = tau.mean(axis=0) - epsilon.mean(axis=0)
    assert difference.mean() > 2 * difference.std(ddof=1) / np.sqrt(difference.size)


@pytest.mark.slow
def test_the_deep_agent_acts_with_it(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium", reason="CartPole needs Gymnasium")
    settings = ipe.deep.paper_settings("CartPole-v1", "tau-ipe", frames=300, width=16, batch=8, replay=200)
    result = ipe.deep.train(settings, seeds=2, out=tmp_path / "run", processes=0)
    assert result.status == "done"
    assert ipe.deep.evaluate(tmp_path / "run", episodes=1).seeds
