"""Comparisons of runs: against scipy's Mann-Whitney U, by hand, and by simulation."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from ipe.analysis import (
    bootstrap_interval,
    difference_interval,
    improvement_test,
    performance_profile,
    probability_of_improvement,
    range_coverage,
    rank_test,
)
from ipe.errors import InputError
from tests.tiers import examples

scores = st.lists(st.integers(-5, 5).map(float), min_size=1, max_size=12)


@given(scores, scores)
def test_probability_of_improvement_is_mann_whitneys_u(x: list[float], y: list[float]) -> None:
    u = stats.mannwhitneyu(x, y, method="asymptotic").statistic if len(set(x + y)) > 1 else len(x) * len(y) / 2
    found = probability_of_improvement(x, y, seed=0, resamples=20)
    assert found.estimate == pytest.approx(u / (len(x) * len(y)))
    assert 0.0 <= found.low <= found.high <= 1.0 + 1e-12


@pytest.mark.slow
def test_its_interval_is_that_of_resampling_pair_by_pair() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.5, 1.0, 12), rng.normal(0.0, 1.0, 9)
    drawn = []
    for _ in range(4000):
        a, b = rng.choice(x, 12), rng.choice(y, 9)
        drawn.append(stats.mannwhitneyu(a, b, method="asymptotic").statistic / 108)
    found = probability_of_improvement(x, y, seed=0)
    assert_allclose([found.low, found.high], np.quantile(drawn, [0.025, 0.975]), atol=0.02)


def test_tasks_weigh_the_same() -> None:
    x = {"a": [1.0], "b": [0.0, 0.0, 0.0]}
    y = {"b": [1.0], "a": [0.0, 0.0, 0.0, 0.0]}
    assert probability_of_improvement(x, y, seed=0).estimate == 0.5
    assert difference_interval(x, y, seed=0).estimate == 0.0


def test_the_coverage_of_the_probability_of_improvement() -> None:
    truth = stats.norm.cdf(0.5 / np.sqrt(2.0))
    rng, hits = np.random.default_rng(2), 0
    for _ in range(400):
        found = probability_of_improvement(rng.normal(0.5, 1, 30), rng.normal(0, 1, 30), seed=rng, resamples=500)
        hits += found.low <= truth <= found.high
    assert 0.91 <= hits / 400 <= 0.975


def test_a_difference_of_means_has_the_interval_of_welch() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(3.0, 1.0, 60), rng.normal(1.0, 2.0, 80)
    found = difference_interval(x, y, seed=0)
    welch = stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    assert found.estimate == pytest.approx(x.mean() - y.mean())
    assert_allclose([found.low, found.high], [welch.low, welch.high], atol=0.08)


def test_the_more_consistent_of_two() -> None:
    rng = np.random.default_rng(1)
    found = difference_interval(rng.normal(0, 1.0, 40), rng.normal(0, 3.0, 40), "std", seed=0)
    assert found.high < 0.0


def test_a_profile_by_hand() -> None:
    found = performance_profile({"a": [0.0, 1.0], "b": [1.0, 1.0, 2.0, 3.0]}, [-1.0, 0.0, 1.0, 3.0], seed=0)
    assert_array_equal(found.fraction, [1.0, 0.75, 0.25, 0.0])
    assert (found.low <= found.fraction).all()
    assert (found.high >= found.fraction).all()


def test_a_profiles_interval_is_that_of_the_share() -> None:
    values = np.random.default_rng(0).normal(size=30)
    found = performance_profile(values, [0.0], seed=0, resamples=20_000)
    share = bootstrap_interval((values > 0.0).astype(float), seed=1, resamples=20_000)
    assert_allclose([found.low[0], found.high[0]], [share.low, share.high], atol=1 / 30 + 1e-9)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: probability_of_improvement([1.0], [np.nan], seed=0), r"y\[0\] = nan"),
        (lambda: probability_of_improvement({"a": [1.0]}, [1.0], seed=0), "both mappings of the same tasks"),
        (lambda: difference_interval({"a": [1.0]}, {"b": [1.0]}, seed=0), "only one of them has a, b"),
        (lambda: performance_profile([1.0], [np.nan], seed=0), r"tau\[0\] = nan"),
    ],
)
def test_refusals(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


# The exact test


def divided(x: list[float], y: list[float]) -> float:
    """The p-value of the rank test by going through every way to divide the runs."""
    together = np.array([*x, *y])
    ranks = np.array([(together < one).sum() + ((together == one).sum() + 1) / 2 for one in together])
    middle = len(x) * (len(together) + 1) / 2
    sums = [abs(ranks[list(part)].sum() - middle) for part in combinations(range(len(together)), len(x))]
    return float(np.mean(np.array(sums) >= abs(ranks[: len(x)].sum() - middle)))


@examples(60)
@given(st.data())
def test_the_rank_test_counts_every_way_to_divide_the_runs(data: st.DataObject) -> None:
    some = st.lists(st.integers(0, 4).map(float), min_size=1, max_size=5)  # few values: many ties
    x, y = data.draw(some), data.draw(some)
    assert rank_test(x, y) == pytest.approx(divided(x, y), rel=1e-12)
    assert rank_test(x, y) == pytest.approx(rank_test(y, x), rel=1e-12)


def test_the_rank_test_is_scipys_and_knows_what_few_runs_cannot_say() -> None:
    rng = np.random.default_rng(0)
    for n, m in ((3, 3), (8, 5), (30, 30)):
        x, y = rng.normal(size=n), rng.normal(0.5, size=m)
        assert rank_test(x, y) == pytest.approx(stats.mannwhitneyu(x, y, method="exact").pvalue, rel=1e-9)
    many = rng.normal(size=60), rng.normal(size=60)
    assert rank_test(*many) == improvement_test(*many)
    assert rank_test([1.0], [2.0]) == 1.0
    assert rank_test([1.0, 1.0], [1.0, 1.0]) == 1.0


def test_the_share_that_a_range_of_runs_holds() -> None:
    for n in (2, 3, 10, 22):
        share = range_coverage(n)
        assert 1 - n * share ** (n - 1) + (n - 1) * share**n == pytest.approx(0.95)
    assert range_coverage(21) < 0.8 <= range_coverage(22)
    assert np.isnan(range_coverage(1))
