"""Survival: Kaplan-Meier, Greenwood, log-rank and restricted means, against a textbook's numbers and naive loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipe.analysis.survival import (
    horizon_of,
    log_rank,
    restricted_mean,
    restricted_mean_difference,
    survival_curve,
)
from ipe.errors import InputError
from tests.tiers import examples

# Remission of leukaemia in weeks (Freireich et al. 1963), in every textbook of survival; + is censored.
TREATED = ([6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35],
           [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0])  # fmt: skip
PLACEBO = ([1, 1, 2, 2, 3, 4, 4, 5, 5, 8, 8, 8, 8, 11, 11, 12, 12, 15, 17, 22, 23], [1] * 21)


def group(pair: tuple[list[int], list[int]]) -> tuple[list[float], list[bool]]:
    return [float(t) for t in pair[0]], [bool(seen) for seen in pair[1]]


def test_the_textbooks_curve() -> None:
    curve = survival_curve(*group(TREATED))
    np.testing.assert_array_equal(curve.time, [6, 7, 10, 13, 16, 22, 23])
    np.testing.assert_array_equal(curve.at_risk, [21, 17, 15, 12, 11, 7, 6])
    np.testing.assert_array_equal(curve.events, [3, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(curve.survival, [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], atol=5e-4)
    # Greenwood's standard errors of the textbook: 0.0764 at 6 weeks, 0.1346 at 23
    for at, error in ((0, 0.0764), (6, 0.1346)):
        s = curve.survival[at]
        spread = 1.959964 * error / (s * math.log(s))
        assert curve.low[at] == pytest.approx(s ** math.exp(-spread), abs=5e-4)
        assert curve.high[at] == pytest.approx(s ** math.exp(spread), abs=5e-4)
    assert (curve.n, curve.last) == (21, 35.0)


def test_the_textbooks_log_rank_test() -> None:
    test = log_rank(group(TREATED), group(PLACEBO))
    assert test.statistic**2 == pytest.approx(16.79, abs=0.01)
    assert test.statistic < 0.0, "the treated have fewer events than they would have"
    assert test.p_value < 1e-4


def test_by_hand() -> None:
    """Five runs: events at 2 and 4, censored at 3, 4 and 6. S is 4/5 from 2 on, and 4/5 * 2/3 from 4 on."""
    times, seen = [2.0, 3.0, 4.0, 4.0, 6.0], [True, False, True, False, False]
    curve = survival_curve(times, seen)
    np.testing.assert_array_equal(curve.time, [2.0, 4.0])
    np.testing.assert_allclose(curve.survival, [4 / 5, 4 / 5 * 2 / 3])
    assert restricted_mean(times, seen, 6.0) == pytest.approx(2 + 2 * 4 / 5 + 2 * 8 / 15)
    assert restricted_mean(times, seen, 3.0) == pytest.approx(2 + 4 / 5)
    assert restricted_mean(times, seen, 10.0) == pytest.approx(2 + 2 * 4 / 5 + 6 * 8 / 15), (
        "continued at its last value"
    )


def test_nothing_happens() -> None:
    none = ([3.0, 5.0], [False, False])
    curve = survival_curve(*none)
    assert (curve.time.size, curve.last, curve.n) == (0, 5.0, 2)
    assert restricted_mean(*none, 4.0) == 4.0
    assert log_rank(none, none).p_value == 1.0
    same = restricted_mean_difference(none, none, 4.0, seed=0)
    assert (same.estimate, same.low, same.high) == (0.0, 0.0, 0.0)


def naive(times: list[float], seen: list[bool], t: float) -> float:
    share = 1.0
    for at in sorted({time for time, event in zip(times, seen, strict=True) if event and time <= t}):
        risk = sum(time >= at for time in times)
        events = sum(time == at and event for time, event in zip(times, seen, strict=True))
        share *= 1.0 - events / risk
    return share


RUNS = st.lists(st.tuples(st.integers(0, 12), st.booleans()), min_size=1, max_size=12)


@given(RUNS)
@examples(100)
def test_against_the_definition(runs: list[tuple[int, bool]]) -> None:
    times, seen = [float(t) for t, _ in runs], [event for _, event in runs]
    curve = survival_curve(times, seen)
    np.testing.assert_allclose(curve.survival, [naive(times, seen, t) for t in curve.time])
    assert (curve.low <= curve.survival + 1e-12).all()
    assert (curve.high >= curve.survival - 1e-12).all()
    # S is constant between whole numbers, so that its integral is a sum
    expected = sum(naive(times, seen, t) for t in range(9))
    assert restricted_mean(times, seen, 9.0) == pytest.approx(expected)


def test_the_difference_of_two_groups() -> None:
    found = restricted_mean_difference(group(TREATED), group(PLACEBO), 23.0, seed=0)
    first, second = (restricted_mean(*group(one), 23.0) for one in (TREATED, PLACEBO))
    assert found.estimate == pytest.approx(first - second)
    assert 0.0 < found.low < found.estimate < found.high
    rng = np.random.default_rng(3)
    drawn = []
    for _ in range(2000):
        means = []
        for one in (TREATED, PLACEBO):
            at = rng.integers(21, size=21)
            times, seen = np.array(one[0], float)[at], np.array(one[1], bool)[at]
            means.append(restricted_mean(times, seen, 23.0))
        drawn.append(means[0] - means[1])
    assert found.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.4)
    assert found.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.4)
    assert horizon_of(group(TREATED), group(PLACEBO)) == 23.0


def test_intervals_cover_the_truth() -> None:
    """Exponential times, censored at random: the interval at the median covers 1/2 in about 95% of cases."""
    rng, covered = np.random.default_rng(0), 0
    for _ in range(400):
        life, watched = rng.exponential(1.0, 40), rng.uniform(0.5, 4.0, 40)
        curve = survival_curve(np.minimum(life, watched), life <= watched)
        at = np.searchsorted(curve.time, math.log(2.0), side="right") - 1
        covered += bool(curve.low[at] <= 0.5 <= curve.high[at])
    assert 0.92 <= covered / 400 <= 0.98


@pytest.mark.parametrize(
    ("times", "seen", "words"),
    [
        ([], [], "observed must be true or false|times is empty"),
        ([1.0, -2.0], [True, True], r"times\[1\] = -2 must not be negative"),
        ([1.0], [1], "observed must be true or false for each of the 1 times"),
        ([1.0, 2.0], [True], "observed must be true or false for each of the 2 times"),
        ([1.0, np.nan], [True, True], r"times\[1\] = nan"),
    ],
)
def test_refused(times: list[float], seen: list[bool], words: str) -> None:
    with pytest.raises(InputError, match=words):
        survival_curve(times, seen or np.empty(0, np.bool_))
