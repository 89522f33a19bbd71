"""Folders of other programs' runs: which files are runs, how they are named, and how they are compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ipe.analysis import auc_of_episodes, trailing_curve
from ipe.analysis.findings import findings_of
from ipe.analysis.provenance import recorded_cost
from ipe.analysis.recorded import read_recorded, recorded_groups
from ipe.errors import InputError
from tests.recorded_cases import SAMPLES, evaluations, monitor, returns
from tests.store_helpers import make_store, publish_all

EPISODES = [(float(i), 10) for i in range(1, 31)]


def names(*paths: Path, **options: str) -> list[tuple[str, str, str, str]]:
    return [(run.kind, run.environment, run.setting, run.run) for run in read_recorded(*paths, **options).runs]  # type: ignore[arg-type]


def test_stable_baselines3s_folders_are_training_and_evaluation() -> None:
    found = names(SAMPLES / "sb3")
    assert found == [
        (kind, "CartPole-v1", setting, seed)
        for kind in ("training", "evaluation")
        for setting in ("dqn", "dqn-fast")
        for seed in ("0", "1")
    ]


def test_the_zoos_folders_with_two_environments_each() -> None:
    found = read_recorded(SAMPLES / "zoo").runs
    assert [(run.setting, run.environment, run.run) for run in found] == [
        ("a2c", "CartPole-v1", "1"),
        ("a2c", "CartPole-v1", "2"),
    ]
    for run in found:
        assert (run.steps % 2 == 0).all()
        assert (np.diff(run.steps) >= 0).all()
        assert run.reached <= 2000


def test_cleanrls_runs_are_told_apart_by_their_hyperparameters() -> None:
    (group,) = recorded_groups(read_recorded(SAMPLES / "cleanrl"))
    assert [(series.name, series.n) for series in group.series] == [
        ("dqn learning_rate=0.00025", 2),
        ("dqn learning_rate=0.002", 2),
    ]
    assert [outcome["seed"] for outcome in group.series[0].outcomes] == [1, 2]
    assert group.series[0].setting.fields()["gamma"] == 0.99
    assert group.environment == "CartPole-v1"


def test_tensorboard_of_stable_baselines3_has_both_kinds() -> None:
    assert names(SAMPLES / "sb3-tensorboard", environment="CartPole-v1") == [
        ("training", "CartPole-v1", "DQN", "1"),
        ("evaluation", "CartPole-v1", "DQN", "1"),
    ]


def test_monitor_files_come_before_tensorboards_which_may_be_asked_for(tmp_path: Path) -> None:
    monitor(tmp_path / "dqn" / "seed_0" / "monitor.csv", EPISODES)
    returns(tmp_path / "dqn" / "seed_0" / "tb" / "DQN_1", [(100, 1.0)], tag="rollout/ep_rew_mean")
    found = read_recorded(tmp_path)
    assert [run.record for run in found.runs] == ["episode"]
    assert "TensorBoard's files in 1 folders are not read" in found.problems[0]
    (run,) = read_recorded(tmp_path, source="tensorboard").runs
    assert (run.setting, run.run, run.environment, run.record) == ("dqn", "0", "CartPole-v1", "mean")


def test_files_with_names_are_runs_and_numbered_ones_are_environments(tmp_path: Path) -> None:
    for name in ("a-s0", "a-s1", "b-s0"):
        monitor(tmp_path / "one" / f"{name}.monitor.csv", EPISODES)
    assert [each[2:] for each in names(tmp_path / "one")] == [("a", "0"), ("a", "1"), ("b", "0")]
    for i in (0, 1):
        monitor(tmp_path / "two" / f"{i}.monitor.csv", EPISODES, started=1.7e9 + 1000 * i)
    with pytest.raises(InputError, match=r"1\.monitor\.csv: it begins after 0\.monitor\.csv has ended"):
        read_recorded(tmp_path / "two")


def test_the_folder_names_the_setting_if_nothing_below_does(tmp_path: Path) -> None:
    for seed in (0, 1):
        monitor(tmp_path / "double-dqn" / str(seed) / "monitor.csv", EPISODES)
    assert [each[2:] for each in names(tmp_path / "double-dqn")] == [("double-dqn", "0"), ("double-dqn", "1")]
    single = names(tmp_path / "double-dqn" / "0" / "monitor.csv")
    assert single == [("training", "CartPole-v1", "runs", "0")]


def test_folders_of_the_same_names_are_told_apart(tmp_path: Path) -> None:
    for root in ("old", "new"):
        monitor(tmp_path / root / "logs" / "dqn" / "0" / "monitor.csv", EPISODES)
        monitor(tmp_path / root / "logs" / "ppo" / "0" / "monitor.csv", EPISODES)
    found = [setting for _, _, setting, _ in names(tmp_path / "old", tmp_path / "new")]
    assert found == ["old/dqn", "old/ppo", "new/dqn", "new/ppo"]
    assert [setting for _, _, setting, _ in names(tmp_path / "old")] == ["dqn", "ppo"]


def test_hyperparameters_in_paths_make_sensitivity_curves(tmp_path: Path) -> None:
    for lr in ("0.1", "0.01"):
        for seed in (0, 1):
            monitor(tmp_path / f"dqn-{lr}" / f"{seed}" / "monitor.csv", EPISODES)
    (group,) = recorded_groups(read_recorded(tmp_path, layout="{setting}-{lr}/{seed}"))
    assert group.environment == "CartPole-v1"  # as the files say, since the pattern does not
    assert [(series.name, series.setting.varied, series.n) for series in group.series] == [
        ("dqn lr=0.01", {"lr": 0.01}, 2),
        ("dqn lr=0.1", {"lr": 0.1}, 2),
    ]


def test_environments_that_files_do_not_say(tmp_path: Path) -> None:
    evaluations(tmp_path / "a" / "0" / "evaluations.npz", [10, 20], [[1.0], [2.0]])
    assert names(tmp_path)[0][1] == "environment not recorded"
    assert names(tmp_path, environment="Maze")[0][1] == "Maze"
    monitor(tmp_path / "b" / "0" / "monitor.csv", EPISODES)
    found = read_recorded(tmp_path)
    assert {run.environment for run in found.runs} == {"CartPole-v1"}
    assert "does not say its environment; taken for CartPole-v1" in found.problems[0]
    monitor(tmp_path / "c" / "0" / "monitor.csv", EPISODES, environment="Acrobot-v1")
    with pytest.raises(InputError, match=r"nothing says its environment, and the others have Acrobot-v1, CartPole-v1"):
        read_recorded(tmp_path)


def test_a_sweep_of_ipe_stands_beside_other_runs(tmp_path: Path) -> None:
    store = make_store(tmp_path / "sweep")
    publish_all(store)
    environment = store.sweep.settings[0].settings.environment.id
    monitor(tmp_path / "logs" / "dqn" / "0" / "monitor.csv", EPISODES * 40, environment=environment)
    (group,) = recorded_groups(read_recorded(tmp_path / "sweep", tmp_path / "logs"))
    assert [series.n for series in group.series] == [4, 4, 1]
    assert group.series[-1].name == "dqn"
    assert read_recorded(tmp_path).problems == [
        f"{tmp_path / 'sweep'} is a sweep of ipe: it is read when it is named by itself"
    ]


# Groups


def test_scores_and_curves_are_those_of_the_episodes(tmp_path: Path) -> None:
    monitor(tmp_path / "a" / "0" / "monitor.csv", EPISODES)
    monitor(tmp_path / "a" / "1" / "monitor.csv", EPISODES[:28])
    (group,) = recorded_groups(read_recorded(tmp_path), grid_points=7)
    frames, values = np.arange(10, 301, 10), np.arange(1.0, 31.0)
    assert group.frames == 280
    assert group.series[0].auc[0] == auc_of_episodes(frames, values, 280)
    np.testing.assert_array_equal(group.series[0].curves[0], trailing_curve(frames, values, group.grid))
    (one,) = recorded_groups(read_recorded(tmp_path), window=1)
    assert one.series[0].auc[0] == auc_of_episodes(frames, values, 280, window=1)
    assert one.measure.curve == "return of the last episode"


def test_evaluations_are_taken_as_they_are(tmp_path: Path) -> None:
    evaluations(tmp_path / "a" / "0" / "evaluations.npz", [100, 200, 300], [[1.0, 3.0], [4.0, 4.0], [9.0, 9.0]])
    (group,) = recorded_groups(read_recorded(tmp_path, environment="Maze"))
    assert group.series[0].auc[0] == pytest.approx((100 * 2.0 + 100 * 4.0 + 9.0) / 201)
    assert group.title == "Maze, greedy evaluation"
    assert group.measure.curve == "return, mean of each evaluation's episodes"


def test_a_run_that_is_much_shorter_is_named_and_steps_can_be_asked_for(tmp_path: Path) -> None:
    monitor(tmp_path / "a" / "0" / "monitor.csv", EPISODES)
    monitor(tmp_path / "a" / "1" / "monitor.csv", EPISODES[:5])
    (group,) = recorded_groups(read_recorded(tmp_path))
    assert group.frames == 50
    assert "compared over the first 50 steps" in group.notes[0]
    assert group.series[0].count("short") == 0
    (kept,) = recorded_groups(read_recorded(tmp_path), steps=300)
    assert [outcome["status"] for outcome in kept.series[0].outcomes] == ["done", "short"]
    assert kept.series[0].final[1] == np.mean([1.0, 2.0, 3.0, 4.0, 5.0])
    (worst,) = recorded_groups(read_recorded(tmp_path), steps=300, failed="worst")
    assert worst.series[0].auc[1] == kept.series[0].auc.min()


def test_a_run_that_just_began_counts_as_the_worst(tmp_path: Path) -> None:
    monitor(tmp_path / "a" / "0" / "monitor.csv", EPISODES)
    monitor(tmp_path / "a" / "1" / "monitor.csv", [])
    (group,) = recorded_groups(read_recorded(tmp_path))
    assert group.series[0].n == 2
    assert group.series[0].without == 1
    assert findings_of(group, seed=0, resamples=50).problems == [
        "1 of 2 runs of a finished no episode: they score the worst of all runs"
    ]


def test_what_may_mislead_is_said(tmp_path: Path) -> None:
    monitor(tmp_path / "a" / "0" / "monitor.csv", EPISODES)
    returns(tmp_path / "b" / "0", [(i * 10, 5.0) for i in range(1, 31)], tag="rollout/ep_rew_mean")
    (group,) = recorded_groups(read_recorded(tmp_path / "a", tmp_path / "b"))
    assert any("not made in the same way" in note for note in group.notes)
    assert group.measure.curve == "return, as each source tells it"
    for time in (1700000000, 1700000009):
        returns(tmp_path / "runs" / f"CartPole-v1__dqn__1__{time}", [(10, 1.0), (20, 2.0)])
    (group,) = recorded_groups(read_recorded(tmp_path / "runs"))
    assert any("both have the number 1" in note for note in group.notes)
    assert len({outcome["seed"] for outcome in group.series[0].outcomes}) == 2


def test_what_the_runs_took_is_by_the_clock() -> None:
    cost = recorded_cost(read_recorded(SAMPLES / "sb3").runs)
    assert cost is not None
    assert cost.unit == "hours by the clock, of 4 runs together"
    assert 20 < cost.seconds < 60
    assert cost.first == cost.last == "2026-11-17"
    assert recorded_cost([]) is None


def test_no_run_counts_twice(tmp_path: Path) -> None:
    monitor(tmp_path / "a" / "0" / "monitor.csv", EPISODES)
    (tmp_path / "a" / "again").symlink_to(tmp_path / "a")  # a circle
    assert len(read_recorded(tmp_path, str(tmp_path / "a" / "..")).runs) == 1
    with pytest.raises(InputError, match=r"0 lies in .*: its runs would count twice"):
        read_recorded(tmp_path, tmp_path / "a" / "0")


def test_nothing_to_read_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no run: no monitor\.csv"):
        read_recorded(tmp_path)
    with pytest.raises(InputError, match="there is no file or folder"):
        read_recorded(tmp_path / "none")
    with pytest.raises(InputError, match="paths is empty"):
        read_recorded()
    returns(tmp_path / "a", [(1, 1.0)], tag="my/score")
    with pytest.raises(InputError, match=r"no tag that is known to hold returns .* --tag NAME; the tags are my/score"):
        read_recorded(tmp_path)
    with pytest.raises(InputError, match=r"has values of 'my/scores' \(did you mean my/score\?\)"):
        read_recorded(tmp_path, tag="my/scores")
    assert names(tmp_path, tag="my/score") == [("training", "environment not recorded", "a", "")]
