"""Bands around learning curves, frame by frame: where the mean of the runs lies, and where most runs lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ipe.analysis.bootstrap import Seed, check_generator, mean_curves, resample_counts
from ipe.analysis.columns import check_count, check_share
from ipe.analysis.curves import check_curves, mean_and_standard_error
from ipe.analysis.statistics import tolerance_rank
from ipe.base.arrays import Array, Mask


@dataclass(frozen=True, eq=False)
class CurveBands:
    """Statistics of the curves of several runs at each frame, shape (grid,) each; NaN where there are none.

    Attributes:
        mean: the mean over the runs that have a value there.
        error: the standard error of the mean.
        low: the lower end of the mean's bootstrap interval.
        high: the upper end of the mean's bootstrap interval.
        iqm: the interquartile mean.
        iqm_low: the lower end of the interquartile mean's bootstrap interval.
        iqm_high: the upper end of the interquartile mean's bootstrap interval.
    """

    mean: Array
    error: Array
    low: Array
    high: Array
    iqm: Array
    iqm_low: Array
    iqm_high: Array


def curve_bands(curves: ArrayLike, *, seed: Seed, level: float = 0.95, resamples: int = 1000) -> CurveBands:
    """The mean, the interquartile mean and their intervals; arguments as for `bootstrap_band`."""
    rng = check_generator(seed)
    summary = mean_and_standard_error(curves)
    low, high = bootstrap_band(curves, seed=rng, level=level, resamples=resamples)
    iqm_low, iqm_high = iqm_band(curves, seed=rng, level=level, resamples=resamples)
    return CurveBands(summary.mean, summary.error, low, high, iqm_curve(curves), iqm_low, iqm_high)


def bootstrap_band(curves: ArrayLike, *, seed: Seed, level: float = 0.95, resamples: int = 2000) -> tuple[Array, Array]:
    """Percentile bootstrap intervals of the mean curve at each frame. Whole runs are drawn again, so a run stays a run.

    Args:
        curves: shape (runs, grid), NaN where a run has no value; the mean at a frame is over the runs that have one.
        seed: a seed or a generator.
        level: the level of the interval at each frame by itself, not of the whole curve at once.
        resamples: how often the runs are drawn again.

    Returns:
        The lower and the upper end, shape (grid,) each; NaN where fewer than two runs have a value.
    """
    values, share = check_curves(curves), check_share(level, "level")
    blocks = resample_counts((len(values),), check_count(resamples, "resamples"), check_generator(seed))
    means = np.concatenate([mean_curves(counts, values) for (counts,) in blocks])
    return _percentiles(means, (~np.isnan(values)).sum(axis=0) > 1, share)


def iqm_curve(curves: ArrayLike) -> Array:
    """The interquartile mean over the runs that have a value at each frame.

    Args:
        curves: shape (runs, grid), NaN where a run has no value.

    Returns:
        Shape (grid,); NaN where no run has a value.

    Example:
        >>> iqm_curve([[0.0, np.nan], [1.0, 5.0], [3.0, np.nan], [100.0, 6.0]])
        array([2. , 5.5])
    """
    values = check_curves(curves)
    return np.asarray(_iqms(values, np.ones((1, len(values)), dtype=np.intp))[0])


def iqm_band(curves: ArrayLike, *, seed: Seed, level: float = 0.95, resamples: int = 1000) -> tuple[Array, Array]:
    """Percentile bootstrap intervals of the interquartile mean at each frame; arguments as for `bootstrap_band`."""
    values, share, rng = check_curves(curves), check_share(level, "level"), check_generator(seed)
    blocks = resample_counts((len(values),), check_count(resamples, "resamples"), rng)
    counts = np.concatenate([block for (block,) in blocks]).astype(np.intp)
    return _percentiles(_iqms(values, counts), (~np.isnan(values)).sum(axis=0) > 1, share)


def tolerance_band(curves: ArrayLike, *, coverage: float, confidence: float = 0.95) -> tuple[Array, Array]:
    """`tolerance_interval` at each frame by itself: where at least that share of all future runs lies.

    Args:
        curves: shape (runs, grid), NaN where a run has no value.
        coverage: the share of runs.
        confidence: the confidence at each frame.

    Returns:
        The lower and the upper end, shape (grid,) each; NaN at frames where some run has no value.
    """
    values = check_curves(curves)
    rank = tolerance_rank(len(values), coverage=coverage, confidence=confidence)
    ordered = np.sort(values, axis=0)  # NaN last
    whole = ~np.isnan(ordered[-1])
    low, high = (np.where(whole, ordered[i], np.nan) for i in (rank - 1, len(values) - rank))
    return low, high


def _percentiles(drawn: Array, enough: Mask, level: float) -> tuple[Array, Array]:
    """The percentile interval at each frame with enough runs, from the statistic of each resample."""
    ends = np.full((2, drawn.shape[1]), np.nan)
    # A resample may miss the few runs that have a value early on; elsewhere the plain quantile is much faster.
    whole = enough & ~np.isnan(drawn).any(axis=0)
    for at, quantile in ((whole, np.quantile), (enough & ~whole, np.nanquantile)):
        if at.any():
            ends[:, at] = quantile(drawn[:, at], [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return ends[0], ends[1]


def _iqms(values: Array, counts: NDArray[np.intp]) -> Array:
    """The interquartile mean at each frame of each resample, shape (resamples, grid).

    A resample says how often each run was drawn. In the sorted values of a frame, a run that was drawn k times takes k
    places after those of the smaller values; the weight of the run is how many of its places lie in the middle half.
    """
    order, n_defined = np.argsort(values, axis=0), (~np.isnan(values)).sum(axis=0)  # NaN comes last
    out = np.full((len(counts), values.shape[1]), np.nan)
    for frame in np.flatnonzero(n_defined):
        defined = order[: n_defined[frame], frame]
        drawn = counts[:, defined]
        after = np.cumsum(drawn, axis=1)
        n = after[:, -1:]
        cut = n // 4
        weight = np.clip(np.minimum(after, n - cut) - np.maximum(after - drawn, cut), 0, None)
        total = weight @ values[defined, frame]
        kept = (n - 2 * cut)[:, 0]
        np.divide(total, kept, out=out[:, frame], where=kept > 0)
    return out
