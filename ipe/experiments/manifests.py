"""Manifests of published jobs: read, checked and compared with the files that they vouch for.

What a manifest says is believed only if its checksum is right, every field is possible and its files agree with it.
`sound_manifest` is that check. `ipe status`, `ipe sweep` and the readers of results all use it, so that a result that
one of them refuses is no result to the others either, and its job is done again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from ipe.base.numbers import finite_number, seed_number, whole_number
from ipe.base.sealed import read_sealed
from ipe.base.words import one_of, short
from ipe.errors import InputError
from ipe.experiments.declared import Job
from ipe.experiments.tables import check_rows, read_results_bytes, with_speeds

FORMAT, SCHEMA = "ipe.result", 1
STATUSES = ("done", "failed", "diverged")
KINDS = ("episodes", "progress")
NAME = re.compile(r"(?P<job>.+)-(?P<token>[0-9a-f]{16})\.(?P<suffix>json|parquet|safetensors)")
"""The name of a published file."""
_LONGEST_SECONDS = 253_402_300_799  # the last second of the year 9999, the last that a date can have
_LARGEST = 2**63 - 1
_WORDS: dict[type, str] = {str: "text", list: "list", dict: "table"}

Seen = TypeVar("Seen")


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

    def check_file(self) -> None:
        """Refuse a Parquet file that is missing or of another size or number of rows; only its footer is read."""
        with _naming(self.file):
            _check_size(self.file.stat().st_size, self.size)
            check_rows(self.file, self.key, self.rows)

    def read_file(self) -> bytes:
        """Read the Parquet file, and verify its checksum.

        Raises:
            InputError: naming the file, if it is missing or damaged.
        """
        return _verified(self.file, self.sha256, self.size)

    def read_tables(self, kinds: Sequence[str] = KINDS) -> dict[str, pa.Table]:
        """Read tables of the Parquet file, after its checksum, its columns and its numbers of rows are verified.

        Args:
            kinds: which tables: episodes, progress.

        Raises:
            InputError: naming the file, if it is missing or damaged, or not what the manifest says.
        """
        data = self.read_file()
        with _naming(self.file):
            check_rows(pa.BufferReader(data), self.key, self.rows)
            tables = {kind: read_results_bytes(data, kind, self.key, self.rows[kind]) for kind in kinds}
        if "progress" in tables:
            tables["progress"] = with_speeds(tables["progress"], self.speeds)
        return tables

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
        self.read_tables()
        if self.has_networks:
            self.read_networks()


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Have the errors of a file name the file."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise InputError(f"{path}: it is missing, and its manifest is there") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from None


def _check_size(found: int, size: int) -> None:
    if found != size:
        raise InputError(f"it is damaged: {found} bytes instead of {size}")


def _verified(path: Path, sha256: str, size: int) -> bytes:
    with _naming(path):
        data = path.read_bytes()
        _check_size(len(data), size)
        if hashlib.sha256(data).hexdigest() != sha256:
            raise InputError("it is damaged: its sha256 is another than its manifest says")
    return data


def sound_manifest(path: Path, job: Job, look: Callable[[Manifest], Seen]) -> tuple[Manifest, Seen]:
    """Return the manifest of a job, and what was seen in its files; a result that fails any check is refused here.

    Args:
        path: the manifest.
        job: the job that the manifest must be of.
        look: looks at the manifest's files: `Manifest.check_file`, `Manifest.verify` or `Manifest.read_tables`.

    Raises:
        InputError: naming the file and what is wrong with it.
    """
    manifest = read_manifest(path)
    if (manifest.key, manifest.seeds) != (job.key, job.seeds):
        raise InputError(f"{path}: it is of other seeds or settings than the job of its name")
    return manifest, look(manifest)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest, verify its checksum and check every field; the files that it vouches for are not looked at.

    Raises:
        InputError: naming the file and the field, if the manifest is missing, damaged, absurd, of another format or of
            a later version.
    """
    content = read_sealed(path, FORMAT, SCHEMA)
    try:
        manifest = _manifest(path, content)
        found, file = NAME.fullmatch(path.name), _field(content, "file", str)
        if found is None or found["job"] != manifest.job or file != manifest.file.name:
            raise InputError(f"it is the manifest of {file}, under another name")
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return manifest


