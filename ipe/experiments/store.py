"""The store of a sweep: a folder in which any number of processes on any number of machines work at once.

::

    sweep.json                            the sweep, its jobs, what is kept, versions
    results/KEY/JOB-TOKEN.parquet         the records of a job, never changed
    results/KEY/JOB-TOKEN.safetensors     its networks, if the store keeps them
    results/KEY/JOB-TOKEN.json            its manifest, written last
    results/KEY/JOB-TOKEN.transitions     its transitions, if the store keeps them
    data/SHA256.safetensors               the data set that the runs learn from, if they do
    claims/JOB.GENERATION.json            the lease on the job: which process works on it, with a heartbeat
    work/JOB/                             its checkpoints, until it is published, or for good if the store keeps them

A training run is the store of a sweep of one setting, which keeps networks and checkpoints. A job is published when a
valid manifest and the files that it vouches for are there. KEY stands for the settings, JOB for KEY and some seeds;
both are in the content of every file, too.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from ipe.base.atomic import create_exclusive, write_bytes
from ipe.base.files import naming
from ipe.base.numbers import seed_number
from ipe.base.sealed import LaterVersionError, encode, read_sealed, sealed_bytes
from ipe.base.words import refusing
from ipe.deep.data import Data
from ipe.deep.machine import versions
from ipe.deep.settings import TrainingSettings, read_settings
from ipe.errors import InputError
from ipe.experiments.declared import Job, Setting, Sweep, check_contains, check_jobs, merged_jobs
from ipe.experiments.leases import BEAT_SECONDS, STALE_SECONDS, Lease, LeaseLostError, take_lease
from ipe.experiments.publications import (
    JobResult,
    Manifest,
    check_result,
    manifest_paths,
    put_aside,
    remove_leftovers,
    sound_manifest,
    write_publication,
)

FORMAT, SCHEMA = "ipe.sweep", 1
NETWORKS, CHECKPOINTS, TRANSITIONS = "networks", "checkpoints", "transitions"
"""What a store can keep beside the records of its jobs."""
_LOCK, _LOCK_SECONDS = "sweep", 60.0


@dataclass(frozen=True)
class Store:
    """A folder and what its `sweep.json` says."""

    folder: Path
    """The folder of the store."""
    sweep: Sweep
    """The sweep that the store was made for."""
    jobs: list[Job]
    """The jobs of the sweep."""
    keep: tuple[str, ...] = ()
    """What is kept of a published job beside its records: some of `NETWORKS`, `CHECKPOINTS` and `TRANSITIONS`."""

    @cached_property
    def by_id(self) -> dict[str, Job]:
        """The jobs by their ids."""
        return {job.id: job for job in self.jobs}

    @property
    def leases_folder(self) -> Path:
        """The folder of the leases on jobs."""
        return self.folder / "claims"

    def results_folder(self, key: str) -> Path:
        """Return the folder of the results of a setting."""
        return self.folder / "results" / key

    def work_folder(self, job: Job) -> Path:
        """Return the folder of a job's checkpoints."""
        return self.folder / "work" / job.id

    def data(self, settings: TrainingSettings) -> Data | None:
        """Read the data set that a setting learns from; None if it learns from its own actions."""
        return Data.load(_data_path(self.folder, settings.data), settings.data) if settings.data else None

    def clean(self, job: Job) -> None:
        """Remove a published job's checkpoints, unless the store keeps them."""
        if CHECKPOINTS not in self.keep:
            shutil.rmtree(self.work_folder(job), ignore_errors=True)

    def lease(
        self, job: Job, *, beat_seconds: float = BEAT_SECONDS, stale_seconds: float = STALE_SECONDS
    ) -> Lease | None:
        """Take the lease on a job, if nobody has it and it is not published; see `take_lease`."""
        lease = take_lease(self.leases_folder, job.id, beat_seconds=beat_seconds, stale_seconds=stale_seconds)
        if lease is not None and self.published(job):  # while the lease was waited for
            lease.finish()
            return None
        return lease

    def published(self, job: Job, *, verify: bool = True) -> bool:
        """Whether a job has a valid result.

        Args:
            job: the job.
            verify: read the job's files and compare their checksums, rather than the Parquet file's size and rows.

        Raises:
            InputError: if the result is of a later version of ipe, which this version must not replace.
        """
        return self.publication(job, verify=verify) is not None

    def publication(self, job: Job, *, verify: bool = True) -> Manifest | None:
        """Return the manifest of a job's valid result, None if there is none; arguments as for `published`."""
        paths = manifest_paths(self.results_folder(job.key)).get(job.id, [])
        found = (self._valid(path, job, verify) for path in paths)
        return next((manifest for manifest in found if manifest is not None), None)

    def publish(self, lease: Lease, result: JobResult) -> bool:
        """Write the result of a job: its files, then the manifest. The lease is released.

        Damaged results of the job are put aside, under their names and `.damaged`.

        Args:
            lease: the lease on the job.
            result: what the job has come to.

        Returns:
            False if the job had a valid result already; nothing is written then.

        Raises:
            LeaseLostError: if another process has taken the job over; nothing is published.
            InputError: if records or outcomes are not those of this job, or a file cannot be written.
        """
        job = self.by_id[lease.name]
        check_result(job, result)
        with refusing(f"cannot confirm the lease {lease.path}"):
            confirmed = lease.confirm()
        if not confirmed:
            raise LeaseLostError(f"{job.id}: another process has taken the job over")
        folder = self.results_folder(job.key)
        with refusing(f"cannot publish {job.id} in {folder}"):
            new = self._put_damaged_aside(job)
            if new:
                write_publication(folder, self.sweep.by_key[job.key], job, lease, result)
            remove_leftovers(folder, job.id)
        lease.finish()
        return new

    def _put_damaged_aside(self, job: Job) -> bool:
        """Put damaged results of a job aside; whether there is no valid one."""
        none = True
        for path in manifest_paths(self.results_folder(job.key)).get(job.id, []):
            if self._valid(path, job, verify=True) is not None:
                none = False
            else:
                put_aside(path)
        return none

    def _valid(self, path: Path, job: Job, verify: bool) -> Manifest | None:
        try:
            return sound_manifest(path, job, Manifest.verify if verify else Manifest.check_file)[0]
        except LaterVersionError:
            raise
        except InputError:
            return None


