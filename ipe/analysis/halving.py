r"""Successive halving, read: what each rung kept and cut, and how sure the choice is.

A setting is scored by its mean AUC over the frames of its rung, and compared with the settings of its own case and
environment. The settings that a rung cut are known over that rung's frames alone: a setting that starts slowly, and
would have been the best in the end, is cut, and nothing here can see it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ipe.analysis.bootstrap import RESAMPLES, Seed, check_generator, resample_counts
from ipe.analysis.curves import aucs
from ipe.analysis.scores import score_failed, standard_error
from ipe.analysis.series import Group, Series, read_groups
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.experiments.declared import Setting
from ipe.experiments.halving import begun_rungs, case_of, open_halving
from ipe.experiments.results import Results, load_results
from ipe.experiments.rungs import Halving


@dataclass(frozen=True, eq=False)
class Rungs:
    """The results of a sweep by successive halving.

    Attributes:
        halving: the rungs that were declared.
        results: the results of each rung that has begun, the first rung first.
    """

    halving: Halving
    results: list[Results]

    @property
    def last(self) -> Results:
        """The results of the last rung that has a run."""
        return next((results for results in reversed(self.results) if results.outcomes), self.results[-1])

    @property
    def finished(self) -> bool:
        """Whether the last rung has all its runs."""
        return len(self.results) == self.halving.rungs and not self.results[-1].missing

    @cached_property
    def groups(self) -> list[list[Group]]:
        """The runs of each rung, by environment; rungs without a run are left out."""
        return [read_groups(results) for results in self.results if results.outcomes]


@dataclass(frozen=True)
class CutSetting:
    """A setting that did not go on: its name, and the mean and the standard error of its AUC over the rung's frames."""

    name: str
    mean: float
    standard_error: float


@dataclass(frozen=True)
class RungReport:
    """What a rung did with the settings of one case.

    Attributes:
        rung: the number of the rung, from 0.
        frames: the frames of its runs.
        runs: the runs of each setting.
        settings: how many settings it had.
        kept: how many went on; of the last rung, 1: the chosen setting.
        bar: the least mean AUC that went on; NaN in the last rung.
        cut: the settings that did not go on, best first.
        beaten: the chance that the chosen setting's mean is above that of every setting that was cut here, over this
            rung's frames, when runs are drawn again; NaN if none was cut or a setting has a single run.
    """

    rung: int
    frames: int
    runs: int
    settings: int
    kept: int
    bar: float
    cut: list[CutSetting]
    beaten: float


@dataclass(frozen=True)
class CaseSelection:
    """How the setting of one case was chosen.

    Attributes:
        environment: the environment, as groups name it.
        case: the case.
        chosen: the name of the chosen setting.
        rungs: what each rung did.
        probability_of_finalists: the chance that the chosen setting is the best of the last rung, by bootstrap.
        probability: the chance that it is also above every setting that an earlier rung cut, over that rung's frames.
    """

    environment: str
    case: str
    chosen: str
    rungs: list[RungReport]
    probability_of_finalists: float
    probability: float


def read_rungs(folder: str | os.PathLike[str], *, progress: bool = True) -> Rungs:
    """Read the results of a sweep by successive halving, with the progress of the last rung alone if at all; every byte
    that is read is verified."""
    halving = open_halving(folder)[1]
    have = begun_rungs(folder)
    if not have:
        raise InputError(f"{Path(folder)}: the first rung has not begun: there is nothing to report")
    return Rungs(halving, [load_results(place, progress=progress and place == have[-1]) for place in have])


def survivors(results: Results, halving: Halving) -> list[str]:
    """The stems of the settings that go on to the next rung: the better ones of each case, by mean AUC, one in
    `halving.factor` of them, rounded up. A rung of which runs are missing is refused."""
    if results.missing:
        setting, seed = results.missing[0]
        name = results.sweep.settings[setting].name
        raise InputError(f"{len(results.missing)} runs of the rung are missing, the first seed {seed} of {name!r}")
    kept: list[str] = []
    for group in read_groups(results):
        for members in _by_case(group.series).values():
            order = ranked(members)
            kept += [one.trained.stem for one in order[: math.ceil(len(order) / halving.factor)]]
    return kept


def selections(rungs: Rungs, *, seed: Seed, resamples: int = RESAMPLES) -> list[CaseSelection]:
    r"""How each case's setting was chosen, and the chance that it is the best, by bootstrap over runs.

    Runs are drawn again within every setting. With k the chosen setting, R the last rung, and
    :math:`\bar x_j^{(b)}(r)` the mean AUC of the drawn runs of setting j over the frames of rung r,

    .. math:: \hat P = \frac1B \sum_b \prod_{r \le R} 1\left[ \bar x_k^{(b)}(r) > \bar x_j^{(b)}(r)
        \text{ for every } j \ne k \text{ that ended in rung } r \right] .

    The chosen setting's runs of the last rung are the same in all rungs: their first frames are what an earlier rung
    compares.

    Args:
        rungs: the results.
        seed: a seed or a generator.
        resamples: B.
    """
    rng = check_generator(seed)
    return [
        _selection(rungs, group.environment, case, rng, resamples)
        for group in rungs.groups[-1]
        for case in dict.fromkeys(one.setting.case for one in group.series)
    ]


