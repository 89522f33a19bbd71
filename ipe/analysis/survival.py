r"""Survival: how long runs last until something happens to them, when not all are watched until it does.

Each run has a time and whether the event was seen at that time; a run that was still going when it was last looked at
is *censored*: its event comes later than its time, or never. Leaving such runs out, or counting their time as an event,
makes every behaviour look worse than it is, the more so the better it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import CensoredData, ecdf, logrank, norm

from ipe.analysis.bootstrap import RESAMPLES, Interval, Seed, check_generator, interval_of
from ipe.analysis.columns import check_count, check_share, finite_numbers
from ipe.base.arrays import Array, Mask
from ipe.base.numbers import finite_number
from ipe.errors import InputError


@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """The Kaplan-Meier estimate of the share of runs that last beyond each time.

    Attributes:
        time: the distinct times of events, ascending; the share is 1 before the first.
        survival: the share of runs that last beyond each of these times.
        low: the lower end of the interval at each time by itself.
        high: the upper end of the interval.
        at_risk: how many runs had neither ended nor been censored before each time.
        events: how many runs ended at each time.
        n: the number of runs.
        last: the largest time of all runs, up to which the curve is known.
    """

    time: Array
    survival: Array
    low: Array
    high: Array
    at_risk: NDArray[np.int64]
    events: NDArray[np.int64]
    n: int
    last: float


@dataclass(frozen=True)
class LogRank:
    """The log-rank test of two groups of runs.

    Attributes:
        statistic: the events of the first group less those expected, in standard deviations; its square is chi-squared.
        p_value: the probability of a statistic at least as far from 0, if both groups last equally long.
    """

    statistic: float
    p_value: float


def survival_curve(times: ArrayLike, observed: ArrayLike, *, level: float = 0.95) -> SurvivalCurve:
    r"""The Kaplan-Meier estimate, with Greenwood's intervals on the log-log scale.

    With :math:`d_i` events among the :math:`n_i` runs that are at risk at the time :math:`t_i`,

    .. math:: \hat S(t) = \prod_{t_i \le t} \left( 1 - \frac{d_i}{n_i} \right) , \qquad
        \widehat{\mathrm{Var}} \log \hat S(t) = \sum_{t_i \le t} \frac{d_i}{n_i (n_i - d_i)} ,

    and the interval is that of :math:`\log(-\log S)`, mapped back: it stays between 0 and 1. Where all runs have ended,
    :math:`\hat S = 0`, and at 1, the variance says nothing; the interval there is the point.

    Args:
        times: the time of each run's event, or until when it was watched.
        observed: whether the event was seen; False for a censored run.
        level: the level of the interval at each time.

    Example:
        >>> curve = survival_curve([3, 5, 5, 8], [True, True, False, True])
        >>> curve.time, curve.survival, curve.at_risk
        (array([3., 5., 8.]), array([0.75, 0.5 , 0.  ]), array([4, 3, 1]))
    """
    time, seen = check_times(times, observed)
    share = check_share(level, "level")
    at = np.unique(time[seen])
    if at.size == 0:
        empty = np.empty(0)
        none = np.empty(0, np.int64)
        return SurvivalCurve(empty, empty, empty, empty, none, none, time.size, float(time.max()))
    found = ecdf(_censored(time, seen)).sf
    risk = np.array([(time >= t).sum() for t in at], np.int64)
    events = np.array([((time == t) & seen).sum() for t in at], np.int64)
    survival = np.asarray(found.evaluate(at), np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.cumsum(events / (risk * (risk - events)))
        error = norm.ppf((1.0 + share) / 2.0) * np.sqrt(variance) / np.log(survival)
        low, high = survival ** np.exp(-error), survival ** np.exp(error)
    inside = (survival > 0.0) & (survival < 1.0)
    return SurvivalCurve(
        at, survival, np.where(inside, low, survival), np.where(inside, high, survival), risk, events, time.size,
        float(time.max()),
    )  # fmt: skip


def log_rank(first: tuple[ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike]) -> LogRank:
    """The log-rank test of whether two groups of runs last equally long.

    Args:
        first: times and whether the event was seen, of the first group.
        second: the same of the second group.

    Returns:
        The test; a negative statistic says that the first group has fewer events than it would have if both were
        alike. Without any event, the statistic is 0 and the p-value 1.
    """
    pairs = [check_times(*group) for group in (first, second)]
    if not any(seen.any() for _, seen in pairs):
        return LogRank(0.0, 1.0)
    found = logrank(*(_censored(time, seen) for time, seen in pairs))
    return LogRank(float(found.statistic), float(found.pvalue))


def restricted_mean(times: ArrayLike, observed: ArrayLike, horizon: float) -> float:
    r"""The restricted mean survival time :math:`\int_0^\tau \hat S(t) \, dt`: how long a run lasts on average, of the
    first :math:`\tau`.

    Where the last run of a group is censored before the horizon, the curve is continued at its last value: an upper
    estimate. Choose a horizon that all groups were watched for.

    Args:
        times, observed: as for `survival_curve`.
        horizon: :math:`\tau`.

    Example:
        >>> restricted_mean([3, 5, 5, 8], [True, True, False, True], horizon=8)
        6.0
    """
    time, seen = check_times(times, observed)
    end = finite_number(horizon, "horizon", 0, above=True)
    return float(_areas(time[None], seen[None], end)[0])


def restricted_mean_difference(
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    horizon: float,
    *,
    seed: Seed,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    """By how much longer a run of the first group lasts on average than one of the second, with a bootstrap interval.

    Runs are drawn again within each group, each with its time and whether it was censored. Without a single event in
    both groups, the estimate and the interval are 0: nothing was seen to differ.

    Args:
        first: times and whether the event was seen, of the first group.
        second: the same of the second group.
        horizon: the time up to which lasting counts, as for `restricted_mean`.
        seed: a seed or a generator.
        level: the level of the interval.
        resamples: how often the runs are drawn again.
    """
    end, share = finite_number(horizon, "horizon", 0, above=True), check_share(level, "level")
    count, rng = check_count(resamples, "resamples"), check_generator(seed)
    found = []
    for group in (first, second):
        time, seen = check_times(*group)
        at = rng.integers(time.size, size=(count, time.size))
        found.append((float(_areas(time[None], seen[None], end)[0]), _areas(time[at], seen[at], end)))
    return interval_of(found[0][0] - found[1][0], found[0][1] - found[1][1], share)


def check_times(times: ArrayLike, observed: ArrayLike) -> tuple[Array, Mask]:
    """Times of at least one run, none negative, and whether each run's event was seen."""
    time, seen = finite_numbers(times, "times"), np.asarray(observed)
    if seen.dtype != np.bool_ or seen.shape != time.shape:
        raise InputError(f"observed must be true or false for each of the {time.size} times, found {seen.dtype} of "
                         f"shape {seen.shape}")  # fmt: skip
    if time.size == 0:
        raise InputError("times is empty: there is no run")
    if (time < 0.0).any():
        i = int(np.argmax(time < 0.0))
        raise InputError(f"times[{i}] = {time[i]:g} must not be negative")
    return time, seen


