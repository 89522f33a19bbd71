"""Running a study of deep learning: its sweeps, one store each, then claims and the report.

::

    OUT/curves/         a store for each part, as `ipe sweep` makes them
    OUT/sensitivity/
    OUT/grid/           the appendix's whole grid: a store, or the rungs of successive halving
    OUT/report/         report.html, figures and tables of the curves and the sensitivity, claims.md
    OUT/report/sensitivity/
    OUT/claims.json

A call on the same folder continues a study that was stopped; reports are written anew from the runs that are there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ipe.analysis import Claim
from ipe.errors import InputError
from ipe.experiments.engine import run_sweep
from ipe.experiments.ledger import SweepProgress
from ipe.experiments.results import load_results
from ipe.studies.learning.confirming import confirming_sweep
from ipe.studies.learning.halving import OnRungProgress, run_halving
from ipe.studies.learning.reporting import report_study
from ipe.studies.learning.study import CONFIRM, CURVES, GRID, LearningStudy, Parts
from ipe.studies.parts import check_only


@dataclass(frozen=True)
class StudyResult:
    """The outcome of a study.

    Attributes:
        folder: the study's folder.
        status: "done"; "stopped", and the same call continues it; or "failed", if some jobs could not be done.
        claims: the claims with their verdicts, on the runs that are there.
        reports: the pages that were written.
        notes: what went wrong, in sentences.
    """

    folder: Path
    status: str
    claims: list[Claim]
    reports: list[Path]
    notes: list[str]


def chosen_parts(
    study: LearningStudy,
    *,
    runs: int | None = None,
    frames: int | None = None,
    full_grid: bool = False,
    only: Sequence[str] | None = None,
) -> Parts:
    """The sweeps that a call of `run_learning_study` runs."""
    for field, number in (("runs", runs), ("frames", frames)):
        if number is not None and number < 1:
            raise InputError(f"{field} must be 1 or more, found {number}")
    parts = study.sweeps(runs, frames, full_grid)
    return {name: parts[name] for name in check_only(parts, only)}


def run_learning_study(
    study: LearningStudy,
    out: str | os.PathLike[str],
    *,
    runs: int | None = None,
    frames: int | None = None,
    full_grid: bool = False,
    halving: bool = False,
    only: Sequence[str] | None = None,
    confirm_seeds: int = 0,
    workers: int | None = None,
    callback: Callable[[str, SweepProgress], bool | None] | None = None,
) -> StudyResult:
    """Run a study's sweeps, or continue them, then judge the claims and write the report.

    Args:
        study: the study.
        out: the study's folder. Results with another number of frames are refused; more runs extend those there.
        runs: the number of runs per setting. Default: the paper's.
        frames: the number of frames per run. Default: the paper's.
        full_grid: whether every setting of the appendix is run, not only the bold ones.
        halving: whether the whole grid is run by successive halving (`ipe.studies.learning.halving`).
        only: the names of the parts to run. Default: all.
        confirm_seeds: how many fresh runs of each chosen setting to report on.
        workers: the number of processes. Default: one per core.
        callback: a function that is called with the part (of a grid by halving, with the rung's name) and its progress
            about once a second; if it returns True, the study stops with checkpoints.

    Returns:
        The outcome of the study.

    Raises:
        KeyboardInterrupt: after Ctrl-C, when the checkpoints are written.
    """
    if halving and not full_grid:
        raise InputError("halving is for the whole grid: give full_grid too")
    folder, parts = Path(out), chosen_parts(study, runs=runs, frames=frames, full_grid=full_grid, only=only)
    status, notes = "done", list[str]()
    for name, sweep in parts.items():
        told = None if callback is None else partial(callback, name)
        if halving and name == GRID:
            result = run_halving(sweep, folder / name, workers=workers, callback=_of_grid(callback))
        else:
            result = run_sweep(sweep, folder / name, workers=workers, callback=told)
        notes += result.notes
        if result.status == "stopped":
            return StudyResult(folder, "stopped", [], [], notes)
        status = status if result.status == "done" else result.status
        if confirm_seeds and name in (CURVES, GRID) and result.status == "done":
            fresh = confirming_sweep(load_results(result.folder, progress=False), confirm_seeds)
            told = None if callback is None else partial(callback, CONFIRM)
            confirmed = run_sweep(fresh, folder / CONFIRM, workers=workers, callback=told)
            notes += confirmed.notes
            if confirmed.status == "stopped":
                return StudyResult(folder, "stopped", [], [], notes)
            status = status if confirmed.status == "done" else confirmed.status
    claims, reports = report_study(study, folder)
    return StudyResult(folder, status, claims, reports, notes)


def _of_grid(callback: Callable[[str, SweepProgress], bool | None] | None) -> OnRungProgress | None:
    return None if callback is None else lambda _, part, progress: callback(part.name, progress)
