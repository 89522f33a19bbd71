"""From the files of a run to the run: what is in them, and what their path says."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ipe.analysis.recorded.evaluations import read_evaluations
from ipe.analysis.recorded.events import Events
from ipe.analysis.recorded.finding import Found
from ipe.analysis.recorded.layout import Named
from ipe.analysis.recorded.monitor import read_monitor, steps_of
from ipe.analysis.recorded.record import RecordedRun, at_least_one
from ipe.analysis.recorded.tags import algorithm_parameters, hyperparameters, tag_of
from ipe.errors import InputError

Name = Callable[[Sequence[str], str], Named]
"""What a path says, given its parts below the user's folder and the environment's id, if that is known."""


def monitor_run(found: Found, name: Name, problems: list[str]) -> RecordedRun:
    """The run of one or several monitor files; several are the environments of one run."""
    monitors = [read_monitor(file) for file in found.files]
    problems += [problem for one in monitors for problem in one.problems]
    _check_together(found.files, [(one.started, one.started + one.seconds) for one in monitors])
    steps, returns = steps_of(monitors)
    many = f" of {len(monitors)} environments" if len(monitors) > 1 else ""
    return RecordedRun(
        path=found.place,
        steps=steps,
        returns=returns,
        kind="training",
        record="episode",
        source=f"monitor.csv{many} (Stable-Baselines3)",
        started=min(one.started for one in monitors),
        seconds=max(one.seconds for one in monitors),
        **said(name(found.parts, monitors[0].environment)),
    )


def evaluation_run(found: Found, trained: Sequence[RecordedRun], name: Name) -> RecordedRun:
    """The run of an `evaluations.npz`; the environment is that of the monitor file beside it or above it."""
    steps, returns = read_evaluations(found.files[0])
    folder = found.files[0].parent
    near = {folder, folder.parent}
    beside = [run.environment for run in trained if run.path in near or run.path.parent in near]
    return RecordedRun(
        path=found.files[0],
        steps=at_least_one(steps),
        returns=returns,
        kind="evaluation",
        record="mean",
        source="evaluations.npz (EvalCallback of Stable-Baselines3, which acts greedily unless told otherwise)",
        **said(name(found.parts, beside[0] if len(set(beside)) == 1 else "")),
    )


def event_run(found: Found, events: Events, tag: str, name: Name) -> RecordedRun | None:
    """The run of one tag in TensorBoard's files; None if the tag has no value."""
    scalar, known, parameters = events.scalars[tag], tag_of(tag), hyperparameters(events.texts)
    there = ~np.isnan(scalar.values)
    if not there.any():
        return None
    steps, returns, times = scalar.steps[there], scalar.values[there], scalar.times[there]
    wrong = np.isinf(returns) | (steps < 0)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(f"{found.place}: {tag} is {returns[i]:g} at step {steps[i]}, which cannot be used")
    fields = said(name(found.parts, str(parameters.get("env_id", ""))))
    fields["run"] = fields["run"] or str(parameters.get("seed", ""))
    fields["setting"] = fields["setting"] or str(parameters.get("exp_name", ""))
    return RecordedRun(
        path=found.files[0].parent,
        steps=at_least_one(steps),
        returns=returns,
        kind=known.kind,
        record=known.record,
        source=f"{tag} in TensorBoard's files" + (f" ({known.program})" if known.program else ""),
        parameters=algorithm_parameters(parameters),
        started=float(times[0]),
        seconds=float(times[-1] - times[0]),
        **fields,
    )


def table_run(run: RecordedRun, found: Found, name: Name) -> RecordedRun:
    """A run of a table; what the table does not say, the file's path does."""
    fields = said(name(found.parts, run.environment))
    if run.setting:
        fields |= {"setting": run.setting, "varied": {}, "folders": ()}
    return run.named(**{**fields, "run": run.run or fields["run"]})


def said(named: Named) -> dict[str, Any]:
    """What a path says, as fields of a run."""
    return {
        "setting": "/".join(named.setting),
        "environment": named.environment,
        "run": named.run,
        "varied": named.varied,
        "folders": named.setting if named.folders else (),
    }


def _check_together(files: Sequence[Path], spans: Sequence[tuple[float, float]]) -> None:
    """Refuse files as the environments of one run if one ended before another began."""
    for file, (start, _) in zip(files, spans, strict=True):
        for other, (_, end) in zip(files, spans, strict=True):
            if end < start:
                raise InputError(
                    f"{file}: it begins after {other.name} has ended, so that these are runs one after the other, not "
                    "environments of one run; give each run a folder of its own"
                )
