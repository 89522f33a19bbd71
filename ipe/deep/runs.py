"""A run on disk: a setting, its seeds in batches, their checkpoints, and in the end its records and networks.

::

    RUN/run.json              settings, seeds, versions, the machine, the outcome per seed
    RUN/batches/0/            checkpoints of the first batch of seeds
    RUN/episodes.parquet      written when training ends or is stopped
    RUN/progress.parquet
    RUN/networks.safetensors  `q.matrix`, `q.rest`, `policy.matrix`, `policy.rest`; first axis the seeds in run.json
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ipe.base.atomic import write_atomic
from ipe.deep.checkpoints import Checkpoint, load_checkpoint, under
from ipe.deep.machine import describe_machine, versions
from ipe.deep.records import Records, merge_records, read_run, write_records, write_run
from ipe.deep.settings import TrainingSettings, read_settings
from ipe.deep.tensors import write_tensors
from ipe.errors import InputError

_OTHER_SUMS = 4096


@dataclass(frozen=True)
class Run:
    """A folder and what its `run.json` says."""

    folder: Path
    settings: TrainingSettings
    seeds: list[int]
    batches: list[list[int]]
    content: dict[str, Any]

    def batch_folder(self, batch: int) -> Path:
        """Where a batch keeps its checkpoints."""
        return self.folder / "batches" / str(batch)


def seeds_per_batch(settings: TrainingSettings, image: bool) -> int:
    """How many seeds a process trains at once: as many as its cache serves best."""
    return 1 if image else 8 if settings.width <= 128 else 4 if settings.width <= 256 else 2


def most_seeds(settings: TrainingSettings, image: bool, actions: int) -> int:
    """How many a process can train at once with the same bytes as any other number of them.

    XLA adds up the actions' numbers in another way from 4096 of them on: all batches are to lie on one side of that.
    """
    if image:
        return 1
    numbers = settings.batch * actions
    return 1 if 2 * numbers >= _OTHER_SUMS else min(16, (_OTHER_SUMS - 1) // numbers)


def split_seeds(seeds: Sequence[int], most: int, processes: int) -> list[list[int]]:
    """The seeds in batches of at most `most`, enough of them for all processes, of two or more where possible.

    Example:
        >>> split_seeds(range(5), most=8, processes=2)
        [[0, 1, 2], [3, 4]]
    """
    wanted = min(processes, max(1, len(seeds) // min(most, 2)))
    batches = max(math.ceil(len(seeds) / most), wanted)
    return [[int(seed) for seed in part] for part in np.array_split(np.array(seeds, dtype=np.int64), batches)]


def create_run(folder: Path, settings: TrainingSettings, batches: list[list[int]]) -> Run:
    """A new run, with nothing done yet. The folder must not exist, or be empty."""
    try:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"{folder} exists and is not an empty folder; choose another, or resume the run in it")
        (folder / "batches").mkdir(parents=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {folder}: {error.strerror or error}") from None
    seeds = [seed for batch in batches for seed in batch]
    content = {
        "status": "running",
        "settings": settings.model_dump(),
        "seeds": seeds,
        "batches": batches,
        "versions": versions(),
        "machine": describe_machine(),
        "outcomes": [_outcome(seed, 0) for seed in seeds],
    }
    write_run(folder, content)
    return open_run(folder)


def open_run(folder: Path) -> Run:
    """The run in a folder.

    Raises:
        InputError: naming what is missing or does not fit.
    """
    if not folder.is_dir():
        raise InputError(f"there is no run {folder}")
    content = read_run(folder)
    try:
        settings = read_settings(content["settings"])
        seeds = [int(seed) for seed in content["seeds"]]
        batches = [[int(seed) for seed in batch] for batch in content["batches"]]
    except InputError as error:
        raise InputError(f"{folder / 'run.json'}: settings.{error}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{folder / 'run.json'}: {error!r} is missing or wrong") from None
    if sorted(seeds) != sorted(seed for batch in batches for seed in batch):
        raise InputError(f"{folder / 'run.json'}: the batches do not hold the seeds")
    return Run(folder, settings, seeds, batches, content)


def extended(run: Run, frames: int) -> Run:
    """The same run with more frames to do."""
    if frames < run.settings.frames:
        raise InputError(f"frames: the run has {run.settings.frames}, and can be given more, not fewer ({frames})")
    settings = read_settings(run.settings.model_dump() | {"frames": frames})  # refused before anything is written
    content = run.content | {"settings": settings.model_dump(), "status": "running"}
    write_run(run.folder, content)
    return open_run(run.folder)


def collect(run: Run, status: str, seconds: float) -> tuple[Run, Records]:
    """Write the records and networks that the batches' newest checkpoints hold, and the outcomes into `run.json`.

    Args:
        run: the run.
        status: done, stopped or failed.
        seconds: spent on training now.
    """
    found = {batch: load_checkpoint(run.batch_folder(batch)) for batch in range(len(run.batches))}
    checkpoints = [checkpoint for checkpoint in found.values() if checkpoint is not None]
    records = merge_records([Records.from_arrays(under("records.", own.arrays)) for own in checkpoints])
    write_records(run.folder, records)
    content = run.content | {"status": status, "seconds": run.content.get("seconds", 0.0) + seconds}
    if checkpoints:
        content["networks_sha256"] = _write_networks(run, checkpoints)
        content["networks_seeds"] = [seed for own in checkpoints for seed in own.data["seeds"]]
    outcomes = {seed: _outcome(seed, 0) for seed in run.seeds}
    for own in checkpoints:
        for outcome in own.data["outcomes"]:
            seed, going = outcome["seed"], outcome["status"] == "running"
            outcomes[seed] = _outcome(seed, own.frame) if going else outcome
    content["outcomes"] = list(outcomes.values())
    if products := " and ".join(sorted({str(own.data.get("products", "xla")) for own in checkpoints})):
        content["versions"] = {**content["versions"], "products": products}
    write_run(run.folder, content)
    return open_run(run.folder), records


def _outcome(seed: int, frame: int) -> dict[str, Any]:
    """Of a seed that is not at its end."""
    return {"seed": seed, "status": "running", "frame": frame, "reason": ""}


def _write_networks(run: Run, checkpoints: list[Checkpoint]) -> str:
    """Write them, and return the file's sha256. Those of seeds that failed or diverged, of no use, are NaN."""
    networks = {}
    lost = [end["status"] in ("failed", "diverged") for own in checkpoints for end in own.data["outcomes"]]
    for name in [f"{net}.{part}" for net in ("q", "policy") for part in ("matrix", "rest")]:
        parts = [
            own.arrays[f"state.{name}"][: len(own.data["seeds"])]
            for own in checkpoints
            if f"state.{name}" in own.arrays
        ]
        if parts:
            networks[name] = np.concatenate(parts)
            networks[name][lost] = np.nan
    written: list[tuple[str, int]] = []
    write_atomic(run.folder / "networks.safetensors", lambda file: written.append(write_tensors(file, networks)))
    return written[0][0]
