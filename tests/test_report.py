"""What the report computes: its statistics against their definitions, what is compared, and what it refuses."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import trim_mean

from ipe.analysis import aucs, probability_of_improvement
from ipe.analysis.bands import iqm_band, iqm_curve
from ipe.analysis.bootstrap import resample_counts
from ipe.analysis.findings import findings_of
from ipe.analysis.panels import sensitivity_panels
from ipe.analysis.series import read_groups
from ipe.errors import InputError
from ipe.experiments.grids import make_sweep
from ipe.experiments.results import Results
from ipe.figures.report import write_report
from ipe.figures.report.drawing import draw_all_curves
from tests.report_cases import FRAMES, a_sweep, fresh_runs, results_of, rows_of, small_results


@pytest.fixture(scope="module")
def results() -> Results:
    return small_results()


# Bands


def ragged(runs: int, points: int) -> Any:
    values = np.random.default_rng(runs).normal(size=(runs, points)).cumsum(axis=1)
    for i in range(runs):
        values[i, : i % 4] = np.nan
    values[:, 0] = np.nan
    return values


@pytest.mark.parametrize("runs", [1, 3, 4, 7, 30])
def test_iqm_curve_is_scipys_of_the_defined_runs(runs: int) -> None:
    values = ragged(runs, 12)
    expected = [
        trim_mean(column[~np.isnan(column)], 0.25) if (~np.isnan(column)).any() else np.nan for column in values.T
    ]
    np.testing.assert_allclose(iqm_curve(values), expected, rtol=1e-12, equal_nan=True)


def test_iqm_band_is_the_bootstrap_written_out() -> None:
    values, resamples = ragged(9, 8), 200
    (counts,) = next(resample_counts((9,), resamples, np.random.default_rng(5)))
    drawn = np.full((resamples, 8), np.nan)
    for b, count in enumerate(counts.astype(int)):
        again = np.repeat(values, count, axis=0)
        for frame in range(8):
            defined = again[~np.isnan(again[:, frame]), frame]
            if defined.size:
                drawn[b, frame] = trim_mean(defined, 0.25)
    low, high = iqm_band(values, seed=5, resamples=resamples)
    expected = np.nanquantile(drawn[:, 1:], [0.025, 0.975], axis=0)
    np.testing.assert_allclose(np.stack([low, high])[:, 1:], expected, rtol=1e-10)
    assert np.isnan(low[0])


def test_one_run_has_no_band() -> None:
    assert np.isnan(iqm_band([[1.0, 2.0]], seed=0, resamples=10)).all()


# Series and findings


def test_runs_are_scored_by_their_own_episodes(results: Results) -> None:
    (group,) = read_groups(results)
    assert [own.setting.name for own in group.series] == [setting.name for setting in results.sweep.settings]
    table = {name: results.episodes[name].to_numpy() for name in results.episodes.column_names}
    for i, own in enumerate(group.series):
        part = {name: column[table["setting"] == i] for name, column in table.items()}
        expected = aucs(part, FRAMES, seeds=[0, 1, 2, 3])
        known = ~np.isnan(expected)
        np.testing.assert_array_equal(own.auc[known], expected[known])


def test_a_run_without_an_episode_scores_the_worst_of_all(results: Results) -> None:
    (group,) = read_groups(results)
    others = np.concatenate([own.auc[[0, 2, 3]] if i == 8 else own.auc for i, own in enumerate(group.series)])
    assert group.series[8].without == 1
    assert group.series[8].auc[1] == others.min()
    assert np.isnan(group.series[8].curves[1]).all()


def test_a_run_that_diverged_keeps_its_last_mean_or_scores_the_worst(results: Results) -> None:
    (kept,), (worst,) = read_groups(results), read_groups(results, failed="worst")
    own = kept.series[7].curves[2]
    after = own[kept.grid > 9000]
    assert (after == after[0]).all()
    assert kept.series[7].count("diverged") == 1
    assert worst.series[7].auc[2] == min(own.auc.min() for own in kept.series)
    np.testing.assert_array_equal(worst.series[7].auc[[0, 1, 3]], kept.series[7].auc[[0, 1, 3]])


def test_the_ranking_is_by_the_mean_and_the_best_of_each_case_is_chosen(results: Results) -> None:
    (group,) = read_groups(results)
    found = findings_of(group, seed=0, resamples=500)
    means = sorted((float(own.auc.mean()) for own in group.series), reverse=True)
    np.testing.assert_allclose([row.mean for row in found.ranking], means)
    assert [row.rank for row in found.ranking] == list(range(1, 13))
    assert math.isclose(sum(row.probability_best for row in found.ranking), 1.0)
    for row in found.chosen:
        peers = [own for own in group.series if own.setting.case == row.series.setting.case]
        assert row.mean == max(float(own.auc.mean()) for own in peers)
    assert [row.series.setting.case for row in found.chosen] == ["epsilon-ipe", "epsilon-greedy"]
    (pair,) = found.comparisons
    again = probability_of_improvement(pair.first.series.auc, pair.second.series.auc, seed=1)
    assert pair.probability.estimate == again.estimate > 0.5


def test_without_cases_the_first_few_are_compared() -> None:
    base = {"environment": "LunarLander-v3", "frames": FRAMES}
    sweep = make_sweep({"name": "plain", "seeds": 3, "base": base, "grid": {"width": [64, 128, 256]}})
    (group,) = read_groups(results_of(sweep))
    found = findings_of(group, seed=0, resamples=200)
    assert len(found.chosen) == 1
    assert [row.rank for row in found.contenders] == [1, 2, 3]
    assert len(found.comparisons) == 3


def test_the_best_over_the_rest(results: Results) -> None:
    (group,) = read_groups(results)
    panels = {panel.hyperparameter: panel for panel in sensitivity_panels(results.sweep, group)}
    assert list(panels) == ["width", "value_step_size"]
    for name, panel in panels.items():
        for case, curve in panel.curves.items():
            assert curve.kind == "best over the others"
            for value, mean in zip(curve.values, curve.mean, strict=True):
                at = [own for own in group.series if own.setting.case == case and own.setting.varied[name] == value]
                assert mean == pytest.approx(max(own.auc.mean() for own in at))


def test_one_at_a_time_is_around_the_base() -> None:
    sweep = a_sweep(one_at_a_time=True, cases={"epsilon-ipe": {"behaviour": "epsilon-ipe"}})
    results = results_of(sweep)
    (group,) = read_groups(results)
    panels = {panel.hyperparameter: panel for panel in sensitivity_panels(sweep, group)}
    base = group.series[0]
    for name, panel in panels.items():
        curve = panel.curves["epsilon-ipe"]
        assert curve.kind == "one at a time"
        assert curve.mean[curve.values.index(base.setting.varied[name])] == pytest.approx(base.auc.mean())
        assert set(curve.candidates) == {1}
    assert len(panels["width"].curves["epsilon-ipe"].values) == 3


@pytest.mark.slow
def test_environments_are_never_compared_with_each_other(tmp_path: Path) -> None:
    base = {"frames": FRAMES}
    grid = {"environment": ["LunarLander-v3", "CartPole-v1"], "width": [64, 128]}
    results = results_of(make_sweep({"name": "two", "seeds": 2, "base": base, "grid": grid}))
    groups = read_groups(results)
    assert [group.environment for group in groups] == ["LunarLander-v3", "CartPole-v1"]
    assert [len(group.series) for group in groups] == [2, 2]
    files = [path.name for path in write_report(results, tmp_path / "out", grid_points=20)]
    assert "CartPole-v1-learning_curves.pdf" in files
    ranks = [(row["environment"], row["rank"]) for row in rows_of(tmp_path / "out" / "ranking.csv")]
    assert ranks == [(group.environment, rank) for group in groups for rank in ("1", "2")]


def test_the_curves_on_all_environments_are_one_picture() -> None:
    names = ["LunarLander-v3", "CartPole-v1", "Acrobot-v1", "MountainCar-v0"]
    cases = {"epsilon-greedy": {"behaviour": "epsilon-greedy"}, "ours": {"behaviour": "epsilon-ipe"}}
    declared = {"name": "four", "seeds": 3, "base": {"frames": FRAMES}, "grid": {"environment": names}, "cases": cases}
    found = [findings_of(group, seed=0, resamples=50) for group in read_groups(results_of(make_sweep(declared)))]
    figure = draw_all_curves(found)
    assert figure is not None
    assert [ax.get_title() for ax in figure.axes] == [f"{name} (n = 3)" for name in names]
    looks = {(line.get_label(), line.get_color(), line.get_linestyle()) for ax in figure.axes for line in ax.lines}
    assert {name for name, _, _ in looks} == set(cases)
    assert len(looks) == 2  # a behaviour looks the same in every panel
    for one, ax in zip(found, figure.axes, strict=True):
        for row, line in zip(one.contenders, ax.lines, strict=True):
            assert line.get_label() == row.series.setting.case
            mean = np.mean(row.series.curves, axis=0)
            all_runs = np.isfinite(mean)
            np.testing.assert_allclose(np.asarray(line.get_ydata())[all_runs], mean[all_runs])
            assert all_runs.sum() > 100
    assert draw_all_curves(found[:1]) is None  # one environment has its picture already


def test_the_same_environment_made_in_two_ways_is_two() -> None:
    grid = {"environment.frame_limit": [1000, 5000]}
    sweep = make_sweep(
        {"name": "limits", "seeds": 2, "base": {"environment": "LunarLander-v3", "frames": 5000}, "grid": grid}
    )
    names = [group.environment for group in read_groups(results_of(sweep))]
    assert names == ["LunarLander-v3 (frame_limit = 1000)", "LunarLander-v3 (frame_limit = 5000)"]


def test_settings_are_compared_over_the_frames_that_all_have() -> None:
    base = {"environment": "LunarLander-v3"}
    sweep = make_sweep({"name": "lengths", "seeds": 2, "base": base, "grid": {"frames": [10_000, 20_000]}})
    (group,) = read_groups(results_of(sweep))
    assert group.frames == group.grid[-1] == 10_000


# Fresh runs


def test_comparisons_rest_on_fresh_runs(results: Results) -> None:
    confirm = fresh_runs([100, 101, 102])
    (group,) = read_groups(results, confirm)
    assert [own.name for own in group.fresh] == [
        "epsilon-ipe width=128 value_step_size=0.001 (fresh runs)",
        "epsilon-greedy width=128 value_step_size=0.001 (fresh runs)",
    ]
    found = findings_of(group, seed=0, resamples=200)
    assert all(row.series.fresh and row.series.n == 3 for row in found.contenders)
    assert len(found.ranking) == 12
    best = {row.series.setting.name for row in found.chosen}
    without = [name for name in best if name not in {own.setting.name for own in group.fresh}]
    assert sum("no fresh runs" in problem for problem in found.problems) == len(without)


def test_fresh_runs_must_be_fresh(results: Results) -> None:
    with pytest.raises(InputError, match=r"confirm: seed 3 of 'epsilon-ipe' is among the runs"):
        read_groups(results, fresh_runs([3, 200]))


def test_fresh_runs_must_be_of_this_sweep(results: Results) -> None:
    other = make_sweep({"name": "other", "seeds": 2, "base": {"environment": "LunarLander-v3", "frames": 999}})
    with pytest.raises(InputError, match="no finished run of any setting of this sweep"):
        read_groups(results, results_of(other))


# What is missing


def test_settings_without_a_run_are_named_and_not_ranked(results: Results) -> None:
    some = replace(results, outcomes=[outcome for outcome in results.outcomes if outcome["setting"] < 10])
    (group,) = read_groups(some)
    assert group.missing == [setting.name for setting in results.sweep.settings[10:]]
    found = findings_of(group, seed=0, resamples=100)
    assert len(found.ranking) == 10
    assert any("not run yet" in problem for problem in found.problems)


def test_a_sweep_without_runs_has_no_report(results: Results, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no finished run yet"):
        write_report(replace(results, outcomes=[]), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_finished_episode_is_a_sentence(results: Results) -> None:
    bad = {(i, seed): ("failed", 0) for i in range(12) for seed in range(4)}
    with pytest.raises(InputError, match="no run has finished an episode within 20000 frames of LunarLander-v3"):
        read_groups(results_of(results.sweep, bad=bad))


def test_one_run_and_no_progress_still_make_a_report(tmp_path: Path) -> None:
    base = {"environment": "LunarLander-v3", "frames": FRAMES}
    one = results_of(make_sweep({"name": "one", "seeds": 1, "base": base}))
    files = write_report(replace(one, progress=one.progress.slice(0, 0)), tmp_path / "out", grid_points=20)
    names = [path.name for path in files]
    assert names[0] == "report.html"
    assert "exploration.png" not in names
    assert "comparisons.csv" not in names
    (row,) = rows_of(tmp_path / "out" / "ranking.csv")
    assert row["auc_standard_error"] == row["probability_best"] == ""


def test_a_wrong_choice_is_refused(results: Results) -> None:
    with pytest.raises(InputError, match="failed must be keep or worst, found 'drop'"):
        read_groups(results, failed="drop")  # type: ignore[arg-type]
