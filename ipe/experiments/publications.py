"""Publications: a job's Parquet file, its networks if they are kept, and the manifest that vouches for both.

`results/KEY/JOB-TOKEN.parquet`, `results/KEY/JOB-TOKEN.safetensors` and `results/KEY/JOB-TOKEN.json`, the manifest,
which is written last. A reader who finds a manifest has a whole result, unless something damaged it since, and then the
checksum of the manifest or of the file says so. The token keeps writers apart: nothing is ever written to a name twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from ipe.base.atomic import write_atomic, write_bytes
from ipe.base.sealed import sealed_bytes
from ipe.deep.machine import describe_machine, versions
from ipe.deep.records import Records
from ipe.deep.tensors import write_tensors
from ipe.errors import InputError
from ipe.experiments.declared import Job, Setting
from ipe.experiments.lease_files import remove_old_parts
from ipe.experiments.leases import Lease, LeaseLostError
from ipe.experiments.manifests import FORMAT, NAME, SCHEMA, check_outcomes, entries
from ipe.experiments.tables import results_bytes

DAMAGED = ".damaged"
_SUFFIXES = (".json", ".parquet", ".safetensors")


@dataclass(frozen=True)
class JobResult:
    """What a job has come to, to be published."""

    records: Records
    """The records of all seeds of the job."""
    outcomes: Sequence[dict[str, Any]]
    """One outcome for each seed: seed, status (done, failed or diverged), frame and reason."""
    seconds: float = 0.0
    """The seconds that the job took."""
    products: str = ""
    """The matrix products that the job was done with, native or xla; empty if that is not known."""
    networks: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """The networks, by the names that `ipe.deep.loop.Loop.networks` gives them; none if they are not kept."""


def write_publication(folder: Path, setting: Setting, job: Job, lease: Lease, result: JobResult) -> Path:
    """Write a job's files, then its manifest; a failure or a kill at any moment leaves no manifest.

    Raises:
        InputError: if a file cannot be written.
        LeaseLostError: if another process took the job over in the meantime.
    """
    data, rows = results_bytes(result.records, setting.key, job.id)
    stem = f"{job.id}-{secrets.token_hex(8)}"
    manifest, file, networks = (folder / f"{stem}{suffix}" for suffix in _SUFFIXES)
    products = {"products": result.products} if result.products else {}
    content = {
        "format": FORMAT,
        "schema": SCHEMA,
        "job": job.id,
        "setting": setting.key,
        "name": setting.name,
        "settings": setting.settings.model_dump(),
        "seeds": list(job.seeds),
        "outcomes": [dict(outcome) for outcome in result.outcomes],
        "file": file.name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "rows": rows,
        "versions": versions() | products,
        "machine": describe_machine(),
        "seconds": float(result.seconds),
        "published": time.time(),
    }
    sealed_bytes(content, "manifest")  # refused before anything is written
    try:
        _make(folder)
        write_bytes(file, data)
        if result.networks:
            content |= {"networks": _write_networks(networks, result.networks), "speeds": _speeds(result.records)}
        if lease.lost:
            raise LeaseLostError(f"{job.id}: another process has taken the job over")
        write_bytes(manifest, sealed_bytes(content, "manifest"))
    except BaseException:
        if not manifest.exists():
            for path in (file, networks):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        raise
    return manifest


def _write_networks(path: Path, networks: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    written: list[tuple[str, int]] = []
    write_atomic(path, lambda file: written.append(write_tensors(file, networks)))
    ((sha256, size),) = written
    return {"file": path.name, "sha256": sha256, "size": size}


def _speeds(records: Records) -> list[tuple[int, float]]:
    """Return the frames per second of each row of progress: they are a machine's, and not in the Parquet file."""
    arrays = records.arrays()
    frames, speeds = arrays["progress.frame"].tolist(), arrays["progress.frames_per_second"].tolist()
    return sorted(dict(zip(frames, speeds, strict=True)).items())


def check_result(job: Job, result: JobResult) -> None:
    """Refuse records or outcomes that are not those of this job at its end.

    Raises:
        InputError: naming the seed.
    """
    try:
        check_outcomes(job.seeds, result.outcomes)
    except InputError as error:
        raise InputError(f"{job.id}: {error}") from None
    arrays = result.records.arrays()
    for part in ("episodes", "progress"):
        if foreign := sorted(set(arrays[f"{part}.seed"].tolist()) - set(job.seeds)):
            raise InputError(f"{job.id}: there are {part} of seed {foreign[0]}, which is not one of its seeds")


def put_aside(path: Path) -> None:
    """Rename a damaged manifest and its files so that no reader takes them for results: to their names and `.damaged`.

    The manifest goes first: without it, the files are nobody's.
    """
    for suffix in _SUFFIXES:
        with contextlib.suppress(FileNotFoundError):
            damaged = path.with_suffix(suffix)
            os.replace(damaged, damaged.with_name(damaged.name + DAMAGED))


def remove_leftovers(folder: Path, job: str) -> None:
    """Remove what killed publishers left: files of a job without a manifest, and parts of files that are an hour old.

    Only the holder of the job's lease may do that.
    """
    paths = entries(folder)
    vouched = {path.stem for path in paths if path.suffix == ".json"}
    for path in paths:
        found = NAME.fullmatch(path.name)
        if found and found["job"] == job and path.stem not in vouched:
            with contextlib.suppress(OSError):  # what stays now goes next time
                path.unlink()
    with contextlib.suppress(OSError):
        remove_old_parts(folder)


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
