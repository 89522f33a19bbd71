"""Reading what jobs have come to: the first sound publication of each, or its newest checkpoint; and what is wrong."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from ipe.base.cores import available_cores
from ipe.deep.checkpoints import load_checkpoint, under
from ipe.deep.evaluating import Kept
from ipe.deep.progress import Outcome
from ipe.deep.records import Records
from ipe.errors import InputError
from ipe.experiments.declared import Job
from ipe.experiments.evaluation_tables import as_evaluations
from ipe.experiments.publications import Manifest, manifest_paths, sound_manifest
from ipe.experiments.store import Store
from ipe.experiments.tables import as_results

_NETWORKS = ("state.q.", "state.policy.")


@dataclass(frozen=True)
class Snapshot:
    """A job at its newest checkpoint."""

    outcomes: list[Outcome]
    """How far each seed has come."""
    records: Records
    """The records so far."""
    networks: dict[str, NDArray[Any]]
    """The networks, as `ipe.deep.loop.Loop.networks` names them; the first axis is the seeds."""
    best: Kept
    """The networks of the seeds' best evaluations so far."""


def read_snapshot(store: Store, job: Job) -> Snapshot | None:
    """Read what a job has come to at its newest valid checkpoint; None if it has none. If all its checkpoints are
    damaged, it is refused."""
    checkpoint = load_checkpoint(store.work_folder(job), only=("records.", "best.", "stopped.", *_NETWORKS))
    if checkpoint is None:
        return None
    outcomes = [Outcome(**outcome) for outcome in checkpoint.data["outcomes"]]
    for outcome in outcomes:
        if outcome.status == "running":
            outcome.frame = checkpoint.frame
    networks = {
        name: array[: len(job.seeds)]
        for name, array in under("state.", checkpoint.arrays).items()
        if name.startswith(("q.", "policy."))
    }
    best, stopped = (
        Kept.from_arrays(len(job.seeds), under(prefix, checkpoint.arrays)) for prefix in ("best.", "stopped.")
    )
    for i in stopped.frames.nonzero()[0]:
        for name, array in networks.items():
            array[i] = stopped.networks[name][i]
    return Snapshot(outcomes, Records.from_arrays(under("records.", checkpoint.arrays)), networks, best)


@dataclass(frozen=True)
class Part:
    """What was read of a job."""

    job: Job
    setting: int
    """The index of the setting among the sweep's settings."""
    tables: dict[str, pa.Table]
    """The tables by kind: episodes, progress, evaluations."""
    outcomes: list[dict[str, Any]]
    """The outcome of each seed; none if the job has no sound result."""
    problems: list[str]
    """What is wrong with the job's files, in sentences."""


def read_parts(store: Store, settings: Iterable[int], kinds: Sequence[str], unfinished: bool = False) -> list[Part]:
    """Read the jobs of some settings, in the order of the store; jobs without a result count, if asked for, as far as
    their newest checkpoints."""
    indices = {store.sweep.settings[i].key: i for i in settings}
    jobs = [job for job in store.jobs if job.key in indices]
    threads = min(8, 2 * available_cores())  # Arrow and hashing let go of Python's lock; a network folder is waited for
    with _small_pages(), ThreadPoolExecutor(threads) as pool:
        listed = pool.map(lambda key: manifest_paths(store.results_folder(key)), indices)
        paths = dict(zip(indices, listed, strict=True))
        return list(
            pool.map(
                lambda job: _read(store, job, indices[job.key], paths[job.key].get(job.id, []), kinds, unfinished), jobs
            )
        )


def check_manifests(job: Job, paths: Sequence[Path], check: Callable[[Manifest], Any]) -> tuple[list[Any], list[str]]:
    """Return the sound manifests of a job, the earliest first, each with what `check` made of its files; and what is
    wrong with the others, in sentences."""
    sound: list[tuple[Manifest, Any]] = []
    problems = []
    for path in paths:
        try:
            sound.append(sound_manifest(path, job, check))
        except InputError as error:
            problems.append(f"{error}; not used")
    sound.sort(key=lambda pair: (pair[0].published, pair[0].path.name))
    return sound, problems


def foreign_results(store: Store) -> list[str]:
    """Describe what lies among the results without being one: files of other settings, or of other jobs."""
    known = {setting.key for setting in store.sweep.settings}
    folder = store.folder / "results"
    keys = sorted(os.listdir(folder)) if folder.is_dir() else []
    out = [f"{folder / key}: it is of no setting of this sweep; not used" for key in keys if key not in known]
    for key in (key for key in keys if key in known):
        for job, paths in manifest_paths(folder / key).items():
            if job not in store.by_id:
                out += [f"{path}: it is of no job of this sweep; not used" for path in paths]
    return out


def published_twice(name: str, job: Job, manifests: Sequence[Manifest]) -> str:
    """Return a sentence about a job that was published several times."""
    same = len({manifest.sha256 for manifest in manifests}) == 1
    how = "with the same content" if same else "with DIFFERENT content"
    used = manifests[0].file.name
    return (
        f"setting {name!r}, {ranges(job.seeds)}: published {len(manifests)} times, {how}; the earliest, {used}, is used"
    )


def ranges(seeds: Sequence[int]) -> str:
    """Return seeds in a few words.

    Example:
        >>> ranges([0, 1, 2, 5, 7, 8])
        'seeds 0-2, 5, 7-8'
    """
    groups: list[list[int]] = []
    for seed in sorted(seeds):
        if groups and groups[-1][-1] == seed - 1:
            groups[-1] = [groups[-1][0], seed]
        else:
            groups.append([seed])
    return f"seed{'s' * (len(seeds) > 1)} {', '.join('-'.join(map(str, group)) for group in groups)}"


def _read(store: Store, job: Job, setting: int, paths: Sequence[Path], kinds: Sequence[str], unfinished: bool) -> Part:
    sound, problems = check_manifests(job, paths, lambda manifest: _tables(manifest, kinds))
    if len(sound) > 1:
        problems.append(published_twice(store.sweep.settings[setting].name, job, [manifest for manifest, _ in sound]))
    if sound:
        manifest, tables = sound[0]
        return Part(job, setting, tables, manifest.outcomes, problems)
    snapshot = None
    if unfinished:
        try:
            snapshot = read_snapshot(store, job)
        except InputError as error:
            problems.append(str(error))
    if snapshot is None:
        return Part(job, setting, {}, [], problems)
    tables = {kind: as_results(getattr(snapshot.records, f"{kind}_table")(), kind) for kind in kinds}
    tables["evaluations"] = as_evaluations(snapshot.records.evaluations_table())
    return Part(job, setting, tables, [vars(outcome) for outcome in snapshot.outcomes], problems)


def _tables(manifest: Manifest, kinds: Sequence[str]) -> dict[str, pa.Table]:
    return manifest.read_tables(kinds) | {"evaluations": manifest.read_evaluations()}


@contextlib.contextmanager
def _small_pages() -> Iterator[None]:
    """Use the system's allocator: Arrow's own asks for huge pages, which take the kernel longer than reading takes."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
