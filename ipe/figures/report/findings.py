"""What the runs of a sweep say: the ranking, who beats whom, fresh runs beside those chosen by, sensitivity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from ipe.analysis import (
    Interval,
    PerformanceProfile,
    bootstrap_interval,
    difference_interval,
    performance_profile,
    probability_of_improvement,
    select_best,
    standard_error,
)
from ipe.analysis.bootstrap import Seed, check_generator
from ipe.figures.report.series import Group, Series

MOST_CONTENDERS = 6
_WITHOUT_CASES = 4
_THRESHOLDS = 101


@dataclass(frozen=True, eq=False)
class Row:
    """A setting in the ranking.

    Attributes:
        series: its runs.
        rank: by mean AUC, 1 the best; 0 for fresh runs, which are not ranked.
        mean: of the AUC.
        standard_error: of that mean; NaN for a single run.
        iqm: interquartile mean of the AUC, with its bootstrap interval.
        worst: the least AUC of a run.
        final: mean of the final returns.
        final_error: its standard error.
        probability_best: how often it has the largest mean when runs are drawn again; NaN where nothing can be said.
    """

    series: Series
    rank: int
    mean: float
    standard_error: float
    iqm: Interval
    worst: float
    final: float
    final_error: float
    probability_best: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two settings: the chance that a run of the first scores higher, and how much higher the mean is."""

    first: Row
    second: Row
    probability: Interval
    difference: Interval


@dataclass(frozen=True, eq=False)
class Findings:
    """All of one environment.

    Attributes:
        group: its runs.
        ranking: best first.
        fresh: the rows of fresh runs, in the order of the ranking.
        chosen: the best setting of each case, best first; of a sweep without cases, the best.
        contenders: what is compared and shown first: the chosen, of their fresh runs where there are any.
        comparisons: every pair of contenders.
        profiles: of the contenders.
        problems: what a reader must know of this choice, in sentences.
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
    """Rank, choose and compare the settings of one environment.

    Args:
        group: its runs.
        seed: of the bootstrap.
        resamples: of runs.
    """
    rng = check_generator(seed)
    ranking = _ranking(group.series, rng, resamples)
    order = {row.series.setting.key: row.rank for row in ranking}
    fresh = [_row(own, 0, np.nan, rng, resamples) for own in group.fresh]
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
    choice = select_best({own.setting.name: own.auc for own in series}, seed=rng, resamples=resamples)
    by_name = {own.setting.name: own for own in series}
    return [
        _row(by_name[ranked.setting], ranked.rank, ranked.probability_best, rng, resamples) for ranked in choice.ranking
    ]


def _row(own: Series, rank: int, best: float, rng: np.random.Generator, resamples: int) -> Row:
    return Row(
        series=own,
        rank=rank,
        mean=float(own.auc.mean()),
        standard_error=standard_error(own.auc),
        iqm=bootstrap_interval(own.auc, "iqm", seed=rng, resamples=min(resamples, 2000)),
        worst=float(own.auc.min()),
        final=float(own.final.mean()),
        final_error=standard_error(own.final),
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
        f"{_whose(row)}, {row.series.setting.name}, has no fresh runs: it is not in the comparison"
        for row in chosen
        if row.series.setting.key not in have
    ]
    return (reported or fresh)[:MOST_CONTENDERS], problems


def _whose(row: Row) -> str:
    return f"the best setting of {row.series.setting.case}" if row.series.setting.case else "the best setting"


def _profiles(contenders: Sequence[Row], rng: np.random.Generator) -> list[PerformanceProfile]:
    scores = np.concatenate([row.series.auc for row in contenders])
    low, high = float(scores.min()), float(scores.max())
    margin = 0.05 * (high - low) or 1.0
    tau = np.linspace(low - margin, high + margin, _THRESHOLDS)
    return [performance_profile(row.series.auc, tau, seed=rng) for row in contenders]


def _notes(group: Group) -> list[str]:
    """What the store cannot say: settings that were not run, runs that finished nothing."""
    out = []
    if group.missing:
        names = ", ".join(group.missing[:5]) + (f" and {len(group.missing) - 5} more" if len(group.missing) > 5 else "")
        out.append(f"not run yet, and not in the ranking: {names}")
    out += [
        f"{own.without} of {own.n} runs of {own.name} finished no episode: they score the worst of all runs"
        for own in [*group.series, *group.fresh]
        if own.without
    ]
    return out


def unfinished_runs(group: Group) -> list[dict[str, Any]]:
    """The runs that failed or diverged: setting, seed, status, frame and reason of each."""
    return [
        {"setting": own.name, **{name: outcome[name] for name in ("seed", "status", "frame", "reason")}}
        for own in [*group.series, *group.fresh]
        for outcome in own.outcomes
        if outcome["status"] != "done"
    ]
