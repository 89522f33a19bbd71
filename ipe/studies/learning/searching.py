r"""Adaptive search: the settings of a grid that Optuna proposes, a few at a time, in one store.

The grid's lists are the space to search. A trial is a setting with all the sweep's seeds; its score is the mean AUC of
its runs, and it is compared with the trials of its own case and environment. What Optuna proposes depends on the trials
before, which the store holds in their order, and on the trial's number: a search that was stopped goes on as if it had
not been.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ipe.analysis.halving import mean_area
from ipe.analysis.series import read_groups
from ipe.base.packages import missing_package
from ipe.errors import InputError
from ipe.experiments.declared import Setting, Sweep, check_contains
from ipe.experiments.engine import OnSweepProgress, SweepResult, run_sweep
from ipe.experiments.halving import case_of
from ipe.experiments.results import load_results
from ipe.experiments.store import open_store

SAMPLERS = ("optuna",)
TRIALS = 20
"""By default, so many settings of each case are tried, or all if there are fewer."""
AT_RANDOM = 8
"""The first trials of a case, which are drawn at random."""
TOGETHER = 4
"""So many trials of a case are proposed at a time, whatever machine runs them."""
ATTEMPTS = 100
"""How often a setting that was tried before is proposed before the nearest other one is taken."""


@dataclass(frozen=True)
class Space:
    """The settings of one case and environment, by the places of their values in the grid's lists."""

    name: str
    """The case, for the seed of the sampler."""
    lists: dict[str, list[Any]]
    """What the settings vary, by its path: the values, in order if they are numbers."""
    settings: dict[tuple[int, ...], Setting]
    """The settings by the place of each value in its list."""

    def members(self, tried: Sequence[Setting]) -> list[Setting]:
        """Those of some settings that are of this space, in their order."""
        keys = {setting.key for setting in self.settings.values()}
        return [setting for setting in tried if setting.key in keys]

    def places(self, setting: Setting) -> tuple[int, ...]:
        """Where in the lists a setting's values stand."""
        return tuple(values.index(setting.varied[path]) for path, values in self.lists.items())


def spaces_of(sweep: Sweep) -> list[Space]:
    """The spaces that a sweep's cases are.

    Raises:
        InputError: the sweep cannot be searched.

    Example:
        >>> from ipe.experiments.grids import read_sweep
        >>> [space] = spaces_of(read_sweep("freeway-dqn"))
        >>> len(space.settings), list(space.lists)[0]
        (54, 'target_period')
    """
    if sweep.one_at_a_time:
        raise InputError("one_at_a_time: a sampler looks for the best of all combinations")
    if len({setting.settings.frames for setting in sweep.settings}) > 1:
        raise InputError("frames are what the grid varies; a sampler compares settings of equal frames")
    members: dict[tuple[str, str], list[Setting]] = {}
    for setting in sweep.settings:
        members.setdefault(case_of(setting), []).append(setting)
    return [_space(" ".join(case), settings) for case, settings in members.items()]


def _space(name: str, settings: Sequence[Setting]) -> Space:
    lists: dict[str, list[Any]] = {}
    for path in settings[0].varied:
        values: list[Any] = []
        for setting in settings:
            if setting.varied[path] not in values:
                values.append(setting.varied[path])
        numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in values)
        if len(values) > 1:
            lists[path] = sorted(values) if numbers else values
    space = Space(name, lists, {})
    return replace(space, settings={space.places(setting): setting for setting in settings})


