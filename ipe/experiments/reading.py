"""Reading the publications of jobs: the first sound one of each, and a sentence for every one that is not."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ipe.base.cores import available_cores
from ipe.errors import InputError
from ipe.experiments.declared import Job
from ipe.experiments.manifests import Manifest, manifest_paths, read_manifest
from ipe.experiments.store import Store
from ipe.experiments.tables import read_results_bytes


@dataclass(frozen=True)
class Part:
    """What was read of a job."""

    job: Job
    setting: int
    """Index into the sweep's settings."""
    manifest: Manifest | None
    """Of the publication that is used; None if there is no sound one."""
    tables: dict[str, pa.Table]
    """By kind: episodes, progress."""
    problems: list[str]


def read_parts(store: Store, settings: Iterable[int], kinds: Sequence[str]) -> list[Part]:
    """Read the jobs of some settings, in the order of the store.

    Args:
        store: the store.
        settings: indices into the sweep's settings.
        kinds: which tables: episodes, progress.
    """
    indices = {store.sweep.settings[i].key: i for i in settings}
    jobs = [job for job in store.jobs if job.key in indices]
    with _small_pages(), ThreadPoolExecutor(_threads()) as pool:
        listed = pool.map(lambda key: manifest_paths(store.results_folder(key)), indices)
        paths = dict(zip(indices, listed, strict=True))
        return list(
            pool.map(lambda job: _read(store, job, indices[job.key], paths[job.key].get(job.id, []), kinds), jobs)
        )


def check_manifests(job: Job, paths: Sequence[Path], check: Callable[[Manifest], Any]) -> tuple[list[Any], list[str]]:
    """The manifests of a job that are sound, the earliest first, with what `check` made of them; and the problems.

    Args:
        job: the job.
        paths: of the manifests that bear its name.
        check: looks at the Parquet file; an `InputError` from it says what is wrong.

    Returns:
        Pairs of a manifest and what came of it, and sentences.
    """
    sound: list[tuple[Manifest, Any]] = []
    problems = []
    for path in paths:
        try:
            manifest = read_manifest(path)
            if (manifest.key, manifest.seeds) != (job.key, job.seeds):
                raise InputError(f"{path}: it is of other seeds or settings than the job of its name")
            sound.append((manifest, check(manifest)))
        except InputError as error:
            problems.append(f"{error}; not used")
    sound.sort(key=lambda pair: (pair[0].published, pair[0].path.name))
    return sound, problems


def foreign_results(store: Store) -> list[str]:
    """What lies among the results and is none: of other settings, or of other jobs."""
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
    """A sentence about a job of several publications."""
    same = len({manifest.sha256 for manifest in manifests}) == 1
    how = "with the same content" if same else "with DIFFERENT content"
    used = manifests[0].file.name
    return (
        f"setting {name!r}, {ranges(job.seeds)}: published {len(manifests)} times, {how}; the earliest, {used}, is used"
    )


def ranges(seeds: Sequence[int]) -> str:
    """Seeds in a few words.

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


def _read(store: Store, job: Job, setting: int, paths: Sequence[Path], kinds: Sequence[str]) -> Part:
    sound, problems = check_manifests(job, paths, lambda manifest: _tables(manifest, kinds))
    if len(sound) > 1:
        problems.append(published_twice(store.sweep.settings[setting].name, job, [manifest for manifest, _ in sound]))
    manifest, tables = sound[0] if sound else (None, {})
    return Part(job, setting, manifest, tables, problems)


def _tables(manifest: Manifest, kinds: Sequence[str]) -> dict[str, pa.Table]:
    data = manifest.read_file()
    try:
        return {kind: read_results_bytes(data, kind, manifest.key, manifest.rows[kind]) for kind in kinds}
    except InputError as error:
        raise InputError(f"{manifest.file}: {error}") from None


@contextlib.contextmanager
def _small_pages() -> Iterator[None]:
    """Arrow's own allocator asks for huge pages, which the kernel may take longer to find than reading takes."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def _threads() -> int:
    return min(8, 2 * available_cores())  # Arrow and hashing let go of Python's lock; a network folder is waited for
