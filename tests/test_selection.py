"""Selection and sensitivity curves: by hand, and against plain loops over everything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import stats

from ipe.analysis import (
    one_at_a_time_curve,
    select_best,
    sensitivity_curve,
    sensitivity_curves,
    varied,
)
from ipe.errors import InputError


def test_the_ranking_by_hand() -> None:
    choice = select_best({"b": [1.0, 3.0], "a": [10.0, 12.0, 14.0], "c": [2.0, 2.0]}, seed=0)
    assert choice.best == "a"
    assert choice.probability == 1.0
    assert choice.ties == ()
    assert [(row.rank, row.setting, row.n, row.mean) for row in choice.ranking] == [
        (1, "a", 3, 12.0), (2, "b", 2, 2.0), (2, "c", 2, 2.0),
    ]  # fmt: skip
    assert choice.ranking[0].standard_error == pytest.approx(2.0 / np.sqrt(3.0))
    assert choice.records()[1]["setting"] == "b"


def test_ties_are_stated_whatever_the_order_of_runs() -> None:
    scores = [0.1, 0.2, 0.3, 0.7, 1e9, -1e9]
    choice = select_best({"z": scores, "low": [-5.0, -6.0], "a": scores[::-1]}, seed=0)
    assert choice.best == "z"
    assert choice.ties == ("z", "a")
    assert [row.rank for row in choice.ranking] == [1, 1, 3]
    flat = select_best({"x": [1.0, 1.0], "y": [1.0, 1.0, 1.0]}, seed=0)
    assert [row.probability_best for row in flat.ranking] == [0.5, 0.5]


def test_the_probability_of_being_best_is_that_of_normal_means() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.3, 1.0, 200), rng.normal(0.0, 1.0, 200)
    choice = select_best({"x": x, "y": y}, seed=1)
    gap = (x.mean() - y.mean()) / np.sqrt((x.var() + y.var()) / 200)
    assert {row.setting: row.probability_best for row in choice.ranking}["x"] == pytest.approx(
        stats.norm.cdf(gap), abs=0.02
    )
    assert sum(row.probability_best for row in choice.ranking) == pytest.approx(1.0)
    assert select_best({"x": x, "y": y}, seed=1) == choice


def test_a_single_run_says_nothing_of_chance() -> None:
    choice = select_best({"x": [1.0], "y": [0.0, 0.5]}, seed=0)
    assert choice.best == "x"
    assert math.isnan(choice.probability)
    assert math.isnan(choice.ranking[0].standard_error)


SETTINGS = [{"alpha": a, "target": n, "kind": "ipe"} for a in (0.01, 0.001) for n in (1, 32, 64)]
SCORES = [[0.0, 2.0], [9.0, 11.0], [5.0, 5.0], [1.0, 1.0, 4.0], [3.0, 3.0], [5.0, 5.0]]


def test_the_best_over_the_others_by_hand() -> None:
    assert varied(SETTINGS) == {"alpha": (0.001, 0.01), "target": (1, 32, 64)}
    curve = sensitivity_curve(SETTINGS, SCORES, "alpha")
    assert curve.values == (0.001, 0.01)
    assert_array_equal(curve.mean, [5.0, 10.0])
    assert_array_equal(curve.error, [0.0, 1.0])
    assert curve.settings == (5, 1)
    assert curve.candidates == (3, 3)
    assert curve.kind == "best over the others"
    curve = sensitivity_curve(SETTINGS, SCORES, "target")
    assert_array_equal(curve.mean, [2.0, 10.0, 5.0])
    assert curve.settings == (3, 1, 2)  # 2 and 5 tie at 64: the first
    assert curve.n == (3, 2, 2)
    assert list(sensitivity_curves(SETTINGS, SCORES)) == ["alpha", "target"]


def test_one_at_a_time_by_hand() -> None:
    base = {"alpha": 0.001, "target": 1, "kind": "ipe"}
    found = sensitivity_curves(SETTINGS, SCORES, base)
    assert_array_equal(found["alpha"].mean, [2.0, 1.0])
    assert_array_equal(found["target"].mean, [2.0, 3.0, 5.0])
    assert found["target"].settings == (3, 4, 5)
    assert found["target"].kind == "one at a time"
    assert set(found) == {"alpha", "target"}


def test_values_of_mixed_kinds_stay_in_the_order_given() -> None:
    curve = sensitivity_curve([{"limit": 5}, {"limit": None}, {"limit": 2}], [[1.0], [2.0], [3.0]], "limit")
    assert curve.values == (5, None, 2)
    assert_array_equal(curve.mean, [1.0, 2.0, 3.0])
    assert np.isnan(curve.error).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: select_best({}, seed=0), "scores is empty"),
        (lambda: select_best({"a": [1.0, np.nan]}, seed=0), r"scores\['a'\]\[1\] = nan"),
        (lambda: sensitivity_curve(SETTINGS, SCORES[:2], "alpha"), "one entry per setting, 6; found 2"),
        (lambda: sensitivity_curve(SETTINGS, SCORES, "beta"), "'beta' is not in the settings; they have alpha"),
        (lambda: sensitivity_curve([{"a": 1}, {"b": 1}], [[1.0]] * 2, "a"), r"settings\[1\] and settings\[0\].*a, b"),
        (lambda: varied([{"a": [1]}]), r"settings\[0\]\['a'\] = \[1\] cannot be compared"),
        (lambda: varied([{"a": ([1],)}]), "cannot be compared"),
        (lambda: varied([{"a": math.nan}]), "cannot be compared"),
        (lambda: varied([]), "settings is empty"),
        (lambda: one_at_a_time_curve(SETTINGS, SCORES, {"alpha": 1}, "alpha"), "only one of them has kind, target"),
        (lambda: one_at_a_time_curve(SETTINGS, SCORES, {**SETTINGS[0], "kind": "x"}, "alpha"), "none agrees with base"),
        (
            lambda: one_at_a_time_curve([*SETTINGS, SETTINGS[3]], [*SCORES, [1.0]], SETTINGS[0], "alpha"),
            "more than one is base with alpha = 0.001",
        ),
    ],
)
def test_refusals(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_two_settings_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="the name of more than one setting is '1'"):
        select_best({1: [9.0, 9.1], "1": [2.0, 3.0]}, seed=0)  # type: ignore[dict-item]
