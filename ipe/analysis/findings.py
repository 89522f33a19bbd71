"""What the runs of a sweep say: the ranking of the settings, the best ones compared, fresh runs beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ipe.analysis.bootstrap import Interval, Seed, bootstrap_interval, check_generator
from ipe.analysis.comparison import (
    PerformanceProfile,
    difference_interval,
    performance_profile,
    probability_of_improvement,
)
from ipe.analysis.scores import standard_error
from ipe.analysis.selection import select_best
from ipe.analysis.series import Group, Series
from ipe.analysis.statistics import ToleranceInterval, runs_for_tolerance, tolerance_interval

TOLERANCE = 0.8
"""The share of all future runs that the report's tolerance intervals hold, with a confidence of 95%."""
MOST_CONTENDERS = 6
_WITHOUT_CASES = 4
_THRESHOLDS = 101


@dataclass(frozen=True, eq=False)
class Row:
    """A setting in the ranking.

    Attributes:
        series: the runs of the setting.
        rank: the rank by mean AUC, 1 for the best; 0 for fresh runs, which are not ranked.
        mean: the mean AUC of the runs.
        standard_error: the standard error of the mean AUC; NaN for a single run.
        iqm: the interquartile mean of the AUC, with its bootstrap interval.
        tolerance: where 80% of all future runs' AUC lies; None if there are too few runs to say it (22 are enough).
        worst: the least AUC of a run.
        final: the mean of the final returns.
        final_error: the standard error of the mean final return.
        probability_best: how often the setting has the largest mean when runs are drawn again; NaN where the
            bootstrap cannot tell.
    """

    series: Series
    rank: int
    mean: float
    standard_error: float
    iqm: Interval
    tolerance: ToleranceInterval | None
    worst: float
    final: float
    final_error: float
    probability_best: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two settings: the chance that a run of the first scores higher, and how much higher its mean is."""

    first: Row
    second: Row
    probability: Interval
    difference: Interval


@dataclass(frozen=True, eq=False)
class Findings:
    """What the runs of one environment say.

    Attributes:
        group: the runs.
        ranking: the settings, best first.
        fresh: the settings with fresh runs, in the order of the ranking.
        chosen: the best setting of each case, best first; of a sweep without cases, the best setting.
        contenders: the settings that are compared and shown first: the chosen ones, by their fresh runs if there are
            any.
        comparisons: every pair of contenders.
        profiles: the performance profiles of the contenders.
        problems: what a reader must know about this choice, in sentences.
    """

    group: Group
    ranking: list[Row]
    fresh: list[Row]
    chosen: list[Row]
    contenders: list[Row]
    comparisons: list[Comparison]
    profiles: list[PerformanceProfile]
    problems: list[str]


def findings_of(group: Group, *, seed: Seed, resamples: int = 10_000) -> Findings:
    """Rank, choose and compare the settings of one environment, with so many resamples of the runs."""
    rng = check_generator(seed)
    ranking = _ranking(group.series, rng, resamples)
    order = {row.series.setting.key: row.rank for row in ranking}
    fresh = [_row(series, 0, np.nan, rng, resamples) for series in group.fresh]
    fresh.sort(key=lambda row: order.get(row.series.setting.key, len(order) + 1))
    chosen = list({row.series.setting.case: row for row in reversed(ranking)}.values())
    chosen.sort(key=lambda row: row.rank)
    contenders, problems = _contenders(ranking, fresh, chosen)
    comparisons = [
        Comparison(
            a,
            b,
            probability_of_improvement(a.series.auc, b.series.auc, seed=rng, resamples=resamples),
            difference_interval(a.series.auc, b.series.auc, seed=rng, resamples=resamples),
        )
        for a, b in combinations(contenders, 2)
    ]
    return Findings(
        group, ranking, fresh, chosen, contenders, comparisons, _profiles(contenders, rng), problems + _notes(group)
    )


def _ranking(series: Sequence[Series], rng: np.random.Generator, resamples: int) -> list[Row]:
    by_name = {one.setting.name: one for one in series}
    choice = select_best({name: one.auc for name, one in by_name.items()}, seed=rng, resamples=resamples)
    return [
        _row(by_name[ranked.setting], ranked.rank, ranked.probability_best, rng, resamples) for ranked in choice.ranking
    ]


def _row(series: Series, rank: int, best: float, rng: np.random.Generator, resamples: int) -> Row:
    enough = series.n >= runs_for_tolerance(coverage=TOLERANCE)
    return Row(
        series=series,
        rank=rank,
        mean=float(series.auc.mean()),
        standard_error=standard_error(series.auc),
        iqm=bootstrap_interval(series.auc, "iqm", seed=rng, resamples=min(resamples, 2000)),
        tolerance=tolerance_interval(series.auc, coverage=TOLERANCE) if enough else None,
        worst=float(series.auc.min()),
        final=float(series.final.mean()),
        final_error=standard_error(series.final),
        probability_best=best,
    )


def _contenders(ranking: list[Row], fresh: list[Row], chosen: list[Row]) -> tuple[list[Row], list[str]]:
    cases = len(chosen) > 1
    if not fresh:
        return (chosen if cases else ranking[:_WITHOUT_CASES])[:MOST_CONTENDERS], []
    wanted = {row.series.setting.key for row in chosen}
    reported = [row for row in fresh if row.series.setting.key in wanted] if cases else fresh
    have = {row.series.setting.key for row in fresh}
    problems = [
        f"{_title(row)}, {row.series.setting.name}, has no fresh runs: it is not in the comparison"
        for row in chosen
        if row.series.setting.key not in have
    ]
    return (reported or fresh)[:MOST_CONTENDERS], problems


def _title(row: Row) -> str:
    return f"the best setting of {row.series.setting.case}" if row.series.setting.case else "the best setting"


def _profiles(contenders: Sequence[Row], rng: np.random.Generator) -> list[PerformanceProfile]:
    scores = np.concatenate([row.series.auc for row in contenders])
    low, high = float(scores.min()), float(scores.max())
    margin = 0.05 * (high - low) or 1.0
    tau = np.linspace(low - margin, high + margin, _THRESHOLDS)
    return [performance_profile(row.series.auc, tau, seed=rng) for row in contenders]


def _notes(group: Group) -> list[str]:
    """Sentences on the settings that were not run, and on the runs that finished no episode."""
    out = []
    if group.missing:
        names = ", ".join(group.missing[:5]) + (f" and {len(group.missing) - 5} more" if len(group.missing) > 5 else "")
        out.append(f"not run yet, and not in the ranking: {names}")
    out += [
        f"{series.without} of {series.n} runs of {series.name} finished no episode: they score the worst of all runs"
        for series in [*group.series, *group.fresh]
        if series.without
    ]
    return out
