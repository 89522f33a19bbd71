"""Publications: a job's Parquet file and the manifest that vouches for it, written last.

`results/KEY/JOB-TOKEN.parquet` and `results/KEY/JOB-TOKEN.json`. Who finds a manifest has a whole result, unless
something damaged it since, and then the manifest's own sha256 or that of the file says so. The token keeps writers
apart: nothing is ever written to a name twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipe.base.atomic import write_atomic
from ipe.deep.machine import describe_machine, versions
from ipe.deep.records import Records
from ipe.errors import InputError
from ipe.experiments.claims import Claim, ClaimLostError
from ipe.experiments.declared import Job, Setting
from ipe.experiments.exclusive import remove_old_parts
from ipe.experiments.sealed import read_sealed, sealed_bytes
from ipe.experiments.tables import results_bytes

FORMAT, SCHEMA = "ipe.result", 1
DAMAGED = ".damaged"
STATUSES = ("done", "failed", "diverged")
_NAME = re.compile(r"(?P<job>.+)-(?P<token>[0-9a-f]{16})\.(?P<suffix>json|parquet)")


@dataclass(frozen=True)
class Manifest:
    """What a manifest says."""

    path: Path
    job: str
    key: str
    seeds: tuple[int, ...]
    sha256: str
    """Of the Parquet file."""
    size: int
    rows: dict[str, int]
    """Of episodes and of progress."""
    outcomes: list[dict[str, Any]]
    """Per seed: seed, status, frame, reason."""
    seconds: float
    """That the job took, with all its attempts as far as they were counted."""
    published: float
    """When: seconds since 1970, by the clock of the host that did."""
    content: dict[str, Any]
    """All of it: the settings, versions and machine too."""

    @property
    def file(self) -> Path:
        """The Parquet file."""
        return self.path.with_suffix(".parquet")

    def has_file(self) -> bool:
        """Whether the file is there with the right size."""
        try:
            return self.file.stat().st_size == self.size
        except OSError:
            return False

    def read_file(self) -> bytes:
        """The content of the Parquet file, its sha256 verified.

        Raises:
            InputError: naming the file, if it is missing or damaged.
        """
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            raise InputError(f"{self.file}: it is missing, and its manifest is there") from None
        except OSError as error:
            raise InputError(f"{self.file}: cannot be read: {error.strerror or error}") from None
        if len(data) != self.size:
            raise InputError(f"{self.file}: it is damaged: {len(data)} bytes instead of {self.size}")
        if hashlib.sha256(data).hexdigest() != self.sha256:
            raise InputError(f"{self.file}: it is damaged: its sha256 is another than its manifest says")
        return data


def read_manifest(path: Path) -> Manifest:
    """A manifest, verified; the file that it vouches for is not looked at.

    Raises:
        InputError: naming the file, if it is missing, damaged, of something else or of a later version.
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
    """The manifests in the folder of a setting, by job; tokens in order."""
    out: dict[str, list[Path]] = {}
    for path in _entries(folder):
        if (found := _NAME.fullmatch(path.name)) and found["suffix"] == "json":
            out.setdefault(found["job"], []).append(path)
    return out


def write_publication(
    folder: Path,
    setting: Setting,
    job: Job,
    claim: Claim,
    records: Records,
    outcomes: Sequence[dict[str, Any]],
    seconds: float,
    products: str = "",
) -> Path:
    """Write a job's Parquet file, then its manifest; a failure or a kill at any moment leaves no manifest.

    Raises:
        InputError: if a file cannot be written.
        ClaimLostError: if another took over in the meantime.
    """
    data, rows = results_bytes(records, setting.key, job.id)
    stem = folder / f"{job.id}-{secrets.token_hex(8)}"
    file, manifest = stem.with_name(f"{stem.name}.parquet"), stem.with_name(f"{stem.name}.json")
    content = {
        "format": FORMAT,
        "schema": SCHEMA,
        "job": job.id,
        "setting": setting.key,
        "name": setting.name,
        "settings": setting.settings.model_dump(),
        "seeds": list(job.seeds),
        "outcomes": [dict(outcome) for outcome in outcomes],
        "file": file.name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "rows": rows,
        "versions": versions() | ({"products": products} if products else {}),
        "machine": describe_machine(),
        "seconds": float(seconds),
        "published": time.time(),
    }
    vouched = sealed_bytes(content, "manifest")  # refused before anything is written
    try:
        _make(folder)
        write_atomic(file, lambda target: target.write(data))
        if claim.lost:
            raise ClaimLostError(f"{job.id}: another process has taken the job over")
        write_atomic(manifest, lambda target: target.write(vouched))
    except BaseException:
        if not manifest.exists():
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)
        raise
    return manifest


def check_result(job: Job, records: Records, outcomes: Sequence[dict[str, Any]]) -> None:
    """That these are the records and outcomes of a job that has come to its end.

    Raises:
        InputError: naming the seed.
    """
    if [outcome.get("seed") for outcome in outcomes] != list(job.seeds):
        found = [outcome.get("seed") for outcome in outcomes]
        raise InputError(f"{job.id}: the outcomes must be of the seeds {list(job.seeds)}, found {found}")
    for outcome in outcomes:
        if set(outcome) != {"seed", "status", "frame", "reason"}:
            raise InputError(f"{job.id}: an outcome has seed, status, frame and reason, found {sorted(outcome)}")
        if outcome["status"] not in STATUSES:
            raise InputError(f"{job.id}, seed {outcome['seed']}: the status {outcome['status']!r} is not an end")
    arrays = records.arrays()
    for part in ("episodes", "progress"):
        if foreign := sorted(set(arrays[f"{part}.seed"].tolist()) - set(job.seeds)):
            raise InputError(f"{job.id}: there are {part} of seed {foreign[0]}, which is not one of its seeds")


def put_aside(path: Path) -> None:
    """Give a damaged manifest and its file names that no reader takes for results: theirs and `.damaged`."""
    for own in (path, path.with_suffix(".parquet")):  # the manifest first: without it the file is nobody's
        with contextlib.suppress(FileNotFoundError):
            os.replace(own, own.with_name(own.name + DAMAGED))


def remove_leftovers(folder: Path, job: str) -> None:
    """Remove what killed publishers left: files of a job without a manifest, and parts of files that are an hour old.

    Only for who holds the claim on the job.
    """
    paths = _entries(folder)
    vouched = {path.stem for path in paths if path.suffix == ".json"}
    for path in paths:
        found = _NAME.fullmatch(path.name)
        orphan = found and found["job"] == job and found["suffix"] == "parquet" and path.stem not in vouched
        if orphan:
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
