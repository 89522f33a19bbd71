r"""Comparisons of runs: the chance that one algorithm beats another, differences, and performance profiles.

The functions take one number per run (see `ipe.analysis.scores`). Scores of several tasks are given as a mapping; runs
are then resampled within each task, and every task weighs the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ipe.analysis.bootstrap import (
    RESAMPLES,
    Interval,
    Seed,
    Statistic,
    apply_statistic,
    check_generator,
    interval_of,
    resample_counts,
    resampled,
    statistic_of,
)
from ipe.analysis.columns import check_count, check_share, finite_numbers
from ipe.analysis.scores import Scores, check_strata
from ipe.base.arrays import Array
from ipe.errors import InputError


@dataclass(frozen=True, eq=False)
class PerformanceProfile:
    """The share of runs above each threshold tau, with pointwise bootstrap intervals of that level."""

    tau: Array
    """The thresholds."""
    fraction: Array
    """The share of runs whose score is above each threshold."""
    low: Array
    """The lower end of the interval at each threshold."""
    high: Array
    """The upper end of the interval at each threshold."""
    level: float
    """The level of the intervals."""


def probability_of_improvement(
    x: Scores, y: Scores, *, seed: Seed, level: float = 0.95, resamples: int = RESAMPLES
) -> Interval:
    r"""The chance that a run of x scores higher than one of y, with a bootstrap interval.

    .. math:: P(X > Y) + \tfrac12 P(X = Y)
        = \frac{1}{n m} \sum_{i, j} \left[ 1_{x_i > y_j} + \tfrac12 1_{x_i = y_j} \right] ,

    the Mann-Whitney U statistic over :math:`n m`; over several tasks, the mean of theirs (Agarwal et al. 2021). It
    says how often, not by how much. Runs of x and of y are resampled independently of each other.

    Args:
        x: one number per run, or a mapping of tasks.
        y: the same tasks.
        seed: a seed or a generator.
        level: the level of the interval.
        resamples: how often the runs are drawn again.

    Example:
        >>> probability_of_improvement([2.0, 3.0], [1.0, 2.0], seed=0).estimate
        0.875
    """
    pairs, share, rng = paired_tasks(x, y), check_share(level, "level"), check_generator(seed)
    estimate, drawn = 0.0, np.zeros(check_count(resamples, "resamples"))
    for first, second in pairs:
        wins = np.heaviside(first[:, None] - second[None, :], 0.5)
        estimate += wins.mean() / len(pairs)
        # The statistic is bilinear in how often each run was drawn, so no resample is compared pair by pair.
        blocks = resample_counts(wins.shape, drawn.size, rng)
        again = [np.einsum("bi,bi->b", left @ wins, right) for left, right in blocks]
        drawn += np.concatenate(again) / (wins.size * len(pairs))
    return interval_of(float(estimate), drawn, share)


def difference_interval(
    x: Scores,
    y: Scores,
    statistic: Statistic = "mean",
    *,
    seed: Seed,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """A statistic of x less that of y, with a bootstrap interval; over several tasks, the mean of their differences.

    Args:
        x: one number per run, or a mapping of tasks.
        y: the same tasks.
        statistic: as for `bootstrap_interval`. "std" asks which of the two is the more consistent.
        seed: a seed or a generator.
        level: the level of the interval.
        resamples: how often the runs are drawn again.

    Example:
        >>> difference_interval([5.0, 7.0], [1.0, 2.0], seed=0).estimate
        4.5
    """
    pairs, share, rng = paired_tasks(x, y), check_share(level, "level"), check_generator(seed)
    function, count = statistic_of(statistic), check_count(resamples, "resamples")
    estimate, drawn = 0.0, np.zeros(count)
    for pair in pairs:
        for sign, values in zip((1.0, -1.0), pair, strict=True):
            estimate += sign * float(apply_statistic(function, values[None])[0]) / len(pairs)
            again = [apply_statistic(function, block) for block in resampled([values], count, rng)]
            drawn += sign * np.concatenate(again) / len(pairs)
    return interval_of(estimate, drawn, share)


def performance_profile(
    scores: Scores, tau: ArrayLike, *, seed: Seed, level: float = 0.95, resamples: int = 2000
) -> PerformanceProfile:
    r"""The share of runs that score above each threshold, with pointwise bootstrap intervals.

    .. math:: \hat F(\tau) = \frac1{|E|} \sum_{e} \frac1{n_e} \sum_{i = 1}^{n_e} 1_{x_{e,i} > \tau}

    (the score distribution of Agarwal et al. 2021, over tasks e). It shows every quantile at once: a profile above
    another everywhere is better in every one.

    Args:
        scores: one number per run, or a mapping of tasks.
        tau: the thresholds.
        seed: a seed or a generator.
        level: the level of each interval by itself, not of all at once.
        resamples: how often the runs are drawn again.

    Example:
        >>> performance_profile([1.0, 2.0, 2.0, 5.0], [0.0, 2.0, 5.0], seed=0).fraction
        array([1.  , 0.25, 0.  ])
    """
    strata = list(check_strata(scores).values())
    thresholds, share, rng = finite_numbers(tau, "tau"), check_share(level, "level"), check_generator(seed)
    fraction, drawn = np.zeros(thresholds.size), np.zeros((check_count(resamples, "resamples"), thresholds.size))
    for values in strata:
        above = (values[:, None] > thresholds[None, :]).astype(np.float64)
        fraction += above.mean(axis=0) / len(strata)
        again = [counts @ above for (counts,) in resample_counts((values.size,), len(drawn), rng)]
        drawn += np.concatenate(again) / (values.size * len(strata))
    low, high = np.quantile(drawn, [(1.0 - share) / 2.0, (1.0 + share) / 2.0], axis=0)
    return PerformanceProfile(thresholds, fraction, low, high, share)


def paired_tasks(x: Scores, y: Scores) -> list[tuple[Array, Array]]:
    """The scores of x and of y in each task that they share; they must share all."""
    if isinstance(x, Mapping) != isinstance(y, Mapping):
        raise InputError("x and y must both be one number per run, or both mappings of the same tasks")
    first, second = check_strata(x, "x"), check_strata(y, "y")
    if set(first) != set(second):
        odd = sorted(set(first) ^ set(second))
        raise InputError(f"x and y must have the same tasks; only one of them has {', '.join(odd)}")
    return [(values, second[task]) for task, values in first.items()]
