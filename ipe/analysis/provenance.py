"""The versions and processors that the runs of a store were made with, and what they cost."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ipe.analysis.recorded.record import RecordedRun
from ipe.experiments.old_runs import is_old_run, read_old_run
from ipe.experiments.store import open_store


@dataclass(frozen=True)
class RunCost:
    """What the runs of some stores took.

    Attributes:
        seconds: the seconds of all jobs together; a job takes one core.
        machines: the processors.
        first: the date on which the first job was published, as in 2026-11-17 (UTC); empty if there is none.
        last: the date on which the last job was published.
        unit: what the hours are: of a core, or by the clock where nobody says how many cores worked.
    """

    seconds: float
    machines: tuple[str, ...]
    first: str
    last: str
    unit: str = "core-hours"

    @property
    def core_hours(self) -> float:
        """The hours of a core."""
        return self.seconds / 3600.0

    @property
    def words(self) -> str:
        """What it took in words, in minutes if it is little.

        Example:
            >>> RunCost(90.0, (), "", "").words, RunCost(7200.0, (), "", "").words
            ('1.5 core-minutes', '2 core-hours')
        """
        if self.core_hours < 0.1:
            return f"{self.seconds / 60.0:.3g} {self.unit.replace('hours', 'minutes', 1)}"
        return f"{self.core_hours:.3g} {self.unit}"


def run_cost(*folders: str | os.PathLike[str]) -> RunCost:
    """What the runs of some stores took together. Training runs of earlier versions do not say how long they took."""
    contents = [content for folder in folders for content in _contents(Path(folder))]
    dates = _dates([one["published"] for one in contents if "published" in one])
    machines = sorted({str(one["machine"]["cpu"]) for one in contents})
    return RunCost(sum(float(one.get("seconds", 0.0)) for one in contents), tuple(machines), dates[0], dates[1])


def seconds_by_case(*folders: str | os.PathLike[str]) -> dict[str, float]:
    """The seconds that the jobs of each case of some stores took together."""
    spent: dict[str, float] = {}
    for folder in folders:
        cases = {key: setting.case for key, setting in open_store(folder).sweep.by_key.items()}
        for content in _contents(Path(folder)):
            case = cases[content["setting"]]
            spent[case] = spent.get(case, 0.0) + float(content["seconds"])
    return spent


def recorded_cost(runs: Sequence[RecordedRun]) -> RunCost | None:
    """What recorded runs took by the clock, all of them together, and when; None if no file says it. A run of which
    both training and evaluations were read counts once."""
    training = [run for run in runs if run.kind == "training"] or list(runs)
    timed = [run for run in training if math.isfinite(run.started) and math.isfinite(run.seconds)]
    if not timed:
        return None
    first, last = _dates([time for run in timed for time in (run.started, run.started + run.seconds)])
    left_out = len(training) - len(timed)
    unit = f"hours by the clock, of {len(timed)} runs together" + (
        f" ({left_out} others do not say it)" * (left_out > 0)
    )
    return RunCost(math.fsum(run.seconds for run in timed), (), first, last, unit)


def _dates(times: Sequence[float]) -> tuple[str, str]:
    """The days (UTC) of the first and the last time, in seconds since 1970; empty if there is none."""
    if not times:
        return "", ""
    first, last = (datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d") for time in (min(times), max(times)))
    return first, last


def run_versions(*folders: str | os.PathLike[str]) -> dict[str, list[str]]:
    """The versions of packages, and the processors, that the runs of some stores were made with.

    Args:
        folders: the stores' folders.

    Returns:
        For each package, every version that some run was made with; under `cpu`, every processor. With more than one
        version, no single installation reproduces all runs byte for byte.
    """
    found: dict[str, set[str]] = {}
    for content in (content for folder in folders for content in _contents(Path(folder))):
        for name, version in content["versions"].items():
            found.setdefault(name, set()).add(str(version))
        found.setdefault("cpu", set()).add(str(content["machine"]["cpu"]))
    return {name: sorted(versions) for name, versions in found.items()}


def _contents(folder: Path) -> list[dict[str, Any]]:
    """The manifests of a store, or the description of a training run of an earlier version."""
    if is_old_run(folder):
        return [read_old_run(folder).content]
    store = open_store(folder)
    manifests = [store.publication(job, verify=False) for job in store.jobs]
    return [manifest.content for manifest in manifests if manifest is not None]
