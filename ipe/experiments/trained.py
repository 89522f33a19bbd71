"""The networks of a training run or a sweep, read from its store, to evaluate, watch or audit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.base.words import did_you_mean, one_of
from ipe.deep.environments import make_environment
from ipe.deep.evaluating import Kept
from ipe.deep.networks import Architecture
from ipe.deep.playing import Trained
from ipe.deep.programs import architecture, as_before, policy_architecture
from ipe.deep.progress import Outcome
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError
from ipe.experiments.declared import Job, Setting
from ipe.experiments.old_runs import is_old_run, read_old_run
from ipe.experiments.reading import read_snapshot
from ipe.experiments.store import Store, open_store

_NOT_EVALUATED = "it has no best networks, because it was not evaluated while it trained (`--evaluate-every`)"
_Part = tuple[Path, list[Outcome], list[int], dict[str, NDArray[Any]]]
"""A file, the outcomes of some seeds, those that have networks, and the networks, whose first axis these seeds are."""


WHICH = ("last", "best")
"""Which networks of a seed are meant: those that its training last came to, or those of its best evaluation."""


def read_trained(
    folder: str | os.PathLike[str], frame_limit: int | None = None, setting: str | None = None, which: str = "last"
) -> Trained:
    """Read the networks of a run, or of one setting of a sweep that keeps them, as of the moment when its training last
    ended or was stopped; or of each seed's best greedy evaluation while it trained. Episodes are truncated after the
    run's own number of frames, or after `frame_limit`.

    Raises:
        InputError: naming the file that is missing, damaged, or does not fit the settings; or if the best networks are
            asked for of a run that was not evaluated.
    """
    one_of(which, WHICH, "which")
    path = Path(folder)
    if not path.is_dir():
        raise InputError(f"there is no run {path}")
    if is_old_run(path):
        old = read_old_run(path)
        if which == "best":
            raise InputError(f"{path}: {_NOT_EVALUATED}")
        settings, parts = old.settings, iter([(path / "networks.safetensors", old.outcomes, *old.networks())])
    else:
        store = open_store(path)
        chosen = _chosen(store, setting)
        if which == "best" and store.sweep.evaluating is None:
            raise InputError(f"{path}: {_NOT_EVALUATED}")
        settings, parts = chosen.settings, _parts(store, chosen, which)
    if frame_limit is not None and frame_limit < 1:
        raise InputError(f"frame_limit must be 1 or more, found {frame_limit}")
    read = list(parts)
    try:
        return _trained(path, settings, frame_limit, read, which)
    except InputError:
        # A run of an earlier version may have read its images in another way.
        with contextlib.suppress(InputError):
            return _trained(path, as_before(settings), frame_limit, read, which)
        raise


def _trained(
    path: Path, settings: TrainingSettings, frame_limit: int | None, parts: list[_Part], which: str
) -> Trained:
    """Return the networks, after a check that they are those of the settings."""
    where = settings.environment
    if frame_limit is not None:
        where = where.model_copy(update={"frame_limit": frame_limit})
    environment = make_environment(where, 0)
    environment.close()
    shape = architecture(settings, environment.spec)
    outcomes: list[Outcome] = []
    networks: dict[int, dict[str, dict[str, NDArray[np.float32]]]] = {}
    for file, ends, seeds, arrays in parts:
        outcomes += ends
        if seeds:
            shapes = {"q": shape}
            if settings.learns_policy:
                shapes["policy"] = policy_architecture(shape, settings.updates_policy)
            networks |= _by_seed(file, shapes, seeds, arrays)
    return Trained(path, settings, where, environment.spec, environment.interface, outcomes, networks, which)


def _chosen(store: Store, name: str | None) -> Setting:
    settings = store.sweep.settings
    if name is None:
        if len(settings) > 1:
            raise InputError(
                f"{store.folder} is a sweep of {len(settings)} settings; say which one is meant by its name, for "
                f"instance {settings[0].name!r}"
            )
        return settings[0]
    found = [setting for setting in settings if setting.name == name]
    if not found:
        near = did_you_mean(name, [setting.name for setting in settings])
        raise InputError(f"{store.folder} has no setting {name!r}{near}")
    return found[0]


def _parts(store: Store, setting: Setting, which: str) -> Iterator[_Part]:
    """Yield what each job of a setting has come to, in the order of the sweep's seeds."""
    order = {seed: i for i, seed in enumerate(store.sweep.seeds)}
    for job in sorted((job for job in store.jobs if job.key == setting.key), key=lambda job: order[job.seeds[0]]):
        yield _part(store, job) if which == "last" else _best(store, job)


def _best(store: Store, job: Job) -> _Part:
    """Return the networks of the best evaluation of each seed that has one; its outcome is of the frame of that
    evaluation, whatever became of the seed later."""
    manifest = store.publication(job, verify=False)
    if manifest is not None:
        if not manifest.has_networks:
            raise _not_kept(store)
        file, kept = manifest.path.with_suffix(".best"), manifest.read_best()
    else:
        snapshot = read_snapshot(store, job)
        file, kept = store.work_folder(job), Kept(len(job.seeds)) if snapshot is None else snapshot.best
    have = kept.frames.nonzero()[0].tolist()
    outcomes = [Outcome(seed, frame=int(kept.frames[i])) for i, seed in enumerate(job.seeds)]
    return file, outcomes, [job.seeds[i] for i in have], {name: array[have] for name, array in kept.networks.items()}


def _not_kept(store: Store) -> InputError:
    return InputError(
        f"{store.folder} has not kept its networks, which this needs; run the sweep with keep_networks "
        "(`ipe sweep --keep-networks`), or train the setting with `ipe train`"
    )


def _part(store: Store, job: Job) -> _Part:
    if (manifest := store.publication(job, verify=False)) is not None:
        if not manifest.has_networks:
            raise _not_kept(store)
        file, outcomes = manifest.path.with_suffix(".safetensors"), [Outcome(**end) for end in manifest.outcomes]
        return file, outcomes, list(job.seeds), manifest.read_networks()
    folder = store.work_folder(job)
    snapshot = read_snapshot(store, job)
    if snapshot is None:
        return folder, [Outcome(seed) for seed in job.seeds], [], {}
    return folder, snapshot.outcomes, list(job.seeds), snapshot.networks


def _by_seed(
    file: Path, shapes: dict[str, Architecture], seeds: list[int], arrays: dict[str, NDArray[Any]]
) -> dict[int, dict[str, dict[str, NDArray[np.float32]]]]:
    """Return the networks of each seed, after a check that the arrays are of the shapes that the settings ask for."""
    for name, shape in shapes.items():
        for part, expected in zip(("matrix", "rest"), _shapes(shape, len(seeds)), strict=True):
            array = arrays.get(f"{name}.{part}")
            if array is None or array.shape != expected or array.dtype != np.float32:
                found = "is missing" if array is None else f"is {array.dtype} of shape {array.shape}"
                raise InputError(
                    f"{file} does not fit the run: {name}.{part} {found}, expected float32 of shape {expected}"
                )
    return {
        seed: {name: {part: arrays[f"{name}.{part}"][i : i + 1] for part in ("matrix", "rest")} for name in shapes}
        for i, seed in enumerate(seeds)
    }


def _shapes(shape: Architecture, seeds: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of the two arrays of a network's parameters."""
    inputs, outputs = shape.layers[-1 - len(shape.heads)]
    rest = sum(i * o + o for i, o in shape.layers) - inputs * outputs
    return (seeds, inputs, outputs), (seeds, rest)
