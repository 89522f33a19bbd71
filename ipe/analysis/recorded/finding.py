"""The files of runs in a folder: which there are, and which files are one run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ipe.analysis.recorded.evaluations import is_evaluations
from ipe.analysis.recorded.events import is_events
from ipe.analysis.recorded.monitor import is_monitor, stem_of
from ipe.base.words import refusing
from ipe.errors import InputError

_OF_IPE = ("sweep.json", "run.json", "halving.json")


@dataclass(frozen=True)
class Found:
    """Files that make up one run, or, in a table, several."""

    files: list[Path]
    parts: tuple[str, ...]
    """The path of the run below the folder that the user named."""

    @property
    def place(self) -> Path:
        """The file, or the folder of several files."""
        return self.files[0] if len(self.files) == 1 else self.files[0].parent


@dataclass(frozen=True)
class Files:
    """The files of runs in one folder, by kind."""

    root: Path
    monitors: list[Found] = field(default_factory=list)
    evaluations: list[Found] = field(default_factory=list)
    events: list[Found] = field(default_factory=list)
    tables: list[Found] = field(default_factory=list)
    stores: list[Path] = field(default_factory=list)
    """Sweeps and training runs of ipe inside the folder."""


def is_store(folder: Path) -> bool:
    """Whether a folder is a sweep or a training run of ipe."""
    return any((folder / name).is_file() for name in _OF_IPE)


def find_files(path: str | os.PathLike[str]) -> Files:
    """The files of runs at a path: in a folder and those below it, or a single file, by its name.

    Raises:
        InputError: if there is nothing at the path.
    """
    root = Path(path)
    if root.is_file():
        return _single(root)
    if not root.is_dir():
        raise InputError(f"there is no file or folder {root}")
    found, seen = Files(root), set[str]()
    with refusing(f"cannot read the folder {root}"):
        for folder, folders, names in os.walk(root, followlinks=True):
            folders.sort()
            here = Path(folder)
            if (real := os.path.realpath(folder)) in seen:  # a link to a folder that was looked into, or is above
                folders.clear()
                continue
            seen.add(real)
            if here != root and is_store(here):
                found.stores.append(here)
                folders.clear()
                continue
            _sort(found, here, [here / name for name in sorted(names)], here.relative_to(root).parts)
    return found


def _single(file: Path) -> Files:
    """The one file that the user named; its run's path is its name, where that says something."""
    found = Files(file.parent)
    if is_monitor(file):
        found.monitors.append(Found([file], (stem_of(file),) if stem_of(file) else ()))
    elif is_events(file):
        found.events.append(Found([file], ()))
    elif file.suffix == ".npz":
        found.evaluations.append(Found([file], () if is_evaluations(file) else (file.stem,)))
    else:
        found.tables.append(_table(file, ()))
    return found


def _sort(found: Files, folder: Path, files: Sequence[Path], parts: tuple[str, ...]) -> None:
    monitors = [file for file in files if is_monitor(file)]
    numbered = [file for file in monitors if stem_of(file).isdigit()]
    if numbered:  # as `make_vec_env` numbers the environments of one run
        found.monitors.append(Found(sorted(numbered, key=lambda file: int(stem_of(file))), parts))
    for file in monitors:
        if file not in numbered:
            found.monitors.append(Found([file], (*parts, stem_of(file)) if stem_of(file) else parts))
    found.evaluations.extend(Found([file], parts) for file in files if is_evaluations(file))
    if events := [file for file in files if is_events(file)]:
        found.events.append(Found(events, parts))
    others = [file for file in files if file.name.removesuffix(".gz").endswith(".csv") and file not in monitors]
    found.tables.extend(_table(file, parts) for file in others)


def _table(file: Path, parts: tuple[str, ...]) -> Found:
    """A table: its name is a part of its run's path, unless it is the one that every run's table has."""
    stem = file.name.removesuffix(".gz").rpartition(".")[0] or file.name
    return Found([file], parts if stem == "progress" else (*parts, stem))
