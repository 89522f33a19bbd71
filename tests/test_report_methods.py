"""What a reviewer asks of the report: corrected p-values, both kinds of intervals, and methods that are true."""

from __future__ import annotations

import numpy as np
import pytest

from ipe.analysis import holm, range_coverage, rank_test
from ipe.analysis.findings import Findings, findings_of
from ipe.analysis.provenance import RunCost
from ipe.analysis.series import Failed, read_groups
from ipe.experiments.grids import make_sweep
from ipe.figures.report.methods import methods_text
from tests.report_cases import CASES, FRAMES, a_sweep, fresh_runs, results_of, small_results


def found(confirm: bool = False, failed: Failed = "keep") -> Findings:
    (group,) = read_groups(small_results(), fresh_runs([100, 101, 102]) if confirm else None, failed=failed)
    return findings_of(group, seed=0, resamples=200)


def text_of(findings: Findings, failed: Failed = "keep", cost: RunCost | None = None) -> str:
    return methods_text(findings, failed=failed, seed=7, cost=cost, made_with={"jax": ["0.10.1"]}, version="0.1.0")


@pytest.fixture(scope="module")
def four() -> Findings:
    base = {"environment": "LunarLander-v3", "frames": FRAMES}
    sweep = make_sweep({"name": "four", "seeds": 5, "base": base, "grid": {"width": [64, 128, 256]}})
    (group,) = read_groups(results_of(sweep))
    return findings_of(group, seed=0, resamples=200)


def test_p_values_are_corrected_over_all_comparisons_of_the_table(four: Findings) -> None:
    assert len(four.comparisons) == 3
    plain = [rank_test(pair.first.series.auc, pair.second.series.auc) for pair in four.comparisons]
    assert [pair.p_value for pair in four.comparisons] == plain
    assert [pair.corrected for pair in four.comparisons] == holm(plain).tolist()


def test_the_means_interval_stands_beside_where_runs_lie(four: Findings) -> None:
    for row in four.ranking:
        assert row.interval.estimate == pytest.approx(row.mean)
        assert row.series.auc.min() <= row.interval.low <= row.mean <= row.interval.high <= row.series.auc.max()
        assert (row.worst, row.greatest) == (row.series.auc.min(), row.series.auc.max())
        assert row.covered == range_coverage(5)
        assert row.tolerance is None


def test_a_new_interval_does_not_change_what_is_drawn_for_the_others(four: Findings) -> None:
    again = findings_of(four.group, seed=0, resamples=200)
    assert [str(pair.probability) for pair in again.comparisons] == [str(pair.probability) for pair in four.comparisons]
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    rng.spawn(1)
    assert rng.bit_generator.state["state"] == before["state"]


def test_the_methods_tell_what_was_done(four: Findings) -> None:
    text = text_of(four, cost=RunCost(7200.0, ("a processor",), "2026-11-01", "2026-11-03"))
    for part in (
        "On LunarLander-v3 we report 3 settings with 5 runs each (15 in all).",
        "its return, mean of the last 20 episodes, against frames",
        f"the first {FRAMES:,} frames",
        "Settings were ranked by their mean AUC",
        "exact two-sided Mann-Whitney tests, corrected by Holm's method over the 3 comparisons",
        "The runs took 2 core-hours on a processor, 2026-11-01 to 2026-11-03.",
        "They were made with jax 0.10.1.",
        "ipe 0.1.0 (bootstrap seed 7)",
    ):
        assert part in text
    assert "tolerance" not in text  # five runs do not allow it
    assert "fresh" not in text
    assert "failed" not in text
    assert "were read from" not in text


def test_the_methods_tell_how_settings_were_chosen_and_what_went_wrong() -> None:
    text = text_of(found())
    assert "Of 12 settings the best of each of 2 cases was chosen by the largest mean AUC" in text
    assert "the comparison is of the same runs, and flatters what was chosen" in text
    assert "Of the runs 1 diverged and 1 failed; they stay in the statistics, their last value kept to the end." in text
    assert "1 run finished no episode and scored as the worst of all runs." in text
    assert "Holm" not in text  # one comparison
    assert "scored as the worst of all runs" in text_of(found(failed="worst"), failed="worst")
    fresh = text_of(found(confirm=True))
    assert "run again with 3 fresh seeds." in fresh
    assert "the comparison rests on fresh runs, which had no part in the choice" in fresh


@pytest.mark.slow
def test_many_runs_have_tolerance_intervals_and_say_so() -> None:
    (group,) = read_groups(results_of(a_sweep(seeds=22, grid={}, cases=CASES)))
    findings = findings_of(group, seed=0, resamples=100)
    assert all(row.tolerance is not None for row in findings.ranking)
    assert "tolerance intervals hold 80% of all runs to come" in text_of(findings)
