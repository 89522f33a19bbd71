"""The files of the tabular part: a verified table per contender, made of pieces that survive a stop.

::

    FOLDER/tabular/epsilon-ipe.parquet     all runs of a contender, page checksums on
    FOLDER/tabular/epsilon-ipe.json        what they depend on, versions, processor seconds, the table's checksum
    FOLDER/tabular/pieces/epsilon-ipe/     while a contender is being run: a table for each task that is done

A manifest is written last and never changed. Results of another declaration are refused, not mixed.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ipe.base.atomic import write_bytes
from ipe.base.parquet import parquet_bytes, read_parquet
from ipe.base.sealed import read_sealed, sealed_bytes
from ipe.deep.machine import describe_machine, versions
from ipe.errors import InputError
from ipe.studies.exploration.settings import Contender, TabularSettings, Task
from ipe.studies.exploration.simulating import declaration, simulated

FORMAT, SCHEMA = "ipe.exploration", 1
_SECONDS, _DECLARED = b"seconds", b"declaration"


@dataclass(frozen=True)
class Runs:
    """All runs of a contender, verified.

    Attributes:
        contender: the contender's name.
        table: task, value, alpha_q, run, score, greedy.
        manifest: what the runs depend on and were made with.
    """

    contender: str
    table: pa.Table
    manifest: dict[str, Any]

    @property
    def seconds(self) -> float:
        """The processor seconds that the runs took."""
        return float(sum(task["seconds"] for task in self.manifest["tasks"]))


def run_contender(
    folder: Path,
    contender: Contender,
    tasks: Sequence[Task],
    settings: TabularSettings,
    progress: Callable[[str, int, int], None] | None = None,
) -> Runs:
    """Run a contender on all tasks, or go on with it, and write its table; what is there is read and not run again.
    `progress` is called with the task that begins, how many tasks are done, and how many there are. Runs of this
    contender that were declared otherwise are refused."""
    declared = [declaration(contender, task, settings) for task in tasks]
    if (folder / f"{contender.name}.json").exists():
        found = read_runs(folder, contender.name)
        _check_same(folder, contender, declared, [each["declared"] for each in found.manifest["tasks"]])
        return found
    pieces = folder / "pieces" / contender.name
    pieces.mkdir(parents=True, exist_ok=True)
    tables = []
    for k, (task, content) in enumerate(zip(tasks, declared, strict=True)):
        if progress is not None:
            progress(task.name, k, len(tasks))
        tables.append(_piece(pieces / f"{task.name}.parquet", contender, task, settings, content))
    whole = pa.concat_tables(table.replace_schema_metadata(None) for table in tables)
    data = parquet_bytes(whole)
    write_bytes(folder / f"{contender.name}.parquet", data)
    content = {
        "format": FORMAT,
        "schema": SCHEMA,
        "contender": contender.name,
        "sha256": hashlib.sha256(data).hexdigest(),
        "rows": whole.num_rows,
        "tasks": [
            {"declared": each, "seconds": float(table.schema.metadata[_SECONDS])}
            for each, table in zip(declared, tables, strict=True)
        ],
        "versions": versions(),
        "machine": {"cpu": describe_machine()["cpu"]},
    }
    write_bytes(folder / f"{contender.name}.json", sealed_bytes(content, "manifest"))
    shutil.rmtree(pieces)
    return read_runs(folder, contender.name)


def read_runs(folder: Path, name: str) -> Runs:
    """The runs of a contender, every byte verified; an error names the file that is missing or damaged."""
    manifest = read_sealed(folder / f"{name}.json", FORMAT, SCHEMA)
    path = folder / f"{name}.parquet"
    if not path.is_file():
        raise InputError(f"{path}: there is no such file, though {name}.json describes it")
    if hashlib.sha256(path.read_bytes()).hexdigest() != manifest["sha256"]:
        raise InputError(f"{path}: it is damaged: its checksum is not the one in {name}.json")
    return Runs(name, read_parquet(path), manifest)


def _piece(
    path: Path, contender: Contender, task: Task, settings: TabularSettings, content: dict[str, Any]
) -> pa.Table:
    """The table of one task, from its file if that is of the same declaration, otherwise run."""
    text = json.dumps(content, sort_keys=True).encode()
    if path.is_file():
        table = read_parquet(path)
        if (table.schema.metadata or {}).get(_DECLARED) == text:
            return table
    start = time.process_time()
    columns = simulated(contender, task, settings)
    seconds = time.process_time() - start
    arrays = {
        name: pa.array(column).dictionary_encode() if column.dtype.kind == "U" else pa.array(column)
        for name, column in ((name, np.asarray(column)) for name, column in columns.items())
    }
    table = pa.table(arrays).replace_schema_metadata({_DECLARED: text, _SECONDS: repr(seconds).encode()})
    write_bytes(path, parquet_bytes(table))
    return read_parquet(path)


def _check_same(folder: Path, contender: Contender, declared: Sequence[Any], found: Sequence[Any]) -> None:
    if list(declared) == list(found):
        return
    at = next(
        (k for k, (a, b) in enumerate(zip(declared, found, strict=False)) if a != b), min(len(declared), len(found))
    )
    raise InputError(
        f"{folder / contender.name}.json holds runs that were declared otherwise (the first difference is at its task "
        f"{at}); give another folder, or remove this contender's two files to run it anew"
    )