def create_store(
    folder: str | os.PathLike[str],
    sweep: Sweep,
    jobs: Sequence[Job],
    keep: Sequence[str] = (),
    data: Data | None = None,
) -> Store:
    """Make a store for a sweep; or open the one that is there, if the sweep has all its settings and seeds.

    A sweep with more settings or seeds extends the store: the jobs that are there stay as they are, and new ones are
    made for the rest. Names, order and cases of the settings are then the new sweep's.

    Args:
        folder: a new or an empty folder, or a store's.
        sweep: the sweep.
        jobs: every seed of every setting, once.
        keep: what a new store keeps beside the records: `NETWORKS`, `CHECKPOINTS`. A store that is there keeps what
            it was made to keep.
        data: the data set that the sweep's settings learn from, if they do; a new store gets a copy.

    Raises:
        InputError: if the folder holds something else, or a sweep with other settings: with the difference.
    """
    path = Path(folder)
    check_jobs(sweep, jobs)
    if not (path / "sweep.json").exists():
        _check_empty(path)
        with refusing(f"cannot make the store {path}"):
            path.mkdir(parents=True, exist_ok=True)
            if data is not None:
                (path / "data").mkdir(exist_ok=True)
                data.save(_data_path(path, data.sha256))
            create_exclusive(path / "sweep.json", description(sweep, jobs, keep))
    store = open_store(path)
    same = encode(sweep.plain(), "sweep") == store.sweep.plain()
    return store if same else _extended(store, sweep, jobs)


