"""How far a sweep or a training run is: per job and per setting, what is running and how fast, and what went wrong.

Only manifests, leases and the footers of Parquet files are read, so that a status is quick and can be asked for at any
time. The results themselves are verified by `ipe.experiments.results.load_results`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ipe.experiments.declared import Job, Sweep
from ipe.experiments.leases import STALE_SECONDS, is_gone, newest_leases, read_lease
from ipe.experiments.old_runs import is_old_run, read_old_run
from ipe.experiments.publications import STATUSES, Manifest, manifest_paths
from ipe.experiments.reading import check_manifests, published_twice, ranges
from ipe.experiments.store import Store, open_store


@dataclass(frozen=True)
class JobStatus:
    """How far a job is."""

    id: str
    setting: int
    """The index of the setting among the sweep's settings."""
    seeds: tuple[int, ...]
    state: str
    """done: published; running; or waiting."""
    frame: int
    """The frames that every seed has done."""
    frames: int
    """The frames that every seed is to do."""
    frames_per_second: float = 0.0
    """The speed of every seed now; 0 unless the job is running."""
    attempts: int = 0
    """How many processes have had the job; 0 for a job that is done."""
    reason: str = ""
    """Why the last attempt ended, if it failed."""
    host: str = ""
    """The host on which the job is running, or was last."""
    ends: dict[str, int] = field(default_factory=dict)
    """How many of the job's seeds are done, failed and diverged, if the job is done."""


@dataclass(frozen=True)
class Tally:
    """Runs (a setting and a seed), counted by how far they are."""

    name: str
    """The name of the sweep, the setting or the case."""
    settings: int
    runs: int
    done: int
    """The number of runs that are done."""
    failed: int
    """The number of runs whose environment failed."""
    diverged: int
    """The number of runs that diverged."""
    running: int
    """The number of runs that are in training now."""
    waiting: int
    """The number of runs that no process works on."""
    frames: int
    """The frames of all runs together."""
    frames_done: int

    @property
    def share(self) -> float:
        """The share of the frames that are done; a run that failed or diverged has none left."""
        return self.frames_done / self.frames


@dataclass(frozen=True)
class Status:
    """How far a sweep is."""

    folder: str
    """The folder of the sweep."""
    total: Tally
    """The runs of the whole sweep, counted."""
    settings: list[Tally]
    """The runs of each setting, counted."""
    cases: list[Tally]
    """The runs of each case; none if the sweep has no cases."""
    jobs: list[JobStatus]
    """The status of each job."""
    frames_per_second: float
    """The speed of all jobs that are running, together."""
    seconds_left: float | None
    """An estimate of the seconds that are left; None if nothing is running, or has just begun."""
    problems: list[str]
    """What went wrong, in sentences."""

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.total.running + self.total.waiting == 0

    def plain(self) -> dict[str, Any]:
        """Return the status as plain data, for JSON."""
        return asdict(self)


def sweep_status(folder: str | os.PathLike[str]) -> Status:
    """Return how far the sweep or the training run in a folder is.

    Args:
        folder: the folder of the store, or of a training run of an earlier version.

    Raises:
        InputError: if there is neither, or it is of a later version.
    """
    problems: list[str] = []
    if is_old_run(Path(folder)):
        sweep, jobs = _old_jobs(Path(folder))
    else:
        store = open_store(folder)
        sweep, jobs = store.sweep, _jobs(store, problems)
    rate = sum(job.frames_per_second * len(job.seeds) for job in jobs)
    return Status(
        folder=str(folder),
        total=_tally(sweep.name, jobs, len(sweep.settings)),
        settings=_by_setting(sweep, jobs),
        cases=_by_case(sweep, jobs),
        jobs=jobs,
        frames_per_second=rate,
        seconds_left=_seconds_left(jobs, rate),
        problems=problems,
    )


def _jobs(store: Store, problems: list[str]) -> list[JobStatus]:
    leases = newest_leases(store.leases_folder)
    indices = {setting.key: i for i, setting in enumerate(store.sweep.settings)}
    paths = {key: manifest_paths(store.results_folder(key)) for key in indices}
    jobs: list[JobStatus] = []
    for job in store.jobs:
        setting = indices[job.key]
        sound, wrong = check_manifests(job, paths[job.key].get(job.id, []), Manifest.check_file)
        manifests = [manifest for manifest, _ in sound]
        problems += wrong
        if len(manifests) > 1:
            problems.append(published_twice(store.sweep.settings[setting].name, job, manifests))
        if manifests:
            frames = store.sweep.settings[setting].settings.frames
            ends = [str(outcome["status"]) for outcome in manifests[0].outcomes]
            jobs.append(_ended(job, setting, frames, ends))
        else:
            jobs.append(_unfinished(store, job, setting, leases.get(job.id), problems))
    return jobs


