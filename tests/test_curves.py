"""Learning curves and the area under them: against plain loops, by hand, and refusals that name the index."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from ipe.analysis import (
    auc,
    auc_of_episodes,
    aucs,
    curves,
    frame_grid,
    mean_and_standard_error,
    recorded_curves,
    trailing_curve,
)
from ipe.errors import InputError


def value_by_loop(frames: list[int], returns: list[float], t: int, window: int) -> float:
    ended = [g for f, g in zip(frames, returns, strict=True) if f <= t]
    last = ended[-window:]
    return sum(last) / len(last) if last else math.nan


def area_by_loop(frames: list[int], returns: list[float], total: int, window: int) -> float:
    values = [value_by_loop(frames, returns, t, window) for t in range(1, total + 1)]
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


@st.composite
def runs(draw: st.DrawFn) -> tuple[list[int], list[float]]:
    lengths = draw(st.lists(st.integers(1, 12), max_size=60))
    returns = draw(st.lists(st.floats(-1e3, 1e3), min_size=len(lengths), max_size=len(lengths)))
    return [int(f) for f in np.cumsum(lengths)], returns


@given(runs(), st.integers(1, 25), st.integers(1, 400))
def test_curve_and_area_equal_the_plain_loop(run: tuple[list[int], list[float]], window: int, total: int) -> None:
    frames, returns = run
    every = range(1, total + 1)
    curve = trailing_curve(frames, returns, list(every), window)
    assert_allclose(curve, [value_by_loop(frames, returns, t, window) for t in every], rtol=1e-11, atol=1e-9)
    area = auc_of_episodes(frames, returns, total, window)
    assert_allclose(area, area_by_loop(frames, returns, total, window), rtol=1e-11, atol=1e-9)
    assert_allclose(area, auc(curve), rtol=1e-11, atol=1e-9)


def test_the_window_is_twenty_episodes() -> None:
    frames, returns = np.arange(1, 41) * 10, np.arange(1.0, 41.0)
    curve = trailing_curve(frames, returns, [9, 10, 190, 199, 200, 210, 400])
    assert_array_equal(curve, [np.nan, 1.0, 10.0, 10.0, 10.5, 11.5, 30.5])


def test_a_large_return_leaves_no_trace_once_out_of_the_window() -> None:
    curve = trailing_curve([1, 2, 3, 4, 5], [1e18, 1.0, 1.0, 1.0, 1.0], [3, 5], window=2)
    assert_array_equal(curve, [1.0, 1.0])


def test_an_episode_counts_from_the_frame_it_ends_at() -> None:
    assert auc_of_episodes([3], [7.0], total_frames=2) != auc_of_episodes([3], [7.0], total_frames=2)  # NaN
    assert auc_of_episodes([3], [7.0], total_frames=3) == 7.0
    assert auc_of_episodes([3, 9], [7.0, 1.0], total_frames=8) == 7.0


EPISODES = {
    "seed": [7, 2, 7, 2, 2],
    "frame": [5, 9, 3, 2, 20],
    "return": [1.0, 4.0, 3.0, 2.0, 100.0],
}


@pytest.mark.parametrize("kind", [dict, pa.table])
def test_a_table_of_runs_in_any_order(kind: Any) -> None:
    table = kind(EPISODES)
    expected = [[np.nan, 2.0, 3.0], [np.nan, 2.0, 2.0]]
    assert_array_equal(curves(table, [1, 5, 10]), expected)
    assert_array_equal(curves(table, [1, 5, 10], seeds=[7, 3]), [expected[1], [np.nan] * 3])
    assert_allclose(aucs(table, 10), [(7 * 2.0 + 2 * 3.0) / 9, (2 * 3.0 + 6 * 2.0) / 8])
    assert_array_equal(aucs(table, 10, seeds=[3]), [np.nan])


def test_no_episode_at_all() -> None:
    empty = pa.table(
        {"seed": pa.array([], pa.int64()), "frame": pa.array([], pa.int64()), "return": pa.array([], "f8")}
    )
    assert curves(empty, [1, 2]).shape == (0, 2)
    assert_array_equal(curves(empty, [1, 2], seeds=[0]), [[np.nan, np.nan]])
    assert np.isnan(auc_of_episodes([], [], 10))


def test_records_hold_until_the_next_and_gaps_are_skipped() -> None:
    progress = {"seed": [0, 0, 0, 1], "frame": [0, 10, 20, 10], "epsilon": [1.0, np.nan, 0.5, 0.25]}
    found = recorded_curves(progress, "epsilon", [5, 10, 20, 30])
    assert_array_equal(found, [[1.0, 1.0, 0.5, 0.5], [np.nan, 0.25, 0.25, 0.25]])
    nothing = pa.table({"seed": [0, 1], "frame": [5, 5], "epsilon": pa.array([None, 0.5], pa.float64())})
    assert_array_equal(recorded_curves(nothing, "epsilon", [5]), [[np.nan], [0.5]])  # seed 0 keeps its row


def test_mean_and_standard_error_by_hand() -> None:
    nan = np.nan
    mean, error, n = mean_and_standard_error([[nan, 1.0, 1.0], [nan, nan, 2.0], [nan, nan, 6.0]])
    assert_array_equal(mean, [nan, 1.0, 3.0])
    assert_allclose(error, [nan, nan, np.sqrt(7.0 / 3.0)])
    assert_array_equal(n, [0, 1, 3])


def test_a_grid_has_distinct_frames_up_to_the_last() -> None:
    assert_array_equal(frame_grid(3, 10), [1, 2, 3])
    grid = frame_grid(500_001)
    assert grid.size == 500
    assert grid[-1] == 500_001


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: trailing_curve([3, 2], [0, 0], [1]), r"frames\[1\] = 2 comes before frames\[0\] = 3"),
        (lambda: trailing_curve([0, 2], [0, 0], [1]), r"frames\[0\] = 0 is not a whole number of at least 1"),
        (lambda: trailing_curve([1, 2.5], [0, 0], [1]), r"frames\[1\] = 2.5 is not a whole number"),
        (lambda: trailing_curve([1, 2], [0, np.nan], [1]), r"returns\[1\] = nan"),
        (lambda: trailing_curve([1, 2], [0], [1]), "found 2 and 1"),
        (lambda: trailing_curve([1], [0], [1], window=0), "window must be a whole number >= 1, found 0"),
        (lambda: trailing_curve([1], [0], [[1]]), r"grid must have one axis; found shape \(1, 1\)"),
        (lambda: auc_of_episodes([1], [0], 0), "total_frames must be"),
        (lambda: curves({"seed": [0], "frame": [1]}, [1]), "no column 'return'; its columns are seed, frame"),
        (lambda: curves(EPISODES, [1], seeds=[2, 7, 2]), "seeds: 2 is listed more than once"),
        (lambda: curves({**EPISODES, "seed": [0, 1]}, [1]), "differ in length: 2, 5 and 5"),
        (lambda: mean_and_standard_error([1.0, 2.0]), r"shape \(runs, grid\), .*; found \(2,\)"),
        (lambda: mean_and_standard_error([[1.0, np.inf]]), r"curves\[0, 1\] = inf"),
        (lambda: auc(1.0), "frame axis"),
    ],
)
def test_refusals(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()
