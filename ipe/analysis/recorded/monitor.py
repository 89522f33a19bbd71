"""Stable-Baselines3's `monitor.csv`: every episode of one environment, its return, its length and the time.

The first line is `#` and JSON (`t_start`, in seconds since 1970, and `env_id`), the second names the columns: `r`, `l`,
`t` (seconds since `t_start`), and keys of one's own. A run on k environments has k files, `0.monitor.csv` and so on.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from ipe.analysis.columns import Frames
from ipe.analysis.recorded.lines import read_lines
from ipe.base.arrays import Array
from ipe.base.files import PathLike, naming
from ipe.errors import InputError

NAME = "monitor.csv"


@dataclass(frozen=True, eq=False)
class Monitor:
    """The episodes of one environment.

    Attributes:
        environment: the environment's id; empty if the file does not say it.
        started: the time at which the environment was made, in seconds since 1970; NaN if the file does not say it.
        returns: the return of each episode.
        lengths: the number of steps of each episode.
        seconds: how long the environment was used.
        problems: what a reader must know, in sentences.
    """

    environment: str
    started: float
    returns: Array
    lengths: Frames
    seconds: float
    problems: list[str]


def is_monitor(path: Path) -> bool:
    """Whether a file's name is that of a monitor file, also with `.gz` at the end."""
    name = path.name.removesuffix(".gz")
    return (name == NAME or name.endswith(f".{NAME}")) and path.is_file()


def stem_of(path: Path) -> str:
    """What stands before `monitor.csv` in a file's name.

    Example:
        >>> [stem_of(Path(name)) for name in ("monitor.csv", "0.monitor.csv", "seed-3.monitor.csv.gz")]
        ['', '0', 'seed-3']
    """
    return path.name.removesuffix(".gz").removesuffix(NAME).removesuffix(".")


def read_monitor(path: PathLike) -> Monitor:
    """Read a monitor file, plain or compressed by gzip.

    Raises:
        InputError: naming the file and the line, if something is wrong with it. A last line that is cut off is a
            problem, not an error: the run may still be going.
    """
    with naming(path):
        found = read_lines(path)
        started, environment = _header(found.lines)
        names = next(csv.reader(found.lines[1:2]), [])
        missing = [name for name in ("r", "l", "t") if name not in names]
        if missing:
            raise InputError(f"line 2: no column {missing[0]!r}; the columns are {', '.join(names) or 'none'}")
        r, length, t = (names.index(name) for name in ("r", "l", "t"))
        returns, lengths, times = [], [], []
        for number, line in enumerate(found.lines[2:], 3):
            if not line.strip() or line.startswith("#") or line == found.lines[1]:
                continue  # a header again: a run that was gone on with
            cells = next(csv.reader([line]))
            if len(cells) != len(names):
                raise InputError(f"line {number}: {len(cells)} cells, and there are {len(names)} columns")
            returns.append(_number(cells[r], "r", number))
            lengths.append(_whole(cells[length], "l", number))
            times.append(_number(cells[t], "t", number))
        problems = []
        if found.cut:
            problems.append(f"{path}: its last line, {len(found.lines) + 1}, is cut off (the run may still be going)")
    return Monitor(environment, started, np.array(returns), np.array(lengths, dtype=np.int64), _used(times), problems)


def steps_of(monitors: Sequence[Monitor]) -> tuple[Frames, Array]:
    r"""The steps at which the episodes of one run ended, over all of its environments, and their returns.

    The k environments of a run step at the same time, so that an episode which ends after the :math:`l_1 + \dots + l_i`
    steps of its environment ends after :math:`k (l_1 + \dots + l_i)` steps of the run.

    Args:
        monitors: one for each environment.

    Example:
        >>> one = Monitor("", 0.0, np.array([1.0, 2.0]), np.array([3, 4]), 0.0, [])
        >>> two = Monitor("", 0.0, np.array([5.0]), np.array([5]), 0.0, [])
        >>> steps_of([one, two])
        (array([ 6, 10, 14]), array([1., 5., 2.]))
    """
    steps = np.concatenate([np.cumsum(one.lengths) * len(monitors) for one in monitors])
    returns = np.concatenate([one.returns for one in monitors])
    order = np.argsort(steps, kind="stable")
    return steps[order], returns[order]


def _header(lines: Sequence[str]) -> tuple[float, str]:
    """The time of the start and the environment's id."""
    said = 'Stable-Baselines3\'s monitor files begin with a line such as #{"t_start": 1700000000.0, "env_id": ...}'
    if not lines or not lines[0].startswith("#"):
        raise InputError(f"line 1: {said}")
    try:
        content = json.loads(lines[0][1:])
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise InputError(f"line 1: {said}")
    started, environment = content.get("t_start"), content.get("env_id")
    return (
        float(started) if isinstance(started, int | float) else math.nan,
        environment if isinstance(environment, str) and environment != "None" else "",
    )


def _used(times: Sequence[float]) -> float:
    """The seconds of all parts of a run: the time begins again at 0 when a run is gone on with."""
    last = [a for a, b in pairwise(times) if b < a]
    return math.fsum([*last, *times[-1:]])


def _number(cell: str, name: str, line: int) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"line {line}: {name} must be a finite number, found {cell!r}")
    return value


def _whole(cell: str, name: str, line: int) -> int:
    value = _number(cell, name, line)
    if value != int(value) or value < 1:
        raise InputError(f"line {line}: {name} must be a whole number of at least 1, found {cell!r}")
    return int(value)
