"""The reader: all results of a sweep or a training run as tables, every byte verified, and what is wrong in sentences.

Nothing that is damaged is used, nothing is counted twice, and what is missing is said. Reading changes nothing, and can
be done while the sweep is running. Training runs of earlier versions are read too.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ipe.deep.progress import Outcome
from ipe.deep.records import SPEED
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError
from ipe.experiments.declared import Job, Sweep
from ipe.experiments.evaluation_tables import no_evaluations
from ipe.experiments.old_runs import is_old_run, read_old_run
from ipe.experiments.reading import Part, foreign_results, ranges, read_parts
from ipe.experiments.store import open_store
from ipe.experiments.tables import as_results, empty_table


@dataclass(frozen=True)
class Results:
    """What a sweep has come to. `setting` is everywhere the index of a setting in `sweep.settings`."""

    sweep: Sweep
    """The sweep that the results belong to."""
    episodes: pa.Table
    """setting, seed, frame, return, length; sorted by the first three."""
    progress: pa.Table
    """setting, seed, frame, epsilon, entropy, td_error, ipe_error, q_mean; sorted by the first three. Empty if it was
    not asked for."""
    outcomes: list[dict[str, Any]]
    """The outcome of each run, sorted by setting and seed: setting, seed, status (done, failed or diverged), frame,
    reason."""
    problems: list[str]
    """What is damaged or published twice, and what is missing, in sentences."""
    missing: list[tuple[int, int]] = field(default_factory=list)
    """The setting and the seed of each run that has no valid result."""
    evaluations: pa.Table = field(default_factory=lambda: _with_setting(no_evaluations(), []))
    """setting, seed, frame, mean, returns, lengths: a row for each greedy evaluation while training, with the return
    and the length of each of its episodes; sorted by the first three. Empty if the runs were not evaluated."""

    def episodes_of(self, setting: int) -> pa.Table:
        """Return the episodes of one setting, without a copy."""
        return self._of("episodes", setting)

    def progress_of(self, setting: int) -> pa.Table:
        """Return the progress of one setting, without a copy."""
        return self._of("progress", setting)

    def evaluations_of(self, setting: int) -> pa.Table:
        """Return the evaluations of one setting, without a copy."""
        return self._of("evaluations", setting)

    def outcomes_of(self, setting: int) -> list[dict[str, Any]]:
        """Return the outcomes of one setting, sorted by seed."""
        return self._outcomes.get(setting, [])

    def _of(self, kind: str, setting: int) -> pa.Table:
        start, end = self._starts[kind][setting : setting + 2].tolist()
        return getattr(self, kind).slice(start, end - start)

    @cached_property
    def _starts(self) -> dict[str, NDArray[np.int64]]:
        """The row at which each setting begins in each table."""
        at = {kind: getattr(self, kind)["setting"] for kind in ("episodes", "progress", "evaluations")}
        settings = np.arange(len(self.sweep.settings) + 1)
        return {kind: np.searchsorted(np.asarray(column), settings) for kind, column in at.items()}

    @cached_property
    def _outcomes(self) -> dict[int, list[dict[str, Any]]]:
        out: dict[int, list[dict[str, Any]]] = {}
        for outcome in self.outcomes:
            out.setdefault(outcome["setting"], []).append(outcome)
        return out


@dataclass(frozen=True, eq=False)
class SettingRuns:
    """The runs of one setting, one for each seed."""

    folder: Path
    """The folder of the training run or the sweep."""
    name: str
    """The name of the setting in its sweep."""
    settings: TrainingSettings
    outcomes: list[Outcome]
    """How far each seed has come."""
    episodes: pa.Table
    """seed, frame, return, length; sorted by the first two."""
    progress: pa.Table
    """seed, frame, epsilon, entropy, td_error, ipe_error, q_mean, frames_per_second; sorted by the first two."""
    evaluations: pa.Table = field(default_factory=no_evaluations)
    """seed, frame, mean, returns, lengths; sorted by the first two. Empty if the runs were not evaluated."""

    @property
    def seeds(self) -> list[int]:
        """The seeds."""
        return [outcome.seed for outcome in self.outcomes]


def load_results(
    folder: str | os.PathLike[str],
    *,
    progress: bool = True,
    settings: Sequence[int | str] | None = None,
    unfinished: bool = False,
    speeds: bool = False,
) -> Results:
    """Read the results of a sweep or a training run; every byte that is read is verified.

    Args:
        folder: the folder of the store, or of a training run of an earlier version.
        progress: whether to read the progress too.
        settings: the indices or names of the settings to read. Default: all.
        unfinished: whether runs without a result count as far as their newest checkpoints, with the status running.
        speeds: whether the progress has the frames per second too, null where they were not kept.

    Raises:
        InputError: if there is no store, it is of a later version, or has no such setting. What is wrong with single
            results is in `problems`.
    """
    kinds = ("episodes", "progress") if progress else ("episodes",)
    if is_old_run(Path(folder)):
        sweep, found, foreign = *_read_old(Path(folder), kinds, unfinished), []
        _wanted(sweep, settings)
    else:
        store = open_store(folder)
        sweep = store.sweep
        found = read_parts(store, _wanted(sweep, settings), kinds, unfinished)
        foreign = foreign_results(store) if settings is None else []
    parts = [part for part in found if part.outcomes]
    parts.sort(key=lambda part: (part.setting, min(part.job.seeds)))
    ended = {(part.setting, outcome["seed"]) for part in parts for outcome in part.outcomes}
    missing = sorted({(part.setting, seed) for part in found for seed in part.job.seeds} - ended)
    problems = [problem for part in found for problem in part.problems]
    outcomes = [{"setting": part.setting, **outcome} for part in parts for outcome in part.outcomes]
    table = _joined(parts if progress else [], "progress")
    return Results(
        sweep=sweep,
        episodes=_joined(parts, "episodes"),
        progress=table if speeds else table.drop_columns([SPEED]),
        outcomes=sorted(outcomes, key=lambda outcome: (outcome["setting"], outcome["seed"])),
        problems=problems + foreign + _gaps(sweep, missing),
        missing=missing,
        evaluations=_joined(parts, "evaluations"),
    )


def read_runs(folder: str | os.PathLike[str]) -> list[SettingRuns]:
    """Read the runs of each setting of a training run or a sweep, of this or an earlier version, as far as they have
    come."""
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"there is no run {path}")
    results = load_results(path, unfinished=True, speeds=True)
    runs = []
    for i, setting in enumerate(results.sweep.settings):
        outcomes = {seed: Outcome(seed) for seed in results.sweep.seeds}
        for outcome in results.outcomes_of(i):
            fields = {name: value for name, value in outcome.items() if name != "setting"}
            outcomes[outcome["seed"]] = Outcome(**fields)
        tables = results.episodes_of(i), results.progress_of(i), results.evaluations_of(i)
        bare = (table.drop_columns(["setting"]) for table in tables)
        runs.append(SettingRuns(path, setting.name, setting.settings, list(outcomes.values()), *bare))
    return runs


def _read_old(folder: Path, kinds: Sequence[str], unfinished: bool) -> tuple[Sweep, list[Part]]:
    """Read a training run of an earlier version: all seeds are one part."""
    run = read_old_run(folder)
    ended = [outcome for outcome in run.outcomes if unfinished or outcome.status != "running"]
    seeds = pa.array([outcome.seed for outcome in ended], pa.int64())
    tables = {kind: as_results(run.table(kind), kind) for kind in kinds}
    tables = {kind: table.filter(pc.is_in(table["seed"], seeds)) for kind, table in tables.items()}
    whole = Job(run.sweep.settings[0].key, tuple(run.sweep.seeds))
    return run.sweep, [Part(whole, 0, tables, [vars(outcome) for outcome in ended], [])]


def _wanted(sweep: Sweep, settings: Sequence[int | str] | None) -> list[int]:
    count = len(sweep.settings)
    if settings is None:
        return list(range(count))
    names = {setting.name: i for i, setting in enumerate(sweep.settings)}
    out = set()
    for i, given in enumerate(settings):
        found = names.get(given) if isinstance(given, str) else given
        if found is None or not 0 <= found < count:
            raise InputError(f"settings[{i}] = {given!r} is none of the sweep's {count} settings")
        out.add(int(found))
    return sorted(out)


def _joined(parts: Sequence[Part], kind: str) -> pa.Table:
    tables = [part.tables.get(kind, no_evaluations()) for part in parts]
    empty = no_evaluations() if kind == "evaluations" else empty_table(kind)
    table = pa.concat_tables(tables) if tables else empty
    counts = [rows.num_rows for rows in tables]
    table = _with_setting(table, np.repeat(np.array([part.setting for part in parts], np.int32), counts))
    if _interleaved(parts):
        table = table.sort_by([(name, "ascending") for name in ("setting", "seed", "frame")])
    return table


def _with_setting(table: pa.Table, setting: Any) -> pa.Table:
    """Return a table with the index of each row's setting before its other columns."""
    return table.add_column(0, pa.field("setting", pa.int32(), nullable=False), pa.array(setting, pa.int32()))


def _interleaved(parts: Sequence[Part]) -> bool:
    """Whether the seeds of one job lie among those of the next; within a job they are in order."""
    return any(
        before.setting == after.setting and max(before.job.seeds) > min(after.job.seeds)
        for before, after in itertools.pairwise(parts)
    )


def _gaps(sweep: Sweep, missing: Sequence[tuple[int, int]]) -> list[str]:
    seeds: dict[int, list[int]] = {}
    for setting, seed in missing:
        seeds.setdefault(setting, []).append(seed)
    return [
        f"setting {sweep.settings[setting].name!r}: no result for {ranges(each)}" for setting, each in seeds.items()
    ]
