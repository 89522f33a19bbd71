"""The study of batches, declared: environments, the sources of their data, and what is learned from the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from ipe.studies.parts import check_only


@dataclass(frozen=True)
class Source:
    """Who makes a data set: a DQN with a fixed epsilon.

    Attributes:
        epsilon: the epsilon of the DQN, while it is trained and while it makes the data.
        frames: the number of frames that the DQN is trained for. 0: it is not trained, and is greedy with respect to
            the exact optimal values, which must be known then.
        which: whether the data are made by the last or by the best networks of the training.
    """

    epsilon: float
    frames: int
    which: str = "last"


@dataclass(frozen=True)
class Task:
    """An environment, the data of three qualities that are made of it, and how they are learned from.

    Attributes:
        name: the task's name, which is that of its folder.
        label: the task's name in tables and figures.
        environment: the environment's id.
        sources: who makes the data of each quality.
        transitions: the number of transitions in a data set.
        updates: the number of updates of a run.
        target_period: the number of updates between copies of the target network.
        seeds: the number of runs.
        episodes: the number of new episodes of each run. 0: expected returns are computed exactly, from the table of
            the environment.
        fields: other settings of training that are not the defaults.
    """

    name: str
    label: str
    environment: str
    sources: Mapping[str, Source]
    transitions: int
    updates: int
    target_period: int
    seeds: int = 10
    episodes: int = 10
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether expected returns are computed exactly."""
        return self.episodes == 0

    def declared(self) -> dict[str, Any]:
        """The task as plain data, which its results are of."""
        return {name: value for name, value in asdict(self).items() if name != "label"}


@dataclass(frozen=True)
class Training:
    """What is learned from a data set, and the ways of acting on it.

    Attributes:
        name: the training's name in file names.
        behaviour: the behaviour of the settings, which says which networks are learned.
        fields: other settings.
        ways: the behaviours of the evaluation, by the names of the ways of acting.
    """

    name: str
    behaviour: str
    ways: Mapping[str, str]
    fields: Mapping[str, Any] = field(default_factory=dict)


GREEDY, CONSERVATIVE, CLONING = "greedy", "greedy, CQL", "cloning"
POLICIES = ("ε-IPE", "τ-IPE", "IPE")
"""The ways of acting on the evaluation policy."""
TRAININGS: tuple[Training, ...] = (
    Training("ipe", "epsilon-ipe", {GREEDY: "greedy", "ε-IPE": "epsilon-ipe", "τ-IPE": "tau-ipe", "IPE": "ipe"}),
    Training("cql", "epsilon-greedy", {CONSERVATIVE: "greedy"}, {"conservative_weight": 1.0}),
    Training("cloning", "cloning", {CLONING: "cloning"}),
)
"""Q-learning with an evaluation policy beside it, conservative Q-learning with a penalty of 1, and cloning. Q does not
depend on the policy that is learned beside it, so that the way `greedy` is DQN on the batch."""

TASKS: tuple[Task, ...] = (
    Task(
        "cart-pole", "CartPole", "CartPole-v1",
        {"random": Source(1.0, 2_000), "medium": Source(0.1, 10_000), "expert": Source(0.1, 60_000, "best")},
        transitions=10_000, updates=10_000, target_period=60,
    ),
    Task(
        "lunar-lander", "LunarLander", "LunarLander-v3",
        {"random": Source(1.0, 2_000), "medium": Source(0.1, 100_000), "expert": Source(0.1, 400_000, "best")},
        transitions=50_000, updates=50_000, target_period=500,
    ),
    Task(
        "frozen-lake", "FrozenLake", "FrozenLake-v1",
        {"random": Source(1.0, 0), "medium": Source(0.5, 0), "expert": Source(0.1, 0)},
        transitions=10_000, updates=20_000, target_period=100, episodes=0,
    ),
)  # fmt: skip
"""On FrozenLake the sources are epsilon-greedy with respect to the exact optimal values."""


def tasks(only: Sequence[str] | None = None, runs: int | None = None, updates: int | None = None) -> list[Task]:
    """The tasks of these names, with the declared or other numbers of runs and updates."""
    names = check_only([task.name for task in TASKS], only)
    return [
        replace(task, seeds=task.seeds if runs is None else runs, updates=task.updates if updates is None else updates)
        for task in TASKS
        if task.name in names
    ]
