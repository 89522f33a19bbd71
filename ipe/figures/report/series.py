"""From the records of a sweep to the runs of each setting: their curves, areas and final returns.

Runs are the unit. A run that failed or diverged stays: its curve keeps its last mean, so its area does too. A run that
never finished an episode has no curve; it scores the worst that any run of the comparison did.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pyarrow as pa

from ipe.analysis import aucs, curves, frame_grid, recorded_curves, score_failed, worst_seen
from ipe.analysis.columns import Frames
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.experiments.declared import Setting
from ipe.experiments.results import Results

Failed: TypeAlias = Literal["keep", "worst"]
"""What a run that failed or diverged scores: as if it had kept its last mean, or the worst that was seen."""


@dataclass(frozen=True, eq=False)
class Series:
    """The runs of one setting.

    Attributes:
        setting: the setting.
        fresh: whether these are new runs, by which nothing was chosen.
        planned: how many runs it is to have: those that are there, and those that are missing.
        outcomes: seed, status, frame and reason of each run; the order of everything below.
        curves: shape (runs, grid), NaN where not defined.
        epsilon: the same, of epsilon; None if none was recorded.
        entropy: the same, of the policy's entropy.
        auc: one number per run.
        final: the mean return of the last episodes at the last frame, one number per run.
        without: the runs that finished no episode, and score the worst seen.
    """

    setting: Setting
    fresh: bool
    planned: int
    outcomes: list[dict[str, Any]]
    curves: Array
    epsilon: Array | None
    entropy: Array | None
    auc: Array
    final: Array
    without: int

    @property
    def name(self) -> str:
        """The setting's name, and whether these are fresh runs."""
        return f"{self.setting.name} (fresh runs)" if self.fresh else self.setting.name

    @property
    def n(self) -> int:
        """The number of runs."""
        return len(self.outcomes)

    def count(self, status: str) -> int:
        """How many runs ended so."""
        return sum(outcome["status"] == status for outcome in self.outcomes)


@dataclass(frozen=True, eq=False)
class Group:
    """The settings of one environment: returns of different ones are not comparable.

    Attributes:
        environment: its id, with what tells it apart from others of that id.
        frames: to where the settings are compared, the fewest that any of them has.
        grid: the frames of the curves.
        series: those with at least one run, in the order of the sweep.
        fresh: the same, of fresh runs.
        missing: the names of settings without a run.
    """

    environment: str
    frames: int
    grid: Frames
    series: list[Series]
    fresh: list[Series]
    missing: list[str]


def read_groups(
    results: Results, confirm: Results | None = None, *, grid_points: int = 250, failed: Failed = "keep"
) -> list[Group]:
    """The runs of every setting, by environment.

    Args:
        results: of the sweep.
        confirm: fresh runs of some of its settings.
        grid_points: frames at which the curves are drawn.
        failed: what a run that did not end well scores.

    Raises:
        InputError: if there are no runs, if no run finished an episode, or if the fresh runs are not of these settings
            or not fresh.
    """
    if failed not in ("keep", "worst"):
        raise InputError(f"failed must be keep or worst, found {failed!r}")
    if not results.outcomes:
        raise InputError(f"the sweep {results.sweep.name!r} has no finished run yet: there is nothing to report")
    if confirm is not None:
        _check_fresh(results, confirm)
    labels = _environments(results.sweep.settings)
    groups = []
    for environment in dict.fromkeys(labels):
        own = {i: s for i, s in enumerate(results.sweep.settings) if labels[i] == environment}
        frames = min(setting.settings.frames for setting in own.values())
        grid = frame_grid(frames, grid_points)
        series = _series(results, own, grid, frames, fresh=False)
        fresh: list[Series] = []
        if confirm is not None:
            by_key = {setting.key: setting for setting in own.values()}
            same = {i: by_key[s.key] for i, s in enumerate(confirm.sweep.settings) if s.key in by_key}
            fresh = _series(confirm, same, grid, frames, fresh=True)
        have = {one.setting.key for one in series}
        missing = [setting.name for setting in own.values() if setting.key not in have]
        if series:
            series, fresh = _scored(environment, frames, series, fresh, failed)
            groups.append(Group(environment, frames, grid, series, fresh, missing))
    return groups


