"""What the scores say: two tables, comparisons with Holm's correction, and performance profiles.

Runs are resampled within tasks. A mean over families weighs every family the same, whatever the number of its tasks;
an interquartile mean pools the runs of all tasks, and weighs every task the same. Contenders are compared run by run:
all of them see the same random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np

from ipe.analysis import (
    Interval,
    PerformanceProfile,
    bootstrap_interval,
    holm,
    improvement_test,
    mean_ranks,
    performance_profile,
    probability_of_improvement,
)
from ipe.analysis.bootstrap import interval_of, resample_counts
from ipe.analysis.statistics import trimmed
from ipe.base.arrays import Array
from ipe.studies.exploration.scores import Choice, Scores

SEED = 0
"""The seed of every bootstrap: the same runs give the same intervals."""
RESAMPLES = 2000
LEVEL = 0.95

Way: TypeAlias = Literal["one for all", "unseen", "per task"]
"""How the setting of a contender is chosen: one for all tasks; without the task's family; the best for each task."""
WAYS: tuple[Way, ...] = ("one for all", "unseen", "per task")


class Named(Protocol):
    """What the tables say of a contender."""

    @property
    def name(self) -> str:
        """The contender's name."""

    @property
    def label(self) -> str:
        """The contender's name in tables and figures."""

    @property
    def behaviour(self) -> str:
        """The behaviour's name, which decides the look of its lines."""

    @property
    def ours(self) -> bool:
        """Whether the behaviour is derived from an evaluation policy."""


@dataclass(frozen=True, eq=False)
class Row:
    """A contender in the tables.

    Attributes:
        contender: the contender.
        choices: its runs at the settings chosen in each way.
        iqm: the interquartile mean of the scores of all tasks, by way.
        mean: the mean of the scores over the families, by way.
        ends: the mean over the families of where the runs ended, by way.
        rank: the mean rank over the tasks, by way.
        prices: what is lost of the mean against the best setting for each task, by way.
        seconds: the processor seconds of its runs (of deep ones, those that chose); NaN if they are not known.
    """

    contender: Named
    choices: dict[Way, Choice]
    iqm: dict[Way, Interval]
    mean: dict[Way, Interval]
    ends: dict[Way, Interval]
    rank: dict[Way, Interval]
    prices: dict[Way, Interval]
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """Two contenders whose settings were chosen in the same way.

    Attributes:
        first: the name of the one.
        second: the name of the other.
        difference: how much more the first scores, mean over the families.
        probability: the chance that a run of the first scores higher, mean over the tasks.
        p: the p-value of "neither higher nor lower", corrected for all comparisons that were made together.
    """

    first: str
    second: str
    difference: Interval
    probability: Interval
    p: float


@dataclass(frozen=True, eq=False)
class Findings:
    """The rows of the tables, best first by the mean with one setting for all tasks.

    Attributes:
        rows: the contenders.
        family: the family of each task.
    """

    rows: list[Row]
    family: dict[str, str]

    def row(self, name: str) -> Row | None:
        """The row of a contender, if it has runs."""
        return next((row for row in self.rows if row.contender.name == name), None)

    def comparisons(self, first: str, others: Sequence[str], way: Way, at_the_end: bool = False) -> list[Comparison]:
        """A contender against others, with Holm's correction over all of them."""
        one = self.row(first)
        rows = [row for row in map(self.row, others) if row is not None]
        if one is None or not rows:
            return []
        pairs = [(_values(one.choices[way], at_the_end), _values(row.choices[way], at_the_end)) for row in rows]
        corrected = holm([improvement_test(x, y) for x, y in pairs])
        return [
            Comparison(
                first,
                row.contender.name,
                self.mean_interval({task: x[task] - y[task] for task in x}),
                probability_of_improvement(x, y, seed=SEED, resamples=RESAMPLES),
                float(p),
            )
            for row, (x, y), p in zip(rows, pairs, corrected, strict=True)
        ]

    def price_difference(self, first: str, second: str) -> Interval:
        """How much more not tuning costs the first contender than the second."""
        one, other = self.row(first), self.row(second)
        assert one is not None
        assert other is not None
        lost = [_less(row.choices["per task"], row.choices["one for all"]) for row in (one, other)]
        return self.mean_interval({task: lost[0][task] - lost[1][task] for task in lost[0]})

    def mean_interval(self, values: Mapping[str, Array]) -> Interval:
        """The mean over the families with its bootstrap interval; see `family_mean_interval`."""
        return family_mean_interval(values, self.family)

    def profiles(self, way: Way, tau: Array) -> dict[str, PerformanceProfile]:
        """The share of runs above each threshold, by contender."""
        return {
            row.contender.name: performance_profile(row.choices[way].scores, tau, seed=SEED, resamples=200)
            for row in self.rows
        }