def _censored(time: Array, seen: Mask) -> CensoredData:
    return CensoredData.right_censored(time, ~seen)


def _areas(time: Array, seen: Mask, horizon: float) -> Array:
    """The restricted means of groups of equal size, shape (groups, runs) to (groups,)."""
    order = np.lexsort((~seen, time), axis=-1)  # events before runs that are censored at the same time
    time, seen = np.take_along_axis(time, order, -1), np.take_along_axis(seen, order, -1)
    risk = time.shape[-1] - np.arange(time.shape[-1])
    after = np.cumprod(np.where(seen, 1.0 - 1.0 / risk, 1.0), axis=-1)
    before = np.concatenate([np.ones_like(after[..., :1]), after], axis=-1)
    ends = np.concatenate([np.minimum(time, horizon), np.full_like(after[..., :1], horizon)], axis=-1)
    widths = np.diff(ends, axis=-1, prepend=0.0)
    return np.asarray((before * widths).sum(axis=-1))


def horizon_of(*groups: tuple[ArrayLike, ArrayLike]) -> float:
    """The longest time that every group was watched for: the least of the groups' largest times.

    Example:
        >>> horizon_of(([3, 9], [True, False]), ([4, 5], [True, True]))
        5.0
    """
    return min(float(check_times(*group)[0].max()) for group in groups)
