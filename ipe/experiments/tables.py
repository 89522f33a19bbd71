"""The records of a job as the content of one Parquet file: the episodes, then the progress, in one table.

Column `kind` says which a row is, and is null-free like `seed` and `frame`; the columns of the other kind are null. The
kinds are in row groups of their own, so that a reader of episodes skips the rest. The same records give the same bytes:
`frames_per_second`, which is a machine's and not a run's, is left out.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ipe.deep.records import MEASURED, SPEED, Records
from ipe.errors import InputError

FILE_SCHEMA = 1
"""The version of this layout, in every file's metadata as `ipe.schema`."""
COLUMNS = {"episodes": ("seed", "frame", "return", "length"), "progress": ("seed", "frame", *MEASURED)}
"""The columns of each kind of rows. The speed, which is a machine's, is in the manifest, not in the Parquet file."""
_KINDS = {"episodes": "episode", "progress": "progress"}
_FIELDS = [
    pa.field("kind", pa.string(), nullable=False),
    pa.field("seed", pa.int64(), nullable=False),
    pa.field("frame", pa.int64(), nullable=False),
    pa.field("return", pa.float64()),
    pa.field("length", pa.int64()),
    *(pa.field(name, pa.float64()) for name in MEASURED),
]
# Half the size of the default's, and read no slower.
_ENCODINGS = dict.fromkeys(("frame", "length"), "DELTA_BINARY_PACKED") | dict.fromkeys(
    ("return", *MEASURED), "BYTE_STREAM_SPLIT"
)


def results_bytes(records: Records, key: str, job: str) -> tuple[bytes, dict[str, int]]:
    """Make the Parquet file of a job's records; returns its content, and the number of rows by kind."""
    tables = {"episodes": records.episodes_table(), "progress": records.progress_table()}
    rows = {kind: table.num_rows for kind, table in tables.items()}
    said = {"ipe.schema": FILE_SCHEMA, "ipe.setting": key, "ipe.job": job}
    said |= {f"ipe.{kind}": count for kind, count in rows.items()}
    schema = pa.schema(_FIELDS, metadata={name: str(value) for name, value in said.items()})
    buffer = io.BytesIO()
    with pq.ParquetWriter(
        buffer,
        schema,
        compression="zstd",
        use_dictionary=["kind", "seed"],
        column_encoding=_ENCODINGS,
        write_page_checksum=True,
    ) as writer:
        for kind, table in tables.items():
            if table.num_rows:
                writer.write_table(_widened(table, kind, schema), row_group_size=table.num_rows)
    return buffer.getvalue(), rows


def read_results_bytes(data: bytes, kind: str, key: str, rows: int) -> pa.Table:
    """Read one kind of rows of a Parquet file, its page checksums verified; a file that is damaged, of another setting,
    or has another number of rows is refused."""
    with _opened(pa.BufferReader(data), key) as file:
        table = file.read_row_groups(_groups(file, kind), columns=list(COLUMNS[kind]), use_threads=False)
    _check_count(kind, table.num_rows, rows)
    return table.replace_schema_metadata(None)


def check_rows(source: Any, key: str, rows: Mapping[str, int]) -> None:
    """Refuse a Parquet file whose footer does not have the schema, the setting or the numbers of rows that it should.
    The source is a path, or Arrow's reader of the content."""
    with _opened(source, key) as file:
        for kind, count in rows.items():
            groups = _groups(file, kind)
            _check_count(kind, sum(file.metadata.row_group(group).num_rows for group in groups), count)


@contextlib.contextmanager
def _opened(source: Any, key: str) -> Iterator[pq.ParquetFile]:
    try:
        with pq.ParquetFile(source, page_checksum_verification=True) as file:
            said = file.schema_arrow.metadata or {}
            if said.get(b"ipe.setting") != key.encode() or said.get(b"ipe.schema") != str(FILE_SCHEMA).encode():
                raise InputError(f"it does not say that it is of schema {FILE_SCHEMA} and of the setting {key}")
            if not file.schema_arrow.equals(pa.schema(_FIELDS)):
                raise InputError(f"its columns are not those of schema {FILE_SCHEMA}")
            yield file
    except InputError:
        raise
    except Exception as error:  # Arrow raises half a dozen kinds for a damaged or foreign file
        said_so = str(error).strip().partition("\n")[0]
        raise InputError(f"not a readable Parquet file, or a damaged one ({said_so})") from None


def _check_count(kind: str, found: int, expected: int) -> None:
    if found != expected:
        raise InputError(f"it has {found} rows of {kind}, and should have {expected}")


def empty_table(kind: str) -> pa.Table:
    """Return a table of one kind without rows; of the progress, with the frames per second."""
    fields = {field.name: field for field in _FIELDS} | {SPEED: pa.field(SPEED, pa.float64())}
    names = (*COLUMNS[kind], SPEED) if kind == "progress" else COLUMNS[kind]
    return pa.schema([fields[name] for name in names]).empty_table()


def with_speeds(progress: pa.Table, speeds: Mapping[int, float]) -> pa.Table:
    """Return a table of progress with the frames per second, given by frame; null where they are not known."""
    found = [speeds.get(frame) for frame in progress["frame"].to_pylist()] if speeds else [None] * len(progress)
    return progress.append_column(SPEED, pa.array(found, pa.float64()))


def as_results(table: pa.Table, kind: str) -> pa.Table:
    """Return a table of records that does not come from a result's file in the form of one that does."""
    return table.cast(empty_table(kind).schema)


def _widened(table: pa.Table, kind: str, schema: pa.Schema) -> pa.Table:
    rows = table.num_rows
    columns = []
    for field in schema:
        if field.name == "kind":
            columns.append(pa.array(np.full(rows, _KINDS[kind], dtype=object), pa.string()))
        elif field.name in COLUMNS[kind]:
            columns.append(table[field.name].combine_chunks())
        else:
            columns.append(pa.nulls(rows, field.type))
    return pa.table(columns, schema=schema)


def _groups(file: pq.ParquetFile, kind: str) -> list[int]:
    """Return the row groups of a kind: episodes come first."""
    episodes = int(file.schema_arrow.metadata[b"ipe.episodes"])
    before, groups = 0, []
    for group in range(file.metadata.num_row_groups):
        if (before < episodes) == (kind == "episodes"):
            groups.append(group)
        before += file.metadata.row_group(group).num_rows
    return groups
