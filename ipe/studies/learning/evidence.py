r"""Verdicts on sentences about learning curves: two behaviours, compared run by run.

A sentence that one behaviour is better holds if the 95% bootstrap interval of the difference lies on its side, does not
hold if the interval lies on the other side, and depends (on the runs that were drawn) if the interval contains 0.
"""

from __future__ import annotations

import numpy as np

from ipe.analysis import (
    Claim,
    Interval,
    difference_interval,
    largest_fall,
    mean_and_standard_error,
    mean_curve_interval,
    probability_of_improvement,
    relative_fall,
    rise,
    standard_error,
)
from ipe.analysis.claims import Verdict
from ipe.analysis.columns import Frames
from ipe.analysis.series import Series
from ipe.base.arrays import Array

SEED = 0
"""The seed of every bootstrap: the same runs give the same verdicts."""

LAST_SHARE = 0.1
"""The share of the frames, at the end, over which a curve is averaged for its "asymptotic" performance."""

_SMALL_FALL = 0.05
"""The share of a curve's rise below which a fall is not called a dip."""


def above(interval: Interval, bar: float = 0.0) -> Verdict:
    """The verdict on "more than the bar".

    Example:
        >>> above(Interval(2.0, 0.5, 3.0, 0.95)), above(Interval(2.0, -0.5, 3.0, 0.95))
        ('holds', 'depends')
    """
    if interval.low > bar:
        return "holds"
    return "does not hold" if interval.high < bar else "depends"


def opposite(found: Verdict) -> Verdict:
    """The verdict on the opposite sentence.

    Example:
        >>> opposite("holds"), opposite("depends")
        ('does not hold', 'depends')
    """
    return {"holds": "does not hold", "does not hold": "holds", "depends": "depends"}[found]  # type: ignore[return-value]


def both(*verdicts: Verdict) -> Verdict:
    """The verdict on a sentence with several parts: that of the parts if they agree.

    Example:
        >>> both("holds", "holds"), both("holds", "does not hold")
        ('holds', 'depends')
    """
    return verdicts[0] if len(set(verdicts)) == 1 else "depends"


def larger_area(words: str, first: Series, second: Series) -> Claim:
    """The claim that the first has the larger area under the curve."""
    difference = difference_interval(first.auc, second.auc, seed=SEED)
    chance = probability_of_improvement(first.auc, second.auc, seed=SEED)
    finding = (
        f"{_mean_error(first, first.auc)}, {_mean_error(second, second.auc)} "
        f"(mean and standard error of {first.n} and {second.n} runs); "
        f"difference {_words(difference)}; a run of the one beats a run of the other with probability {_words(chance)}"
    )
    numbers = {"first": first.auc.mean(), "second": second.auc.mean(), **_ends("difference", difference)}
    return Claim("area", "learning curves", words, above(difference), finding, numbers | _ends("probability", chance))


def same_area(words: str, first: Series, second: Series) -> Claim:
    """The claim that the areas do not differ significantly: the interval of their difference contains 0."""
    found = larger_area(words, first, second)
    agrees: Verdict = "holds" if found.verdict == "depends" else "does not hold"
    return Claim(found.name, found.figure, words, agrees, found.finding, found.numbers)


def better_end(words: str, first: Series, second: Series, grid: Frames) -> Claim:
    """The claim that the first ends higher: the mean of each run's curve over the last tenth of the frames."""
    ends = [ending(series, grid) for series in (first, second)]
    difference = difference_interval(ends[0], ends[1], seed=SEED)
    finding = (
        f"over the last {LAST_SHARE:.0%} of the frames {_mean_error(first, ends[0])}, {_mean_error(second, ends[1])}; "
        f"difference {_words(difference)}"
    )
    numbers = {"first": ends[0].mean(), "second": ends[1].mean(), **_ends("difference", difference)}
    return Claim("asymptote", "learning curves", words, above(difference), finding, numbers)


