"""A table of returns, as CSV: a row for each record, with columns for the step, the return, and whose they are.

The columns have the usual names, or the names that the caller gives. Without a column for the run, the file is one run:
Stable-Baselines3's `progress.csv`, or what TensorBoard lets one download.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ipe.analysis.recorded.lines import last_is_whole
from ipe.analysis.recorded.record import RecordedRun, at_least_one
from ipe.base.files import PathLike, naming
from ipe.base.words import did_you_mean
from ipe.errors import InputError

NAMES: dict[str, tuple[str, ...]] = {
    "step": ("step", "steps", "frame", "frames", "timestep", "timesteps", "global_step", "total_timesteps",
             "time/total_timesteps", "timesteps_total", "num_env_steps_sampled_lifetime", "env_steps",
             "TotalEnvInteracts"),
    "return": ("return", "returns", "episodic_return", "episode_return", "reward", "score", "rollout/ep_rew_mean",
               "env_runners/episode_return_mean", "episode_reward_mean", "AverageEpRet", "value"),
    "run": ("run", "seed", "run_id", "run_name", "trial", "trial_id"),
    "setting": ("setting", "algorithm", "algo", "agent", "method", "exp_name", "config"),
    "environment": ("environment", "env", "env_id", "env_name", "task", "game"),
}  # fmt: skip
"""The names by which columns are known, whether upper or lower case; the first one of them that the file has counts."""

_NEEDED = ("step", "return")


@dataclass(frozen=True)
class Table:
    """What was read of a table."""

    runs: list[RecordedRun]
    """The runs."""
    problems: list[str]
    """What a reader must know of the table, in sentences: rows that are left out, say."""


def check_columns(columns: Mapping[str, str]) -> None:
    """Refuse names for columns that do not exist: the error lists those that do."""
    for role in columns:
        if role not in NAMES:
            raise InputError(
                f"columns: {role!r} is none of {', '.join(NAMES)}{did_you_mean(role, NAMES)}; write ours=yours"
            )


def read_table(path: PathLike, columns: Mapping[str, str] | None = None) -> Table:
    """Read the runs of a CSV file; its cells may also lie between tabs or semicolons, and gzip may have compressed it.

    Args:
        path: the path of the file.
        columns: the names of columns in the file by what they are: step, return, run, setting, environment. Those that
            are not given are found by their usual names (`NAMES`).

    Raises:
        InputError: naming the file, the columns found or the line, if a column is missing, a cell is no number, or the
            steps of a run go back. A row without a return is left out, and a problem says how many there are.
    """
    given = dict(columns or {})
    check_columns(given)
    with naming(path):
        lines = last_is_whole(path).lines
        while lines and not lines[-1].strip():
            lines.pop()
        if not lines:
            raise InputError("it is empty")
        delimiter = max(",\t;", key=lines[0].count)
        names = [name.strip() for name in next(csv.reader(lines[:1], delimiter=delimiter))]
        at = _places(names, given)
        rows, without = _rows(lines, delimiter, names, at)
        if not rows:
            raise InputError(f"no row has a return (column {names[at['return']]!r})")
        _check_steps(rows, names, at)
    problems = [f"{path}: {without} rows without a return are left out"] if without else []
    what = f"{Path(path).name}, column {names[at['return']]}"
    return Table([_run(Path(path), key, part, what) for key, part in _by_run(rows).items()], problems)


_Key = tuple[str, str, str]
_Row = tuple[_Key, int, float, int]


def _places(names: Sequence[str], given: Mapping[str, str]) -> dict[str, int]:
    """The place of each column among the file's."""
    found = f"the columns are {', '.join(names)}"
    lowered = [name.lower() for name in names]
    at: dict[str, int] = {}
    for role, name in given.items():
        if name not in names:
            raise InputError(f"no column {name!r} (for {role}){did_you_mean(name, names)}; {found}")
        at[role] = names.index(name)
    for role, usual in NAMES.items():
        if role in at:
            continue
        known = [lowered.index(name.lower()) for name in usual if name.lower() in lowered]
        known = [place for place in known if place not in at.values()]
        if known:
            at[role] = known[0]
        elif role in _NEEDED:
            raise InputError(f"no column for the {role}; {found}; say which one it is: --columns {role}=NAME")
    return at


def _rows(lines: Sequence[str], delimiter: str, names: Sequence[str], at: Mapping[str, int]) -> tuple[list[_Row], int]:
    rows: list[_Row] = []
    without = 0
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        cells = next(csv.reader([line], delimiter=delimiter))
        if len(cells) != len(names):
            raise InputError(f"line {number}: {len(cells)} cells, and there are {len(names)} columns")
        value = _number(cells[at["return"]], names[at["return"]], number)
        if value is None:
            without += 1
            continue
        step = _number(cells[at["step"]], names[at["step"]], number)
        if step is None or step != int(step) or step < 0:
            shown = cells[at["step"]]
            raise InputError(f"line {number}: {names[at['step']]} must be a whole number, 0 or more; found {shown!r}")
        setting, environment, run = (
            cells[at[role]].strip() if role in at else "" for role in ("setting", "environment", "run")
        )
        rows.append(((setting, environment, run), int(step), value, number))
    return rows, without


def _number(cell: str, name: str, line: int) -> float | None:
    """The number in a cell; None if the cell is empty or says that there is none."""
    text = cell.strip()
    if text.lower() in ("", "nan", "na", "null", "none"):
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise InputError(f"line {line}: {name} must be a finite number, found {cell!r}")
    return value


def _check_steps(rows: Sequence[_Row], names: Sequence[str], at: Mapping[str, int]) -> None:
    """Refuse steps that go back: rows of several runs that no column tells apart."""
    last: dict[_Key, int] = {}
    for key, step, _, number in rows:
        if step < last.get(key, 0):
            missing = [role for role in ("run", "setting", "environment") if role not in at]
            other = [name for i, name in enumerate(names) if i not in at.values()]
            hint = f"; say which column tells runs apart: --columns {missing[0]}=NAME" if missing and other else ""
            raise InputError(
                f"line {number}: step {step} comes after step {last[key]} of the same run: runs must be told apart, "
                f"and their steps in order; the columns are {', '.join(names)}{hint}"
            )
        last[key] = step


def _by_run(rows: Sequence[_Row]) -> dict[_Key, list[_Row]]:
    out: dict[_Key, list[_Row]] = {}
    for row in rows:
        out.setdefault(row[0], []).append(row)
    return out


def _run(path: Path, key: _Key, rows: Sequence[_Row], what: str) -> RecordedRun:
    setting, environment, run = key
    return RecordedRun(
        path=path,
        steps=at_least_one(np.array([row[1] for row in rows], dtype=np.int64)),
        returns=np.array([row[2] for row in rows]),
        kind="training",
        record="value",
        source=what,
        setting=setting,
        environment=environment,
        run=run,
    )
