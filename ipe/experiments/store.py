"""The store of a sweep: a folder that any number of processes on any number of machines work on at once.

::

    sweep.json                        the sweep, its jobs, versions
    results/KEY/JOB-TOKEN.parquet     the records of a job, immutable
    results/KEY/JOB-TOKEN.json        its manifest, written last
    claims/JOB.GENERATION.json        who is at the job, with a heartbeat
    work/JOB/                         its checkpoints

A job is published when a valid manifest and the file that it vouches for are there. KEY stands for the settings, JOB
for KEY and some seeds; both are parts of every file's content too.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ipe.base.atomic import write_atomic
from ipe.deep.machine import versions
from ipe.deep.plain import encode
from ipe.deep.records import Records
from ipe.errors import InputError
from ipe.experiments.claims import BEAT_SECONDS, STALE_SECONDS, Claim, ClaimLostError, take_claim
from ipe.experiments.declared import Job, Sweep
from ipe.experiments.differences import check_contains, check_jobs, merged_jobs
from ipe.experiments.exclusive import create_exclusive
from ipe.experiments.manifests import (
    Manifest,
    check_result,
    manifest_paths,
    put_aside,
    read_manifest,
    remove_leftovers,
    write_publication,
)
from ipe.experiments.sealed import LaterVersionError, read_sealed, sealed_bytes

FORMAT, SCHEMA = "ipe.sweep", 1
_LOCK, _LOCK_SECONDS = "sweep", 60.0


@dataclass(frozen=True)
class Store:
    """A folder and what its `sweep.json` says."""

    folder: Path
    sweep: Sweep
    jobs: list[Job]

    @cached_property
    def by_id(self) -> dict[str, Job]:
        """The jobs by their ids."""
        return {job.id: job for job in self.jobs}

    @property
    def claims_folder(self) -> Path:
        """Where the claims are."""
        return self.folder / "claims"

    def results_folder(self, key: str) -> Path:
        """Where the results of a setting are."""
        return self.folder / "results" / key

    def work_folder(self, job: Job) -> Path:
        """For a job's checkpoints."""
        return self.folder / "work" / job.id

    def clean(self, job: Job) -> None:
        """Remove a published job's checkpoints."""
        shutil.rmtree(self.work_folder(job), ignore_errors=True)

    def claim(
        self, job: Job, *, beat_seconds: float = BEAT_SECONDS, stale_seconds: float = STALE_SECONDS
    ) -> Claim | None:
        """The claim on a job, if nobody has it and it is not published; see `ipe.experiments.claims.take_claim`."""
        claim = take_claim(self.claims_folder, job.id, beat_seconds=beat_seconds, stale_seconds=stale_seconds)
        if claim is not None and self.published(job):  # while the claim was waited for
            claim.finish()
            return None
        return claim

    def published(self, job: Job, *, verify: bool = True) -> bool:
        """Whether a job has a valid result.

        Args:
            job: the job.
            verify: read the Parquet file and compare its sha256, rather than its size alone.

        Raises:
            InputError: if it has one of a later version of ipe, which this one must not replace.
        """
        return self.publication(job, verify=verify) is not None

    def publication(self, job: Job, *, verify: bool = True) -> Manifest | None:
        """The manifest of a job's valid result; arguments as for `published`."""
        paths = manifest_paths(self.results_folder(job.key)).get(job.id, [])
        found = (self._valid(path, job, verify) for path in paths)
        return next((manifest for manifest in found if manifest is not None), None)

    def publish(
        self,
        claim: Claim,
        records: Records,
        outcomes: Sequence[dict[str, Any]],
        *,
        seconds: float = 0.0,
        products: str = "",
    ) -> bool:
        """Write the result of a job, at once: the Parquet file, then the manifest. The claim is let go of.

        Damaged results of the job are put aside, under their names and `.damaged`.

        Args:
            claim: on the job.
            records: of all its seeds.
            outcomes: one per seed: seed, status (done, failed or diverged), frame and reason.
            seconds: that it took.
            products: whose matrix products it was made with, if that is known.

        Returns:
            False if the job had a valid result already; nothing is written then.

        Raises:
            ClaimLostError: if another process has taken the job over; nothing is published.
            InputError: if records or outcomes are not of this job, or a file cannot be written.
        """
        job = self.by_id[claim.name]
        check_result(job, records, outcomes)
        try:
            confirmed = claim.confirm()
        except OSError as error:
            raise InputError(f"cannot confirm the claim {claim.path}: {error.strerror or error}") from None
        if not confirmed:
            raise ClaimLostError(f"{job.id}: another process has taken the job over")
        folder = self.results_folder(job.key)
        try:
            new = self._put_damaged_aside(job)
            if new:
                setting = self.sweep.by_key[job.key]
                write_publication(folder, setting, job, claim, records, outcomes, seconds, products)
            remove_leftovers(folder, job.id)
        except OSError as error:
            raise InputError(f"cannot publish {job.id} in {folder}: {error.strerror or error}") from None
        claim.finish()
        return new

    def _put_damaged_aside(self, job: Job) -> bool:
        """Whether there is no valid result."""
        none = True
        for path in manifest_paths(self.results_folder(job.key)).get(job.id, []):
            if self._valid(path, job, verify=True) is not None:
                none = False
            else:
                put_aside(path)
        return none

    def _valid(self, path: Path, job: Job, verify: bool) -> Manifest | None:
        try:
            manifest = read_manifest(path)
            if (manifest.key, manifest.seeds) != (job.key, job.seeds):
                return None
            if verify:
                manifest.read_file()
        except LaterVersionError:
            raise
        except InputError:
            return None
        return manifest if manifest.has_file() else None