def _check_fresh(results: Results, confirm: Results) -> None:
    known = {setting.key: i for i, setting in enumerate(results.sweep.settings)}
    ran = {(outcome["setting"], outcome["seed"]) for outcome in results.outcomes}
    shared = 0
    for outcome in confirm.outcomes:
        setting = confirm.sweep.settings[outcome["setting"]]
        index = known.get(setting.key)
        if index is None:
            continue
        shared += 1
        if (index, outcome["seed"]) in ran:
            raise InputError(
                f"confirm: seed {outcome['seed']} of {setting.name!r} is among the runs that it was chosen by; "
                "fresh runs need other seeds"
            )
    if not shared:
        raise InputError("confirm: it has no finished run of any setting of this sweep")


def _environments(settings: Sequence[Setting]) -> list[str]:
    """The environment of each setting by its id; where the same id is made in several ways, by how."""
    made = [setting.settings.environment for setting in settings]
    ways: dict[str, set[str]] = {}
    for own in made:
        ways.setdefault(own.id, set()).add(own.model_dump_json())
    out = []
    for own in made:
        how = {"frame_limit": own.frame_limit, **own.options}
        words = ", ".join(f"{name} = {value}" for name, value in how.items())
        out.append(own.id if len(ways[own.id]) == 1 else f"{own.id} ({words})")
    return out


def _series(results: Results, at: Mapping[int, Setting], grid: Frames, frames: int, *, fresh: bool) -> list[Series]:
    """The runs of some settings: by their indices in the results, what they are called in the report."""
    out = []
    for i, setting in at.items():
        outcomes = results.outcomes_of(i)
        if not outcomes:
            continue
        seeds = [int(outcome["seed"]) for outcome in outcomes]
        episodes, progress = results.episodes_of(i), results.progress_of(i)
        values = curves(episodes, grid, seeds)
        out.append(
            Series(
                setting=setting,
                fresh=fresh,
                planned=len(outcomes) + sum(where == i for where, _ in results.missing),
                outcomes=outcomes,
                curves=values,
                epsilon=_recorded(progress, "epsilon", grid, seeds),
                entropy=_recorded(progress, "entropy", grid, seeds),
                auc=aucs(episodes, frames, seeds),
                final=values[:, -1],
                without=0,
            )
        )
    return out


def _recorded(progress: pa.Table, name: str, grid: Frames, seeds: list[int]) -> Array | None:
    if progress.num_rows == 0:
        return None
    values = recorded_curves(progress, name, grid, seeds)
    return values if np.isfinite(values).any() else None


def _scored(
    environment: str, frames: int, series: list[Series], fresh: list[Series], failed: Failed
) -> tuple[list[Series], list[Series]]:
    """With a score for every run, the same for all that have none of their own."""
    both = [*series, *fresh]
    if not any(np.isfinite(own.auc).any() for own in both):
        raise InputError(f"no run has finished an episode within {frames} frames of {environment}: nothing to report")
    # Of all runs, those that failed too: to fail must never score better than not to.
    worst, last = (worst_seen(*(getattr(own, name) for own in both)) for name in ("auc", "final"))
    if failed == "worst":
        series, fresh = [_without_failed(own) for own in series], [_without_failed(own) for own in fresh]

    def scored(own: Series) -> Series:
        without = int(np.isnan(own.curves[:, -1]).sum())
        return replace(own, auc=score_failed(own.auc, worst), final=score_failed(own.final, last), without=without)

    return [scored(own) for own in series], [scored(own) for own in fresh]


def _without_failed(own: Series) -> Series:
    bad = np.array([outcome["status"] != "done" for outcome in own.outcomes])
    return replace(own, auc=np.where(bad, np.nan, own.auc), final=np.where(bad, np.nan, own.final))
