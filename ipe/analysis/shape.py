r"""The shape of a mean learning curve: how far it falls, and how sure that is.

A mean over runs is the curve that papers show and describe ("relatively monotonic", "a dip"). Its shape is no mean of
the runs' own shapes: single runs rise and fall at different frames. So runs are resampled, and the shape is taken of
each resample's mean curve.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from ipe.analysis.bootstrap import Interval, Seed, check_generator, interval_of, mean_curves, resample_counts
from ipe.analysis.columns import check_count, check_share
from ipe.analysis.curves import check_curves
from ipe.base.arrays import Array, numeric
from ipe.errors import InputError

RESAMPLES = 2_000


def largest_fall(curve: ArrayLike) -> Array:
    r"""The largest fall of a curve below where it has been before,

    .. math:: \max_{t} \left( \max_{s \le t} c(s) - c(t) \right) ,

    0 for one that never falls. Grid points that are not defined (NaN) are passed over.

    Args:
        curve: the grid is the last axis.

    Example:
        >>> largest_fall([1.0, 4.0, 2.0, 6.0, 5.5])
        array(2.)
    """
    values = numeric(curve, "curve")
    if values.ndim == 0 or values.shape[-1] == 0:
        raise InputError(f"curve must have at least one frame; found the shape {values.shape}")
    highest = np.maximum.accumulate(np.where(np.isnan(values), -np.inf, values), axis=-1)
    falls = np.where(np.isnan(values), 0.0, np.where(np.isinf(highest), 0.0, highest) - values)
    return np.asarray(falls.max(axis=-1))


def rise(curve: ArrayLike) -> Array:
    """The difference between a curve's highest and lowest values, by which its falls are measured.

    Example:
        >>> rise([[1.0, 4.0, 2.0], [0.0, 0.0, 0.0]])
        array([3., 0.])
    """
    values = numeric(curve, "curve")
    if np.isnan(values).all(axis=-1).any():
        raise InputError("curve: it is defined nowhere")
    return np.asarray(np.nanmax(values, axis=-1) - np.nanmin(values, axis=-1))


def relative_fall(curve: ArrayLike) -> Array:
    """`largest_fall` as a share of `rise`: 0 for a curve that never falls, 1 for one that only does.

    Example:
        >>> relative_fall([0.0, 4.0, 3.0])
        array(0.25)
    """
    height = rise(curve)
    return np.asarray(np.divide(largest_fall(curve), height, out=np.zeros_like(height), where=height > 0.0))


def mean_curve_interval(
    curves: ArrayLike,
    shape: Callable[[Array], Array],
    *,
    seed: Seed,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    r"""A statistic of the mean curve of runs, with a bootstrap interval over runs.

    The estimate is :math:`f(\bar c)`; the interval has the quantiles of :math:`f(\bar c^{(b)})`, with
    :math:`\bar c^{(b)}` the mean of runs drawn again. Where f looks for an extreme (a largest fall), chance alone
    makes it larger, in the resamples more than in the estimate: an interval that begins well above 0 says more than
    one that only does not contain it. Resamples of nothing but runs that are defined nowhere (no episode ended) have no
    mean curve, and are left out.

    Args:
        curves: shape (runs, grid), NaN where a run is not defined yet.
        shape: a function of curves, shape (..., grid), to one number each.
        seed, level, resamples: as for `bootstrap_interval`.

    Example:
        >>> mean_curve_interval([[0.0, 2.0, 1.0], [0.0, 4.0, 3.0]], largest_fall, seed=0).estimate
        1.0
    """
    values, share = check_curves(curves), check_share(level, "level")
    count, rng = check_count(resamples, "resamples"), check_generator(seed)
    if not (somewhere := ~np.isnan(values).all(axis=1)).any():
        raise InputError("curves: no run is defined anywhere")
    drawn = [
        np.asarray(shape(mean_curves(counts[counts @ somewhere > 0], values)), np.float64)
        for (counts,) in resample_counts((len(values),), count, rng)
    ]
    estimate = shape(mean_curves(np.ones((1, len(values))), values))
    return interval_of(float(estimate[0]), np.concatenate(drawn), share)
