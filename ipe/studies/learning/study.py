"""A study of deep learning, declared: the sweeps that it runs, and the sentences that it judges by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pyarrow as pa

from ipe.analysis import Claim
from ipe.analysis.findings import findings_of
from ipe.analysis.series import Group, Series, read_groups
from ipe.experiments.declared import Sweep
from ipe.experiments.grids import make_sweep, read_sweep
from ipe.experiments.results import Results
from ipe.studies.learning.evidence import SEED

CURVES = "curves"
"""The part of every study whose runs the paper's figure shows; with the whole grid, the part is called `grid`."""
GRID = "grid"
SENSITIVITY = "sensitivity"
"""The part of a study that varies one hyperparameter at a time."""

CONFIRM = "confirm"
"""The fresh runs of the chosen settings."""
LASTING, CHANGED = "lasting", "lasting-changes"
"""Longer runs of the bold settings, and of the bold settings with a change each, to see how long runs last."""
LASTING_SEED = 200
"""The first seed of the longer runs: none of the runs by which their definition was tried has it."""

Parts: TypeAlias = Mapping[str, Sweep]


@dataclass(frozen=True)
class LearningStudy:
    """The study of one environment of the paper.

    Attributes:
        name: the study's name on the command line.
        title: the title of the study's report.
        runs: the paper's number of runs per setting.
        frames: the paper's number of frames per run.
        parts: a function from runs and frames to the sweeps, by the names of their folders, `curves` first.
        grids: the shipped sweeps that make up the appendix's grid, by case.
        judge: a function from the chosen setting of each case and the group of all runs to claims. Cases may be
            missing.
    """

    name: str
    title: str
    runs: int
    frames: int
    parts: Callable[[int, int], Parts]
    grids: Mapping[str, str]
    judge: Callable[[Mapping[str, Series], Group], Sequence[Claim]]

    def sweeps(self, runs: int | None = None, frames: int | None = None, full_grid: bool = False) -> Parts:
        """The sweeps, with the paper's or other numbers of runs and frames; the whole grid or its bold settings."""
        count = self.runs if runs is None else runs
        length = self.frames if frames is None else frames
        parts = dict(self.parts(count, length))
        if full_grid:
            del parts[CURVES]
            parts = {GRID: whole_grid(self.name, self.grids, count, length), **parts}
        return parts

    def claims(self, results: Results) -> list[Claim]:
        """The verdicts on the runs of `curves` or `grid`, joined with those of single cases (`joined`).

        A case with a single run is left out: one run says nothing about the others.
        """
        (group, *_) = read_groups(results, grid_points=500)
        chosen = {row.series.setting.case: row.series for row in findings_of(group, seed=SEED).chosen}
        return list(self.judge({case: series for case, series in chosen.items() if series.n > 1}, group))


def whole_grid(name: str, grids: Mapping[str, str], runs: int, frames: int) -> Sweep:
    """The appendix's grids of a study as one sweep of several cases."""
    settings = []
    for case, shipped in grids.items():
        for setting in read_sweep(shipped).settings:
            changed = setting.settings.model_copy(update={"frames": frames})
            name = f"{case} {setting.name.removeprefix(case)}".rstrip()
            settings.append(replace(setting, name=name, case=case, settings=changed))
    return Sweep(f"{name}: the appendix's grid", list(range(runs)), settings, one_at_a_time=False)


def bold_sweep(
    name: str,
    environment: str,
    behaviours: Sequence[str],
    runs: int | list[int],
    frames: int,
    changes: Mapping[str, Mapping[str, Any]] | None = None,
) -> Sweep:
    """The appendix's bold settings of some behaviours, each a case, for so many runs or for these seeds. `changes` are
    the fields in which further cases differ from the bold setting, by a word that the case's name ends with; by default
    there is the bold setting itself."""
    cases = {
        f"{behaviour} {word}".strip(): {"behaviour": behaviour, **fields}
        for behaviour in behaviours
        for word, fields in (changes or {"": {}}).items()
    }
    base = {"environment": environment, "frames": frames}
    return make_sweep({"name": name, "seeds": runs, "base": base, "cases": cases})


def one_at_a_time(name: str, environment: str, grids: Mapping[str, Mapping[str, Any]], runs: int, frames: int) -> Sweep:
    """Every value of every hyperparameter in the appendix, the others at their bold ones."""
    cases = {behaviour: {"behaviour": behaviour, "grid": dict(grid)} for behaviour, grid in grids.items()}
    base = {"environment": environment, "frames": frames}
    return make_sweep({"name": name, "seeds": runs, "base": base, "cases": cases, "one_at_a_time": True})


def joined(parts: Sequence[Results]) -> Results:
    """The results of several sweeps as those of one: their settings one after the other, and the seeds of all."""
    first = parts[0]
    if len(parts) == 1:
        return first
    starts = [sum(len(part.sweep.settings) for part in parts[:i]) for i in range(len(parts))]
    moved = list(zip(parts, starts, strict=True))
    sweep = replace(
        first.sweep,
        seeds=sorted({seed for part in parts for seed in part.sweep.seeds}),
        settings=[setting for part in parts for setting in part.sweep.settings],
    )
    return Results(
        sweep=sweep,
        episodes=pa.concat_tables(_moved(part.episodes, by) for part, by in moved),
        progress=pa.concat_tables(_moved(part.progress, by) for part, by in moved),
        outcomes=[{**outcome, "setting": outcome["setting"] + by} for part, by in moved for outcome in part.outcomes],
        problems=[problem for part in parts for problem in part.problems],
        missing=[(i + by, seed) for part, by in moved for i, seed in part.missing],
    )


def _moved(table: pa.Table, by: int) -> pa.Table:
    column = table.column_names.index("setting")
    moved = pa.array(table["setting"].to_numpy() + by, pa.int32())
    return table.set_column(column, table.schema.field(column), moved)