def lower_variance(name: str, words: str, first: Series, second: Series, grid: Frames) -> Claim:
    """The claim that the runs of the first differ less, in their areas and in where they end."""
    ends = [ending(series, grid) for series in (first, second)]
    of_area = difference_interval(second.auc, first.auc, "std", seed=SEED)
    of_end = difference_interval(ends[1], ends[0], "std", seed=SEED)
    finding = (
        f"standard deviation between runs of the area {np.std(first.auc, ddof=1):.3g} ({_name(first)}) against "
        f"{np.std(second.auc, ddof=1):.3g} ({_name(second)}), difference {_words(of_area)}; of the end "
        f"{np.std(ends[0], ddof=1):.3g} against {np.std(ends[1], ddof=1):.3g}, difference {_words(of_end)}; "
        f"worst run's area {first.auc.min():.4g} against {second.auc.min():.4g}"
    )
    numbers = {**_ends("area", of_area), **_ends("end", of_end)}
    numbers |= {"first_worst": first.auc.min(), "second_worst": second.auc.min()}
    return Claim(name, "learning curves", words, both(above(of_area), above(of_end)), finding, numbers)


def more_monotone(words: str, first: Series, second: Series) -> Claim:
    """The claim that the first improves "relatively monotonically": its mean curve falls by less than a tenth of its
    rise, and by less than the second's."""
    falls = [mean_curve_interval(series.curves, relative_fall, seed=SEED) for series in (first, second)]
    monotone = opposite(above(falls[0], 0.1))
    apart = above(Interval(0.0, falls[1].low - falls[0].high, falls[1].high - falls[0].low, 0.95))
    finding = (
        f"the mean curve's largest fall, as a share of its rise, is {_words(falls[0])} for {_name(first)}, "
        f"{_words(falls[1])} for {_name(second)}"
    )
    numbers = {**_ends("first", falls[0]), **_ends("second", falls[1])}
    return Claim("monotone", "learning curves", words, both(monotone, apart), finding, numbers)


def dip(words: str, dips: Series, other: Series, grid: Frames, frame: int) -> Claim:
    """The claim that one mean curve dips where its epsilon stops falling, and the other does not.

    A dip is a fall between half that frame and four times it: curves of 20 episodes lag behind.
    """
    window = (grid >= frame / 2) & (grid <= 4 * frame)
    first, second = (mean_curve_interval(series.curves[:, window], largest_fall, seed=SEED) for series in (dips, other))
    bars = [_SMALL_FALL * float(rise(mean_and_standard_error(series.curves).mean)) for series in (dips, other)]
    seen, none = above(first, bars[0]), opposite(above(second, bars[1]))
    finding = (
        f"between {frame / 2:,.0f} and {4 * frame:,} frames the mean curve of {_name(dips)} falls by {_words(first)}, "
        f"that of {_name(other)} by {_words(second)}; less than {_SMALL_FALL:.0%} of the curve's rise "
        f"({bars[0]:.3g} and {bars[1]:.3g}) is not called a dip"
    )
    numbers = {**_ends("first", first), **_ends("second", second), "frame": float(frame)}
    return Claim("dip", "learning curves", words, both(seen, none), finding, numbers)


def ending(series: Series, grid: Frames) -> Array:
    """The mean of each run's curve over the last tenth of the frames; its final score where the curve has no value."""
    last = series.curves[:, grid > (1.0 - LAST_SHARE) * grid[-1]]
    values = np.array([np.nanmean(row) if np.isfinite(row).any() else np.nan for row in last])
    return np.where(np.isnan(values), series.final, values)


def _name(series: Series) -> str:
    return series.setting.case or series.name


def _mean_error(series: Series, scores: Array) -> str:
    return f"{_name(series)} {scores.mean():.4g} ± {standard_error(scores):.2g}"


def _words(interval: Interval) -> str:
    return f"{interval.estimate:.3g} [{interval.low:.3g}, {interval.high:.3g}]"


def _ends(name: str, interval: Interval) -> dict[str, float]:
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
