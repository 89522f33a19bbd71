"""Running a sweep by successive halving: one rung after the other, each from the checkpoints of the one before."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipe.analysis.halving import survivors
from ipe.errors import InputError
from ipe.experiments.declared import Sweep
from ipe.experiments.engine import SweepResult, run_sweep
from ipe.experiments.halving import make_halving, rung_folder, rung_sweep, rungs_of
from ipe.experiments.ledger import SweepProgress
from ipe.experiments.results import load_results
from ipe.experiments.store import open_store

OnRungProgress = Callable[[int, Sweep, SweepProgress], bool | None]
"""A function that is called with the number of the rung, the rung's sweep and its progress; True stops the sweep."""


def run_halving(
    sweep: Sweep, folder: str | os.PathLike[str], *, callback: OnRungProgress | None = None, **options: Any
) -> SweepResult:
    """Run a sweep by successive halving, or go on with it.

    All settings get few runs of few frames; the better half of each case goes on with more of both, and so on
    (`ipe.experiments.rungs`). A run that goes on is resumed from its checkpoint, to the bytes of a run that never
    stopped. When a rung is done, the checkpoints of the rung before are removed; its records stay.

    Args:
        sweep: the sweep. Its `halving` says what the rungs are; without it, they are the default ones.
        folder: the folder of the sweep: a new or an empty one, or one that this sweep has been begun in.
        callback: a function that is called about once a second; if it returns True, the sweep stops with checkpoints.
        options: workers, scheduler, batch_seeds, keep_networks, checkpoint_seconds and hang_seconds, as for
            `run_sweep`.

    Returns:
        What the last rung that was begun has come to.

    Raises:
        InputError: for a sweep that cannot be halved, and for a folder that holds something else.
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the checkpoints are written.
    """
    if options.get("shard") is not None:
        raise InputError(
            "a shard has no part in halving, which waits for all runs of a rung; start the same command several times, "
            "and the processes share the jobs"
        )
    halving = rungs_of(sweep)
    make_halving(folder, sweep, halving)
    stems: list[str] | None = None
    for rung in range(halving.rungs):
        place, last = rung_folder(folder, rung), rung == halving.rungs - 1
        began = (place / "sweep.json").is_file()
        part = open_store(place).sweep if began else rung_sweep(sweep, halving, rung, stems)
        before = rung_folder(folder, rung - 1) if rung else None
        if before is not None:
            _remove_cut(before, part)
        result = run_sweep(
            part,
            place,
            earlier=before,
            keep_checkpoints=not last,
            callback=None if callback is None else _of_rung(callback, rung, part),
            **options,
        )
        if result.status != "done" or last:
            break
        if before is not None:
            shutil.rmtree(before / "work", ignore_errors=True)
        if not (rung_folder(folder, rung + 1) / "sweep.json").is_file():
            stems = survivors(load_results(place, progress=False), halving)
    if before is not None and result.status == "done":
        shutil.rmtree(before / "work", ignore_errors=True)
    return result


def _remove_cut(folder: Path, part: Sweep) -> None:
    """Remove the checkpoints of the settings that did not go on from a rung."""
    store, on = open_store(folder), {setting.stem for setting in part.settings}
    for job in store.jobs:
        if store.sweep.by_key[job.key].stem not in on:
            shutil.rmtree(store.work_folder(job), ignore_errors=True)


def _of_rung(callback: OnRungProgress, rung: int, part: Sweep) -> Callable[[SweepProgress], bool | None]:
    return lambda progress: callback(rung, part, progress)