def run_search(
    sweep: Sweep,
    folder: str | os.PathLike[str],
    *,
    trials: int | None = None,
    callback: OnSweepProgress | None = None,
    **options: Any,
) -> SweepResult:
    """Run the settings of a sweep that Optuna proposes, or go on with that.

    Args:
        sweep: the sweep, whose grid is the space.
        folder: the folder of the store: a new one, or one that a search of this sweep has begun.
        trials: how many settings of each case to try. Default: `TRIALS`, or all if there are fewer.
        callback: called with the progress of the trials proposed so far; if it returns True, the search stops.
        options: as for `run_sweep`, but `shard`.

    Returns:
        What came out.

    Raises:
        InputError: Optuna is not installed, the sweep cannot be searched, there are not so many settings, or the folder
            holds something else.
        KeyboardInterrupt: after Ctrl-C or SIGTERM, when the checkpoints are written.
    """
    if find_spec("optuna") is None:
        raise missing_package("--sampler optuna", "Optuna", extra="optuna")
    if options.get("shard") is not None:
        raise InputError("a shard has no part in a search: what is tried next depends on all runs before")
    spaces = spaces_of(sweep)
    least = min(len(space.settings) for space in spaces)
    if trials is not None and not 1 <= trials <= least:
        raise InputError(f"trials must be from 1 to {least}, the settings of a case; found {trials}")
    tried = _stored(sweep, folder)
    while True:
        result = None
        if tried:
            part = replace(sweep, settings=[one for space in spaces for one in space.members(tried)])
            result = run_sweep(part, folder, callback=callback, **options)
            if result.status != "done":
                return result
        scores = _scores(folder) if tried else {}
        new = [
            setting
            for space in spaces
            for setting in _proposed(space, tried, scores, min(len(space.settings), trials or TRIALS))
        ]
        if not new:
            assert result is not None
            return result
        tried += new


def _stored(sweep: Sweep, folder: str | os.PathLike[str]) -> list[Setting]:
    """The settings that a folder has already, in their order; they must be of the sweep."""
    if not (Path(folder) / "sweep.json").is_file():
        return []
    stored = open_store(folder).sweep
    try:
        check_contains(sweep, stored)
    except InputError as error:
        raise InputError(f"{Path(folder)} was made for another sweep: {error}") from None
    return [sweep.by_key[setting.key] for setting in stored.settings]


def _scores(folder: str | os.PathLike[str]) -> dict[str, float]:
    """The mean AUC of every setting of a store, by its key."""
    results = load_results(folder, progress=False)
    return {one.setting.key: mean_area(one) for group in read_groups(results) for one in group.series}


def _proposed(space: Space, tried: Sequence[Setting], scores: Mapping[str, float], trials: int) -> list[Setting]:
    """The next trials of a case, up to the end of its batch."""
    before = [space.places(setting) for setting in space.members(tried)]
    known = len(before) // TOGETHER * TOGETHER
    found = list(before)
    while len(found) < min(trials, known + TOGETHER):
        done = {places: scores[space.settings[places].key] for places in before[:known]}
        found.append(propose(space, done, found[known:], len(found)))
    return [space.settings[places] for places in found[len(before) :]]


def propose(
    space: Space, done: Mapping[tuple[int, ...], float], pending: Sequence[tuple[int, ...]], number: int
) -> tuple[int, ...]:
    """The next trial by Optuna's sampler (TPE), as places in the lists; never one that was tried.

    Trials whose runs are not done count as the worst that there is, so that one batch spreads.

    Args:
        space: what to search.
        done: the scores of the trials before this batch.
        pending: the trials of this batch.
        number: the trial's number, from 0, which seeds the sampler.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    tried = {*done, *pending}
    if not space.lists:
        return ()
    distributions: dict[str, Any] = {
        path: optuna.distributions.IntDistribution(0, len(v) - 1) for path, v in space.lists.items()
    }
    seed = zlib.crc32(f"{space.name} {number}".encode())
    sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=AT_RANDOM)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    worst = min(done.values(), default=0.0)
    for places, score in [*done.items(), *((places, worst) for places in pending)]:
        values = dict(zip(space.lists, places, strict=True))
        study.add_trial(optuna.trial.create_trial(params=values, distributions=distributions, value=score))
    for _ in range(ATTEMPTS):
        asked = study.ask(fixed_distributions=distributions)
        wanted = tuple(asked.params[path] for path in space.lists)
        if wanted in space.settings and wanted not in tried:
            return wanted
    left = (places for places in space.settings if places not in tried)
    return min(left, key=lambda places: sum(abs(a - b) for a, b in zip(places, wanted, strict=True)))
