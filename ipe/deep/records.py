"""What a batch of seeds leaves behind: its episodes, its progress, and a description of the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ipe.base.atomic import write_bytes
from ipe.base.files import naming, read_json
from ipe.base.parquet import parquet_bytes, read_parquet
from ipe.deep.plain import encode, json_text
from ipe.errors import InputError

RUN_FORMAT = "ipe.run"
RUN_SCHEMA = 1

_EPISODES = ("seed", "frame", "return", "length")
_PROGRESS = ("seed", "frame", "epsilon", "entropy", "td_error", "ipe_error", "q_mean", "frames_per_second")
_INTEGERS = ("seed", "frame", "length")


class _Columns:
    """Columns of equal length that grow by rows, in amortised constant time."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.count = 0
        self.columns = {name: np.empty(64, np.int64 if name in _INTEGERS else np.float64) for name in names}

    def append(self, *row: float) -> None:
        if self.count == self.columns["seed"].size:
            self.reserve(2 * self.count)
        for column, value in zip(self.columns.values(), row, strict=True):
            column[self.count] = value
        self.count += 1

    def reserve(self, size: int) -> None:
        for name, column in self.columns.items():
            self.columns[name] = np.empty(size, column.dtype)
            self.columns[name][: self.count] = column[: self.count]

    def extend(self, other: Mapping[str, NDArray[Any]]) -> None:
        total = self.count + other["seed"].size
        if total > self.columns["seed"].size:
            self.reserve(total)
        for name, column in self.columns.items():
            column[self.count : total] = other[name]
        self.count = total

    def keep(self, which: NDArray[np.bool_]) -> None:
        for name, column in self.columns.items():
            self.columns[name][: which.sum()] = column[: self.count][which]
        self.count = int(which.sum())

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: column[: self.count].copy() for name, column in self.columns.items()}

    def table(self) -> pa.Table:
        """Sorted by seed and frame; a NaN of the progress, a quantity that the run does not have, becomes null."""
        order = np.lexsort((self.columns["frame"][: self.count], self.columns["seed"][: self.count]))
        columns = {name: column[: self.count][order] for name, column in self.columns.items()}
        nulls = "return" not in self.names
        return pa.table({name: pa.array(column, from_pandas=nulls) for name, column in columns.items()})