def findings_of(scores: Scores) -> Findings:
    """Choose the settings of every tabular contender, and sum up what their fresh runs say."""
    ways: dict[Way, Callable[[str], Choice]] = {
        "one for all": scores.one_for_all,
        "unseen": scores.for_unseen,
        "per task": scores.per_task,
    }
    choices = {c.name: {way: chosen(c.name) for way, chosen in ways.items()} for c in scores.contenders}
    return summed_up(scores.contenders, choices, {task.name: task.family for task in scores.tasks}, scores.seconds)


def summed_up(
    contenders: Sequence[Named],
    choices: Mapping[str, Mapping[Way, Choice]],
    family: Mapping[str, str],
    seconds: Mapping[str, float],
) -> Findings:
    """What the fresh runs of chosen settings say: the runs of each contender at the settings chosen in each way, the
    same ways for all; the family of each task; and processor seconds, as far as they are known."""
    ways = [way for way in WAYS if way in choices[contenders[0].name]]
    ranks = {
        way: mean_ranks({c.name: choices[c.name][way].scores for c in contenders}, seed=SEED, resamples=RESAMPLES)
        for way in ways
    }
    rows = []
    for contender in contenders:
        chosen = choices[contender.name]
        scores = {way: chosen[way].scores for way in ways}
        rows.append(
            Row(
                contender=contender,
                choices=dict(chosen),
                iqm={way: iqm_interval(x) for way, x in scores.items()},
                mean={way: family_mean_interval(x, family) for way, x in scores.items()},
                ends={way: family_mean_interval(chosen[way].ends, family) for way in ways},
                rank={way: ranks[way][contender.name] for way in ways},
                prices={
                    way: family_mean_interval(_less(chosen["per task"], chosen[way]), family)
                    for way in ways
                    if way != "per task"
                },
                seconds=seconds.get(contender.name, math.nan),
            )
        )
    rows.sort(key=lambda row: -row.mean["one for all"].estimate)
    return Findings(rows, dict(family))


def iqm_interval(values: Mapping[str, Array]) -> Interval:
    """The interquartile mean of the runs of all tasks, with a bootstrap interval; runs are drawn within tasks. A task
    with fewer runs than others weighs as much: each of its runs counts several times.

    Example:
        >>> iqm_interval({"a": np.zeros(2), "b": np.full(4, 2.0)}).estimate  # of 0, 0, 0, 0, 2, 2, 2, 2
        1.0
    """
    sizes = [x.size for x in values.values()]
    times = np.repeat([math.lcm(*sizes) // n for n in sizes], sizes)
    return bootstrap_interval(
        values, lambda pooled: trimmed(np.repeat(pooled, times, axis=-1)), seed=SEED, resamples=RESAMPLES
    )


def family_mean_interval(values: Mapping[str, Array], family: Mapping[str, str]) -> Interval:
    """The mean over families of the means over their tasks, with a bootstrap interval; runs are drawn within tasks.

    Example:
        >>> family_mean_interval({"a": np.ones(3), "b": np.ones(3), "c": np.zeros(3)}, {"a": "x", "b": "x", "c": "y"})
        Interval(estimate=0.5, low=0.5, high=0.5, level=0.95)
    """
    names = [family[task] for task in values]
    rng = np.random.default_rng(SEED)
    estimate, drawn = 0.0, np.zeros(RESAMPLES)
    for task, x in values.items():
        weight = 1.0 / (len(set(names)) * names.count(family[task]))
        estimate += weight * float(x.mean())
        blocks = resample_counts((x.size,), RESAMPLES, rng)
        drawn += weight * np.concatenate([counts @ x / x.size for (counts,) in blocks])
    return interval_of(estimate, drawn, LEVEL)


def _less(first: Choice, second: Choice) -> dict[str, Array]:
    return {task: first.scores[task] - second.scores[task] for task in first.scores}


def _values(choice: Choice, at_the_end: bool) -> dict[str, Array]:
    return choice.ends if at_the_end else choice.scores
