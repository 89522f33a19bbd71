"""Publications: a job's Parquet file, its networks if they are kept, and the manifest that vouches for both.

`results/KEY/JOB-TOKEN.parquet`, `results/KEY/JOB-TOKEN.safetensors` and `results/KEY/JOB-TOKEN.json`, the manifest,
which is written last. Of a job that was evaluated while it trained there are `results/KEY/JOB-TOKEN.evaluations`, a
Parquet file too, and `results/KEY/JOB-TOKEN.best`, its best networks, if networks are kept; of one that keeps its
transitions, `results/KEY/JOB-TOKEN.transitions`. A reader who finds a manifest has a whole result, unless something
damaged it since, and then the checksum of the manifest or of the file says so. The token keeps writers apart: nothing
is ever written to a name twice.

What a manifest says is believed only if its checksum is right, every field is possible and its files agree with it.
`sound_manifest` is that check. `ipe status`, `ipe sweep` and the readers of results all use it, so that a result that
one of them refuses is no result to the others either, and its job is done again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from ipe.base.atomic import remove_old_parts, write_bytes
from ipe.base.files import entries, naming
from ipe.base.numbers import finite_number, seed_number, whole_number
from ipe.base.sealed import read_sealed, sealed_bytes
from ipe.base.words import one_of, short
from ipe.deep.data import FIELDS, Data
from ipe.deep.evaluating import Evaluating, Kept
from ipe.deep.machine import describe_machine, versions
from ipe.deep.records import Records
from ipe.deep.tensors import write_tensors
from ipe.errors import InputError
from ipe.experiments.declared import Job, Setting
from ipe.experiments.evaluation_tables import evaluations_bytes, no_evaluations, read_evaluations_bytes
from ipe.experiments.leases import Lease, LeaseLostError
from ipe.experiments.tables import check_rows, read_results_bytes, results_bytes, with_speeds

FORMAT, SCHEMA = "ipe.result", 1
STATUSES = ("done", "failed", "diverged")
KINDS = ("episodes", "progress")
NAME = re.compile(
    r"(?P<job>.+)-(?P<token>[0-9a-f]{16})\.(?P<suffix>json|parquet|safetensors|evaluations|best|transitions)"
)
"""The name of a published file."""
_LONGEST_SECONDS = 253_402_300_799  # the last second of the year 9999, the last that a date can have
_LARGEST = 2**63 - 1
_WORDS: dict[type, str] = {str: "text", list: "list", dict: "table"}
DAMAGED = ".damaged"
_SUFFIXES = (".json", ".parquet", ".safetensors", ".evaluations", ".best", ".transitions")

Seen = TypeVar("Seen")


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
    evaluating: Evaluating | None = None
    """When the job was evaluated while it trained; None if it was not."""
    best: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    """The networks of the seeds' best evaluations, as `ipe.deep.evaluating.Kept.arrays` gives them; none if they are
    not kept, or if there are none."""
    transitions: Mapping[int, Data] = field(default_factory=dict)
    """The transitions of each seed that has some; none if they are not kept."""


def write_publication(folder: Path, setting: Setting, job: Job, lease: Lease, result: JobResult) -> Path:
    """Write a job's files, then its manifest; a failure or a kill at any moment leaves no manifest. If another process
    took the job over in the meantime, a `LeaseLostError` says so."""
    data, rows = results_bytes(result.records, setting.key, job.id)
    stem = f"{job.id}-{secrets.token_hex(8)}"
    manifest, file, networks, evaluations, best, transitions = (folder / f"{stem}{suffix}" for suffix in _SUFFIXES)
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
        folder.mkdir(parents=True, exist_ok=True)
        write_bytes(file, data)
        if result.networks:
            sha256, size = write_tensors(networks, result.networks)
            content["networks"] = {"file": networks.name, "sha256": sha256, "size": size}
            content["speeds"] = _speeds(result.records)
        if result.evaluating is not None:
            data, count = evaluations_bytes(result.records, setting.key, job.id)
            write_bytes(evaluations, data)
            described = {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "rows": count}
            content["evaluations"] = {"file": evaluations.name, **described, **result.evaluating.plain()}
        if result.best:
            sha256, size = write_tensors(best, result.best)
            content["best"] = {"file": best.name, "sha256": sha256, "size": size}
        if result.transitions:
            named = {
                f"{seed}.{name}": a for seed, each in result.transitions.items() for name, a in each.arrays().items()
            }
            sha256, size = write_tensors(transitions, named)
            content["transitions"] = {"file": transitions.name, "sha256": sha256, "size": size}
        if lease.lost:
            raise LeaseLostError(f"{job.id}: another process has taken the job over")
        write_bytes(manifest, sealed_bytes(content, "manifest"))
    except BaseException:
        if not manifest.exists():
            for path in (file, networks, evaluations, best, transitions):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
        raise
    return manifest


def _speeds(records: Records) -> list[tuple[int, float]]:
    """Return the frames per second of each row of progress: they are a machine's, and not in the Parquet file."""
    arrays = records.arrays()
    frames, speeds = arrays["progress.frame"].tolist(), arrays["progress.frames_per_second"].tolist()
    return sorted(dict(zip(frames, speeds, strict=True)).items())


