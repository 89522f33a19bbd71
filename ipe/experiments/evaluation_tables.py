"""The evaluations of a job as the content of one Parquet file: a row for each evaluation of each seed.

They are not in the file of the episodes and the progress, so that that file has the same bytes with and without them.
"""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq

from ipe.deep.records import Records
from ipe.errors import InputError

FILE_SCHEMA = 1
"""The version of this layout, in every file's metadata as `ipe.schema`."""
_SCHEMA = pa.schema(
    [
        pa.field("seed", pa.int64(), nullable=False),
        pa.field("frame", pa.int64(), nullable=False),
        pa.field("mean", pa.float64()),
        pa.field("returns", pa.list_(pa.float64())),
        pa.field("lengths", pa.list_(pa.int64())),
    ]
)


def evaluations_bytes(records: Records, key: str, job: str) -> tuple[bytes, int]:
    """Make the Parquet file of a job's evaluations; returns its content, and the number of rows."""
    said = {"ipe.schema": str(FILE_SCHEMA), "ipe.setting": key, "ipe.job": job}
    table = as_evaluations(records.evaluations_table()).replace_schema_metadata(said)
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue(), table.num_rows


def read_evaluations_bytes(data: bytes, key: str, rows: int) -> pa.Table:
    """Read the evaluations in a Parquet file, its page checksums verified; a file that is damaged, of another setting,
    or has another number of rows is refused."""
    try:
        with pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True) as file:
            table = file.read(use_threads=False)
    except Exception as error:  # Arrow raises half a dozen kinds for a damaged or foreign file
        said_so = str(error).strip().partition("\n")[0]
        raise InputError(f"not a readable Parquet file, or a damaged one ({said_so})") from None
    said = table.schema.metadata or {}
    if said.get(b"ipe.setting") != key.encode() or said.get(b"ipe.schema") != str(FILE_SCHEMA).encode():
        raise InputError(f"it does not say that it holds evaluations of schema {FILE_SCHEMA} and of the setting {key}")
    if table.num_rows != rows:
        raise InputError(f"it has {table.num_rows} evaluations, and should have {rows}")
    return as_evaluations(table)


def as_evaluations(table: pa.Table) -> pa.Table:
    """Return a table of evaluations with the types of a result's."""
    try:
        return table.replace_schema_metadata(None).cast(_SCHEMA)
    except (pa.ArrowInvalid, ValueError):
        raise InputError(f"its columns are not those of evaluations of schema {FILE_SCHEMA}") from None


def no_evaluations() -> pa.Table:
    """Return a table of evaluations without rows."""
    return _SCHEMA.empty_table()
