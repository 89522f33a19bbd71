"""Many comparisons: the test over tasks against SciPy's, Holm's correction by hand, ranks of known tables."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from ipe.analysis import holm, improvement_test, mean_ranks, probability_of_improvement
from ipe.errors import InputError


@pytest.mark.parametrize("seed", range(5))
def test_for_one_task_it_is_the_test_of_mann_and_whitney(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 8, 12).astype(float), rng.integers(1, 10, 15).astype(float)  # with ties
    expected = mannwhitneyu(x, y, method="asymptotic", use_continuity=False).pvalue
    assert improvement_test(x, y) == pytest.approx(expected, rel=1e-12)


def test_over_tasks_its_p_values_are_uniform_if_nothing_differs() -> None:
    rng = np.random.default_rng(0)
    found = []
    for _ in range(400):
        x, y = ({"a": rng.normal(size=20), "b": rng.normal(5.0, 3.0, size=10)} for _ in range(2))
        found.append(improvement_test(x, y))
    for level in (0.05, 0.2, 0.5):
        assert np.mean(np.array(found) < level) == pytest.approx(level, abs=0.06)


def test_a_difference_shows_on_the_side_of_the_probability_of_improvement() -> None:
    rng = np.random.default_rng(1)
    x = {task: rng.normal(0.8, 1.0, 30) for task in "abc"}
    y = {task: rng.normal(0.0, 1.0, 30) for task in "abc"}
    assert improvement_test(x, y) == pytest.approx(improvement_test(y, x))
    assert improvement_test(x, y) < 1e-4
    assert probability_of_improvement(x, y, seed=0).estimate > 0.6
    assert improvement_test([1.0, 1.0], [1.0, 1.0]) == 1.0


def test_holms_correction_by_hand() -> None:
    # Sorted: .005 (times 4), .01 (times 3), .03 (times 2), .04 (times 1, but not below the one before).
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == pytest.approx([1.0, 1.0])
    with pytest.raises(InputError, match=r"p_values\[1\] = 1.2 is not a probability"):
        holm([0.1, 1.2])


def test_ranks_of_a_known_table() -> None:
    scores = {
        "first": {"a": [3.0, 3.0], "b": [1.0, 1.0]},
        "second": {"a": [2.0, 2.0], "b": [1.0, 1.0]},
        "third": {"a": [1.0, 1.0], "b": [2.0, 2.0]},
    }
    ranks = mean_ranks(scores, seed=0, resamples=50)
    assert [ranks[name].estimate for name in scores] == [1.75, 2.25, 2.0]
    assert (ranks["first"].low, ranks["first"].high) == (1.75, 1.75)  # runs that do not differ leave no doubt
    with pytest.raises(InputError, match="second differs in b"):
        mean_ranks({"first": {"a": [1.0], "b": [1.0]}, "second": {"a": [1.0]}}, seed=0)


def test_intervals_of_ranks_hold_what_fresh_runs_give() -> None:
    rng = np.random.default_rng(2)

    def runs() -> dict[str, dict[str, np.ndarray]]:
        return {str(k): {task: rng.normal(0.2 * k, 1.0, 30) for task in "abcdef"} for k in range(4)}

    ranks = mean_ranks(runs(), seed=0, level=0.99)
    again = mean_ranks(runs(), seed=0)
    for name, interval in ranks.items():
        assert interval.low - 0.5 <= again[name].estimate <= interval.high + 0.5
        assert 1.0 <= interval.low <= interval.high <= 4.0
