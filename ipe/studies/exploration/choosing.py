r"""Which settings of the deep contenders are chosen, by the runs of the first sweeps.

A score is the area under a run's learning curve, normalised per task: 0 is the mean of uniform behaviour, 1 the best
mean of any setting. A setting is chosen in the three ways of the tabular part: one for all tasks; one for the tasks of
a family by the other families; the best for each task. Families are the groups with a task that somebody solved; if
that is a single group, each of its tasks is a family.

A task that nobody solved says nothing about who explores well, and has no part in any choice. Where the return that
solves a task is known (`DeepTask.goal`), nobody solved it if no setting's mean area comes :math:`1/20` of the way from
the mean of uniform behaviour to that return; elsewhere, if no setting earned more than uniform behaviour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ipe.analysis.series import read_groups
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.experiments.results import Results
from ipe.studies.exploration.deep import UNIFORM, DeepTask, settings_of_case
from ipe.studies.exploration.findings import Way
from ipe.studies.exploration.scores import SOLVED, family_means


@dataclass(frozen=True, eq=False)
class Chosen:
    """What the first sweeps of some tasks chose.

    Attributes:
        family: the family of each task that somebody solved.
        unsolved: the names of the other tasks.
        low: for each task the mean area of uniform behaviour.
        high: for each task the best mean area.
        means: for each contender the normalised mean score of its settings on each task, shape (tasks, settings).
        settings: by way, task and contender, the index of the chosen setting among those of its case.
    """

    family: dict[str, str]
    unsolved: tuple[str, ...]
    low: dict[str, float]
    high: dict[str, float]
    means: dict[str, Array]
    settings: dict[Way, dict[str, dict[str, int]]]

    def normalised(self, task: str, areas: Array) -> Array:
        """The normalised scores of runs of a task, from their areas under the curve."""
        return np.asarray((areas - self.low[task]) / (self.high[task] - self.low[task]))

    def of_task(self, task: str) -> dict[str, list[int]]:
        """For each contender the settings of a task that were chosen in any way, each once, in their order."""
        every = [by_task[task] for by_task in self.settings.values()]
        return {name: sorted({chosen[name] for chosen in every}) for name in every[0]}


def choose(results: Mapping[str, Results], tasks: Sequence[DeepTask]) -> Chosen:
    """Choose settings by the results of the first sweeps, which are given by the tasks' names.

    Raises:
        InputError: if runs are missing, or nobody solved any of the tasks.
    """
    areas = {task.name: _mean_areas(task.name, results[task.name]) for task in tasks}
    low = {task: float(cases.pop(UNIFORM).mean()) for task, cases in areas.items()}
    high = {task: float(max(case.max() for case in cases.values())) for task, cases in areas.items()}
    solved = [task for task in tasks if _is_solved(task, low[task.name], high[task.name])]
    if not solved:
        raise InputError(f"{', '.join(areas)}: nobody solved any of these tasks; there is nothing to choose")
    by_group = len({task.group for task in solved}) > 1
    family = {task.name: task.group if by_group else task.name for task in solved}
    unsolved = tuple(task.name for task in tasks if task.name not in family)
    names = list(areas[solved[0].name])
    means = {
        name: np.stack([(areas[task][name] - low[task]) / (high[task] - low[task]) for task in family])
        for name in names
    }
    return Chosen(family, unsolved, low, high, means, _choices(means, family))


def _choices(means: Mapping[str, Array], family: Mapping[str, str]) -> dict[Way, dict[str, dict[str, int]]]:
    families = list(dict.fromkeys(family.values()))
    by_family = {name: family_means(values, list(family.values())) for name, values in means.items()}
    overall = {name: int(values.mean(axis=0).argmax()) for name, values in by_family.items()}
    choices: dict[Way, dict[str, dict[str, int]]] = {"one for all": dict.fromkeys(family, overall)}
    if len(families) > 1:
        others = {
            each: {name: int(np.delete(values, k, axis=0).mean(axis=0).argmax()) for name, values in by_family.items()}
            for k, each in enumerate(families)
        }
        choices["unseen"] = {task: others[each] for task, each in family.items()}
    choices["per task"] = {
        task: {name: int(values[k].argmax()) for name, values in means.items()} for k, task in enumerate(family)
    }
    return choices


def _is_solved(task: DeepTask, low: float, high: float) -> bool:
    return high > low and (task.goal is None or high - low >= SOLVED * (task.goal - low))


def _mean_areas(task: str, results: Results) -> dict[str, Array]:
    """The mean area of each setting, by case."""
    if results.missing:
        i, seed = results.missing[0]
        raise InputError(
            f"{task}: {len(results.missing)} runs are missing, the first seed {seed} of "
            f"{results.sweep.settings[i].name!r}: settings are chosen when all are there"
        )
    (group,) = read_groups(results)
    found = {series.setting.key: series.auc.mean() for series in group.series}
    cases = dict.fromkeys(setting.case for setting in results.sweep.settings)
    return {name: np.array([found[each.key] for each in settings_of_case(results.sweep, name)]) for name in cases}
