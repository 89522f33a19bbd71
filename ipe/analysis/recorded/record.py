"""A run that some program recorded: its returns by step, whose it is, and what its numbers are."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from ipe.analysis.columns import Frames
from ipe.base.arrays import Array

Kind: TypeAlias = Literal["training", "evaluation"]
"""Returns of the training itself, with its exploration; or of episodes that were played to evaluate the policy."""

Record: TypeAlias = Literal["episode", "mean", "value"]
"""What one record is: the return of one episode; a mean of several, by the program that wrote it; or not known."""


@dataclass(frozen=True, eq=False)
class RecordedRun:
    """One run, as some program recorded it.

    Attributes:
        path: the file or folder that it was read from.
        steps: the steps of the records, in order, each at least 1.
        returns: the return of each record.
        kind: whether these are returns of the training or of evaluations.
        record: what one record is.
        source: the program and the file or tag that it comes from, in words.
        setting: the name of the algorithm or setting; empty if nothing says it.
        environment: the environment's id; empty if nothing says it.
        run: what tells the run apart from others of its setting, a seed mostly; empty if nothing says it.
        varied: hyperparameters that the run's name says, by name.
        parameters: all hyperparameters that the run's files say, by name.
        started: the time at which it was started, in seconds since 1970; NaN if nothing says it.
        seconds: how long it took by the clock, from the first record to the last; NaN if nothing says it.
        folders: the folders below the user's path that name the setting; empty if its name comes from elsewhere.
        until: how many steps the run was to have, if that is known; a run that failed has its last value until there.
        ended: how the run ended: done, failed or diverged. Files of other programs do not say it: done.
    """

    path: Path
    steps: Frames = field(repr=False)
    returns: Array = field(repr=False)
    kind: Kind
    record: Record
    source: str
    setting: str = ""
    environment: str = ""
    run: str = ""
    varied: dict[str, Any] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict, repr=False)
    started: float = math.nan
    seconds: float = math.nan
    folders: tuple[str, ...] = ()
    until: int | None = None
    ended: str = "done"

    def named(self, **changes: Any) -> Self:
        """Return the run with other values of some fields."""
        return replace(self, **changes)

    @property
    def reached(self) -> int:
        """The step that the run has reached as far as its records tell; 0 if it has none."""
        return self.until if self.until is not None else int(self.steps[-1]) if self.steps.size else 0

    @property
    def longest_gap(self) -> int:
        """The most steps from one record to the next; the first counts from step 0."""
        return int(np.diff(self.steps, prepend=0).max(initial=0))


def at_least_one(steps: Frames) -> Frames:
    """Steps from 1 on: what was recorded before the first step holds from the first step."""
    return np.maximum(steps, 1)


def value_of(text: str) -> Any:
    """A word as the number or the truth value that it stands for; any other word as it is.

    Example:
        >>> [value_of(word) for word in ("64", "1e-3", "True", "adam")]
        [64, 0.001, True, 'adam']
    """
    if text in ("True", "true", "False", "false"):
        return text.lower() == "true"
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    return text
