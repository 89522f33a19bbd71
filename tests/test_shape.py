"""The shape of mean curves: falls by hand, against a double loop, and the bootstrap's by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ipe.analysis.shape import largest_fall, mean_curve_interval, relative_fall, rise
from ipe.errors import InputError

curve = arrays(np.float64, st.integers(1, 30), elements=st.floats(-100, 100, width=32))


@given(curve)
def test_the_largest_fall_is_that_of_all_pairs(c: np.ndarray) -> None:
    pairs = [c[s] - c[t] for s in range(c.size) for t in range(s, c.size)]
    assert largest_fall(c) == max(pairs)


@given(curve, st.floats(0.125, 8), st.floats(-10, 10))
def test_units_do_not_matter_to_the_relative_fall(c: np.ndarray, scale: float, shift: float) -> None:
    if rise(c) > 1e-3:
        assert relative_fall(scale * c + shift) == pytest.approx(float(relative_fall(c)), abs=1e-6)
    assert 0.0 <= relative_fall(c) <= 1.0


@given(curve)
def test_a_curve_that_only_rises_never_falls(c: np.ndarray) -> None:
    assert largest_fall(np.sort(c)) == 0.0
    assert largest_fall(np.sort(c)[::-1]) == rise(c)


def test_what_is_not_defined_is_passed_over() -> None:
    assert largest_fall([np.nan, np.nan, 3.0, np.nan, 1.0]) == 2.0
    assert rise([np.nan, 3.0, 1.0]) == 2.0
    assert relative_fall([np.nan, 5.0]) == 0.0


def test_the_interval_is_the_bootstraps_over_runs() -> None:
    runs = np.array([[0.0, 5.0, 1.0, 6.0], [1.0, 2.0, 2.0, 9.0], [np.nan, 4.0, 3.0, 3.0]])
    every = []
    for drawn in itertools.product(range(3), repeat=3):
        means = np.array(
            [np.mean(col[~np.isnan(col)]) if (~np.isnan(col)).any() else np.nan for col in runs[list(drawn)].T]
        )
        every.append(float(largest_fall(means)))
    exact = np.quantile(every, [0.1, 0.9], method="inverted_cdf")
    found = mean_curve_interval(runs, largest_fall, seed=0, level=0.8, resamples=20_000)
    assert found.estimate == pytest.approx(float(largest_fall([0.5, 11 / 3, 2.0, 6.0])))
    assert found.low == pytest.approx(exact[0], abs=1e-9)
    assert found.high == pytest.approx(exact[1], abs=1e-9)
    assert found == mean_curve_interval(runs, largest_fall, seed=0, level=0.8, resamples=20_000)


def test_refused() -> None:
    with pytest.raises(InputError, match="at least one frame"):
        largest_fall(1.0)
    with pytest.raises(InputError, match="nowhere"):
        rise([np.nan, np.nan])
    with pytest.raises(InputError, match="curves must have shape"):
        mean_curve_interval([1.0], largest_fall, seed=0)


def test_resamples_without_a_defined_run_are_left_out() -> None:
    """A run that ended no episode has no curve; it must not count as one that never falls."""
    undefined = [np.nan] * 3
    found = mean_curve_interval([[0.0, 4.0, 2.0], [0.0, 4.0, 2.0], undefined], largest_fall, seed=0)
    assert (found.estimate, found.low, found.high) == (2.0, 2.0, 2.0)
    assert mean_curve_interval([[0.0, 4.0, 2.0], undefined], relative_fall, seed=0).low == 0.5
    with pytest.raises(InputError, match="curves: no run is defined anywhere"):
        mean_curve_interval([undefined, undefined], largest_fall, seed=0)
