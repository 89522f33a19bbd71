r"""Statistics of one group of runs: the interquartile mean, and where most runs to come will lie.

The functions take one number per run (see `ipe.analysis.scores`). Intervals around a statistic are in
`ipe.analysis.bootstrap`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta, trim_mean

from ipe.analysis.columns import check_count, check_share
from ipe.analysis.scores import check_scores
from ipe.base.arrays import Array
from ipe.errors import InputError


@dataclass(frozen=True)
class ToleranceInterval:
    """Two of the sorted scores, between which at least a share of all runs to come lies, with some confidence.

    Attributes:
        low: the lower end, the score of rank `rank` from below.
        high: the upper end, the score of rank `rank` from above.
        rank: the rank of the two ends; 1 means the least and the greatest score.
        n: the number of runs.
        coverage: the share of runs that was asked for.
        confidence: the confidence that was asked for.
        attained_confidence: the confidence that the interval covers `coverage`; at least `confidence`.
        attained_coverage: the share that the interval covers with `confidence`; at least `coverage`.
    """

    low: float
    high: float
    rank: int
    n: int
    coverage: float
    confidence: float
    attained_confidence: float
    attained_coverage: float


def interquartile_mean(scores: ArrayLike) -> float:
    r"""The mean of the middle half of the runs (IQM; Agarwal et al. 2021).

    With the scores sorted and :math:`g = \lfloor n / 4 \rfloor`,

    .. math:: \mathrm{IQM} = \frac{1}{n - 2 g} \sum_{i = g + 1}^{n - g} x_{(i)} ,

    which is `scipy.stats.trim_mean(x, 0.25)` and rliable's definition. Single runs move it less
    than the mean, and its interval is narrower than that of the median.

    Args:
        scores: one number per run.

    Example:
        >>> interquartile_mean([0.0, 1.0, 3.0, 100.0])
        2.0
    """
    return float(trimmed(check_scores(scores)))


def trimmed(values: Array) -> Array:
    """The interquartile mean over the last axis."""
    return np.asarray(trim_mean(values, 0.25, axis=-1))


def tolerance_interval(scores: ArrayLike, *, coverage: float, confidence: float = 0.95) -> ToleranceInterval:
    r"""Where runs lie: an interval that holds at least a share :math:`\beta` of all runs to come, with confidence.

    Distribution-free. The share of runs between the order statistics :math:`x_{(r)}` and :math:`x_{(n + 1 - r)}` has
    the distribution :math:`\mathrm{Beta}(n + 1 - 2 r, 2 r)` whatever the (continuous) distribution of scores, so

    .. math:: P\left(\text{share} \ge \beta\right) = P(\mathrm{Bin}(n, \beta) \le n - 2 r) ,

    and r is the largest rank for which this is at least the confidence. Unlike an interval around the mean it does not
    shrink to a point with more runs: it is about the next run, not about the average (Patterson et al. 2024,
    "Empirical Design in Reinforcement Learning"). Ties only add to the share.

    Args:
        scores: one number per run.
        coverage: the share :math:`\beta`.
        confidence: the probability with which the share is at least that large.

    Returns:
        The interval, its ranks, and the confidence and coverage attained (order statistics come in steps).

    Raises:
        InputError: if even the least and the greatest of n runs do not cover that share; the message says how many runs
            would.

    Example:
        >>> interval = tolerance_interval(range(46), coverage=0.9)
        >>> interval.low, interval.high, round(interval.attained_confidence, 4)
        (0.0, 45.0, 0.952)
    """
    values = np.sort(check_scores(scores))
    n = values.size
    rank = tolerance_rank(n, coverage=coverage, confidence=confidence)
    share = beta(n + 1 - 2 * rank, 2 * rank)
    return ToleranceInterval(
        low=float(values[rank - 1]),
        high=float(values[n - rank]),
        rank=rank,
        n=n,
        coverage=float(coverage),
        confidence=float(confidence),
        attained_confidence=float(share.sf(coverage)),
        attained_coverage=float(share.ppf(1.0 - confidence)),
    )


def tolerance_rank(n: int, *, coverage: float, confidence: float = 0.95) -> int:
    """The largest rank r for which the r-th least and the r-th greatest of n scores are a tolerance interval."""
    n = check_count(n, "n")
    share, sure = check_share(coverage, "coverage"), check_share(confidence, "confidence")
    ranks = np.arange(1, n // 2 + 1)
    ranks = ranks[2 * ranks < n + 1]
    enough = beta.sf(share, n + 1 - 2 * ranks, 2 * ranks) >= sure
    if not enough.any():
        raise InputError(
            f"scores: {n} runs are too few to cover {share:g} of all runs with confidence {sure:g}: that takes "
            f"{runs_for_tolerance(coverage=share, confidence=sure)} runs"
            + (f"; these cover {beta.ppf(1.0 - sure, n - 1, 2):.3g}" if n > 1 else "")
        )
    return int(ranks[enough][-1])


def range_coverage(n: int, *, confidence: float = 0.95) -> float:
    r"""The share of all runs to come that lies between the least and the greatest score of n runs, with confidence.

    That is the :math:`1 - c` quantile of :math:`\mathrm{Beta}(n - 1, 2)` for a confidence c; NaN for a single run,
    whose least and greatest score are the same.

    Example:
        >>> [round(range_coverage(n), 2) for n in (3, 5, 22)]
        [0.14, 0.34, 0.8]
    """
    if check_count(n, "n") == 1:
        return float("nan")
    return float(beta.ppf(1.0 - check_share(confidence, "confidence"), n - 1, 2))


def runs_for_tolerance(*, coverage: float, confidence: float = 0.95) -> int:
    r"""The least number of runs whose least and greatest score are a tolerance interval.

    That is the least n with :math:`1 - n \beta^{n-1} + (n - 1) \beta^n \ge` the confidence.

    Example:
        >>> [runs_for_tolerance(coverage=share) for share in (0.5, 0.8, 0.9, 0.95)]
        [8, 22, 46, 93]
    """
    share, sure = check_share(coverage, "coverage"), check_share(confidence, "confidence")
    low, high = 1, 2
    while beta.sf(share, high - 1, 2) < sure:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if beta.sf(share, middle - 1, 2) >= sure else (middle, high)
    return high
