"""A study is a list of parts. Each part computes tables, draws a figure from them, and judges claims by them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ipe.analysis import Claim
from ipe.base.arrays import Mask
from ipe.base.words import did_you_mean
from ipe.errors import InputError

Table: TypeAlias = Mapping[str, NDArray[Any]]
"""Columns of equal length, by name."""
Tables: TypeAlias = Mapping[str, Table]
Progress: TypeAlias = Callable[[str, int, int], None]
"""A function that is called with what is done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Part:
    """One figure of a study, with its data and claims.

    Attributes:
        name: the part's name on the command line and in file names.
        title: what the figure shows.
        compute: a function from settings and progress to tables; the first table has the part's name.
        draw: a function from settings and those tables to the figure.
        judge: a function from settings and those tables to claims.
        addition: whether the part goes beyond the paper.
    """

    name: str
    title: str
    compute: Callable[[Any, Progress], Tables]
    draw: Callable[[Any, Tables], Figure]
    judge: Callable[[Any, Tables], Sequence[Claim]]
    addition: bool = False


def check_only(known: Iterable[str], only: Sequence[str] | None) -> list[str]:
    """The names of the parts to run, in the study's order: those that are asked for, or all of them."""
    names = list(known)
    if only is not None and not only:
        raise InputError(f"only: it names no part; the parts are {', '.join(names)}")
    for name in only or ():
        if name not in names:
            close = did_you_mean(name, names)
            raise InputError(f"only: there is no part {name!r}; the parts are {', '.join(names)}{close}")
    return [name for name in names if not only or name in only]


def margin(difference: NDArray[np.float64]) -> float:
    """Twice the standard error of the mean of a sample; 0 for a single number.

    Example:
        >>> margin(np.array([1.0, 3.0]))
        2.0
    """
    return float(2.0 * difference.std(ddof=1) / np.sqrt(difference.size)) if difference.size > 1 else 0.0


def stacked(tables: Sequence[Mapping[str, Any]]) -> Table:
    """Tables with the same columns, one below the other; a single value stands for a column of one row.

    Example:
        >>> stacked([{"run": [0, 1], "reward": [2.0, 3.0]}, {"run": 2, "reward": 4.0}])["reward"]
        array([2., 3., 4.])
    """
    return {name: np.concatenate([np.atleast_1d(table[name]) for table in tables]) for name in tables[0]}


def labelled(size: int, **labels: str) -> dict[str, NDArray[Any]]:
    """Columns of that size with the same label in every row.

    Example:
        >>> labelled(2, behaviour="ipe")
        {'behaviour': array(['ipe', 'ipe'], dtype='<U3')}
    """
    return {name: np.full(size, label) for name, label in labels.items()}


def rows_with(table: Table, **values: Any) -> Mask:
    """Which rows of a table have these values in these columns.

    Example:
        >>> rows_with({"behaviour": np.array(["ipe", "greedy"]), "run": np.array([0, 0])}, behaviour="ipe", run=0)
        array([ True, False])
    """
    return np.asarray(np.all([table[name] == value for name, value in values.items()], axis=0))


def prefixed(**groups: Mapping[Any, float]) -> dict[str, float]:
    """The numbers of several groups by `group/name`, as claims list them.

    Example:
        >>> prefixed(mean={"ipe": 1.0}, worst={"ipe": 0.5})
        {'mean/ipe': 1.0, 'worst/ipe': 0.5}
    """
    return {f"{group}/{name}": value for group, numbers in groups.items() for name, value in numbers.items()}
