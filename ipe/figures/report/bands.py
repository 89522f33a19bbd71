r"""What a page shows of many curves: mean, standard error, interquartile mean, and intervals, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ipe.analysis import bootstrap_band, mean_and_standard_error
from ipe.analysis.bootstrap import Seed, check_generator, resample_counts
from ipe.analysis.columns import check_count, check_share
from ipe.analysis.curves import check_curves
from ipe.base.arrays import Array


@dataclass(frozen=True, eq=False)
class CurveBands:
    """Statistics of curves over runs, shape (grid,) each; NaN where not defined.

    Attributes:
        mean: over the runs defined there.
        error: its standard error.
        low: lower end of the mean's bootstrap interval.
        high: upper end.
        iqm: the interquartile mean.
        iqm_low: lower end of its bootstrap interval.
        iqm_high: upper end.
    """

    mean: Array
    error: Array
    low: Array
    high: Array
    iqm: Array
    iqm_low: Array
    iqm_high: Array


def curve_bands(curves: ArrayLike, *, seed: Seed, level: float = 0.95, resamples: int = 1000) -> CurveBands:
    """All statistics of the curves of a setting.

    Args:
        curves: shape (runs, grid), NaN where not defined.
        seed: a seed or a generator.
        level: of the pointwise intervals.
        resamples: of whole runs.
    """
    rng = check_generator(seed)
    summary = mean_and_standard_error(curves)
    low, high = bootstrap_band(curves, seed=rng, level=level, resamples=resamples)
    iqm_low, iqm_high = iqm_band(curves, seed=rng, level=level, resamples=resamples)
    return CurveBands(summary.mean, summary.error, low, high, iqm_curve(curves), iqm_low, iqm_high)


def iqm_curve(curves: ArrayLike) -> Array:
    """The interquartile mean over the runs defined at each frame.

    Args:
        curves: shape (runs, grid), NaN where not defined.

    Returns:
        Shape (grid,); NaN where no run is defined.

    Example:
        >>> iqm_curve([[0.0, np.nan], [1.0, 5.0], [3.0, np.nan], [100.0, 6.0]])
        array([2. , 5.5])
    """
    values = check_curves(curves)
    return np.asarray(_iqms(values, np.ones((1, len(values)), dtype=np.intp))[0])


def iqm_band(curves: ArrayLike, *, seed: Seed, level: float = 0.95, resamples: int = 1000) -> tuple[Array, Array]:
    """Pointwise percentile bootstrap intervals of the interquartile mean: whole runs are resampled.

    Args:
        curves: shape (runs, grid), NaN where not defined.
        seed: a seed or a generator.
        level: at each frame by itself.
        resamples: how many.

    Returns:
        Lower and upper end, shape (grid,) each; NaN where fewer than two runs are defined.
    """
    values, share, rng = check_curves(curves), check_share(level, "level"), check_generator(seed)
    blocks = resample_counts((len(values),), check_count(resamples, "resamples"), rng)
    counts = np.concatenate([block for (block,) in blocks]).astype(np.intp)
    drawn = _iqms(values, counts)
    enough = (~np.isnan(values)).sum(axis=0) > 1
    ends = np.full((2, values.shape[1]), np.nan)
    if enough.any():
        # A resample may miss the few runs that are defined early on; elsewhere the plain quantile is much the faster.
        whole = enough & ~np.isnan(drawn).any(axis=0)
        for at, quantile in ((whole, np.quantile), (enough & ~whole, np.nanquantile)):
            ends[:, at] = quantile(drawn[:, at], [(1.0 - share) / 2.0, (1.0 + share) / 2.0], axis=0)
    return ends[0], ends[1]


def _iqms(values: Array, counts: NDArray[np.intp]) -> Array:
    """The interquartile mean at each frame of each resample, shape (resamples, grid).

    A resample is how often each run was drawn. In the sorted row of a frame, run i takes the places from the sum of
    those before it to that plus its own; what of them lies in the middle half is its weight.
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
