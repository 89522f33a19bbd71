"""Where a sweep is: per job and per setting, what is running and at what speed, what is left, and what went wrong.

Only manifests, claims and the sizes of files are read, so that it is quick and can be asked at any time. The results
themselves are verified by `ipe.experiments.results.load_results`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ipe.errors import InputError
from ipe.experiments.claim_files import newest_claims, read_claim
from ipe.experiments.claims import STALE_SECONDS
from ipe.experiments.declared import Job
from ipe.experiments.manifests import STATUSES, Manifest, manifest_paths
from ipe.experiments.owners import is_gone
from ipe.experiments.reading import check_manifests, published_twice, ranges
from ipe.experiments.store import Store, open_store


@dataclass(frozen=True)
class JobStatus:
    """Where a job is."""

    id: str
    setting: int
    """Index into the sweep's settings."""
    seeds: tuple[int, ...]
    state: str
    """done: published; running; or waiting."""
    frame: int
    """Of every seed."""
    frames: int
    frames_per_second: float
    """Of every seed, now; 0 unless it is running."""
    attempts: int
    """How many processes have had it; 0 for one that is done."""
    reason: str
    """Why the last attempt ended, if it failed."""
    host: str
    """Where it is running, or was last."""
    ends: dict[str, int]
    """How many of its seeds are done, failed and diverged, if it is done."""


@dataclass(frozen=True)
class Tally:
    """Runs (a setting and a seed) by what they are at."""

    name: str
    settings: int
    runs: int
    done: int
    failed: int
    """Their environment did."""
    diverged: int
    running: int
    waiting: int
    frames: int
    frames_done: int

    @property
    def share(self) -> float:
        """Of the frames that are done; a run that failed or diverged has none left."""
        return self.frames_done / self.frames


@dataclass(frozen=True)
class Status:
    """Where a sweep is."""

    folder: str
    total: Tally
    settings: list[Tally]
    cases: list[Tally]
    """Those of the sweep; none if it has none."""
    jobs: list[JobStatus]
    frames_per_second: float
    """Of all that is running, together."""
    seconds_left: float | None
    """None if nothing is running, or has just begun."""
    problems: list[str]
    """Sentences."""

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.total.running + self.total.waiting == 0

    def plain(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def sweep_status(folder: str | os.PathLike[str]) -> Status:
    """Where the sweep in a folder is.

    Args:
        folder: of the store.

    Raises:
        InputError: if it is none, or of a later version.
    """
    store = open_store(folder)
    claims = newest_claims(store.claims_folder)
    indices = {setting.key: i for i, setting in enumerate(store.sweep.settings)}
    paths = {key: manifest_paths(store.results_folder(key)) for key in indices}
    jobs: list[JobStatus] = []
    problems: list[str] = []
    for job in store.jobs:
        setting = indices[job.key]
        sound, wrong = check_manifests(job, paths[job.key].get(job.id, []), _check_file)
        manifests = [manifest for manifest, _ in sound]
        problems += wrong
        if len(manifests) > 1:
            problems.append(published_twice(store.sweep.settings[setting].name, job, manifests))
        if manifests:
            jobs.append(_done(store, job, setting, manifests[0]))
        else:
            jobs.append(_claimed(store, job, setting, claims.get(job.id), problems))
    rate = sum(job.frames_per_second * len(job.seeds) for job in jobs)
    return Status(
        folder=str(store.folder),
        total=_tally(store.sweep.name, jobs, len(indices)),
        settings=_by_setting(store, jobs),
        cases=_by_case(store, jobs),
        jobs=jobs,
        frames_per_second=rate,
        seconds_left=_seconds_left(jobs, rate),
        problems=problems,
    )


def _check_file(manifest: Manifest) -> None:
    try:
        size = manifest.file.stat().st_size
    except FileNotFoundError:
        raise InputError(f"{manifest.file}: it is missing, and its manifest is there") from None
    except OSError as error:
        raise InputError(f"{manifest.file}: cannot be read: {error.strerror or error}") from None
    if size != manifest.size:
        raise InputError(f"{manifest.file}: it is damaged: {size} bytes instead of {manifest.size}")


def _done(store: Store, job: Job, setting: int, manifest: Manifest) -> JobStatus:
    statuses = [outcome["status"] for outcome in manifest.outcomes]
    frames = store.sweep.settings[setting].settings.frames
    ends = {end: statuses.count(end) for end in STATUSES}
    return JobStatus(job.id, setting, job.seeds, "done", frames, frames, 0.0, 0, "", "", ends)


def _claimed(store: Store, job: Job, setting: int, path: Path | None, problems: list[str]) -> JobStatus:
    """A job without a result: what its newest claim says."""
    frames = store.sweep.settings[setting].settings.frames
    claim = None if path is None else read_claim(path)
    if path is None or claim is None:
        if path is not None and path.exists():
            problems.append(f"{path}: the claim is damaged; it is taken over when it is {STALE_SECONDS:g} seconds old")
        return JobStatus(job.id, setting, job.seeds, "waiting", 0, frames, 0.0, 0, "", "", {})
    name = store.sweep.settings[setting].name
    if claim["reason"]:
        problems.append(f"setting {name!r}, {ranges(job.seeds)}: attempt {claim['attempt']} failed: {claim['reason']}")
    running = claim["state"] == "held" and not is_gone(claim["owner"])
    if running and (silent := _silence(path)) > STALE_SECONDS:
        running = False
        where = f"setting {name!r}, {ranges(job.seeds)}"
        problems.append(f"{where}: no heartbeat from {claim['owner']['host']} for {silent:.0f} seconds")
    note = claim["note"]
    frame = min(frames, int(note.get("frame", 0)))
    speed = float(note.get("frames_per_second", 0.0)) if running else 0.0
    state, host = "running" if running else "waiting", str(claim["owner"]["host"])
    return JobStatus(
        job.id, setting, job.seeds, state, frame, frames, speed, claim["attempt"], claim["reason"], host, {}
    )


def _silence(path: Path) -> float:
    """Seconds since the last heartbeat. By this host's clock: a status writes nothing that it could compare with."""
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


def _by_setting(store: Store, jobs: Sequence[JobStatus]) -> list[Tally]:
    own: list[list[JobStatus]] = [[] for _ in store.sweep.settings]
    for job in jobs:
        own[job.setting].append(job)
    return [_tally(setting.name, own[i], 1) for i, setting in enumerate(store.sweep.settings)]


def _by_case(store: Store, jobs: Sequence[JobStatus]) -> list[Tally]:
    cases = [setting.case for setting in store.sweep.settings]
    names = [name for name in dict.fromkeys(cases) if name]
    return [_tally(name, [job for job in jobs if cases[job.setting] == name], cases.count(name)) for name in names]


def _seconds_left(jobs: Sequence[JobStatus], rate: float) -> float | None:
    """What is left at the speed of now; at least as long as the slowest that is running takes."""
    if all(job.state == "done" for job in jobs):
        return 0.0
    if rate <= 0.0:
        return None
    left = sum((job.frames - job.frame) * len(job.seeds) for job in jobs)
    slowest = [(job.frames - job.frame) / job.frames_per_second for job in jobs if job.frames_per_second > 0.0]
    return max(left / rate, *slowest)
