"""Runs from several places side by side: settings that can be told apart, and the environments of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ipe.analysis.recorded.record import RecordedRun
from ipe.errors import InputError

UNKNOWN = "environment not recorded"
"""The environment of runs of which nothing says it."""


class Placed(NamedTuple):
    """A run, and the path of the user that it was found at."""

    run: RecordedRun
    root: Path


def named_apart(placed: Sequence[Placed], environment: str | None, problems: list[str]) -> list[RecordedRun]:
    """The runs with short names of their settings and with an environment each.

    Folders that all runs have in common are no part of the names. Where two paths of the user have settings of the same
    name, the name of the path stands before it. A run of which nothing says the environment has the one that the user
    names, or the only one that the others have.
    """
    runs = [each.run.named(setting=name) for each, name in zip(placed, _settings(placed), strict=True)]
    known = sorted({run.environment for run in runs if run.environment})
    unknown = [run for run in runs if not run.environment]
    if not unknown:
        return runs
    fill = environment or (known[0] if len(known) == 1 else UNKNOWN)
    if environment is None and len(known) == 1:
        problems.append(
            f"{unknown[0].path} does not say its environment"
            + (f", nor do {len(unknown) - 1} others" if len(unknown) > 1 else "")
            + f"; taken for {fill}, which the other runs have (--environment NAME says another)"
        )
    if environment is None and len(known) > 1:
        raise InputError(
            f"{unknown[0].path}: nothing says its environment, and the others have {', '.join(known)}; give "
            "--environment NAME, or --layout"
        )
    return [run if run.environment else run.named(environment=fill) for run in runs]


def _settings(placed: Sequence[Placed]) -> list[str]:
    names = [list(each.run.folders) or [each.run.setting] for each in placed]
    while names and all(len(name) > 1 and name[0] == names[0][0] for name in names):
        names = [name[1:] for name in names]
    joined = ["/".join(name) for name in names]
    roots: dict[str, set[Path]] = {}
    for each, name in zip(placed, joined, strict=True):
        if each.run.folders:
            roots.setdefault(name, set()).add(each.root)
    clash = any(len(found) > 1 for found in roots.values())
    return [
        f"{each.root.resolve().name}/{name}" if clash and each.run.folders else name or "runs"
        for each, name in zip(placed, joined, strict=True)
    ]
