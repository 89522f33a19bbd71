"""From the records of a sweep to the runs of each setting: their curves, areas and final returns.

The unit is the run. A run that failed or diverged stays in: its curve keeps its last mean to the end, and so its area
counts that mean. A run that never finished an episode has no curve; it scores the worst that any compared run scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from ipe.analysis.columns import Frames
from ipe.analysis.curves import aucs, curves, frame_grid, recorded_curves
from ipe.analysis.measures import TRAINING, Measure
from ipe.analysis.scores import score_failed, worst_seen
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.experiments.declared import Setting
from ipe.experiments.results import Results

Failed: TypeAlias = Literal["keep", "worst"]
"""The score of a run that failed or diverged: as if it had kept its last mean, or the worst score of all runs."""


class ComparedSetting(Protocol):
    """What the comparison needs of a setting: of a sweep (`ipe.experiments.declared.Setting`), or of recorded runs."""

    @property
    def name(self) -> str:
        """The setting's name, which no other has."""

    @property
    def case(self) -> str:
        """The name of the case or the algorithm; empty if there is none."""

    @property
    def varied(self) -> dict[str, Any]:
        """The values of what varies between the settings of a case, by name."""

    @property
    def key(self) -> str:
        """Hexadecimal digits that stand for the setting."""

    @property
    def behaviour(self) -> str | int:
        """The behaviour, which decides how the setting is drawn; or the number of a look, where it is not known."""

    @property
    def frames(self) -> int:
        """The number of frames of a run."""

    def fields(self) -> Mapping[str, Any]:
        """Return all that is known of the setting, by name."""


@dataclass(frozen=True, eq=False)
class Series:
    """The runs of one setting.

    Attributes:
        setting: the setting.
        fresh: whether these are new runs, which had no part in choosing the setting.
        planned: how many runs the setting shall have: the finished ones and the missing ones.
        outcomes: seed, status, frame and reason of each run. All arrays below have the runs in this order.
        curves: the learning curves, shape (runs, grid), NaN where a run has no value yet.
        epsilon: epsilon over time, shape (runs, grid); None if no run recorded it.
        entropy: the policy's entropy over time, shape (runs, grid); None if no run recorded it.
        auc: the area under the curve of each run.
        final: the mean return of the last episodes at the last frame of each run.
        without: how many runs finished no episode, and so score the worst of all runs.
        evaluated: the mean return of the last greedy evaluation over time, shape (runs, grid); None if no run was
            evaluated while it trained.
    """

    setting: ComparedSetting
    fresh: bool
    planned: int
    outcomes: list[dict[str, Any]]
    curves: Array
    epsilon: Array | None
    entropy: Array | None
    auc: Array
    final: Array
    without: int
    evaluated: Array | None = None

    @property
    def name(self) -> str:
        """The setting's name, and whether these are fresh runs."""
        return f"{self.setting.name} (fresh runs)" if self.fresh else self.setting.name

    @property
    def trained(self) -> Setting:
        """The setting of a sweep, with all that it is trained with."""
        if not isinstance(self.setting, Setting):
            raise InputError(f"{self.setting.name}: these runs are not of a sweep of ipe")
        return self.setting

    @property
    def n(self) -> int:
        """The number of runs."""
        return len(self.outcomes)

    def count(self, status: str) -> int:
        """How many runs ended with this status."""
        return sum(outcome["status"] == status for outcome in self.outcomes)


@dataclass(frozen=True, eq=False)
class Group:
    """The settings of one environment; returns of different environments cannot be compared.

    Attributes:
        environment: the environment's id, with the options that tell it apart from others of the same id.
        frames: the number of frames over which the settings are compared, the fewest that any of them has.
        grid: the frames at which the curves have values.
        series: the settings with at least one run, in the order of the sweep.
        fresh: the settings with fresh runs, in the order of the sweep.
        missing: the names of the settings without a run.
        measure: what the numbers are.
        notes: what a reader must know of these runs, in sentences.
    """

    environment: str
    frames: int
    grid: Frames
    series: list[Series]
    fresh: list[Series]
    missing: list[str]
    measure: Measure = TRAINING
    notes: list[str] = field(default_factory=list)

    @property
    def title(self) -> str:
        """The environment, and which returns these are where they do not go without saying."""
        return self.environment if self.measure.name == TRAINING.name else f"{self.environment}, {self.measure.name}"


