r"""Successive halving, declared: how many runs of how many frames each rung has, and what share of settings goes on.

::

    [halving]                                # in a sweep's file; every key may be left out
    frames = [50_000, 150_000, 500_000]      # of each rung; the last rung has the sweep's frames
    runs = [2, 4, 10]                        # of each rung, or one number for all
    factor = 2                               # one in so many settings goes on to the next rung

With n settings of a case, rung r has :math:`\lceil n_{r-1} / \text{factor} \rceil` of them, :math:`n_0 = n`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ipe.base.numbers import finite_number, is_whole, whole_number
from ipe.base.words import did_you_mean
from ipe.deep.records import WINDOW
from ipe.errors import InputError

KEYS = ("frames", "runs", "factor")
FACTOR = 2.0
FINALISTS = 4
"""By default, the last rung has at most so many settings of each case."""
FIRST_RUNS, LAST_RUNS = 2, 10
"""By default, the numbers of runs in the first and in the last rung; two, because one run has no standard error."""
FIRST_SHARE = 0.1
"""By default, the share of the frames that the first rung has."""
MOST_RUNGS = 8
"""By default, there are at most so many rungs; in a sweep's file there may be more."""


@dataclass(frozen=True)
class Halving:
    """The rungs of a sweep by successive halving."""

    frames: tuple[int, ...]
    """The frames of a run in each rung."""
    runs: tuple[int, ...]
    """The runs of each setting in each rung."""
    factor: float
    """One in so many settings of each case goes on to the next rung."""

    @property
    def rungs(self) -> int:
        """The number of rungs."""
        return len(self.frames)

    def sizes(self, settings: int) -> list[int]:
        """Return how many settings of a case each rung has.

        Example:
            >>> Halving((1000, 2000, 4000), (2, 2, 4), 2.0).sizes(81)
            [81, 41, 21]
        """
        sizes = [settings]
        while len(sizes) < self.rungs:
            sizes.append(math.ceil(sizes[-1] / self.factor))
        return sizes

    def plain(self) -> dict[str, Any]:
        """Return the rungs as plain data, for JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def default_halving(
    settings: int, seeds: int, frames: int, factor: float = FACTOR, rungs: int | None = None, least: int = 0
) -> Halving:
    """Return the rungs of a sweep that declares none.

    Frames and runs grow by constant factors: frames from a tenth to all, in thousands, and runs from `FIRST_RUNS` to
    `LAST_RUNS`, or to as many as there are, in pairs: a seed that is trained alone takes as long as two.

    Args:
        settings: the settings of the largest case.
        seeds: the seeds of the sweep.
        frames: the frames of a run of the sweep.
        factor: one in so many settings goes on.
        rungs: the number of rungs. Default: as many as leave `FINALISTS` settings of the largest case.
        least: the frames that the first rung has at least, up to half of all: while a schedule of epsilon runs, its
            setting cannot be compared with one that anneals sooner.

    Example:
        >>> default_halving(243, 30, 500_000).frames
        (50000, 73000, 107000, 158000, 232000, 340000, 500000)
        >>> default_halving(243, 30, 500_000).runs
        (2, 2, 4, 4, 6, 8, 10)
    """
    if rungs is None:
        rungs, left = 2, math.ceil(settings / factor)
        while left > FINALISTS and rungs < MOST_RUNGS:
            rungs, left = rungs + 1, math.ceil(left / factor)
    at = [i / max(1, rungs - 1) for i in range(rungs)]
    share = max(FIRST_SHARE, min(0.5, least / frames))
    lengths = [int(frames * share ** (1.0 - x) / WINDOW + 1e-6) * WINDOW for x in at[:-1]]
    last = min(LAST_RUNS, seeds)
    first = min(FIRST_RUNS, last)
    return Halving(
        (*(min(frames, max(WINDOW, length)) for length in lengths), frames),
        (*(min(last, max(first, 2 * round(first * (last / first) ** x / 2.0))) for x in at[:-1]), last),
        factor,
    )


def read_halving(content: Mapping[str, Any], settings: int, seeds: int, frames: int, least: int = 0) -> Halving:
    """Read the table `halving` of a sweep's file; what it leaves out is `default_halving`'s. An error names the key and
    what is wrong with it."""
    for key in content:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS) or f" (there are {', '.join(KEYS)})"
            raise InputError(f"there is no key halving.{key}{hint}")
    factor = finite_number(content.get("factor", FACTOR), "halving.factor", 1, 1000, above=True)
    given = {name: content[name] for name in ("frames", "runs") if name in content}
    for name, value in given.items():
        if not (isinstance(value, list) and value) and not (name == "runs" and is_whole(value)):
            raise InputError(f"halving.{name} must be a list with a number for each rung, found {value!r}")
    rungs = next((len(value) for value in given.values() if isinstance(value, list)), None)
    default = default_halving(settings, seeds, frames, factor, rungs, least)
    lengths, runs = given.get("frames", list(default.frames)), given.get("runs", list(default.runs))
    runs = runs if isinstance(runs, list) else [runs] * default.rungs
    if len(runs) != len(lengths):
        raise InputError(f"halving.runs has {len(runs)} rungs, and halving.frames has {len(lengths)}")
    halving = Halving(
        tuple(whole_number(n, f"halving.frames[{i}]", 1, 2**31 - 1) for i, n in enumerate(lengths)),
        tuple(whole_number(n, f"halving.runs[{i}]", 1, 10**6) for i, n in enumerate(runs)),
        factor,
    )
    check_halving(halving, seeds, frames)
    return halving


def check_halving(halving: Halving, seeds: int, frames: int) -> None:
    """Refuse rungs that a sweep cannot have.

    A rung's runs go on in the next one, so that frames and runs never become fewer. A run records its progress every
    1000 frames and at its end; so that a run that goes on has the bytes of one that never stopped, rungs end at
    multiples of 1000 frames, or at the last frame.

    Args:
        halving: the rungs.
        seeds: the number of the sweep's seeds.
        frames: the frames of a run of the sweep.

    Raises:
        InputError: naming the key, the rung and the number.
    """
    if halving.rungs < 2:
        raise InputError(f"halving has {halving.rungs} rung; with fewer than two nothing is halved")
    for name, numbers in (("frames", halving.frames), ("runs", halving.runs)):
        for i, (before, after) in enumerate(itertools.pairwise(numbers)):
            if after < before:
                raise InputError(f"halving.{name}[{i + 1}] = {after} is less than the rung before has, {before}")
    if halving.frames[-1] != frames:
        raise InputError(f"halving.frames ends with {halving.frames[-1]}, and the sweep's runs have {frames} frames")
    for i, number in enumerate(halving.frames):
        if number % WINDOW and number != frames:
            raise InputError(f"halving.frames[{i}] = {number} must be a multiple of {WINDOW}")
    if halving.runs[-1] > seeds:
        raise InputError(f"halving.runs[{halving.rungs - 1}] = {halving.runs[-1]}, and the sweep has {seeds} seeds")
