"""The deep part, declared: behaviours of DQN, environments, and the sweeps that choose settings and report on them.

A task has two sweeps: in the first, few seeds of every setting choose (`ipe.studies.exploration.choosing`); in the
second, fresh seeds of the chosen settings are reported on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ipe.behaviours import BEHAVIOURS
from ipe.deep.evaluating import Evaluating
from ipe.experiments.declared import Setting, Sweep
from ipe.experiments.grids import make_sweep
from ipe.studies.learning.confirming import FIRST_FRESH

UNIFORM = "uniform"
VALUE_STEP_SIZES = (3e-4, 1e-3)
"""The step sizes of the Q-network, the same for all behaviours."""
GREEDY_EPISODES = 20
"""The number of greedy episodes with the last networks of every fresh run."""


@dataclass(frozen=True)
class DeepContender:
    """A behaviour of the deep agent with the grid of one of its settings.

    Attributes:
        name: the contender's name, which is the name of its case in a sweep.
        label: the contender's name in tables and figures.
        behaviour: the behaviour's name.
        path: the setting that the grid varies.
        grid: the values of that setting; shares of the frames if `in_frames`.
        fields: other settings that are not the defaults.
        in_frames: whether the setting counts frames.
        ours: whether the behaviour is derived from an evaluation policy.
    """

    name: str
    label: str
    behaviour: str
    path: str
    grid: tuple[float, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    in_frames: bool = False
    ours: bool = False

    def case(self, frames: int) -> dict[str, Any]:
        """The case of a sweep's file."""
        values = [round(value * frames) for value in self.grid] if self.in_frames else list(self.grid)
        return {"behaviour": self.behaviour, **self.fields, "grid": {self.path: values}}


@dataclass(frozen=True)
class DeepTask:
    """An environment, and how it is trained on.

    Attributes:
        name: the task's name, which is that of its folder.
        group: the part of the study that the task belongs to.
        environment: the environment's id, or a table with its options.
        frames: the number of frames of a run.
        choosing: the number of seeds of each setting that settings are chosen by.
        fresh: the number of fresh seeds of each chosen setting.
        fields: other settings of training.
        goal: the return that solves the task: the best that there is, or Gymnasium's `reward_threshold`; None if
            neither is known.
    """

    name: str
    group: str
    environment: str | Mapping[str, Any]
    frames: int
    choosing: int
    fresh: int
    fields: Mapping[str, Any] = field(default_factory=dict)
    goal: float | None = None


_AT_ONCE = {"epsilon": {"initial": 1.0, "steps": 1}}
_EPSILONS = (0.01, 0.05, 0.1, 0.2, 0.5)
_STEP_SIZES = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)

DEEP_CONTENDERS: tuple[DeepContender, ...] = (
    DeepContender("epsilon-greedy", "ε-greedy, fixed", "fixed-epsilon", "fixed_epsilon", _EPSILONS),
    DeepContender("linear", "ε-greedy, annealed", "epsilon-greedy", "epsilon.steps", (0.05, 0.1, 0.2, 0.5, 1.0),
                  {"epsilon": {"final": 0.05}}, in_frames=True),
    DeepContender("boltzmann", "Boltzmann", "boltzmann", "temperature", (0.03, 0.1, 0.3, 1.0, 3.0)),
    DeepContender("ebe", "entropy of Q (EBE)", "ebe", "temperature", (0.03, 0.1, 0.3, 1.0, 3.0)),
    DeepContender("epsilon-bmc", "ε-BMC", "epsilon-bmc", "bmc_prior", (1.0, 5.0, 10.0, 25.0, 50.0)),
    DeepContender("ez-greedy", "εz-greedy", "ez-greedy", "epsilon.final", _EPSILONS, _AT_ONCE),
    DeepContender("munchausen", "Munchausen", "munchausen-softmax", "munchausen_temperature",
                  (0.01, 0.03, 0.1, 0.3, 1.0)),
    DeepContender("ipe", "IPE", "ipe", "policy_step_size", _STEP_SIZES, ours=True),
    DeepContender("epsilon-ipe", "ε-IPE", "epsilon-ipe", "policy_step_size", _STEP_SIZES, ours=True),
    DeepContender("ez-epsilon-ipe", "εz-IPE", "ez-epsilon-ipe", "policy_step_size", _STEP_SIZES, ours=True),
    DeepContender("tau-ipe", "τ-IPE", "tau-ipe", "policy_step_size", _STEP_SIZES, ours=True),
)  # fmt: skip
"""The behaviours of DQN that are compared, five settings each."""

_SMALL = {"width": 64, "replay": 50_000}

DEEP_TASKS: tuple[DeepTask, ...] = (
    *(
        DeepTask(name, "classic-control", environment, 50_000, 5, 30, _SMALL, goal)
        for name, environment, goal in (
            ("cartpole", "CartPole-v1", 475.0),
            ("acrobot", "Acrobot-v1", -100.0),
            ("mountain-car", "MountainCar-v0", -110.0),
        )
    ),
    *(
        DeepTask(f"deep-sea-{n}", "deep-sea", {"id": "zoo/deep-sea", "options": {"n": n}}, 1000 * n, 5, 30, _SMALL,
                 goal=0.99)
        for n in (5, 10, 20)
    ),
    DeepTask("lunar-lander", "lunar-lander", "LunarLander-v3", 200_000, 3, 10, {"width": 128, "update_every": 2},
             goal=200.0),
    *(
        DeepTask(f"minatar-{game.lower()}", "minatar", f"minatar/{game}", 100_000, 1, 5, {"update_every": 4})
        for game in ("Breakout", "Asterix", "Freeway", "Seaquest", "SpaceInvaders")
    ),
)  # fmt: skip
"""The deep tasks, in the order in which they are run: every stop leaves whole groups."""

GROUPS: tuple[str, ...] = tuple(dict.fromkeys(task.group for task in DEEP_TASKS))


def choosing_sweep(task: DeepTask, runs: int | None = None, frames: int | None = None) -> Sweep:
    """The sweep that chooses: every setting of every behaviour, and uniform behaviour to measure from; by default with
    the task's numbers of seeds and frames."""
    length = task.frames if frames is None else frames
    cases = {c.name: c.case(length) for c in DEEP_CONTENDERS if BEHAVIOURS[c.behaviour].deep}
    uniform = {"behaviour": "fixed-epsilon", "fixed_epsilon": 1.0}
    return make_sweep(
        {
            "name": f"{task.name}: every setting",
            "seeds": task.choosing if runs is None else min(runs, task.choosing),
            "base": {"environment": task.environment, "frames": length, **task.fields},
            "grid": {"value_step_size": list(VALUE_STEP_SIZES)},
            "cases": {UNIFORM: uniform, **cases},
        }
    )


def fresh_sweep(task: DeepTask, settings: Sequence[Setting], runs: int | None = None) -> Sweep:
    """The sweep that is reported on: fresh seeds of some settings of the first sweep; by default as many as the task
    declares."""
    count = task.fresh if runs is None else min(runs, task.fresh)
    seeds = list(range(FIRST_FRESH, FIRST_FRESH + count))
    at_the_end = Evaluating(every=settings[0].frames, episodes=GREEDY_EPISODES)
    title = f"{task.name}: fresh runs of the chosen settings"
    return Sweep(title, seeds, list(settings), one_at_a_time=False, evaluating=at_the_end)


def settings_of_case(sweep: Sweep, name: str) -> list[Setting]:
    """The settings of a contender, in the order of its case."""
    return [setting for setting in sweep.settings if setting.case == name]