def read_groups(
    results: Results, confirm: Results | None = None, *, grid_points: int = 250, failed: Failed = "keep"
) -> list[Group]:
    """The runs of every setting, by environment, and the fresh runs that `confirm` has of them; the curves have values
    at so many frames.

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
        settings = {i: setting for i, setting in enumerate(results.sweep.settings) if labels[i] == environment}
        frames = min(setting.settings.frames for setting in settings.values())
        grid = frame_grid(frames, grid_points)
        series = _series(results, settings, grid, frames, fresh=False)
        fresh: list[Series] = []
        if confirm is not None:
            by_key = {setting.key: setting for setting in settings.values()}
            same = {i: by_key[s.key] for i, s in enumerate(confirm.sweep.settings) if s.key in by_key}
            fresh = _series(confirm, same, grid, frames, fresh=True)
        have = {one.setting.key for one in series}
        missing = [setting.name for setting in settings.values() if setting.key not in have]
        if series:
            series, fresh = scored(environment, frames, series, fresh, failed)
            groups.append(Group(environment, frames, grid, series, fresh, missing))
    return groups


def unfinished_runs(group: Group) -> list[dict[str, Any]]:
    """The runs that failed or diverged, each with its setting, seed, status, frame and reason."""
    return [
        {"setting": series.name, **{name: outcome[name] for name in ("seed", "status", "frame", "reason")}}
        for series in [*group.series, *group.fresh]
        for outcome in series.outcomes
        if outcome["status"] != "done"
    ]


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
    """The environment's id of each setting, with its options where the same id is made in several ways."""
    environments = [setting.settings.environment for setting in settings]
    ways: dict[str, set[str]] = {}
    for environment in environments:
        ways.setdefault(environment.id, set()).add(environment.model_dump_json())
    labels = []
    for environment in environments:
        options = {"frame_limit": environment.frame_limit, **environment.options}
        words = ", ".join(f"{name} = {value}" for name, value in options.items())
        labels.append(environment.id if len(ways[environment.id]) == 1 else f"{environment.id} ({words})")
    return labels


def _series(results: Results, at: Mapping[int, Setting], grid: Frames, frames: int, *, fresh: bool) -> list[Series]:
    """The runs of some settings, which are given by their indices in the results."""
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
                evaluated=_recorded(results.evaluations_of(i), "mean", grid, seeds),
            )
        )
    return out


def _recorded(progress: pa.Table, name: str, grid: Frames, seeds: list[int]) -> Array | None:
    if progress.num_rows == 0:
        return None
    values = recorded_curves(progress, name, grid, seeds)
    return values if np.isfinite(values).any() else None


def scored(
    environment: str, frames: int, series: list[Series], fresh: list[Series], failed: Failed
) -> tuple[list[Series], list[Series]]:
    """The series with a score for every run; all runs without a score of their own get the same one."""
    both = [*series, *fresh]
    if not any(np.isfinite(one.auc).any() for one in both):
        raise InputError(
            f"no run has finished an episode within {frames} frames of {environment}: nothing to report "
            "(runs that learn from a data set have no training episodes)"
        )
    # The worst of all runs, failed runs included: failing must never score better than not failing.
    worst_auc, worst_final = worst_seen(*(one.auc for one in both)), worst_seen(*(one.final for one in both))

    def with_scores(one: Series) -> Series:
        without = int(np.isnan(one.curves[:, -1]).sum())
        if failed == "worst":
            bad = np.array([outcome["status"] != "done" for outcome in one.outcomes])
            one = replace(one, auc=np.where(bad, np.nan, one.auc), final=np.where(bad, np.nan, one.final))
        auc, final = score_failed(one.auc, worst_auc), score_failed(one.final, worst_final)
        return replace(one, auc=auc, final=final, without=without)

    return [with_scores(one) for one in series], [with_scores(one) for one in fresh]
