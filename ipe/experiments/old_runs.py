"""Training runs in the layout of earlier versions: read as they are, and turned into stores when they are resumed.

::

    RUN/run.json              settings, seeds, batches of seeds, versions, the machine, the outcome of each seed
    RUN/batches/0/            checkpoints of the first batch of seeds
    RUN/episodes.parquet      the records, of all seeds
    RUN/progress.parquet
    RUN/networks.safetensors  the networks; first axis the seeds that run.json names
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file

from ipe.base.atomic import write_bytes
from ipe.base.files import naming, read_json
from ipe.base.parquet import read_parquet
from ipe.deep.progress import Outcome
from ipe.deep.records import Records
from ipe.deep.settings import TrainingSettings, read_settings
from ipe.deep.tensors import hash_file
from ipe.errors import InputError
from ipe.experiments.declared import Job, Sweep
from ipe.experiments.store import CHECKPOINTS, NETWORKS, Store, description, link_folder, open_store

_FORMAT, _SCHEMA = "ipe.run", 1


@dataclass(frozen=True)
class OldRun:
    """A folder and what its `run.json` says."""

    folder: Path
    settings: TrainingSettings
    batches: list[list[int]]
    """The seeds of each batch."""
    outcomes: list[Outcome]
    """How far each seed has come."""
    content: dict[str, Any]
    """The whole content of `run.json`."""

    @property
    def sweep(self) -> Sweep:
        """The run as a sweep of one setting."""
        return Sweep.of_one(self.settings, [outcome.seed for outcome in self.outcomes])

    @property
    def jobs(self) -> list[Job]:
        """The batches as jobs of that sweep."""
        key = self.sweep.settings[0].key
        return [Job(key, tuple(batch)) for batch in self.batches]

    def table(self, kind: str) -> pa.Table:
        """Read the episodes or the progress, sorted by seed and frame; no rows if the file is not there."""
        path, empty = self.folder / f"{kind}.parquet", getattr(Records(), f"{kind}_table")()
        table = read_parquet(path) if path.exists() else empty
        if not table.schema.equals(empty.schema):
            found = ", ".join(f"{field.name} {field.type}" for field in table.schema)
            raise InputError(f"{path}: the columns must be {', '.join(empty.column_names)}; found {found}")
        return table

    def networks(self) -> tuple[list[int], dict[str, NDArray[Any]]]:
        """Read the networks; returns the seeds whose training has begun, and the arrays, whose first axis they are."""
        path, seeds = self.folder / "networks.safetensors", [outcome.seed for outcome in self.outcomes]
        begun = self.content.get("networks_seeds", seeds)
        if not isinstance(begun, list) or not set(begun) <= set(seeds):
            raise InputError(
                f"{self.folder / 'run.json'}: networks_seeds must be seeds of the run, found {begun!r:.100}"
            )
        if not path.exists():
            raise InputError(f"there is no file {path}; it is written when training ends or is stopped")
        try:
            if self.content.get("networks_sha256") not in (None, hash_file(path)):
                raise InputError(f"{path} is not what run.json describes: it is damaged, or the run was interrupted")
            return begun, load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} cannot be read: {' '.join(str(error).split())}") from None


def is_old_run(folder: Path) -> bool:
    """Whether a folder holds a training run of an earlier version."""
    return (folder / "run.json").is_file() and not (folder / "sweep.json").exists()


def read_old_run(folder: Path) -> OldRun:
    """Read the description of a training run of an earlier version; an error names the file, and what is wrong."""
    path = folder / "run.json"
    with naming(path):
        content = read_json(path)
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise InputError(f"not a run of ipe: it does not say that its format is {_FORMAT!r}")
        if content.get("schema") != _SCHEMA:
            raise InputError(f"schema must be {_SCHEMA}, found {content.get('schema')!r}")
    try:
        settings = read_settings(content["settings"])
        batches = [[int(seed) for seed in batch] for batch in content["batches"]]
        outcomes = [Outcome(**outcome) for outcome in content["outcomes"]]
    except InputError as error:
        raise InputError(f"{path}: settings.{error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: {error!r} is missing or wrong") from None
    if sorted(outcome.seed for outcome in outcomes) != sorted(seed for batch in batches for seed in batch):
        raise InputError(f"{path}: the batches do not hold the seeds")
    return OldRun(folder, settings, batches, outcomes, content)


def carry_over(run: OldRun) -> Store:
    """Turn a run of an earlier version into a store, in its folder: its checkpoints, which must be there, are the
    jobs'."""
    folders = [run.folder / "batches" / str(batch) for batch in range(len(run.batches))]
    if not any(folder.is_dir() for folder in folders):
        raise InputError(f"{run.folder} is a run of an earlier version without checkpoints; train it anew, elsewhere")
    store = Store(run.folder, run.sweep, run.jobs, (NETWORKS, CHECKPOINTS))
    for folder, job in zip(folders, store.jobs, strict=True):
        link_folder(folder, store.work_folder(job))
    write_bytes(run.folder / "sweep.json", description(store.sweep, store.jobs, store.keep))
    return open_store(run.folder)
