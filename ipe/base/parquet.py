"""Tables in Parquet files: the same table gives the same bytes, and a damaged page is noticed."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ipe.errors import InputError


def parquet_bytes(table: Mapping[str, NDArray[Any]] | pa.Table) -> bytes:
    """A table, or columns by name, as the content of a Parquet file with page checksums: the same table gives the same
    bytes."""
    if not isinstance(table, pa.Table):
        table = pa.table({name: pa.array(column) for name, column in table.items()})
    buffer = io.BytesIO()
    # In one chunk: where a table was glued together would show in the pages.
    pq.write_table(table.combine_chunks(), buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


def read_parquet(path: str | os.PathLike[str]) -> pa.Table:
    """The table of a Parquet file, its page checksums verified.

    Raises:
        InputError: naming the file, if it is missing, damaged, or not one.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: it is a folder, not a file" if Path(path).is_dir() else f"{path}: no such file")
    try:
        # Not `read_table`, which takes `seed=3` in the path for a column.
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            table = file.read(use_threads=False)
        table.validate(full=True)
    except Exception as error:  # Arrow raises half a dozen kinds for a damaged or foreign file
        said = str(error).strip().partition("\n")[0]
        raise InputError(f"{path}: not a readable Parquet file, or a damaged one ({said})") from None
    return table
