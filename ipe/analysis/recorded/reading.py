"""Reading the runs that other programs recorded, from folders and files.

A path is a folder, in which all runs are found, or a file. The training returns of each path come from one kind of
files, so that no run counts twice: from monitor files where there are some, else from TensorBoard's files, else from
tables. Evaluations are beside them.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from ipe.analysis.recorded.events import read_events
from ipe.analysis.recorded.finding import Files, Found, find_files, is_store
from ipe.analysis.recorded.layout import Named, match_path, pattern_of, read_path
from ipe.analysis.recorded.making import Name, evaluation_run, event_run, monitor_run, table_run
from ipe.analysis.recorded.monitor import read_monitor
from ipe.analysis.recorded.naming import Placed, named_apart
from ipe.analysis.recorded.record import RecordedRun
from ipe.analysis.recorded.stores import store_runs
from ipe.analysis.recorded.tables import check_columns, read_table
from ipe.analysis.recorded.tags import TAGS, known_tags
from ipe.base.words import did_you_mean, one_of
from ipe.errors import InputError

Source: TypeAlias = Literal["auto", "monitor", "evaluations", "tensorboard", "csv"]
"""The kind of files that runs are read from."""

_MOST_TAGS = 20


@dataclass(frozen=True)
class RecordedRuns:
    """The runs that were found, and what a reader must know of their files, in sentences."""

    runs: list[RecordedRun]
    """The runs."""
    problems: list[str] = field(default_factory=list)
    """What is not read, cut off or not said by the files, in sentences."""


def read_recorded(
    *paths: str | os.PathLike[str],
    source: Source = "auto",
    tag: str | None = None,
    columns: Mapping[str, str] | None = None,
    layout: str | None = None,
    environment: str | None = None,
) -> RecordedRuns:
    """Read the runs that Stable-Baselines3, CleanRL or anyone else recorded.

    Args:
        paths: folders, which are searched to the bottom, and files. A sweep of ipe may be among them: its training
            returns then stand beside the others'.
        source: the kind of files. "auto" takes the training returns of each path from monitor files, else from
            TensorBoard's files, else from tables; and the evaluations that are there.
        tag: the tag of the returns in TensorBoard's files. Default: those that are known
            (`ipe.analysis.recorded.tags.TAGS`).
        columns: the names of a table's columns by what they are (step, return, run, setting, environment). Default:
            their usual names (`ipe.analysis.recorded.tables.NAMES`).
        layout: what the path of a run below the folder says, as in `{environment}/{setting}/seed{seed}`; any other name
            in braces is a hyperparameter. Default: what the names of folders look like.
        environment: the environment of the runs of which neither files nor paths say it.

    Raises:
        InputError: naming the file, and the line or the record, if something in it is wrong; and if there is no run.
    """
    one_of(source, get_args(Source), "source")
    check_columns(columns or {})
    if not paths:
        raise InputError("paths is empty: name at least one folder or file")
    source = _only(source, tag, columns)
    pattern = None if layout is None else pattern_of(layout)
    placed: list[Placed] = []
    problems: list[str] = []
    for path in _apart(paths):
        if is_store(path):
            runs, said = store_runs(path)
            placed += [Placed(run, path) for run in runs]
            problems += said
            continue
        files = find_files(path)

        def name(parts: Sequence[str], known: str, root: Path = files.root) -> Named:
            if pattern is None or layout is None:
                return _named(parts, known, root)
            named = match_path(parts, pattern, layout)
            return named if named.environment else replace(named, environment=known)

        runs = _read_files(files, name, source, tag, columns or {}, problems)
        placed += [Placed(run, files.root) for run in runs]
    return RecordedRuns(named_apart(placed, environment, problems), problems)


def _apart(paths: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The paths, each once; a path inside another would count its runs twice, and is refused."""
    found = {Path(path).resolve(): Path(path) for path in paths}
    for inner, path in found.items():
        for outer in inner.parents:
            if outer in found:
                raise InputError(f"{path} lies in {found[outer]}: its runs would count twice")
    return list(found.values())


