"""Bands around learning curves, frame by frame: where the mean lies, and where runs lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ipe.analysis.bootstrap import Seed, check_generator, resample_counts
from ipe.analysis.columns import check_count, check_share
from ipe.analysis.curves import check_curves
from ipe.analysis.statistics import tolerance_rank
from ipe.base.arrays import Array


def bootstrap_band(curves: ArrayLike, *, seed: Seed, level: float = 0.95, resamples: int = 2000) -> tuple[Array, Array]:
    """Pointwise percentile bootstrap intervals of the mean curve: whole runs are resampled, so a run stays a run.

    Args:
        curves: shape (runs, grid), NaN where not defined; the mean at a frame is of the runs defined there.
        seed: a seed or a generator.
        level: at each frame by itself, not of the whole curve at once.
        resamples: how many.

    Returns:
        Lower and upper end, shape (grid,) each; NaN where fewer than two runs are defined.
    """
    values, share = check_curves(curves), check_share(level, "level")
    defined = ~np.isnan(values)
    filled, rng = np.where(defined, values, 0.0), check_generator(seed)
    blocks = resample_counts((len(values),), check_count(resamples, "resamples"), rng)
    sums = [(counts @ filled, counts @ defined.astype(np.float64)) for (counts,) in blocks]
    total, n = (np.concatenate(parts) for parts in zip(*sums, strict=True))
    means = np.divide(total, n, out=np.full(total.shape, np.nan), where=n > 0)
    return _where_enough(means, defined.sum(axis=0) > 1, share)


def tolerance_band(curves: ArrayLike, *, coverage: float, confidence: float = 0.95) -> tuple[Array, Array]:
    """`tolerance_interval` at each frame by itself: where at least that share of runs lies, with confidence.

    Args:
        curves: shape (runs, grid), NaN where not defined.
        coverage: the share of runs.
        confidence: at each frame.

    Returns:
        Lower and upper end, shape (grid,) each; NaN at frames where not all runs are defined yet.
    """
    values = check_curves(curves)
    rank = tolerance_rank(len(values), coverage=coverage, confidence=confidence)
    ordered = np.sort(values, axis=0)  # NaN last
    whole = ~np.isnan(ordered[-1])
    low, high = (np.where(whole, ordered[i], np.nan) for i in (rank - 1, len(values) - rank))
    return low, high


def _where_enough(
    means: Array, enough: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], level: float
) -> tuple[Array, Array]:
    ends = np.full((2, means.shape[1]), np.nan)
    if enough.any():
        # `nanquantile` goes column by column, several times as slow.
        quantile = np.nanquantile if np.isnan(means[:, enough]).any() else np.quantile
        ends[:, enough] = quantile(means[:, enough], [(1.0 - level) / 2.0, (1.0 + level) / 2.0], axis=0)
    return ends[0], ends[1]