def check_result(job: Job, result: JobResult) -> None:
    """Refuse records or outcomes that are not those of this job at its end; the error names the seed."""
    with naming(job.id):
        check_outcomes(job.seeds, result.outcomes)
    arrays = result.records.arrays()
    for part in sorted({name.partition(".")[0] for name in arrays}):
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
        """Read the Parquet file, and verify its checksum; an error names the file."""
        return _verified(self.file, self.sha256, self.size)

    def read_tables(self, kinds: Sequence[str] = KINDS) -> dict[str, pa.Table]:
        """Read some tables of the Parquet file, after its checksum, its columns and its numbers of rows are verified;
        an error names the file."""
        data = self.read_file()
        with _naming(self.file):
            check_rows(pa.BufferReader(data), self.key, self.rows)
            tables = {kind: read_results_bytes(data, kind, self.key, self.rows[kind]) for kind in kinds}
        if "progress" in tables:
            tables["progress"] = with_speeds(tables["progress"], self.speeds)
        return tables

    def read_networks(self) -> dict[str, NDArray[Any]]:
        """Read the networks, if they were kept, and verify the checksum of their file; an error names the file."""
        path = self.path.with_suffix(".safetensors")
        if not self.has_networks:
            raise InputError(f"{path}: the networks of this job were not kept")
        return self._tensors("networks", ".safetensors")

    def read_evaluations(self) -> pa.Table:
        """Read the evaluations, after the checksum of their file is verified; no rows if the job was not evaluated. An
        error names the file."""
        if "evaluations" not in self.content:
            return no_evaluations()
        path, kept = self.path.with_suffix(".evaluations"), self.content["evaluations"]
        data = _verified(path, str(kept["sha256"]), int(kept["size"]))
        with _naming(path):
            return read_evaluations_bytes(data, self.key, int(kept["rows"]))

    def read_best(self) -> Kept:
        """Read the networks of the best evaluations, and verify the checksum of their file; no copies if there are
        none. An error names the file."""
        arrays = self._tensors("best", ".best") if "best" in self.content else {}
        return Kept.from_arrays(len(self.seeds), arrays)

    def read_transitions(self) -> dict[int, Data]:
        """Read the transitions of each seed that has some, and verify the checksum of their file; none if they were not
        kept. An error names the file."""
        arrays = self._tensors("transitions", ".transitions") if "transitions" in self.content else {}
        with naming(self.path.with_suffix(".transitions")):
            try:
                seeds = [seed for seed in self.seeds if f"{seed}.start" in arrays]
                return {seed: Data(**{name: arrays[f"{seed}.{name}"] for name in FIELDS}) for seed in seeds}
            except KeyError as error:
                raise InputError(f"the array {error} is missing") from None

    def _tensors(self, name: str, suffix: str) -> dict[str, NDArray[Any]]:
        path, kept = self.path.with_suffix(suffix), self.content[name]
        try:
            return load(_verified(path, str(kept["sha256"]), int(kept["size"])))
        except (SafetensorError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path}: cannot be read: {' '.join(str(error).split())}") from None

    def verify(self) -> None:
        """Refuse a result of which a file is missing or damaged."""
        self.read_tables()
        self.read_evaluations()
        if self.has_networks:
            self.read_networks()
        self.read_best()
        self.read_transitions()


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Have the errors of a file name the file."""
    with naming(path):
        try:
            yield
        except FileNotFoundError:
            raise InputError("it is missing, and its manifest is there") from None
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}") from None


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
    """Return the manifest of a job, and what `look` saw in its files: `Manifest.check_file`, `Manifest.verify` or
    `Manifest.read_tables`. A result that fails any check is refused here; the error names the file."""
    manifest = read_manifest(path)
    if (manifest.key, manifest.seeds) != (job.key, job.seeds):
        raise InputError(f"{path}: it is of other seeds or settings than the job of its name")
    return manifest, look(manifest)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest, verify its checksum and check every field; the files that it vouches for are not looked at. A
    manifest that is missing, damaged, absurd, of another format or of a later version is refused."""
    content = read_sealed(path, FORMAT, SCHEMA)
    with naming(path):
        manifest = _manifest(path, content)
        found, file = NAME.fullmatch(path.name), _field(content, "file", str)
        if found is None or found["job"] != manifest.job or file != manifest.file.name:
            raise InputError(f"it is the manifest of {file}, under another name")
    return manifest


def _manifest(path: Path, content: dict[str, Any]) -> Manifest:
    rows = _field(content, "rows", dict)
    seeds = tuple(seed_number(seed, f"seeds[{i}]") for i, seed in enumerate(_field(content, "seeds", list)))
    outcomes = _field(content, "outcomes", list)
    check_outcomes(seeds, outcomes)
    _field(content, "versions", dict)
    _field(_field(content, "machine", dict), "cpu", str, "machine.")
    for name in ("networks", "evaluations", "best", "transitions"):
        if name in content:
            _check_file(_field(content, name, dict), f"{name}.")
    if "evaluations" in content:
        whole_number(content["evaluations"].get("rows"), "evaluations.rows", 0, _LARGEST)
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
    """Refuse outcomes that are not one end for each of some seeds, in their order; the error names the seed and the
    field."""
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
