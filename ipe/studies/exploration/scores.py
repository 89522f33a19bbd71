r"""Scores of the study: normalised per task, and the settings that are chosen by them.

The score of a run on a task is :math:`(x - u) / (b - u)`: x what the run earned, u the mean of uniform behaviour, b the
best mean that any setting of any contender has on the runs that choose. So 0 is acting at random, and 1 the best that
was found. A task that nobody solved says nothing about who explores well, and is left out: one where no setting's
greedy policy comes :math:`1/20` of the way from the uniform policy's value to the optimal one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ipe.analysis import score_failed
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.planning import optimal_values, policy_values, uniform_policy
from ipe.studies.exploration.files import Runs
from ipe.studies.exploration.settings import UNIFORM, Contender, TabularSettings, Task
from ipe.studies.exploration.simulating import start_of

SOLVED = 0.05
"""The share of the way to the optimal value from which on a task counts as solved by somebody."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The runs of a contender at one setting per task, none of which had a part in choosing the setting.

    Attributes:
        settings: the setting of each task, in words.
        scores: for each task the normalised scores of the fresh runs.
        ends: for each task where the fresh runs ended: the greedy policy's part of the way from the uniform policy's
            value to the optimal one; of deep runs, the normalised mean return of greedy episodes at the end.
    """

    settings: dict[str, str]
    scores: dict[str, Array]
    ends: dict[str, Array]


@dataclass(frozen=True, eq=False)
class Scores:
    """The normalised scores of all contenders on the tasks that somebody solved.

    Attributes:
        contenders: the contenders, in the order of the declaration.
        tasks: the tasks that count.
        unsolved: the names of the tasks that nobody solved.
        settings: (value of the grid, value step size) of each setting, by contender.
        scores: normalised scores by contender, shape (tasks, settings, runs).
        greedy: by contender, the greedy policy's part of the way from the uniform policy's value to the optimal one,
            shape (tasks, settings, runs).
        low: the mean score of uniform behaviour on each task.
        high: the best mean score on each task.
        seconds: the processor seconds of each contender.
        choosing: the number of runs that settings are chosen by.
    """

    contenders: tuple[Contender, ...]
    tasks: tuple[Task, ...]
    unsolved: tuple[str, ...]
    settings: dict[str, list[tuple[float, float]]]
    scores: dict[str, Array]
    greedy: dict[str, Array]
    low: Array
    high: Array
    seconds: dict[str, float]
    choosing: int

    @cached_property
    def families(self) -> list[str]:
        """The families of the tasks, in order."""
        return list(dict.fromkeys(task.family for task in self.tasks))

    def family_means(self, per_task: Array) -> Array:
        """The mean of each family's tasks: shape (tasks, ...) to (families, ...)."""
        return family_means(per_task, [task.family for task in self.tasks])

    def one_for_all(self, name: str) -> Choice:
        """The setting with the largest mean score over the families, on the runs that choose."""
        best = int(self._chosen_by(name).mean(axis=0).argmax())
        return self._choice(name, [best] * len(self.tasks))

    def for_unseen(self, name: str) -> Choice:
        """For each task the setting with the largest mean score over the *other* families."""
        means = self._chosen_by(name)
        others = {
            family: int(np.delete(means, k, axis=0).mean(axis=0).argmax()) for k, family in enumerate(self.families)
        }
        return self._choice(name, [others[task.family] for task in self.tasks])

    def per_task(self, name: str) -> Choice:
        """For each task the setting with the largest mean score on it."""
        return self._choice(name, self._choosing_means(name).argmax(axis=1).tolist())

    def _choosing_means(self, name: str) -> Array:
        return np.asarray(self.scores[name][..., : self.choosing].mean(axis=-1))

    def _chosen_by(self, name: str) -> Array:
        return self.family_means(self._choosing_means(name))

    def _choice(self, name: str, settings: Sequence[int]) -> Choice:
        fresh = slice(self.choosing, None)
        rows = [(task.name, k, setting) for k, (task, setting) in enumerate(zip(self.tasks, settings, strict=True))]
        return Choice(
            {task: self._words(name, setting) for task, _, setting in rows},
            {task: self.scores[name][k, setting, fresh] for task, k, setting in rows},
            {task: self.greedy[name][k, setting, fresh] for task, k, setting in rows},
        )

    def _words(self, name: str, setting: int) -> str:
        parameter = next(contender.parameter for contender in self.contenders if contender.name == name)
        value, alpha = self.settings[name][setting]
        return f"{parameter} {value:g}, alpha_q {alpha:g}"


