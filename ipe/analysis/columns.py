"""Columns of numbers: taken from a table of any kind, and checked before anything is computed with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array, numeric, refuse_where
from ipe.base.numbers import finite_number, whole_number
from ipe.errors import InputError

Frames: TypeAlias = NDArray[np.int64]


def column(table: Any, name: str) -> NDArray[Any]:
    """A column of a mapping of arrays, or of a table of pyarrow, pandas or polars."""
    known = [str(key) for key in getattr(table, "column_names", getattr(table, "columns", table))]
    if name not in known:
        raise InputError(f"the table has no column {name!r}; its columns are {', '.join(known) or 'none'}")
    return np.asarray(table[name])


def one_axis(values: Any, name: str) -> Array:
    """Numbers along one axis, as float64."""
    out = numeric(values, name)
    if out.ndim != 1:
        raise InputError(f"{name} must have one axis; found shape {out.shape}")
    return out


def finite_numbers(values: Any, name: str) -> Array:
    """Finite numbers along one axis, as float64."""
    out = one_axis(values, name)
    refuse_where(~np.isfinite(out), out, name, "not a finite number")
    return out


def whole_numbers(values: Any, name: str, least: int) -> Frames:
    """Whole numbers along one axis, none below `least`."""
    found = np.asarray(values)
    if found.dtype.kind in "iu" and found.ndim == 1:
        out = found.astype(np.int64)
        wrong = out < least
    else:
        number = one_axis(values, name)
        wrong = ~((number == np.floor(number)) & (np.abs(number) < 2**53) & (number >= least))
        out = np.where(wrong, 0, number).astype(np.int64)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(f"{name}[{i}] = {found[i]} is not a whole number of at least {least}")
    return out


def check_count(value: Any, name: str) -> int:
    """A whole number of at least 1."""
    return whole_number(value, name, 1)


def check_share(value: Any, name: str) -> float:
    """A number strictly between 0 and 1."""
    return finite_number(value, name, 0, 1, above=True, below=True)


def runs_of(
    table: Any, name: str, seeds: Sequence[int] | None, *, gaps: bool = False
) -> Iterator[tuple[Frames, Array]]:
    """Frames and values of each run, in order; with `gaps`, without those that are NaN."""
    seed = whole_numbers(column(table, "seed"), "seed", least=0)
    frames = whole_numbers(column(table, "frame"), "frame", least=0 if gaps else 1)
    values = one_axis(column(table, name), name) if gaps else finite_numbers(column(table, name), name)
    if not seed.size == frames.size == values.size:
        raise InputError(f"seed, frame and {name} differ in length: {seed.size}, {frames.size} and {values.size}")
    wanted = np.unique(seed) if seeds is None else _distinct(whole_numbers(seeds, "seeds", least=0))
    if not _in_order(seed, frames):
        order = np.lexsort((frames, seed))
        seed, frames, values = seed[order], frames[order], values[order]
    if gaps:
        there = ~np.isnan(values)
        seed, frames, values = seed[there], frames[there], values[there]
    starts, ends = (np.searchsorted(seed, wanted, side=side) for side in ("left", "right"))
    for start, end in zip(starts, ends, strict=True):
        yield frames[start:end], values[start:end]


def _in_order(seed: Frames, frames: Frames) -> bool:
    """Whether the rows are sorted by seed and frame already, as those of a store are."""
    step = np.diff(seed)
    return bool(((step > 0) | ((step == 0) & (np.diff(frames) >= 0))).all())


def _distinct(seeds: Frames) -> Frames:
    unique, count = np.unique(seeds, return_counts=True)
    if (count > 1).any():
        raise InputError(f"seeds: {unique[int(np.argmax(count > 1))]} is listed more than once")
    return seeds