def _selection(rungs: Rungs, environment: str, case: str, rng: np.random.Generator, resamples: int) -> CaseSelection:
    ended = ended_in(rungs, environment, case)
    chosen, *others = ranked(ended[-1])
    ended = [*ended[:-1], others]
    totals = [len(members) for members in ended]
    sizes = [sum(totals[i:]) + 1 for i in range(len(ended))]
    wins, single = _wins(rungs, chosen, ended, rng, resamples)
    reports = []
    for i, members in enumerate(ended):
        final = i == len(ended) - 1
        order = ranked(members)
        reports.append(
            RungReport(
                rung=i,
                frames=rungs.halving.frames[i],
                runs=rungs.halving.runs[i],
                settings=sizes[i],
                kept=1 if final else sizes[i + 1],
                bar=math.nan if final else _bar(rungs, environment, case, i),
                cut=[CutSetting(one.setting.name, mean_area(one), standard_error(one.auc)) for one in order],
                beaten=math.nan if single or not members else float(wins[i].mean()),
            )
        )
    sure = [math.nan, math.nan] if single else [float(wins[-1].mean()), float(np.all(wins, axis=0).mean())]
    return CaseSelection(environment, case, chosen.setting.name, reports, *sure)


def _wins(
    rungs: Rungs, chosen: Series, ended: Sequence[Sequence[Series]], rng: np.random.Generator, resamples: int
) -> tuple[list[Any], bool]:
    """For each rung, the resamples in which the chosen setting beats all that ended there; whether some setting has a
    single run."""
    single = min([chosen.n, *(one.n for members in ended for one in members)]) < 2
    mine_drawn = np.concatenate([counts for (counts,) in resample_counts((chosen.n,), resamples, rng)])
    wins = []
    for rung, members in enumerate(ended):
        mine = mine_drawn @ areas_over(rungs.last, chosen.trained, rungs.halving.frames[rung]) / chosen.n
        best = np.full(resamples, -np.inf)
        for one in members:
            counts = np.concatenate([drawn for (drawn,) in resample_counts((one.n,), resamples, rng)])
            best = np.maximum(best, counts @ one.auc / one.n)
        wins.append(mine > best)
    return wins, single


def ended_in(rungs: Rungs, environment: str, case: str) -> list[list[Series]]:
    """For each rung, the settings of a case that did not go on to another rung; of the last one, all of them."""
    found: list[list[Series]] = []
    for i, groups in enumerate(rungs.groups):
        on = {one.stem for one in rungs.results[i + 1].sweep.settings} if i + 1 < len(rungs.groups) else set()
        members = [one for group in groups if group.environment == environment for one in group.series]
        found.append([one for one in members if one.setting.case == case and one.trained.stem not in on])
    return found


def _bar(rungs: Rungs, environment: str, case: str, rung: int) -> float:
    """The least mean AUC of a setting that went on from a rung."""
    on = {one.stem for one in rungs.results[rung + 1].sweep.settings}
    members = [one for group in rungs.groups[rung] if group.environment == environment for one in group.series]
    return min(mean_area(one) for one in members if one.setting.case == case and one.trained.stem in on)


def areas_over(results: Results, setting: Setting, frames: int) -> Array:
    """The AUC of a setting's runs over their first frames; that of a run without an episode is the worst of them."""
    index = next(i for i, one in enumerate(results.sweep.settings) if one.key == setting.key)
    seeds = [int(outcome["seed"]) for outcome in results.outcomes_of(index)]
    found = aucs(results.episodes_of(index), frames, seeds)
    return score_failed(found, None if np.isfinite(found).any() else 0.0)


def _by_case(series: Sequence[Series]) -> Mapping[tuple[str, str], list[Series]]:
    found: dict[tuple[str, str], list[Series]] = {}
    for one in series:
        found.setdefault(case_of(one.trained), []).append(one)
    return found


def ranked(series: Sequence[Series]) -> list[Series]:
    """The settings by their mean AUC, best first; equal means stay in the order given."""
    return sorted(series, key=lambda one: -mean_area(one))


def mean_area(series: Series) -> float:
    """The mean AUC of a setting's runs; an exact sum, so that the order of runs makes no difference."""
    return math.fsum(series.auc) / series.n