def _only(source: Source, tag: str | None, columns: Mapping[str, str] | None) -> Source:
    """The kind of files that is meant: a tag is TensorBoard's, and columns are a table's."""
    meant: list[tuple[str, Source]] = []
    meant += [("tag", "tensorboard")] if tag else []
    meant += [("columns", "csv")] if columns else []
    for name, kind in meant:
        if source not in ("auto", kind):
            raise InputError(f"{name} is for the source {kind}, and the source is {source}")
        source = kind
    return source


def _named(parts: Sequence[str], environment: str, root: Path) -> Named:
    """What a path says; the name of the user's folder counts if the path below says no setting."""
    named = read_path(parts, environment)
    if named.setting or named.varied:
        return named
    return replace(read_path([root.resolve().name, *parts], environment), folders=False)


def _read_files(
    files: Files, name: Name, source: Source, tag: str | None, columns: Mapping[str, str], problems: list[str]
) -> list[RecordedRun]:
    """The runs of one path."""
    problems += [f"{store} is a sweep of ipe: it is read when it is named by itself" for store in files.stores]
    auto = source == "auto"
    monitors = source == "monitor" or (auto and bool(files.monitors))
    runs: list[RecordedRun] = []
    if monitors:
        runs += [monitor_run(found, name, problems) for found in files.monitors]
    if auto or source == "evaluations":
        runs += [evaluation_run(found, runs, name) for found in files.evaluations]
    if source == "tensorboard" or (auto and not monitors):
        kinds, known = {run.kind for run in runs}, {read_monitor(file).environment for file in _first(files.monitors)}
        made = [run for run in _event_runs(files, name, tag, problems) if run.kind not in kinds]
        runs += [run if run.environment or len(known) > 1 else run.named(environment="".join(known)) for run in made]
    elif auto and files.events:
        problems.append(
            f"{files.root}: TensorBoard's files in {len(files.events)} folders are not read, since monitor.csv has the "
            "same training; --source tensorboard reads them instead"
        )
    if source == "csv" or (auto and not runs):
        for found in files.tables:
            table = read_table(found.files[0], columns)
            runs += [table_run(run, found, name) for run in table.runs]
            problems += table.problems
    if not runs:
        raise InputError(_nothing(files, source))
    return runs


def _first(monitors: Sequence[Found]) -> list[Path]:
    """A monitor file of each run: they say the environment, which TensorBoard's files do not."""
    return [found.files[0] for found in monitors]


def _event_runs(files: Files, name: Name, tag: str | None, problems: list[str]) -> list[RecordedRun]:
    """The runs of TensorBoard's files; folders without a return are left out, and a problem says so."""
    runs: list[RecordedRun] = []
    tags: dict[str, None] = {}
    without = 0
    for found in files.events:
        events = read_events(found.files)
        problems += events.problems
        tags |= dict.fromkeys(events.scalars)
        chosen = list(known_tags(events.scalars).values()) if tag is None else [tag] if tag in events.scalars else []
        made = [run for each in chosen if (run := event_run(found, events, each, name)) is not None]
        without += not made
        runs += made
    if files.events and not runs:
        raise InputError(_no_tag(files, tag, list(tags)))
    if without:
        problems.append(f"{files.root}: TensorBoard's files in {without} folders hold no returns, and are left out")
    return runs


def _no_tag(files: Files, wanted: str | None, tags: Sequence[str]) -> str:
    shown = ", ".join(tags[:_MOST_TAGS]) + (f" and {len(tags) - _MOST_TAGS} more" if len(tags) > _MOST_TAGS else "")
    there = f"the tags are {shown}" if tags else "they hold no scalars"
    if wanted is not None:
        return f"{files.root}: no TensorBoard file has values of {wanted!r}{did_you_mean(wanted, tags)}; {there}"
    return (
        f"{files.root}: TensorBoard's files have no tag that is known to hold returns ({', '.join(TAGS)}); say which "
        f"one does: --tag NAME; {there}"
    )


def _nothing(files: Files, source: Source) -> str:
    what = {
        "monitor": "no monitor.csv",
        "evaluations": "no evaluations.npz",
        "tensorboard": "no event file of TensorBoard",
        "csv": "no .csv file",
        "auto": "no run: no monitor.csv, no evaluations.npz, no event file of TensorBoard, and no .csv file",
    }[source]
    return f"{files.root}: there is {what} in it, and it is no sweep of ipe"