def open_store(folder: str | os.PathLike[str]) -> Store:
    """Open the store in a folder.

    Raises:
        InputError: if there is none, or it is damaged, or of a later version.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    if not (path / "sweep.json").exists():
        raise InputError(f"{path} holds no sweep and no training run: there is no sweep.json in it")
    content = read_sealed(path / "sweep.json", FORMAT, SCHEMA)
    try:
        sweep = Sweep.from_plain(content["sweep"])
        jobs = [Job(str(job["setting"]), tuple(seed_number(seed) for seed in job["seeds"])) for job in content["jobs"]]
        keep = tuple(str(name) for name in content.get("keep", ()))
        check_jobs(sweep, jobs)
    except InputError as error:
        raise InputError(f"{path / 'sweep.json'}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise InputError(f"{path / 'sweep.json'}: {error!r} is missing or wrong") from None
    return Store(path, sweep, jobs, keep)


def with_more_frames(store: Store, frames: int) -> Store:
    """Give the one setting of a store that keeps checkpoints as many frames to do as it has or more; its jobs go on
    from their checkpoints. These get second names under the jobs' new ids before the description changes, and the old
    names go afterwards, so that a kill at any moment leaves one or the other. If something does not fit, nothing is
    written."""
    (setting,) = store.sweep.settings
    before = setting.settings.frames
    if frames < before:
        raise InputError(f"frames: the run has {before}, and can be given more, not fewer ({frames})")
    settings = read_settings(setting.settings.model_dump() | {"frames": frames})
    if frames == before:
        return store
    if CHECKPOINTS not in store.keep:
        raise InputError(f"{store.folder} keeps no checkpoints of finished runs, which more frames would start from")
    sweep = replace(store.sweep, settings=[replace(setting, settings=settings)])
    larger = replace(store, sweep=sweep, jobs=[Job(sweep.settings[0].key, job.seeds) for job in store.jobs])
    for old, new in zip(store.jobs, larger.jobs, strict=True):
        link_folder(store.work_folder(old), larger.work_folder(new))
    write_bytes(store.folder / "sweep.json", description(sweep, larger.jobs, store.keep))
    for job in store.jobs:
        shutil.rmtree(store.work_folder(job), ignore_errors=True)
    shutil.rmtree(store.results_folder(setting.key), ignore_errors=True)
    return open_store(store.folder)


def earlier_job(store: Store, setting: Setting, seeds: tuple[int, ...]) -> Job | None:
    """Return the job of a store that has the same seeds of the same setting, with as many frames or fewer, if any."""
    frames = setting.settings.frames
    like = [one for one in store.sweep.settings if one.stem == setting.stem and one.settings.frames <= frames]
    like.sort(key=lambda one: -one.settings.frames)
    jobs = (store.by_id.get(Job(one.key, seeds).id) for one in like)
    return next((job for job in jobs if job is not None and job.seeds == seeds), None)


def continued_jobs(store: Store, sweep: Sweep) -> list[Job]:
    """Return the jobs of a longer sweep that the jobs of a store of shorter runs go on in: the same seeds together."""
    longer = {setting.stem: setting.key for setting in sweep.settings}
    stems, seeds = {setting.key: setting.stem for setting in store.sweep.settings}, set(sweep.seeds)
    return [
        Job(longer[stems[job.key]], job.seeds)
        for job in store.jobs
        if stems[job.key] in longer and seeds.issuperset(job.seeds)
    ]


def link_folder(folder: Path, to: Path) -> None:
    """Give the files of a folder second names in another one; or copy them, where the file system has no links."""

    def link(source: str, target: str) -> None:
        try:
            os.link(source, target)
        except OSError:
            shutil.copyfile(source, target)

    try:
        shutil.rmtree(to, ignore_errors=True)
        if folder.is_dir():
            shutil.copytree(folder, to, copy_function=link)
    except (OSError, shutil.Error) as error:
        raise InputError(f"cannot copy the checkpoints in {folder} to {to}: {error}") from None


def _extended(store: Store, sweep: Sweep, jobs: Sequence[Job]) -> Store:
    """Extend a store for a larger sweep. One process at a time does it: another may be giving it other seeds."""
    made_for = f"{store.folder} was made for another sweep"
    with naming(made_for):
        check_contains(sweep, store.sweep)
    deadline = time.monotonic() + _LOCK_SECONDS
    while (lock := take_lease(store.leases_folder, _LOCK)) is None:
        if time.monotonic() > deadline:
            raise InputError(f"{store.folder}: another process has been extending the sweep for a minute")
        time.sleep(0.2)
    try:
        now = open_store(store.folder)
        with naming(made_for):
            check_contains(sweep, now.sweep)
        write_bytes(store.folder / "sweep.json", description(sweep, merged_jobs(now.jobs, jobs), now.keep))
    finally:
        lock.finish()
    return open_store(store.folder)


def description(sweep: Sweep, jobs: Sequence[Job], keep: Sequence[str]) -> bytes:
    """Return the content of `sweep.json`."""
    listed = [{"setting": job.key, "seeds": list(job.seeds)} for job in jobs]
    content = {"format": FORMAT, "schema": SCHEMA, "sweep": sweep.plain(), "jobs": listed, "versions": versions()}
    return sealed_bytes(content | ({"keep": list(keep)} if keep else {}), "sweep")


def _data_path(folder: Path, sha256: str) -> Path:
    return folder / "data" / f"{sha256}.safetensors"


def _check_empty(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, not a folder")
    if path.exists() and any(not (entry.name.startswith(".") and entry.suffix == ".part") for entry in path.iterdir()):
        raise InputError(f"{path} exists, is not empty and holds no sweep; choose another folder")
