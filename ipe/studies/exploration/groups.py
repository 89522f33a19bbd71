"""Running a group of deep tasks, or going on with it: the sweeps that choose, then those that are reported on.

::

    OUT/cartpole/              the store of the first sweep: every setting, few seeds
    OUT/cartpole-fresh/        the store of the second: the chosen settings, fresh seeds
    OUT/report/GROUP.md        the tables
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ipe.analysis.scores import score_failed, worst_seen
from ipe.analysis.series import Series, read_groups
from ipe.base.atomic import write_files
from ipe.errors import InputError
from ipe.experiments.engine import run_sweep
from ipe.experiments.results import Results, load_results
from ipe.figures.style import figure_bytes
from ipe.studies.exploration.deep import (
    DEEP_CONTENDERS,
    DEEP_TASKS,
    GROUPS,
    Chosen,
    DeepTask,
    choose,
    choosing_sweep,
    fresh_sweep,
    settings_of_case,
)
from ipe.studies.exploration.drawing import price_figure
from ipe.studies.exploration.findings import Findings, Way, summed_up
from ipe.studies.exploration.scores import Choice
from ipe.studies.exploration.tables import family_table, tuned_table, untuned_table

FRESH = "fresh"


@dataclass(frozen=True)
class GroupResult:
    """The outcome of a group: "done", "stopped" or "failed"; and what went wrong, in sentences."""

    status: str
    notes: list[str]


def group_names() -> tuple[str, ...]:
    """The names of the groups of deep tasks, in the order in which they are run."""
    return GROUPS


def group_tasks(group: str) -> list[DeepTask]:
    """The tasks of a group."""
    return [task for task in DEEP_TASKS if task.group == group]


def run_group(
    group: str,
    out: Path,
    *,
    runs: int | None = None,
    frames: int | None = None,
    workers: int | None = None,
    callback: Callable[[str, Any, Any], bool | None] | None = None,
) -> GroupResult:
    """Run the sweeps of a group, or go on with them.

    Args:
        group: the group's name.
        out: the study's folder.
        runs: the most runs of each setting, in either sweep. Default: those declared.
        frames: the frames of a run. Default: those declared.
        workers: the number of processes. Default: one per core.
        callback: is called with the folder's name, the sweep and its progress; if it returns True, the group stops.
    """
    notes: list[str] = []
    status = "done"
    tasks = group_tasks(group)
    sweeps = {task.name: choosing_sweep(task, runs, frames) for task in tasks}
    for round_ in (0, 1):
        if round_:
            found = {task.name: load_results(out / task.name, progress=False) for task in tasks}
            chosen = choose(found)
            sweeps = {f"{task.name}-{FRESH}": fresh_sweep(task, found[task.name].sweep, chosen, runs) for task in tasks}
        for name, sweep in sweeps.items():

            def told(progress: Any, folder: str = name, what: Any = sweep) -> bool | None:
                return None if callback is None else callback(folder, what, progress)

            result = run_sweep(sweep, out / name, workers=workers, callback=told)
            notes += result.notes
            if result.status == "stopped":
                return GroupResult("stopped", notes)
            status = status if result.status == "done" else result.status
        if status != "done":
            break
    return GroupResult(status, notes)


def report_group(group: str, out: Path) -> tuple[Path, str]:
    """Write the tables and the figure of a group from its stores.

    Returns:
        The page that was written, and its first table.
    """
    findings = findings_of_group(group, out)
    first, second = untuned_table(findings), tuned_table(findings)
    lines = [
        f"# {group}",
        "",
        f"![What not tuning costs](price-{group}.png)",
        "",
        "## One setting for all tasks of the group",
        "",
        first,
        "## The best setting for each task",
        "",
        second,
        "## By task, with one setting for all",
        "",
        family_table(findings),
    ]
    figure = price_figure(findings)
    files = {f"price-{group}{suffix}": figure_bytes(figure, suffix) for suffix in (".png", ".pdf")}
    write_files(out / "report", {f"{group}.md": "\n".join(lines).encode(), **files})
    return out / "report" / f"{group}.md", first


def findings_of_group(group: str, out: Path) -> Findings:
    """What the fresh runs of a group say; every task is a family of its own. A store that is missing, or lacks runs, is
    refused."""
    tasks = [task for task in group_tasks(group) if (out / f"{task.name}-{FRESH}").is_dir()]
    if len(tasks) < len(group_tasks(group)):
        raise InputError(f"{out}: the group {group} has no fresh runs yet")
    results = {task.name: load_results(out / task.name, progress=False) for task in tasks}
    fresh = {task.name: load_results(out / f"{task.name}-{FRESH}", progress=False) for task in tasks}
    chosen = choose(results)
    series = {name: _by_key(found) for name, found in fresh.items()}
    names = [contender.name for contender in DEEP_CONTENDERS if contender.name in chosen.one_for_all]
    contenders = [contender for contender in DEEP_CONTENDERS if contender.name in names]
    choices: dict[str, dict[Way, Choice]] = {}
    for name in names:
        every = {task: (chosen.one_for_all[name], chosen.per_task[task][name]) for task in results}
        choices[name] = {
            "one for all": _choice(name, {task: pair[0] for task, pair in every.items()}, results, series, chosen),
            "per task": _choice(name, {task: pair[1] for task, pair in every.items()}, results, series, chosen),
        }
    return summed_up(contenders, choices, {task: task for task in results}, {})


def _by_key(results: Results) -> dict[str, Series]:
    (group,) = read_groups(results)
    return {series.setting.key: series for series in group.series}


def _choice(
    name: str,
    settings: dict[str, int],
    results: dict[str, Results],
    series: dict[str, dict[str, Series]],
    chosen: Chosen,
) -> Choice:
    words, scores, ends = {}, {}, {}
    for task, index in settings.items():
        setting = settings_of_case(results[task].sweep, name)[index]
        runs = series[task].get(setting.key)
        if runs is None:
            raise InputError(f"{task}-{FRESH}: there are no runs of {setting.name!r} yet")
        width = chosen.high[task] - chosen.low[task]
        words[task] = ", ".join(f"{path} {value:g}" for path, value in setting.varied.items())
        scores[task] = np.asarray((runs.auc - chosen.low[task]) / width)
        if runs.evaluated is None:
            raise InputError(
                f"{task}-{FRESH}: the runs of {setting.name!r} have no greedy evaluation at their end; delete the "
                f"folder {task}-{FRESH}, and run the same command"
            )
        worst = worst_seen(*(one.evaluated[:, -1] for one in series[task].values() if one.evaluated is not None))
        ends[task] = np.asarray((score_failed(runs.evaluated[:, -1], worst) - chosen.low[task]) / width)
    return Choice(words, scores, ends)