class Records:
    """The episodes and the progress of a batch of seeds, as they come.

    Example:
        >>> records = Records()
        >>> records.episode(seed=1, frame=180, ret=-1.5, length=100)
        >>> records.episode(seed=0, frame=90, ret=2.0, length=90)
        >>> records.episodes_table().to_pydict()
        {'seed': [0, 1], 'frame': [90, 180], 'return': [2.0, -1.5], 'length': [90, 100]}
    """

    def __init__(self) -> None:
        self._parts = {"episodes": _Columns(_EPISODES), "progress": _Columns(_PROGRESS)}

    def episode(self, seed: int, frame: int, ret: float, length: int) -> None:
        """Add an episode that has ended.

        Args:
            seed: whose it is.
            frame: how many frames that seed had done when it ended, its last one included.
            ret: the sum of its rewards, not discounted.
            length: its frames.
        """
        self._parts["episodes"].append(seed, frame, ret, length)

    def progress(
        self,
        seed: int,
        frame: int,
        epsilon: float,
        entropy: float,
        td_error: float,
        ipe_error: float,
        q_mean: float,
        frames_per_second: float,
    ) -> None:
        """Add what the learner measured, NaN where it does not apply.

        Args:
            seed: whose it is.
            frame: how many frames that seed had done.
            epsilon: the exploration rate.
            entropy: of the policy network.
            td_error: of the value update.
            ipe_error: of the policy update.
            q_mean: of the Q-network over a minibatch.
            frames_per_second: of that seed.
        """
        row = (epsilon, entropy, td_error, ipe_error, q_mean, frames_per_second)
        self._parts["progress"].append(seed, frame, *row)

    def drop_from(self, seed: int, frame: int) -> None:
        """Forget what a seed did from a frame on: its learner had diverged there, which was noticed later."""
        for columns in self._parts.values():
            own = columns.columns["seed"][: columns.count] == seed
            columns.keep(~(own & (columns.columns["frame"][: columns.count] >= frame)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it in the order in which it came, for a checkpoint: `episodes.seed`, ..., int64 and float64."""
        parts = self._parts.items()
        return {f"{part}.{name}": column for part, columns in parts for name, column in columns.arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The records that gave these `arrays()`; other names in them are left alone.

        Raises:
            InputError: naming the array that is missing, or of another type or length than its neighbours.
        """
        out = cls()
        for part, columns in out._parts.items():
            columns.extend({name: _column(arrays, part, name, empty) for name, empty in columns.columns.items()})
        return out

    def episodes_table(self) -> pa.Table:
        """The episodes by seed and frame: seed, frame, return, length."""
        return self._parts["episodes"].table()

    def progress_table(self) -> pa.Table:
        """The progress by seed and frame, null where something does not apply."""
        return self._parts["progress"].table()


def _column(arrays: Mapping[str, NDArray[Any]], part: str, name: str, like: NDArray[Any]) -> NDArray[Any]:
    field, first = f"{part}.{name}", f"{part}.seed"
    for needed in (first, field):
        if needed not in arrays:
            raise InputError(f"the array {needed} is missing")
    array, rows = arrays[field], arrays[first].size
    if array.dtype != like.dtype or array.shape != (rows,):
        found = f"found {array.dtype} of shape {array.shape}"
        raise InputError(f"the array {field} must be {like.dtype} of shape ({rows},), {found}")
    return array


def merge_records(parts: Sequence[Records]) -> Records:
    """The records of several batches of seeds as one."""
    out = Records()
    for part in parts:
        for name, columns in part._parts.items():
            out._parts[name].extend(columns.arrays())
    return out


def write_records(folder: Path, records: Records) -> None:
    """Write `episodes.parquet` and `progress.parquet`, each at once: the same records give the same bytes.

    Args:
        folder: of the run; it must exist.
        records: what to write, replacing what was there.
    """
    for name, table in (("episodes", records.episodes_table()), ("progress", records.progress_table())):
        write_bytes(folder / f"{name}.parquet", parquet_bytes(table))


def read_episodes(run: Path) -> pa.Table:
    """The episodes of a run by seed and frame: seed, frame, return, length.

    Args:
        run: its folder.

    Raises:
        InputError: naming the file, if it is missing, damaged, or another table.
    """
    return _read_table(run / "episodes.parquet", Records().episodes_table())


def read_progress(run: Path) -> pa.Table:
    """The progress of a run by seed and frame, null where something does not apply; as `read_episodes`."""
    return _read_table(run / "progress.parquet", Records().progress_table())


def _read_table(path: Path, like: pa.Table) -> pa.Table:
    table = read_parquet(path)
    if not table.schema.equals(like.schema):
        found = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise InputError(f"{path}: the columns must be {', '.join(like.column_names)}; found {found}")
    return table


def write_run(folder: Path, content: Mapping[str, Any]) -> None:
    """Write `run.json`, at once.

    Args:
        folder: of the run; it must exist.
        content: what JSON holds; every float finite.

    Raises:
        InputError: naming what does not fit.
    """
    for name in ("format", "schema"):
        if name in content:
            raise InputError(f"run.{name} is the file's own")
    whole = {"format": RUN_FORMAT, "schema": RUN_SCHEMA, **encode(dict(content), "run", finite=True)}
    write_bytes(folder / "run.json", f"{json_text(whole, 'run', indent=1)}\n".encode())


def read_run(folder: Path) -> dict[str, Any]:
    """The content of a run's `run.json`, as `write_run` was given it.

    Raises:
        InputError: naming the file, if it is missing, damaged, of something else or of a later version.
    """
    path = folder / "run.json"
    with naming(path):
        found = read_json(path)
        if not isinstance(found, dict) or found.pop("format", None) != RUN_FORMAT:
            raise InputError(f"not a run of ipe: it does not say that its format is {RUN_FORMAT!r}")
        schema = found.pop("schema", None)
        if type(schema) is not int or schema < 1:
            raise InputError(f"schema must be a whole number from 1 on, found {schema!r}")
        if schema > RUN_SCHEMA:
            raise InputError(f"written by a later version of ipe (schema {schema}, this one reads {RUN_SCHEMA})")
        encode(found, "run", finite=True)
        return found
