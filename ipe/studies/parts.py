"""A study is a list of parts. Each part computes tables, draws a figure from them, and judges claims by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from matplotlib.figure import Figure
from numpy.typing import NDArray

from ipe.analysis import Claim

Table: TypeAlias = Mapping[str, NDArray[Any]]
"""Columns of equal length, by name."""
Tables: TypeAlias = Mapping[str, Table]
Progress: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class Part:
    """One figure of a study, with its data and claims.

    Attributes:
        name: as on the command line and in file names.
        title: what it shows.
        compute: settings and progress to tables; the first is called as the part is.
        draw: those tables to the figure.
        judge: those tables to claims.
        addition: whether it goes beyond the paper.
    """

    name: str
    title: str
    compute: Callable[[Any, Progress], Tables]
    draw: Callable[[Any, Tables], Figure]
    judge: Callable[[Any, Tables], Sequence[Claim]]
    addition: bool = False
