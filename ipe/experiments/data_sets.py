"""Data sets to learn from: the kept transitions of a run, a file of transitions, or a Minari data set."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ipe.base.files import naming
from ipe.deep.data import Data, data_from, joined
from ipe.deep.environments import make_environment
from ipe.deep.setting_groups import EnvironmentSettings
from ipe.deep.settings import TrainingSettings
from ipe.deep.transitions import Transitions, load_transitions, minari_transitions
from ipe.errors import InputError
from ipe.experiments.store import TRANSITIONS, open_store

MINARI = "minari:"
"""How the name of a Minari data set begins."""


def read_data(source: Any, where: EnvironmentSettings, seed: int | None = None) -> Data:
    """Read a data set for an environment.

    Args:
        source: the folder of a run that kept its transitions, an .npz file, `minari:NAME`, or `Transitions`.
        where: the environment whose transitions they must be.
        seed: which seed's transitions of a run. Default: those of all seeds that have some, one after the other.

    Raises:
        InputError: there is no such data set, it is empty, or it is of another environment.
    """
    if not isinstance(source, str | os.PathLike | Transitions):
        raise InputError(f"data must be a path, minari:NAME or Transitions, found {type(source).__name__}")
    if isinstance(source, str | os.PathLike) and Path(source).is_dir():
        return _of_run(Path(source), where, seed)
    if seed is not None:
        raise InputError(f"data_seed chooses among the seeds of a run, and {source} is none")
    environment = make_environment(where, 0)
    environment.close()
    transitions = _transitions(source)
    with naming("data" if isinstance(source, Transitions) else str(source)):
        return data_from(transitions, environment.spec, environment.interface)


def _transitions(source: str | os.PathLike[str] | Transitions) -> Transitions:
    if isinstance(source, Transitions):
        return source
    name = str(source)
    if name.startswith(MINARI):
        return minari_transitions(name.removeprefix(MINARI))
    if not Path(source).exists():
        raise InputError(f"{source}: there is no such run or file; a Minari data set is minari:NAME")
    return load_transitions(source)


def kept_transitions(run: str | os.PathLike[str]) -> dict[int, Data]:
    """Read the transitions that a run has kept (`train(..., keep_transitions=True)`), by seed.

    Raises:
        InputError: the run has not kept its transitions, or is not done.
    """
    store = open_store(run)
    if TRANSITIONS not in store.keep:
        raise InputError(f"{store.folder} has not kept its transitions; train it again with --keep-transitions")
    kept: dict[int, Data] = {}
    for job in store.jobs:
        manifest = store.publication(job, verify=False)
        if manifest is None:
            raise InputError(f"{store.folder} is not done: there are no transitions of seed {job.seeds[0]} yet")
        kept |= manifest.read_transitions()
    return {seed: kept[seed] for seed in store.sweep.seeds if seed in kept}


def read_run_data(run: str | os.PathLike[str], settings: TrainingSettings) -> Data | None:
    """Read the data set that a run learned from; None if it learned from its own actions."""
    return open_store(run).data(settings) if settings.data else None


def _of_run(folder: Path, where: EnvironmentSettings, seed: int | None) -> Data:
    found = open_store(folder).sweep.settings[0].settings.environment
    if found.id != where.id:
        raise InputError(f"{folder}: its transitions are of {found.id}, not of {where.id}")
    kept = kept_transitions(folder)
    if not kept:
        raise InputError(f"{folder}: it holds no transitions")
    if seed is not None and seed not in kept:
        raise InputError(f"{folder}: there are no transitions of seed {seed}; there are of {', '.join(map(str, kept))}")
    data = joined(list(kept.values())) if seed is None else kept[seed]
    environment = make_environment(where, 0)
    environment.close()
    if data.observation.shape[1:] != environment.spec.observation_shape:
        shapes = f"{data.observation.shape[1:]}, {where.id} shows {environment.spec.observation_shape} here"
        raise InputError(f"{folder}: its observations are of the shape {shapes}")
    return data