def create_store(folder: str | os.PathLike[str], sweep: Sweep, jobs: Sequence[Job]) -> Store:
    """A new store for a sweep; or the one that is there, if the sweep has all its settings and seeds.

    A sweep with more settings or seeds extends the store: the jobs that are there stay as they are, and new ones are
    made for the rest. Names, order and cases of the settings are then the new sweep's.

    Args:
        folder: a new or an empty one, or a store's.
        sweep: the sweep.
        jobs: every seed of every setting, once.

    Raises:
        InputError: if the folder holds something else, or a sweep with other settings: with the difference.
    """
    path = Path(folder)
    check_jobs(sweep, jobs)
    if not (path / "sweep.json").exists():
        _check_empty(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
            create_exclusive(path / "sweep.json", _description(sweep, jobs))
        except OSError as error:
            raise InputError(f"cannot make the store {path}: {error.strerror or error}") from None
    store = open_store(path)
    same = encode(sweep.plain(), "sweep") == store.sweep.plain()
    return store if same else _extended(store, sweep, jobs)


def open_store(folder: str | os.PathLike[str]) -> Store:
    """The store in a folder.

    Raises:
        InputError: if there is none, or it is damaged, or of a later version.
    """
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"there is no folder {path}")
    if not (path / "sweep.json").exists():
        raise InputError(f"{path} holds no sweep: there is no sweep.json in it")
    content = read_sealed(path / "sweep.json", FORMAT, SCHEMA)
    try:
        sweep = Sweep.from_plain(content["sweep"])
        jobs = [Job(str(job["setting"]), tuple(int(seed) for seed in job["seeds"])) for job in content["jobs"]]
        check_jobs(sweep, jobs)
    except InputError as error:
        raise InputError(f"{path / 'sweep.json'}: {error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path / 'sweep.json'}: {error!r} is missing or wrong") from None
    return Store(path, sweep, jobs)


def _extended(store: Store, sweep: Sweep, jobs: Sequence[Job]) -> Store:
    """The same store for a larger sweep. One process at a time: another may be giving it other seeds."""
    _check_contains(store, sweep)
    deadline = time.monotonic() + _LOCK_SECONDS
    while (lock := take_claim(store.claims_folder, _LOCK)) is None:
        if time.monotonic() > deadline:
            raise InputError(f"{store.folder}: another process has been extending the sweep for a minute")
        time.sleep(0.2)
    try:
        now = open_store(store.folder)
        _check_contains(now, sweep)
        description = _description(sweep, merged_jobs(now.jobs, jobs))
        write_atomic(store.folder / "sweep.json", lambda file: file.write(description))
    finally:
        lock.finish()
    return open_store(store.folder)


def _check_contains(store: Store, sweep: Sweep) -> None:
    try:
        check_contains(sweep, store.sweep)
    except InputError as error:
        raise InputError(f"{store.folder} was made for another sweep: {error}") from None


def _description(sweep: Sweep, jobs: Sequence[Job]) -> bytes:
    listed = [{"setting": job.key, "seeds": list(job.seeds)} for job in jobs]
    content = {"format": FORMAT, "schema": SCHEMA, "sweep": sweep.plain(), "jobs": listed, "versions": versions()}
    return sealed_bytes(content, "sweep")


def _check_empty(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file, not a folder")
    if path.exists() and any(not (entry.name.startswith(".") and entry.suffix == ".part") for entry in path.iterdir()):
        raise InputError(f"{path} exists, is not empty and holds no sweep; choose another folder")
