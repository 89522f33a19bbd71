r"""The bootstrap over runs: how far an estimate would move if the runs were drawn again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from ipe.analysis.columns import check_count, check_share
from ipe.analysis.scores import Scores, check_strata
from ipe.analysis.statistics import trimmed
from ipe.base.arrays import Array
from ipe.base.numbers import whole_number
from ipe.errors import InputError

Seed: TypeAlias = int | np.random.Generator

Statistic: TypeAlias = Literal["mean", "median", "iqm", "std"] | Callable[[Array], Array]
"""A name, or a function of an array of shape (..., runs) to its statistic over the last axis, shape (...)."""

RESAMPLES = 10_000
_CELLS = 2_000_000  # numbers that are resampled at a time: 16 MB


@dataclass(frozen=True)
class Interval:
    """An estimate from all runs, with a bootstrap interval of that level around it."""

    estimate: float
    """The estimate from all runs."""
    low: float
    """The lower end of the interval."""
    high: float
    """The upper end of the interval."""
    level: float
    """The level of the interval."""

    def __str__(self) -> str:
        return f"{self.estimate:.4g} [{self.low:.4g}, {self.high:.4g}]"


def check_generator(seed: Seed) -> np.random.Generator:
    """A generator: the one given, or a fresh one from a seed. Never the clock."""
    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(whole_number(seed, "seed", 0, also=" or a numpy Generator"))


def bootstrap_interval(
    scores: Scores,
    statistic: Statistic = "mean",
    *,
    seed: Seed,
    level: float = 0.95,
    resamples: int = RESAMPLES,
) -> Interval:
    r"""The percentile bootstrap interval of a statistic of runs, stratified by task or setting.

    Runs are drawn again with replacement, within each stratum as many as it has; the statistic is taken of all drawn
    scores pooled, as in rliable (so normalise scores of different tasks first). The ends of the interval are the
    :math:`(1 - level)/2` and :math:`(1 + level)/2` quantiles of the statistic over the resamples. With few
    runs such intervals are too narrow: for normal scores a nominal 95% covers the mean in about 84% of cases at 5
    runs, 90% at 10, 94% at 30; the standard deviation in 78% at 10 and 87% at 30 (measured by simulation).

    Args:
        scores: one number per run, or a mapping of strata.
        statistic: "mean", "median", "iqm", "std", or a function over the last axis.
        seed: a seed or a generator: the same seed gives the same interval.
        level: the level of the interval.
        resamples: how often the runs are drawn again.

    Example:
        >>> bootstrap_interval([1.0, 2.0, 3.0, 4.0, 5.0], seed=0).estimate
        3.0
    """
    strata = list(check_strata(scores).values())
    share, count, rng = check_share(level, "level"), check_count(resamples, "resamples"), check_generator(seed)
    function = statistic_of(statistic)
    drawn = [apply_statistic(function, pooled) for pooled in resampled(strata, count, rng)]
    return interval_of(float(apply_statistic(function, np.concatenate(strata)[None])[0]), np.concatenate(drawn), share)


def resampled(strata: Sequence[Array], resamples: int, rng: np.random.Generator) -> Iterator[Array]:
    """Resamples of runs within strata, pooled: arrays (part of the resamples, all runs), a few megabytes each."""
    block = max(1, _CELLS // sum(values.size for values in strata))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        yield np.concatenate([x[rng.integers(x.size, size=(rows, x.size))] for x in strata], axis=1)


def resample_counts(sizes: Sequence[int], resamples: int, rng: np.random.Generator) -> Iterator[list[Array]]:
    """How often each run of each group is drawn, part by part: arrays (resamples, runs), for what is linear in them."""
    block = max(1, _CELLS // sum(sizes))
    for start in range(0, resamples, block):
        yield [_counts(n, min(block, resamples - start), rng) for n in sizes]


def mean_curves(counts: Array, curves: Array) -> Array:
    """The mean curve of each resample, shape (resamples, grid), over the runs that have a value at each frame;
    `counts`, shape (resamples, runs), says how often each run was drawn."""
    defined = ~np.isnan(curves)
    n = counts @ defined
    total = counts @ np.where(defined, curves, 0.0)
    return np.asarray(np.divide(total, n, out=np.full(n.shape, np.nan), where=n > 0))


def _counts(n: int, rows: int, rng: np.random.Generator) -> Array:
    drawn = rng.integers(n, size=(rows, n)) + n * np.arange(rows)[:, None]
    return np.bincount(drawn.ravel(), minlength=rows * n).reshape(rows, n).astype(np.float64)


def interval_of(estimate: float, drawn: Array, level: float) -> Interval:
    """The percentile interval of the bootstrap's values."""
    low, high = np.quantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    return Interval(estimate, float(low), float(high), level)


def statistic_of(statistic: Statistic) -> Callable[[Array], Array]:
    """The function that a name stands for, or the function itself."""
    if callable(statistic):
        return statistic
    if statistic not in _STATISTICS:
        raise InputError(f"statistic must be one of {', '.join(_STATISTICS)} or a function, found {statistic!r}")
    return _STATISTICS[statistic]


def _std(values: Array) -> Array:
    if values.shape[-1] < 2:
        raise InputError(f"scores: a standard deviation needs at least 2 runs; found {values.shape[-1]}")
    return np.asarray(np.std(values, axis=-1, ddof=1))


_STATISTICS: dict[str, Callable[[Array], Array]] = {
    "mean": lambda values: np.asarray(np.mean(values, axis=-1)),
    "median": lambda values: np.asarray(np.median(values, axis=-1)),
    "iqm": trimmed,
    "std": _std,
}


def apply_statistic(function: Callable[[Array], Any], values: Array) -> Array:
    """A statistic over the last axis, checked: one finite number per resample."""
    out = np.asarray(function(values), dtype=np.float64)
    if out.shape != values.shape[:-1]:
        raise InputError(
            f"statistic must map {values.shape} to {values.shape[:-1]}, one number per resample; found {out.shape}"
        )
    if not np.isfinite(out).all():
        raise InputError("statistic is not finite for some resample of the runs")
    return out
