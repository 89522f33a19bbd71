"""DQN and epsilon-IPE learn CartPole and a small game of images, and do not if the update is broken.

The thresholds lie far from both: CartPole's return is 20 at random and 500 at most, Catch's -1.8 and 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from ipe.deep import learner
from ipe.deep.loop import Loop
from ipe.deep.networks import backward
from ipe.deep.settings import TrainingSettings, paper_settings
from ipe.updates import paper_gradient
from tests.environment_helpers import OWN

CARTPOLE: dict[str, Any] = {
    "width": 64, "frames": 12_000, "replay": 12_000, "target_period": 50, "gamma": 0.98,
    "epsilon": {"final": 0.02, "steps": 2000}, "optimiser": {"kind": "adam", "decay": 0.999},
}  # fmt: skip
CATCH: dict[str, Any] = {
    "width": 64, "channels": 8, "frames": 5000, "replay": 5000, "target_period": 100, "gamma": 0.9,
    "value_step_size": 1e-3, "epsilon": {"final": 0.02, "steps": 1500},
}  # fmt: skip
ENOUGH = {"CartPole-v1": 130.0, OWN + "Catch-v0": 2.0}


def settings_of(environment: str, behaviour: Any) -> TrainingSettings:
    return paper_settings(environment, behaviour, **(CARTPOLE if environment == "CartPole-v1" else CATCH))


def final_return(settings: TrainingSettings) -> float:
    """The mean over seeds of the mean return of the last twenty episodes."""
    batches = [[0, 1, 2]] if settings.environment.id == "CartPole-v1" else [[0], [1]]  # images go one at a time
    means = []
    for seeds in batches:
        loop = Loop([settings] * len(seeds), seeds)
        while not loop.done:
            loop.advance()
        records = loop.records.arrays()
        means += [records["episodes.return"][records["episodes.seed"] == seed][-20:].mean() for seed in seeds]
    return float(np.mean(means))


@pytest.fixture
def programs() -> Iterator[None]:
    """Programs that are compiled in a test do not outlive it: what it breaks is whole for the others."""
    learner.compiled.cache_clear()
    yield
    learner.compiled.cache_clear()


@pytest.mark.parametrize("behaviour", ["epsilon-greedy", "epsilon-ipe"])
@pytest.mark.parametrize("environment", list(ENOUGH))
def test_it_learns(environment: str, behaviour: str) -> None:
    assert final_return(settings_of(environment, behaviour)) > ENOUGH[environment]


def uphill(patch: pytest.MonkeyPatch) -> None:
    """The Q-network climbs its error: the sign of the temporal-difference error is wrong."""
    patch.setattr(learner, "backward", lambda net, q, seen, error: backward(net, q, seen, -error))


def never_copied(patch: pytest.MonkeyPatch) -> None:
    """The target network stays where it began."""
    patch.setattr("ipe.deep.loop.copy_targets", lambda state, which: state)


def no_end(patch: pytest.MonkeyPatch) -> None:
    """A termination bootstraps like any other step."""
    patch.setattr(learner, "TERMINATED", 99)


def wrong_way(patch: pytest.MonkeyPatch) -> None:
    """The policy network climbs its error."""
    gradient = paper_gradient

    def negated(*arguments: Any, **others: Any) -> Any:
        found = gradient(*arguments, **others)
        return found._replace(theta=-found.theta)

    patch.setattr(learner, "paper_gradient", negated)


BROKEN: list[tuple[str, str, Callable[[pytest.MonkeyPatch], None]]] = [
    ("CartPole-v1", "epsilon-greedy", uphill),
    ("CartPole-v1", "epsilon-greedy", never_copied),
    ("CartPole-v1", "epsilon-ipe", no_end),
    ("CartPole-v1", "epsilon-ipe", wrong_way),
    (OWN + "Catch-v0", "epsilon-greedy", uphill),
    (OWN + "Catch-v0", "epsilon-ipe", never_copied),
    (OWN + "Catch-v0", "epsilon-ipe", wrong_way),
]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(("environment", "behaviour", "breaks"), BROKEN)
def test_a_broken_update_does_not(
    environment: str, behaviour: str, breaks: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    assert final_return(settings_of(environment, behaviour)) < ENOUGH[environment]
