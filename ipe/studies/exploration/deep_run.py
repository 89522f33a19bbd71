"""Running groups of deep tasks together, or going on with them: the sweeps that choose, then the ones reported on.

::

    OUT/cartpole/              the store of the first sweep: every setting, few seeds
    OUT/cartpole-fresh/        the store of the second: the chosen settings, fresh seeds

One setting is chosen for the tasks of all groups that are run together. If more groups are run later, other settings
may be chosen: the stores of fresh runs then get the runs that are missing, and keep those that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ipe.errors import InputError
from ipe.experiments.declared import Setting, Sweep
from ipe.experiments.engine import run_sweep
from ipe.experiments.results import Results, load_results
from ipe.experiments.store import open_store
from ipe.studies.exploration.choosing import choose
from ipe.studies.exploration.deep import (
    DEEP_CONTENDERS,
    DEEP_TASKS,
    GROUPS,
    DeepTask,
    choosing_sweep,
    fresh_sweep,
    settings_of_case,
)

OnSweep: TypeAlias = Callable[[str, Any, Any], bool | None]
"""A function that is called with the folder's name, the sweep and its progress; if it returns True, all stop."""


@dataclass(frozen=True)
class DeepResult:
    """The outcome of some groups: "done", "stopped" or "failed"; and what went wrong, in sentences."""

    status: str
    notes: list[str]


def group_names() -> tuple[str, ...]:
    """The names of the groups of deep tasks, in the order in which they are run."""
    return GROUPS


def tasks_of(groups: Sequence[str]) -> list[DeepTask]:
    """The tasks of some groups."""
    return [task for task in DEEP_TASKS if task.group in groups]


def chosen_groups(out: Path) -> list[str]:
    """The names of the groups that have all their first runs in a study's folder, and so can choose settings."""
    groups = dict.fromkeys(task.group for task in DEEP_TASKS)
    return [group for group in groups if all(_is_whole(out / task.name) for task in tasks_of([group]))]


def fresh_folder(out: Path, task: str) -> Path:
    """The folder of the fresh runs of a task."""
    return out / f"{task}-fresh"


def run_deep(
    groups: Sequence[str],
    out: Path,
    *,
    runs: int | None = None,
    frames: int | None = None,
    workers: int | None = None,
    callback: OnSweep | None = None,
) -> DeepResult:
    """Run the sweeps of some groups, or go on with them; all their tasks have a part in choosing one setting for all.

    Args:
        groups: the groups' names.
        out: the study's folder.
        runs: the most runs of each setting, in either sweep. Default: those declared.
        frames: the frames of a run. Default: those declared.
        workers: the number of processes. Default: one per core.
        callback: is called with the progress of each sweep.
    """
    notes: list[str] = []
    tasks = tasks_of(groups)
    first = ((out / task.name, choosing_sweep(task, runs, frames)) for task in tasks)
    for sweeps in (first, _fresh_sweeps(tasks, out, runs)):
        status = "done"
        for folder, sweep in sweeps:

            def told(progress: Any, name: str = folder.name, what: Any = sweep) -> bool | None:
                return None if callback is None else callback(name, what, progress)

            result = run_sweep(sweep, folder, workers=workers, callback=told)
            notes += result.notes
            if result.status == "stopped":
                return DeepResult("stopped", notes)
            status = status if result.status == "done" else result.status
        if status != "done":
            break
    return DeepResult(status, notes)


def _fresh_sweeps(tasks: Sequence[DeepTask], out: Path, runs: int | None) -> Iterator[tuple[Path, Sweep]]:
    """The folder and the second sweep of every task that somebody solved: the chosen settings, and those that the
    folder has already. A folder is looked at when its turn comes: another process may have given it more."""
    first = first_results(tasks, out)
    chosen = choose(first, tasks)
    for task in tasks:
        if task.name in chosen.family:
            folder = fresh_folder(out, task.name)
            keys = {each.key for each in chosen_settings(first[task.name], chosen.of_task(task.name))}
            if (folder / "sweep.json").is_file():
                keys |= set(open_store(folder).sweep.by_key)
            settings = [setting for setting in first[task.name].sweep.settings if setting.key in keys]
            yield folder, fresh_sweep(task, settings, runs)


def first_results(tasks: Sequence[DeepTask], out: Path) -> dict[str, Results]:
    """The results of the first sweeps of some tasks, by their names. Sweeps that are missing, or of other settings than
    those declared, are refused."""
    found = {}
    for task in tasks:
        if not (out / task.name).is_dir():
            raise InputError(f"{out}: the group {task.group} has no runs yet")
        found[task.name] = load_results(out / task.name, progress=False)
        sweep = found[task.name].sweep
        declared = choosing_sweep(task, frames=sweep.settings[0].frames)
        if [setting.key for setting in sweep.settings] != [setting.key for setting in declared.settings]:
            raise InputError(f"{out / task.name} holds runs of other settings than the study declares")
    return found


def chosen_settings(results: Results, indices: Mapping[str, Sequence[int]]) -> list[Setting]:
    """Settings of a first sweep, given by their indices among those of each contender."""
    return [settings_of_case(results.sweep, name)[i] for name, chosen in indices.items() for i in chosen]


def setting_words(setting: Setting) -> str:
    """A setting in words; a number of frames as a share of the run: that is one setting for runs of all lengths."""
    in_frames = {contender.path for contender in DEEP_CONTENDERS if contender.in_frames}
    shown = {
        f"{path} / frames" if path in in_frames else path: value / setting.frames if path in in_frames else value
        for path, value in setting.varied.items()
    }
    return ", ".join(f"{path} {value:g}" for path, value in shown.items())


def _is_whole(folder: Path) -> bool:
    """Whether a folder holds a sweep with all its runs."""
    if not (folder / "sweep.json").is_file():
        return False
    store = open_store(folder)
    return all(store.published(job, verify=False) for job in store.jobs)
