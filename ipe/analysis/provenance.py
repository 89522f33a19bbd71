"""The versions and processors that the runs of a store were made with, and what they cost."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
    """

    seconds: float
    machines: tuple[str, ...]
    first: str
    last: str

    @property
    def core_hours(self) -> float:
        """The hours of a core."""
        return self.seconds / 3600.0


def run_cost(*folders: str | os.PathLike[str]) -> RunCost:
    """What the runs of some stores took together. Training runs of earlier versions do not say how long they took."""
    contents = [content for folder in folders for content in _contents(Path(folder))]
    times = [one["published"] for one in contents if "published" in one]
    dates = (
        [datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d") for time in (min(times), max(times))]
        if times
        else ["", ""]
    )
    machines = sorted({str(one["machine"]["cpu"]) for one in contents})
    return RunCost(sum(float(one.get("seconds", 0.0)) for one in contents), tuple(machines), dates[0], dates[1])


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
