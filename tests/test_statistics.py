"""Statistics of runs: by hand, against scipy, and the coverage of intervals by simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from ipe.analysis import (
    Interval,
    bootstrap_band,
    bootstrap_interval,
    interquartile_mean,
    runs_for_tolerance,
    score_failed,
    tolerance_band,
    tolerance_interval,
    worst_seen,
)
from ipe.errors import InputError

NAN = np.nan
NONE: Any = None
UNKNOWN: Any = "iqr"
SKEWED = np.random.default_rng(3).exponential(size=25)


def test_interquartile_mean_by_hand() -> None:
    assert interquartile_mean([9.0]) == 9.0
    assert interquartile_mean([5.0, 1.0, 3.0]) == 3.0  # floor(3/4) = 0: nothing is cut
    assert interquartile_mean([100.0, 2.0, 4.0, -100.0]) == 3.0
    assert interquartile_mean([0.0, 1.0, 2.0, 3.0, 4.0, 50.0]) == 2.5  # one of six cut at either end
    assert interquartile_mean(range(8)) == 3.5


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_interquartile_mean_is_the_trimmed_mean_of_the_sorted_scores(scores: list[float]) -> None:
    cut = len(scores) // 4
    middle = sorted(scores)[cut : len(scores) - cut]
    assert_allclose(interquartile_mean(scores), sum(middle) / len(middle), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "function"),
    [("mean", np.mean), ("median", np.median), ("std", lambda x, axis: np.std(x, axis=axis, ddof=1))],
)
def test_the_interval_is_that_of_scipy(name: Any, function: Any) -> None:
    ours = bootstrap_interval(SKEWED, name, seed=0, resamples=40_000, level=0.9)
    theirs = stats.bootstrap(
        (SKEWED,), function, method="percentile", n_resamples=40_000, confidence_level=0.9, rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours.estimate == pytest.approx(function(SKEWED, axis=-1))
    assert_allclose([ours.low, ours.high], [theirs.low, theirs.high], atol=0.02)


def test_a_seed_gives_the_same_interval_and_a_generator_moves_on() -> None:
    assert bootstrap_interval(SKEWED, seed=5) == bootstrap_interval(SKEWED, seed=np.random.default_rng(5))
    assert bootstrap_interval(SKEWED, seed=5) != bootstrap_interval(SKEWED, seed=6)
    rng = np.random.default_rng(5)
    assert bootstrap_interval(SKEWED, seed=rng) != bootstrap_interval(SKEWED, seed=rng)


def test_strata_keep_their_sizes() -> None:
    # Between the strata all the difference, within them none: stratified resampling cannot vary.
    scores = {"easy": [10.0] * 5, "hard": [0.0] * 15}
    assert bootstrap_interval(scores, seed=0) == Interval(2.5, 2.5, 2.5, 0.95)
    pooled = bootstrap_interval([10.0] * 5 + [0.0] * 15, seed=0)
    assert pooled.low < 1.5 < 3.5 < pooled.high


def test_blocks_of_resamples_are_one_bootstrap() -> None:
    many = np.random.default_rng(0).normal(size=3000)  # 666 resamples at a time
    interval = bootstrap_interval(many, seed=0, resamples=2000)
    width = 2 * 1.96 * many.std() / np.sqrt(many.size)
    assert interval.high - interval.low == pytest.approx(width, rel=0.08)


def coverage(statistic: Any, truth: float, replications: int = 400) -> float:
    rng = np.random.default_rng(11)
    intervals = [
        bootstrap_interval(rng.normal(size=30), statistic, seed=rng, resamples=1000) for _ in range(replications)
    ]
    return sum(i.low <= truth <= i.high for i in intervals) / replications


@pytest.mark.parametrize("statistic", ["mean", "iqm"])
def test_a_nominal_95_percent_covers_about_that_at_thirty_runs(statistic: str) -> None:
    assert 0.91 <= coverage(statistic, 0.0) <= 0.975


def test_stratified_coverage() -> None:
    rng, hits = np.random.default_rng(12), 0
    for _ in range(400):
        scores = {"a": rng.normal(0.0, 1.0, 20), "b": rng.normal(10.0, 2.0, 20)}
        interval = bootstrap_interval(scores, seed=rng, resamples=1000)
        hits += interval.low <= 5.0 <= interval.high
    assert 0.91 <= hits / 400 <= 0.975


# Tolerance intervals


def test_runs_needed_are_those_of_the_published_tables() -> None:
    # Two-sided, from least to greatest (Conover, Practical Nonparametric Statistics, and Wilks 1941).
    assert runs_for_tolerance(coverage=0.9, confidence=0.95) == 46
    assert runs_for_tolerance(coverage=0.95, confidence=0.95) == 93
    assert runs_for_tolerance(coverage=0.99, confidence=0.95) == 473
    assert runs_for_tolerance(coverage=0.95, confidence=0.99) == 130


@pytest.mark.parametrize(("n", "share", "sure"), [(30, 0.5, 0.95), (30, 0.8, 0.9), (100, 0.8, 0.95), (8, 0.5, 0.95)])
def test_tolerance_ranks_are_the_narrowest_that_suffice(n: int, share: float, sure: float) -> None:
    scores = np.random.default_rng(0).permutation(np.arange(n) * 10.0)
    found = tolerance_interval(scores, coverage=share, confidence=sure)
    assert found.low == (found.rank - 1) * 10.0
    assert found.high == (n - found.rank) * 10.0
    assert found.attained_confidence == pytest.approx(stats.binom.cdf(n - 2 * found.rank, n, share))
    assert found.attained_confidence >= sure
    assert found.attained_coverage >= share
    assert stats.binom.cdf(n - 2 * (found.rank + 1), n, share) < sure
    assert stats.binom.cdf(n - 2 * found.rank, n, found.attained_coverage) == pytest.approx(sure)


@pytest.mark.slow
def test_tolerance_intervals_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(4)
    covered = []
    for scores in rng.exponential(size=(2000, 40)):
        found = tolerance_interval(scores, coverage=0.7, confidence=0.9)
        covered.append(stats.expon.cdf(found.high) - stats.expon.cdf(found.low) >= 0.7)
    assert np.mean(covered) == pytest.approx(found.attained_confidence, abs=0.02)
    assert found.attained_confidence >= 0.9


def test_too_few_runs_are_told_how_many_it_takes() -> None:
    with pytest.raises(InputError, match=r"30 runs are too few to cover 0.9 .* takes 46 runs; these cover 0.851"):
        tolerance_interval(range(30), coverage=0.9)
    with pytest.raises(InputError, match="1 runs are too few"):
        tolerance_interval([1.0], coverage=0.5)


# Bands


def test_the_band_of_the_mean_is_the_interval_at_each_frame() -> None:
    curves = np.random.default_rng(0).normal([0.0, 5.0], [1.0, 3.0], size=(30, 2))
    low, high = bootstrap_band(curves, seed=0, resamples=20_000)
    for j in range(2):
        interval = bootstrap_interval(curves[:, j], seed=1, resamples=20_000)
        assert_allclose([low[j], high[j]], [interval.low, interval.high], atol=0.06)


def test_bands_are_undefined_where_runs_are() -> None:
    curves = np.array([[NAN, 1.0, 1.0], [NAN, NAN, 3.0]] * 4)
    curves[2, 1] = 1.0
    low, high = bootstrap_band(curves[:2], seed=0)
    assert_array_equal(np.isnan(low), [True, True, False])
    assert (low[2], high[2]) == (1.0, 3.0)
    low, high = tolerance_band(curves, coverage=0.5)
    assert_array_equal(low, [NAN, NAN, 1.0])
    assert_array_equal(high, [NAN, NAN, 3.0])


# Runs that failed


def test_failed_runs_stay_in_with_a_score() -> None:
    assert_array_equal(score_failed([5.0, NAN, -np.inf, 4.0]), [5.0, 4.0, 4.0, 4.0])
    assert_array_equal(score_failed([5.0, NAN], -200.0), [5.0, -200.0])
    assert_array_equal(score_failed([5.0, 6.0]), [5.0, 6.0])
    assert worst_seen({"a": [3.0, NAN], "b": [1.0]}, [2.0]) == 1.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: interquartile_mean([1.0, NAN]), r"scores\[1\] = nan: a run that failed stays in"),
        (lambda: interquartile_mean([]), "of at least one run; found none"),
        (lambda: interquartile_mean([[1.0, 2.0]]), r"one axis; found shape \(1, 2\)"),
        (lambda: bootstrap_interval({"a": [1.0], "b": [1.0, np.inf]}, seed=0), r"scores\['b'\]\[1\] = inf"),
        (lambda: bootstrap_interval({}, seed=0), "scores is empty"),
        (lambda: bootstrap_interval([1.0], seed=NONE), "seed must be a whole number"),
        (lambda: bootstrap_interval([1.0], seed=0, level=95), "level must lie strictly between 0 and 1, found 95"),
        (
            lambda: bootstrap_interval([1.0], UNKNOWN, seed=0),
            "one of mean, median, iqm, std or a function, found 'iqr'",
        ),
        (lambda: bootstrap_interval([1.0], "std", seed=0), "at least 2 runs; found 1"),
        (lambda: bootstrap_interval([1.0], np.mean, seed=0), "one number per resample"),
        (lambda: bootstrap_interval([1.0], seed=0, resamples=0), "resamples must be"),
        (lambda: score_failed([NAN]), "no run has a finite score"),
        (lambda: score_failed([NAN], NAN), "score must be a finite number"),
        (lambda: tolerance_interval([1.0], coverage=1.0), "coverage must lie strictly between"),
    ],
)
def test_refusals(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