def _manifest(path: Path, content: dict[str, Any]) -> Manifest:
    rows = _field(content, "rows", dict)
    seeds = tuple(seed_number(seed, f"seeds[{i}]") for i, seed in enumerate(_field(content, "seeds", list)))
    outcomes = _field(content, "outcomes", list)
    check_outcomes(seeds, outcomes)
    _field(content, "versions", dict)
    _field(_field(content, "machine", dict), "cpu", str, "machine.")
    if "networks" in content:
        _check_file(_field(content, "networks", dict), "networks.")
    _check_speeds(content.get("speeds", []))
    sha256, size = _check_file(content)
    return Manifest(
        path=path,
        job=_field(content, "job", str),
        key=_field(content, "setting", str),
        seeds=seeds,
        sha256=sha256,
        size=size,
        rows={kind: whole_number(rows.get(kind), f"rows.{kind}", 0, _LARGEST) for kind in KINDS},
        outcomes=[dict(outcome) for outcome in outcomes],
        seconds=finite_number(content.get("seconds"), "seconds", 0, _LONGEST_SECONDS),
        published=finite_number(content.get("published"), "published", 0, _LONGEST_SECONDS),
        content=content,
    )


def _field(content: dict[str, Any], name: str, kind: type[Seen], where: str = "") -> Seen:
    value = content.get(name)
    if not isinstance(value, kind):
        said = "is missing" if name not in content else f"must be a {_WORDS[kind]}, found {short(value)}"
        raise InputError(f"{where}{name} {said}")
    return value


def _check_file(content: dict[str, Any], where: str = "") -> tuple[str, int]:
    """Return the checksum and the size of a file, as a manifest gives them."""
    sha256 = _field(content, "sha256", str, where)
    if not re.fullmatch("[0-9a-f]{64}", sha256):
        raise InputError(f"{where}sha256 must be 64 hexadecimal digits, found {short(sha256)}")
    return sha256, whole_number(content.get("size"), f"{where}size", 0, _LARGEST)


def _check_speeds(speeds: Any) -> None:
    if not isinstance(speeds, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in speeds):
        raise InputError(f"speeds must be pairs of a frame and a number, found {short(speeds)}")
    for i, (frame, speed) in enumerate(speeds):
        whole_number(frame, f"speeds[{i}][0]", 0, _LARGEST)
        finite_number(speed, f"speeds[{i}][1]", 0)


def check_outcomes(seeds: Sequence[int], outcomes: Sequence[Any]) -> None:
    """Refuse outcomes that are not one end for each of some seeds, in their order.

    Raises:
        InputError: naming the seed and the field.
    """
    for outcome in outcomes:
        if not isinstance(outcome, dict) or set(outcome) != {"seed", "status", "frame", "reason"}:
            found = sorted(outcome) if isinstance(outcome, dict) else short(outcome)
            raise InputError(f"an outcome has seed, status, frame and reason, found {found}")
    if (found := [outcome["seed"] for outcome in outcomes]) != list(seeds):
        raise InputError(f"the outcomes must be of the seeds {list(seeds)}, found {short(found)}")
    for outcome in outcomes:
        where = f"the outcome of seed {outcome['seed']}:"
        one_of(outcome["status"], STATUSES, f"{where} status")
        whole_number(outcome["frame"], f"{where} frame", 0, _LARGEST)
        if not isinstance(outcome["reason"], str):
            raise InputError(f"{where} reason must be a text, found {short(outcome['reason'])}")


def manifest_paths(folder: Path) -> dict[str, list[Path]]:
    """Return the manifests in the folder of a setting by job, in the order of their tokens."""
    out: dict[str, list[Path]] = {}
    for path in entries(folder):
        if (found := NAME.fullmatch(path.name)) and found["suffix"] == "json":
            out.setdefault(found["job"], []).append(path)
    return out


def entries(folder: Path) -> list[Path]:
    """Return what is in a folder, in the order of the names; nothing if there is no such folder."""
    try:
        return [folder / name for name in sorted(os.listdir(folder))]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(f"cannot read the folder {folder}: {error.strerror or error}") from None