def family_means(per_task: Array, families: Sequence[str]) -> Array:
    """The mean over the tasks of each family, shape (tasks, ...) to (families, ...); `families` has the family of each
    task.

    Example:
        >>> family_means(np.array([[1.0], [3.0], [5.0]]), ["x", "x", "y"])
        array([[2.],
               [5.]])
    """
    return np.stack(
        [per_task[[each == family for each in families]].mean(axis=0) for family in dict.fromkeys(families)]
    )


def scores_of(
    runs: Mapping[str, Runs], contenders: Sequence[Contender], tasks: Sequence[Task], settings: TabularSettings
) -> Scores:
    """The normalised scores of the contenders that have runs. Without uniform behaviour, or without any contender,
    there are none, which is refused."""
    have = tuple(contender for contender in contenders if contender.name in runs)
    if UNIFORM.name not in runs or not have:
        raise InputError("there are no runs of uniform behaviour and of a contender yet: there is nothing to report")
    raw = {c.name: _array(runs[c.name], "score", c, tasks, settings) for c in (UNIFORM, *have)}
    ends = {c.name: _array(runs[c.name], "greedy", c, tasks, settings) for c in (UNIFORM, *have)}
    n = settings.choosing_runs
    low = raw[UNIFORM.name].mean(axis=(1, 2))
    high = np.max([raw[c.name][..., :n].mean(axis=-1).max(axis=-1) for c in have], axis=0)
    bounds = np.array([_value_bounds(task) for task in tasks])
    parts = {name: _between(values, bounds[:, 0], bounds[:, 1]) for name, values in ends.items()}
    reached = np.max([parts[c.name][..., :n].mean(axis=-1).max(axis=-1) for c in have], axis=0)
    solved = (reached >= SOLVED) & (high > low)
    return Scores(
        contenders=have,
        tasks=tuple(task for task, ok in zip(tasks, solved, strict=True) if ok),
        unsolved=tuple(task.name for task, ok in zip(tasks, solved, strict=True) if not ok),
        settings={c.name: [(x, a) for x in c.grid for a in settings.value_step_sizes] for c in have},
        scores={c.name: _between(raw[c.name][solved], low[solved], high[solved]) for c in have},
        greedy={name: values[solved] for name, values in parts.items()},
        low=low[solved],
        high=high[solved],
        seconds={c.name: runs[c.name].seconds for c in (UNIFORM, *have)},
        choosing=n,
    )


def _array(runs: Runs, column: str, contender: Contender, tasks: Sequence[Task], settings: TabularSettings) -> Array:
    """A column as an array (tasks, settings, runs); a run whose values overflowed scores the worst of its task."""
    shape = (len(tasks), len(contender.grid) * len(settings.value_step_sizes), settings.runs)
    values = np.asarray(runs.table[column], dtype=np.float64)
    if values.size != np.prod(shape):
        raise InputError(f"{contender.name}: the table has {values.size} rows, and {np.prod(shape)} are declared")
    return np.stack([score_failed(block).reshape(shape[1:]) for block in values.reshape(shape[0], -1)])


def _value_bounds(task: Task) -> tuple[float, float]:
    """The uniform policy's value and the optimal one, from the start distribution."""
    mdp = task.mdp()
    start = start_of(mdp)
    return float(start @ policy_values(mdp, uniform_policy(mdp)).v), float(start @ optimal_values(mdp).v)


def _between(values: Array, low: Array, high: Array) -> Array:
    return np.asarray((values - low[:, None, None]) / (high - low)[:, None, None])
