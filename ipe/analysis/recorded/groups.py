"""From recorded runs to groups that can be ranked, compared and drawn: one for each environment and kind of returns."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ipe.analysis.columns import Frames, check_count
from ipe.analysis.curves import WINDOW, auc_of_episodes, frame_grid, trailing_curve
from ipe.analysis.measures import Measure
from ipe.analysis.recorded.reading import RecordedRuns
from ipe.analysis.recorded.record import Kind, RecordedRun
from ipe.analysis.series import Failed, Group, Series, scored
from ipe.errors import InputError

_SHORT = 0.9
"""A run with less than this share of the steps of the longest is named, since all are compared over its steps."""
_NAMES: dict[Kind, str] = {"training": "training returns", "evaluation": "greedy evaluation"}


@dataclass(frozen=True)
class RecordedSetting:
    """The setting of recorded runs: what their names and files say of it.

    Attributes:
        name: the name, with the hyperparameters that tell it apart from others of its case.
        case: the name of the algorithm.
        varied: the hyperparameters that tell it apart, by name.
        parameters: all hyperparameters that the files say, by name.
        frames: the number of steps over which its runs are compared.
        behaviour: the number of the look with which it is drawn.
    """

    name: str
    case: str
    varied: dict[str, Any]
    parameters: dict[str, Any]
    frames: int
    behaviour: int

    @cached_property
    def key(self) -> str:
        """16 hexadecimal digits that stand for the name."""
        return hashlib.sha256(self.name.encode()).hexdigest()[:16]

    def fields(self) -> Mapping[str, Any]:
        """Return all that is known of the setting, by name."""
        return {**self.parameters, **self.varied}


def recorded_groups(
    recorded: RecordedRuns,
    *,
    grid_points: int = 250,
    window: int | None = None,
    steps: int | None = None,
    failed: Failed = "keep",
) -> list[Group]:
    """The runs by environment and kind of returns, and within these by setting.

    All runs of a group are compared over the same steps: as many as the shortest of them has. With `steps`, over so
    many steps; a run that ends before keeps its last value to the end, and is named.

    Args:
        recorded: the runs.
        grid_points: the number of steps at which curves are drawn.
        window: how many records the curve is the mean of. Default: 20 where a record is an episode, as in the paper,
            and 1 where it is a mean already, or where nothing says what it is.
        steps: the number of steps over which runs are compared.
        failed: what a run scores that ended before: its last value to the end ("keep"), or the worst of all ("worst").

    Raises:
        InputError: if there is nothing to compare.
    """
    if failed not in ("keep", "worst"):
        raise InputError(f"failed must be keep or worst, found {failed!r}")
    wanted = None if steps is None else check_count(steps, "steps")
    size = None if window is None else check_count(window, "window")
    groups = []
    for environment in dict.fromkeys(run.environment for run in recorded.runs):
        for kind in ("training", "evaluation"):
            runs = [run for run in recorded.runs if run.environment == environment and run.kind == kind]
            if runs:
                groups.append(_group(environment, runs, grid_points, size, wanted, failed))
    return groups


def _group(
    environment: str, runs: Sequence[RecordedRun], points: int, window: int | None, steps: int | None, failed: Failed
) -> Group:
    begun = [run for run in runs if run.steps.size]
    if not begun:
        raise InputError(f"{runs[0].path}: no run of {environment} has finished an episode: nothing to report")
    shortest, longest = min(begun, key=lambda run: run.reached), max(begun, key=lambda run: run.reached)
    frames = shortest.reached if steps is None else steps
    notes = _notes(runs, window)
    if steps is None and shortest.reached < _SHORT * longest.reached:
        notes.append(
            f"all are compared over the first {frames:,} steps, which is how far {shortest.path} got; {longest.path} "
            f"has {longest.reached:,} (--steps N compares over more)"
        )
    grid = frame_grid(frames, points)
    settings = _by_setting(runs, frames)
    series = [_series(setting, members, grid, frames, window) for setting, members in settings]
    series, _ = scored(environment, frames, series, [], failed)
    return Group(environment, frames, grid, series, [], [], _measure(runs, window), notes)


def _series(
    setting: RecordedSetting, runs: Sequence[RecordedRun], grid: Frames, frames: int, window: int | None
) -> Series:
    curves = np.stack([_curve(run, grid, window) for run in runs])
    areas = [
        auc_of_episodes(run.steps, run.returns, frames, _window(run, window)) if run.steps.size else np.nan
        for run in runs
    ]
    return Series(
        setting=setting,
        fresh=False,
        planned=len(runs),
        outcomes=_outcomes(runs, frames),
        curves=curves,
        epsilon=None,
        entropy=None,
        auc=np.array(areas),
        final=curves[:, -1],
        without=0,
    )


def _curve(run: RecordedRun, grid: Frames, window: int | None) -> Any:
    if not run.steps.size:
        return np.full(grid.size, np.nan)
    return trailing_curve(run.steps, run.returns, grid, _window(run, window))


def _window(run: RecordedRun, window: int | None) -> int:
    return window if window is not None else WINDOW if run.record == "episode" else 1


def _outcomes(runs: Sequence[RecordedRun], frames: int) -> list[dict[str, Any]]:
    """Seed, status, frame and reason of each run; a run is named by its path where its number is not enough."""
    numbers = [run.run for run in runs]
    out = []
    for run in runs:
        alone = run.run and numbers.count(run.run) == 1
        label: int | str = (int(run.run) if run.run.isdigit() else run.run) if alone else str(run.path)
        short = run.reached + run.longest_gap < frames
        status = run.ended if run.ended != "done" else "short" if short else "done"
        reason = f"the last record is at step {run.reached:,} of {frames:,}" if status == "short" else ""
        out.append({"seed": label, "status": status, "frame": min(run.reached, frames), "reason": reason})
    return out


def _by_setting(runs: Sequence[RecordedRun], frames: int) -> list[tuple[RecordedSetting, list[RecordedRun]]]:
    """The settings: runs of one name, apart where the hyperparameters that their files say differ."""
    cases: dict[str, list[RecordedRun]] = {}
    for run in runs:
        cases.setdefault(run.setting, []).append(run)
    out: list[tuple[RecordedSetting, list[RecordedRun]]] = []
    for case, members in cases.items():
        names = dict.fromkeys(name for run in members for name in (*run.varied, *run.parameters))
        differ = [name for name in names if len({_text(_value(run, name)) for run in members}) > 1]
        parts: dict[str, list[RecordedRun]] = {}
        for run in members:
            parts.setdefault(_text([_value(run, name) for name in differ]), []).append(run)
        for part in parts.values():
            varied = {name: _value(part[0], name) for name in differ}
            name = " ".join([case, *(f"{key}={_word(value)}" for key, value in varied.items())])
            out.append((RecordedSetting(name, case, varied, dict(part[0].parameters), frames, len(out)), part))
    return out


def _value(run: RecordedRun, name: str) -> Any:
    return run.varied.get(name, run.parameters.get(name))


def _text(value: Any) -> str:
    return json.dumps(value, default=str)


def _word(value: Any) -> str:
    return value if isinstance(value, str) else _text(value)


def _measure(runs: Sequence[RecordedRun], window: int | None) -> Measure:
    kind, records = runs[0].kind, {(run.record, _window(run, window)) for run in runs}
    sources = tuple(dict.fromkeys(run.source for run in runs))
    if len(records) > 1:
        curve, record = "return, as each source tells it", "record"
    else:
        ((what, size),) = records
        record = {"episode": "episode", "mean": "evaluation" if kind == "evaluation" else "record"}.get(what, "record")
        if size > 1:
            curve = f"return, mean of the last {size} {record}s"
        elif what == "episode":
            curve = "return of the last episode"
        else:
            curve = "return, mean of each evaluation's episodes" if kind == "evaluation" else "return, as recorded"
    return Measure(_NAMES[kind], curve, record, "steps", "seed" if all(run.run for run in runs) else "run", sources)


def _notes(runs: Sequence[RecordedRun], window: int | None) -> list[str]:
    """What a reader must know of these runs, in sentences."""
    ways: dict[tuple[str, int], str] = {}
    for run in runs:
        ways.setdefault((run.record, _window(run, window)), run.source)
    notes = []
    if len(ways) > 1:
        said = "; ".join(
            f"{source}: {'the mean of ' + str(size) + ' records' if size > 1 else 'as recorded'}"
            for (_, size), source in ways.items()
        )
        notes.append(f"the curves are not made in the same way, and may differ for that reason ({said})")
    seen: dict[tuple[str, str, str], RecordedRun] = {}
    for run in runs:
        if not run.run:
            continue
        key = (run.setting, run.run, _text([run.varied, run.parameters]))
        if key in seen:
            notes.append(
                f"{run.setting}: {seen[key].path} and {run.path} both have the number {run.run}; if they are the same "
                "seed they are not two independent runs"
            )
        seen[key] = run
    return notes
