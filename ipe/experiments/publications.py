"""Publications: a job's Parquet file, its networks if they are kept, and the manifest that vouches for both.

`results/KEY/JOB-TOKEN.parquet`, `results/KEY/JOB-TOKEN.safetensors` and `results/KEY/JOB-TOKEN.json`, the manifest,
which is written last. A reader who finds a manifest has a whole result, unless something damaged it since, and then the
checksum of the manifest or of the file says so. The token keeps writers apart: nothing is ever written to a name twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from ipe.base.atomic import write_atomic, write_bytes
from ipe.base.sealed import read_sealed, sealed_bytes
from ipe.deep.machine import describe_machine, versions
from ipe.deep.records import Records
from ipe.deep.tensors import write_tensors
from ipe.errors import InputError
from ipe.experiments.declared import Job, Setting
from ipe.experiments.lease_files import remove_old_parts
from ipe.experiments.leases import Lease, LeaseLostError
from ipe.experiments.tables import results_bytes

FORMAT, SCHEMA = "ipe.result", 1
DAMAGED = ".damaged"
STATUSES = ("done", "failed", "diverged")
_NAME = re.compile(r"(?P<job>.+)-(?P<token>[0-9a-f]{16})\.(?P<suffix>json|parquet|safetensors)")
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


@dataclass(frozen=True)
class Manifest:
    """What a manifest says."""

    path: Path
    job: str
    key: str
    """The key of the setting."""
    seeds: tuple[int, ...]
    sha256: str
    """The checksum of the Parquet file."""
    size: int
    """The size of the Parquet file in bytes."""
    rows: dict[str, int]
    """The number of rows of each kind: episodes and progress."""
    outcomes: list[dict[str, Any]]
    """The outcome of each seed: seed, status, frame, reason."""
    seconds: float
    """The seconds that the job took, with all its attempts as far as they were counted."""
    published: float
    """When the job was published: seconds since 1970, by the clock of the host that did it."""
    content: dict[str, Any]
    """The whole content: the settings, versions and machine too."""

    @property
    def file(self) -> Path:
        """The Parquet file."""
        return self.path.with_suffix(".parquet")

    @property
    def has_networks(self) -> bool:
        """Whether the networks were kept."""
        return "networks" in self.content

    @property
    def speeds(self) -> dict[int, float]:
        """The frames per second by the frame of a row of progress, if they were kept."""
        return {int(frame): float(speed) for frame, speed in self.content.get("speeds", [])}

    def check_size(self) -> None:
        """Refuse a Parquet file that is missing or of another size, without reading it."""
        with _naming(self.file):
            _check_size(self.file, self.file.stat().st_size, self.size)

    def read_file(self) -> bytes:
        """Read the Parquet file, and verify its checksum.

        Raises:
            InputError: naming the file, if it is missing or damaged.
        """
        return _verified(self.file, self.sha256, self.size)

    def read_networks(self) -> dict[str, NDArray[Any]]:
        """Read the networks, and verify the checksum of their file.

        Raises:
            InputError: naming the file, if it is missing or damaged, or if the networks were not kept.
        """
        path = self.path.with_suffix(".safetensors")
        if not self.has_networks:
            raise InputError(f"{path}: the networks of this job were not kept")
        kept = self.content["networks"]
        try:
            return load(_verified(path, str(kept["sha256"]), int(kept["size"])))
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None

    def verify(self) -> None:
        """Refuse a result of which a file is missing or damaged."""
        self.read_file()
        if self.has_networks:
            self.read_networks()


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: it is missing, and its manifest is there") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _check_size(path: Path, found: int, size: int) -> None:
    if found != size:
        raise InputError(f"{path}: it is damaged: {found} bytes instead of {size}")


def _verified(path: Path, sha256: str, size: int) -> bytes:
    with _naming(path):
        data = path.read_bytes()
    _check_size(path, len(data), size)
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"{path}: it is damaged: its sha256 is another than its manifest says")
    return data


def read_manifest(path: Path) -> Manifest:
    """Read a manifest, and verify its checksum; the files that it vouches for are not looked at.

    Raises:
        InputError: naming the file, if it is missing, damaged, of another format or of a later version.
    """
    content = read_sealed(path, FORMAT, SCHEMA)
    try:
        manifest = Manifest(
            path=path,
            job=str(content["job"]),
            key=str(content["setting"]),
            seeds=tuple(int(seed) for seed in content["seeds"]),
            sha256=str(content["sha256"]),
            size=int(content["size"]),
            rows={kind: int(content["rows"][kind]) for kind in ("episodes", "progress")},
            outcomes=[dict(outcome) for outcome in content["outcomes"]],
            seconds=float(content["seconds"]),
            published=float(content["published"]),
            content=content,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {error!r} is missing or wrong") from None
    if (found := _NAME.fullmatch(path.name)) is None or found["job"] != manifest.job or content["file"] != _file(path):
        raise InputError(f"{path}: it is the manifest of {content['file']}, under another name")
    return manifest


def manifest_paths(folder: Path) -> dict[str, list[Path]]:
    """Return the manifests in the folder of a setting by job, in the order of their tokens."""
    out: dict[str, list[Path]] = {}
    for path in _entries(folder):
        if (found := _NAME.fullmatch(path.name)) and found["suffix"] == "json":
            out.setdefault(found["job"], []).append(path)
    return out


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
    if (found := [outcome.get("seed") for outcome in result.outcomes]) != list(job.seeds):
        raise InputError(f"{job.id}: the outcomes must be of the seeds {list(job.seeds)}, found {found}")
    for outcome in result.outcomes:
        if set(outcome) != {"seed", "status", "frame", "reason"}:
            raise InputError(f"{job.id}: an outcome has seed, status, frame and reason, found {sorted(outcome)}")
        if outcome["status"] not in STATUSES:
            raise InputError(f"{job.id}, seed {outcome['seed']}: the status {outcome['status']!r} is not an end")
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
    paths = _entries(folder)
    vouched = {path.stem for path in paths if path.suffix == ".json"}
    for path in paths:
        found = _NAME.fullmatch(path.name)
        if found and found["job"] == job and path.stem not in vouched:
            with contextlib.suppress(OSError):  # what stays now goes next time
                path.unlink()
    with contextlib.suppress(OSError):
        remove_old_parts(folder)


def _file(path: Path) -> str:
    return path.with_suffix(".parquet").name


def _entries(folder: Path) -> list[Path]:
    try:
        return [folder / name for name in sorted(os.listdir(folder))]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read the folder {folder}: {error.strerror or error}") from None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
