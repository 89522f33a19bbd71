"""Names for runs that stand side by side: the shortest that tell them apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from ipe.deep import TrainingSettings


class FromAFolder(Protocol):
    """What was read from a folder: the runs of a setting, or their evaluation."""

    @property
    def folder(self) -> Path:
        """The folder."""

    @property
    def settings(self) -> TrainingSettings:
        """The settings that were trained."""


T = TypeVar("T", bound=FromAFolder)


def named_apart(runs: Sequence[T]) -> dict[str, T]:
    """The runs by the shortest names that tell them apart: behaviours, names of folders, paths, names of settings."""
    names: tuple[Callable[[T], str], ...] = (
        lambda run: run.settings.behaviour,
        lambda run: run.folder.name,
        lambda run: str(run.folder),
        lambda run: getattr(run, "name", ""),
        lambda run: f"{run.folder} {getattr(run, 'name', '')}",
    )
    for name in names:
        named = {name(run): run for run in runs}
        if len(named) == len(runs):
            break
    return named