def _old_jobs(folder: Path) -> tuple[Sweep, list[JobStatus]]:
    run = read_old_run(folder)
    frames, jobs = run.settings.frames, []
    for job in run.jobs:
        outcomes = [outcome for outcome in run.outcomes if outcome.seed in job.seeds]
        ends = [outcome.status for outcome in outcomes]
        frame = min(outcome.frame for outcome in outcomes)
        waiting = JobStatus(job.id, 0, job.seeds, "waiting", frame, frames)
        jobs.append(waiting if "running" in ends else _ended(job, 0, frames, ends))
    return run.sweep, jobs


def _ended(job: Job, setting: int, frames: int, ends: Sequence[str]) -> JobStatus:
    counts = {end: ends.count(end) for end in STATUSES}
    return JobStatus(job.id, setting, job.seeds, "done", frames, frames, ends=counts)


def _unfinished(store: Store, job: Job, setting: int, path: Path | None, problems: list[str]) -> JobStatus:
    """Return what the newest lease on a job without a result says."""
    frames = store.sweep.settings[setting].settings.frames
    lease = None if path is None else read_lease(path)
    if path is None or lease is None:
        if path is not None and path.exists():
            problems.append(f"{path}: the lease is damaged; it is taken over when it is {STALE_SECONDS:g} seconds old")
        return JobStatus(job.id, setting, job.seeds, "waiting", 0, frames)
    where = f"setting {store.sweep.settings[setting].name!r}, {ranges(job.seeds)}"
    if lease["reason"]:
        problems.append(f"{where}: attempt {lease['attempt']} failed: {lease['reason']}")
    running = lease["state"] == "held" and not is_gone(lease["owner"])
    if running and (silent := _silence(path)) > STALE_SECONDS:
        running = False
        problems.append(f"{where}: no heartbeat from {lease['owner']['host']} for {silent:.0f} seconds")
    note = lease["note"]
    return JobStatus(
        job.id,
        setting,
        job.seeds,
        "running" if running else "waiting",
        min(frames, int(note.get("frame", 0))),
        frames,
        float(note.get("frames_per_second", 0.0)) if running else 0.0,
        lease["attempt"],
        lease["reason"],
        str(lease["owner"]["host"]),
    )


def _silence(path: Path) -> float:
    """Return the seconds since the last heartbeat, by this host's clock: a status writes no file to compare with."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return 0.0


def _tally(name: str, jobs: Sequence[JobStatus], settings: int) -> Tally:
    runs = {state: sum(len(job.seeds) for job in jobs if job.state == state) for state in ("running", "waiting")}
    ends = {end: sum(job.ends.get(end, 0) for job in jobs) for end in STATUSES}
    return Tally(
        name=name,
        settings=settings,
        runs=sum(len(job.seeds) for job in jobs),
        frames=sum(job.frames * len(job.seeds) for job in jobs),
        frames_done=sum(job.frame * len(job.seeds) for job in jobs),
        **ends,
        **runs,
    )


def _by_setting(sweep: Sweep, jobs: Sequence[JobStatus]) -> list[Tally]:
    of_setting: list[list[JobStatus]] = [[] for _ in sweep.settings]
    for job in jobs:
        of_setting[job.setting].append(job)
    return [_tally(setting.name, of_setting[i], 1) for i, setting in enumerate(sweep.settings)]


def _by_case(sweep: Sweep, jobs: Sequence[JobStatus]) -> list[Tally]:
    cases = [setting.case for setting in sweep.settings]
    names = [name for name in dict.fromkeys(cases) if name]
    return [_tally(name, [job for job in jobs if cases[job.setting] == name], cases.count(name)) for name in names]


def _seconds_left(jobs: Sequence[JobStatus], rate: float) -> float | None:
    """Estimate the seconds left at the speed of now: at least as long as the slowest running job takes."""
    if all(job.state == "done" for job in jobs):
        return 0.0
    if rate <= 0.0:
        return None
    left = sum((job.frames - job.frame) * len(job.seeds) for job in jobs)
    slowest = [(job.frames - job.frame) / job.frames_per_second for job in jobs if job.frames_per_second > 0.0]
    return max(left / rate, *slowest)
