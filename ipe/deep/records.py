"""What a batch of seeds leaves behind: its episodes and its progress, as they come and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ipe.errors import InputError

WINDOW = 1000
"""The frames that a row of progress sums up."""

_EPISODES = ("seed", "frame", "return", "length")
MEASURED = ("epsilon", "entropy", "td_error", "ipe_error", "q_mean")
"""What the learner measures: the exploration rate, the entropy of the policy network, the mean absolute errors of the
value update and of the policy update, and the mean value of the Q-network over a minibatch."""
SPEED = "frames_per_second"
"""The column of the progress that is a machine's and not a run's."""
_INTEGERS = ("seed", "frame", "length", "lengths")
_LISTS = ("returns", "lengths")
"""The columns that have an entry for each episode of an evaluation."""
EVALUATED = ("seed", "frame", "mean", *_LISTS)
"""The columns of the evaluations."""


class _Columns:
    """Columns of equal length that grow by rows, in amortised constant time."""

    def __init__(self, names: Sequence[str], episodes: int = 0) -> None:
        self.names = names
        self.count = 0
        self.columns = {
            name: np.empty((64, episodes) if name in _LISTS else 64, np.int64 if name in _INTEGERS else np.float64)
            for name in names
        }

    def append(self, *row: Any) -> None:
        if self.count == self.columns["seed"].size:
            self.reserve(2 * self.count)
        for column, value in zip(self.columns.values(), row, strict=True):
            column[self.count] = value
        self.count += 1

    def reserve(self, size: int) -> None:
        for name, column in self.columns.items():
            self.columns[name] = np.empty((size, *column.shape[1:]), column.dtype)
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
        """Return the rows sorted by seed and frame; a NaN of the progress, which the run does not have, is null."""
        order = np.lexsort((self.columns["frame"][: self.count], self.columns["seed"][: self.count]))
        columns = {name: column[: self.count][order] for name, column in self.columns.items()}
        nulls = "return" not in self.names
        return pa.table({name: _arrow(column, nulls) for name, column in columns.items()})


def _arrow(column: NDArray[Any], nulls: bool) -> pa.Array:
    """A column as Arrow has it: one of two axes as lists."""
    values = pa.array(column.ravel(), from_pandas=nulls)
    if column.ndim == 1:
        return values
    return pa.ListArray.from_arrays(np.arange(len(column) + 1, dtype=np.int32) * column.shape[1], values)


class Records:
    """The episodes and the progress of a batch of seeds, as they come; and its evaluations, each of so many episodes,
    if it is evaluated while it trains (`evaluated` is 0 if it is not).

    Example:
        >>> records = Records()
        >>> records.episode(seed=1, frame=180, ret=-1.5, length=100)
        >>> records.episode(seed=0, frame=90, ret=2.0, length=90)
        >>> records.episodes_table().to_pydict()
        {'seed': [0, 1], 'frame': [90, 180], 'return': [2.0, -1.5], 'length': [90, 100]}
    """

    def __init__(self, evaluated: int = 0) -> None:
        self._parts = {"episodes": _Columns(_EPISODES), "progress": _Columns(("seed", "frame", *MEASURED, SPEED))}
        if evaluated:
            self._parts["evaluations"] = _Columns(EVALUATED, evaluated)

    def episode(self, seed: int, frame: int, ret: float, length: int) -> None:
        """Add an episode that has ended; `frame` counts all frames of the seed, the episode's last one included."""
        self._parts["episodes"].append(seed, frame, ret, length)

    def progress(self, seed: int, frame: int, *measured: float) -> None:
        """Add the numbers of `MEASURED`, NaN where one does not apply, and the speed, after so many frames."""
        self._parts["progress"].append(seed, frame, *measured)

    def evaluation(self, seed: int, frame: int, returns: NDArray[Any], lengths: NDArray[Any]) -> float:
        """Add an evaluation after so many frames, by the return and the length of each episode; returns the mean of
        the returns. An episode whose environment failed has a return of NaN, and so has the mean then."""
        mean = float(np.mean(returns))
        self._parts["evaluations"].append(seed, frame, mean, returns, lengths)
        return mean

    def drop_from(self, seed: int, frame: int) -> None:
        """Forget what a seed did from a frame on: its learner had diverged there, which was noticed later."""
        for columns in self._parts.values():
            of_seed = columns.columns["seed"][: columns.count] == seed
            columns.keep(~(of_seed & (columns.columns["frame"][: columns.count] >= frame)))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all columns in the order in which they came, for a checkpoint: `episodes.seed`, ..."""
        parts = self._parts.items()
        return {f"{part}.{name}": column for part, columns in parts for name, column in columns.arrays().items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Return the records that gave these `arrays()`; other names in them are left alone. An array that is missing,
        or of another type or length than its neighbours, is refused by its name."""
        lists = arrays.get("evaluations.returns")
        out = cls(0 if lists is None or lists.ndim != 2 else lists.shape[1])
        for part, columns in out._parts.items():
            columns.extend({name: _column(arrays, part, name, empty) for name, empty in columns.columns.items()})
        return out

    def episodes_table(self) -> pa.Table:
        """Return the episodes sorted by seed and frame: seed, frame, return, length."""
        return self._parts["episodes"].table()

    def progress_table(self) -> pa.Table:
        """Return the progress sorted by seed and frame, null where something does not apply."""
        return self._parts["progress"].table()

    def evaluations_table(self) -> pa.Table:
        """Return the evaluations sorted by seed and frame: seed, frame, mean, and the lists returns and lengths; the
        return of an episode whose environment failed is null, and so is the mean then."""
        return self._parts.get("evaluations", _Columns(EVALUATED)).table()

    def last_evaluations(self) -> dict[int, tuple[int, float]]:
        """Return the frame and the mean of each seed's last evaluation."""
        columns = self._parts.get("evaluations", _Columns(EVALUATED))
        seeds, frames, means = (columns.columns[name][: columns.count].tolist() for name in ("seed", "frame", "mean"))
        return {seed: (frame, mean) for seed, frame, mean in zip(seeds, frames, means, strict=True)}


def _column(arrays: Mapping[str, NDArray[Any]], part: str, name: str, like: NDArray[Any]) -> NDArray[Any]:
    field, first = f"{part}.{name}", f"{part}.seed"
    for needed in (first, field):
        if needed not in arrays:
            raise InputError(f"the array {needed} is missing")
    array, rows = arrays[field], arrays[first].size
    shape = (rows, *like.shape[1:])
    if array.dtype != like.dtype or array.shape != shape:
        found = f"found {array.dtype} of shape {array.shape}"
        raise InputError(f"the array {field} must be {like.dtype} of shape {shape}, {found}")
    return array
