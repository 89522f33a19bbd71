r"""Learning curves: the mean return of the last 20 episodes against frames, and the area under it.

Frames are counted 1, 2, ..., so an episode of 7 frames that is a run's first ends at frame 7. With the episodes of one
run, ended at frames :math:`f_1 \le f_2 \le \dots` with returns :math:`G_1, G_2, \dots`, and :math:`k(t)` of them ended
by frame t, the curve is the mean of the last w (20 in the paper):

.. math:: c(t) = \frac{1}{\min(k, w)} \sum_{i = k - \min(k, w) + 1}^{k} G_i , \quad k = k(t) ,

and not a number before the first end. An unfinished episode never counts: only ended ones are in the table. A run that
stopped early (it failed, or diverged) keeps its last mean from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from ipe.analysis.columns import Frames, check_count, finite_numbers, runs_of, whole_numbers
from ipe.base.arrays import Array, numeric, refuse_where
from ipe.errors import InputError

WINDOW = 20
"""Episodes in the mean, as in the paper."""


class CurveSummary(NamedTuple):
    """Mean and standard error over runs, frame by frame, and how many runs each rests on."""

    mean: Array
    """The mean over the runs that have a value at the frame."""
    error: Array
    """The standard error of the mean."""
    n: NDArray[np.intp]
    """The number of runs that have a value at the frame."""


def frame_grid(total_frames: int, points: int = 500) -> Frames:
    """The frames at which curves are drawn: `points` of them, equally spaced up to the last frame.

    Example:
        >>> frame_grid(500_000, 5)
        array([100000, 200000, 300000, 400000, 500000])
    """
    total, points = check_count(total_frames, "total_frames"), check_count(points, "points")
    return np.unique((np.arange(1, points + 1) * total // points).clip(1))


def trailing_curve(frames: ArrayLike, returns: ArrayLike, grid: ArrayLike, window: int = WINDOW) -> Array:
    """The curve c of one run at the frames of a grid.

    Args:
        frames: the frame at which each episode ended, in order.
        returns: the return of each episode.
        grid: the frames at which the curve is wanted, in any order.
        window: how many episodes the mean is over.

    Returns:
        One value per grid point; NaN before the first end.

    Example:
        >>> trailing_curve([10, 25, 40], [1.0, 3.0, 8.0], [5, 10, 30, 50], window=2)
        array([nan, 1. , 2. , 5.5])
    """
    ends, values = _episodes(frames, returns)
    return _at(ends, trailing_means(values, check_count(window, "window")), _grid(grid))


def curves(episodes: Any, grid: ArrayLike, seeds: Sequence[int] | None = None, window: int = WINDOW) -> Array:
    """The curve of every run, from the table of all episodes.

    Args:
        episodes: columns seed, frame and return (a mapping of arrays, or a table of pyarrow, pandas or polars).
        grid: the frames at which the curves are wanted.
        seeds: the runs, in the order of the rows. A seed without a finished episode is a row of NaN; one that the
            table has and this list has not is left out. By default all seeds of the table, in ascending order.
        window: how many episodes the mean is over.

    Returns:
        Shape (runs, grid).

    Example:
        >>> table = {"seed": [1, 0, 1], "frame": [4, 6, 9], "return": [1.0, 5.0, 2.0]}
        >>> curves(table, [5, 10], seeds=[0, 1, 2])
        array([[nan, 5. ], [1. , 1.5], [nan, nan]])
    """
    at, size = _grid(grid), check_count(window, "window")
    rows = [_at(ends, trailing_means(values, size), at) for ends, values in runs_of(episodes, "return", seeds)]
    return np.stack(rows) if rows else np.empty((0, at.size))


def recorded_curves(progress: Any, name: str, grid: ArrayLike, seeds: Sequence[int] | None = None) -> Array:
    """The last value that every run recorded by each frame of the grid: of epsilon, entropy and so on.

    Args:
        progress: columns seed, frame and `name`. A NaN says that nothing was recorded there.
        name: the column.
        grid: the frames.
        seeds: the runs, as for `curves`.

    Returns:
        Shape (runs, grid); NaN before the first record.
    """
    at = _grid(grid)
    rows = [_at(frames, values, at) for frames, values in runs_of(progress, name, seeds, gaps=True)]
    return np.stack(rows) if rows else np.empty((0, at.size))


def auc(curve: ArrayLike) -> Array:
    """The mean of a curve over the grid points where it is defined, for one curve or for a row per run.

    This is the area under the curve only as far as the grid tells: an equally spaced grid gives an approximation, a
    grid of every frame gives `auc_of_episodes` exactly. Results should rest on `auc_of_episodes`.

    Returns:
        One number per run; NaN for a run whose curve is defined nowhere.

    Example:
        >>> auc([[np.nan, 1.0, 3.0], [np.nan, np.nan, np.nan]])
        array([ 2., nan])
    """
    values = numeric(curve, "curve")
    if values.ndim == 0:
        raise InputError("curve must have a frame axis; found a single number")
    return _mean_where(values, ~np.isnan(values), axis=-1)


def auc_of_episodes(frames: ArrayLike, returns: ArrayLike, total_frames: int, window: int = WINDOW) -> float:
    r"""The area under the curve of one run: the mean of c over every frame from the first end to the last frame T,

    .. math:: \frac{1}{T - f_1 + 1} \sum_{t = f_1}^{T} c(t) .

    Exact: c is a step function, so each of its steps counts as often as it has frames.

    Args:
        frames: the frame at which each episode ended, in order. Ends after T do not count.
        returns: the return of each episode.
        total_frames: T.
        window: how many episodes the mean is over.

    Returns:
        The area; NaN if no episode ended by T.

    Example:
        Frames 3 and 4 at 1, frame 5 at 3 (the mean of 1 and 5):

        >>> auc_of_episodes([3, 5], [1.0, 5.0], total_frames=5)
        1.6666666666666667
    """
    total = check_count(total_frames, "total_frames")
    return _area(*_episodes(frames, returns), total, check_count(window, "window"))


def aucs(episodes: Any, total_frames: int, seeds: Sequence[int] | None = None, window: int = WINDOW) -> Array:
    """`auc_of_episodes` of every run of a table; arguments as for `curves`.

    Returns:
        One number per run: what the statistics of runs take. NaN for a run that finished no episode; the statistics
        refuse it until it is given a score (`score_failed`).
    """
    total, size = check_count(total_frames, "total_frames"), check_count(window, "window")
    return np.array([_area(ends, values, total, size) for ends, values in runs_of(episodes, "return", seeds)])


def mean_and_standard_error(curves: ArrayLike) -> CurveSummary:
    r"""Mean and standard error :math:`s / \sqrt{n}` over runs, frame by frame, of the n runs defined there.

    Early frames, where n is below the number of runs, are about the runs that ended an episode by then.

    Args:
        curves: shape (runs, grid), NaN where not defined.

    Returns:
        Mean (NaN where n is 0), standard error with :math:`s^2` divided by n - 1 (NaN where n is below 2), and n.
    """
    values = check_curves(curves)
    defined = ~np.isnan(values)
    n = defined.sum(axis=0)
    mean = _mean_where(values, defined, axis=0)
    squares = np.where(defined, values - mean, 0.0) ** 2
    error = np.full(mean.shape, np.nan)
    many = n > 1
    error[many] = np.sqrt(squares.sum(axis=0)[many] / (n[many] - 1) / n[many])
    return CurveSummary(mean, error, n)


def check_curves(curves: ArrayLike) -> Array:
    """Curves of at least one run, shape (runs, grid)."""
    values = numeric(curves, "curves")
    if values.ndim != 2 or len(values) == 0:
        raise InputError(f"curves must have shape (runs, grid), of at least one run; found {values.shape}")
    refuse_where(np.isinf(values), values, "curves", "not a finite number")
    return values


def _mean_where(values: Array, defined: NDArray[np.bool_], axis: int) -> Array:
    n = defined.sum(axis=axis)
    total = np.where(defined, values, 0.0).sum(axis=axis)
    return np.asarray(np.divide(total, n, out=np.full(np.shape(total), np.nan), where=n > 0))


def trailing_means(values: Array, window: int) -> Array:
    """After each episode the mean of the last `window`, by sums of these alone: no error carries on."""
    head = values[: window - 1]
    start = np.cumsum(head) / np.arange(1, head.size + 1)
    if values.size < window:
        return start
    return np.concatenate([start, sliding_window_view(values, window).mean(axis=1)])


def _at(frames: Frames, values: Array, grid: Frames) -> Array:
    """The newest value by each frame of the grid."""
    k = np.searchsorted(frames, grid, side="right")
    return np.concatenate([[np.nan], values])[k]


def _area(ends: Frames, values: Array, total: int, window: int) -> float:
    ends = ends[ends <= total]
    if ends.size == 0:
        return float("nan")
    lengths = np.diff(ends, append=total + 1)
    return float(trailing_means(values[: ends.size], window) @ lengths / lengths.sum())


def _episodes(frames: ArrayLike, returns: ArrayLike) -> tuple[Frames, Array]:
    ends, values = whole_numbers(frames, "frames", least=1), finite_numbers(returns, "returns")
    if ends.size != values.size:
        raise InputError(f"frames and returns must have one entry per episode; found {ends.size} and {values.size}")
    back = np.diff(ends) < 0
    if back.any():
        i = int(np.argmax(back)) + 1
        raise InputError(f"frames[{i}] = {ends[i]} comes before frames[{i - 1}] = {ends[i - 1]}: give them in order")
    return ends, values


def _grid(grid: ArrayLike) -> Frames:
    return whole_numbers(grid, "grid", least=0)
