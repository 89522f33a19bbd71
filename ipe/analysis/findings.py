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
from ipe.analysis.many import holm, rank_test
from ipe.analysis.scores import standard_error
from ipe.analysis.selection import select_best
from ipe.analysis.series import Group, Series
from ipe.analysis.statistics import ToleranceInterval, range_coverage, runs_for_tolerance, tolerance_interval

TOLERANCE = 0.8
"""The share of all future runs that the report's tolerance intervals hold, with a confidence of 95%."""
RESAMPLES = 2000
"""How often runs are drawn again for the intervals of a single setting."""
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
        interval: the mean AUC with its bootstrap interval.
        iqm: the interquartile mean of the AUC, with its bootstrap interval.
        tolerance: where 80% of all future runs' AUC lies; None if there are too few runs to say it (22 are enough).
        covered: the share of all future runs that lies between the least and the greatest AUC, with a confidence of
            95%; NaN for a single run.
        worst: the least AUC of a run.
        greatest: the greatest AUC of a run.
        final: the mean of the final returns.
        final_error: the standard error of the mean final return.
        probability_best: how often the setting has the largest mean when runs are drawn again; NaN where the
            bootstrap cannot tell.
    """

    series: Series
    rank: int
    mean: float
    standard_error: float
    interval: Interval
    iqm: Interval
    tolerance: ToleranceInterval | None
    covered: float
    worst: float
    greatest: float
    final: float
    final_error: float
    probability_best: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two settings side by side.

    Attributes:
        first: the first setting.
        second: the second setting.
        probability: the chance that a run of the first scores higher, with its bootstrap interval.
        difference: how much higher the mean of the first is, with its bootstrap interval.
        p_value: the p-value of "neither scores higher" (`rank_test`), of this comparison by itself.
        corrected: the p-value corrected by Holm's method over all comparisons of the environment.
    """

    first: Row
    second: Row
    probability: Interval
    difference: Interval
    p_value: float
    corrected: float


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
    (more,) = rng.spawn(1)  # the mean's intervals, without a change to what is drawn for the others
    ranking = _ranking(group.series, rng, resamples, more)
    order = {row.series.setting.key: row.rank for row in ranking}
    fresh = [_row(series, 0, np.nan, rng, resamples, more) for series in group.fresh]
    fresh.sort(key=lambda row: order.get(row.series.setting.key, len(order) + 1))
    chosen = list({row.series.setting.case: row for row in reversed(ranking)}.values())
    chosen.sort(key=lambda row: row.rank)
    contenders, problems = _contenders(ranking, fresh, chosen)
    comparisons = _compared(contenders, rng, resamples)
    return Findings(
        group,
        ranking,
        fresh,
        chosen,
        contenders,
        comparisons,
        _profiles(contenders, rng),
        [*problems, *group.notes, *_notes(group)],
    )


def _compared(contenders: Sequence[Row], rng: np.random.Generator, resamples: int) -> list[Comparison]:
    """Every pair of contenders, with p-values corrected over all of these pairs."""
    pairs = [(a, b, a.series.auc, b.series.auc) for a, b in combinations(contenders, 2)]
    p_values = [rank_test(x, y) for _, _, x, y in pairs]
    corrected = holm(p_values).tolist() if pairs else []
    return [
        Comparison(
            a,
            b,
            probability_of_improvement(x, y, seed=rng, resamples=resamples),
            difference_interval(x, y, seed=rng, resamples=resamples),
            p_value,
            adjusted,
        )
        for (a, b, x, y), p_value, adjusted in zip(pairs, p_values, corrected, strict=True)
    ]


def _ranking(
    series: Sequence[Series], rng: np.random.Generator, resamples: int, more: np.random.Generator
) -> list[Row]:
    by_name = {one.setting.name: one for one in series}
    choice = select_best({name: one.auc for name, one in by_name.items()}, seed=rng, resamples=resamples)
    return [
        _row(by_name[ranked.setting], ranked.rank, ranked.probability_best, rng, resamples, more)
        for ranked in choice.ranking
    ]


def _row(
    series: Series, rank: int, best: float, rng: np.random.Generator, resamples: int, more: np.random.Generator
) -> Row:
    enough = series.n >= runs_for_tolerance(coverage=TOLERANCE)
    return Row(
        series=series,
        rank=rank,
        mean=float(series.auc.mean()),
        standard_error=standard_error(series.auc),
        interval=bootstrap_interval(series.auc, "mean", seed=more, resamples=min(resamples, RESAMPLES)),
        iqm=bootstrap_interval(series.auc, "iqm", seed=rng, resamples=min(resamples, RESAMPLES)),
        tolerance=tolerance_interval(series.auc, coverage=TOLERANCE) if enough else None,
        covered=range_coverage(series.n),
        worst=float(series.auc.min()),
        greatest=float(series.auc.max()),
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
