"""Training runs in the layout of earlier versions, written for tests as those versions wrote them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ipe.base.atomic import write_bytes
from ipe.base.parquet import parquet_bytes, read_parquet
from ipe.deep.machine import describe_machine, versions
from ipe.deep.records import Records
from ipe.deep.settings import TrainingSettings


@dataclass
class OldRun:
    """A run and what its `run.json` says."""

    folder: Path
    content: dict[str, Any]


def create_run(folder: Path, settings: TrainingSettings, batches: list[list[int]]) -> OldRun:
    """A new run, with nothing done yet."""
    (folder / "batches").mkdir(parents=True)
    seeds = [seed for batch in batches for seed in batch]
    content = {
        "status": "running",
        "settings": settings.model_dump(),
        "seeds": seeds,
        "batches": batches,
        "versions": versions(),
        "machine": describe_machine(),
        "outcomes": [{"seed": seed, "status": "running", "frame": 0, "reason": ""} for seed in seeds],
    }
    write_run(folder, content)
    return OldRun(folder, content)


def write_run(folder: Path, content: dict[str, Any]) -> None:
    """Write `run.json`."""
    whole = {"format": "ipe.run", "schema": 1, **content}
    write_bytes(folder / "run.json", f"{json.dumps(whole, indent=1)}\n".encode())


def read_run(folder: Path) -> dict[str, Any]:
    """What `run.json` says."""
    content: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return {name: value for name, value in content.items() if name not in ("format", "schema")}


def write_records(folder: Path, records: Records) -> None:
    """Write `episodes.parquet` and `progress.parquet`."""
    for name, table in (("episodes", records.episodes_table()), ("progress", records.progress_table())):
        write_bytes(folder / f"{name}.parquet", parquet_bytes(table))


def read_episodes(folder: Path) -> pa.Table:
    """The table of `episodes.parquet`."""
    return read_parquet(folder / "episodes.parquet")
