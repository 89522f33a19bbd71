"""`ipe report` on other programs' runs: what it writes, what it says, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from ipe.cli import main
from tests.recorded_cases import SAMPLES, monitor, returns
from tests.report_cases import rows_of
from tests.store_helpers import make_store, publish_all
from tests.test_cli_report import data_of

EPISODES = [(float(i % 7), 10) for i in range(40)]


def test_stable_baselines3s_runs_become_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(SAMPLES / "sb3"), "--out", str(tmp_path / "page"), "--title", "SB3"]) == 0
    said = capsys.readouterr()
    assert "CartPole-v1, training: 4 runs of dqn, dqn-fast." in said.out
    assert "CartPole-v1, evaluation: 4 runs of dqn, dqn-fast." in said.out
    data = data_of(tmp_path / "page" / "report.html")
    training, greedy = data["environments"]
    assert data["title"] == "SB3"
    assert training["measure"]["curve"] == "return, mean of the last 20 episodes"
    assert greedy["measure"]["name"] == "greedy evaluation"
    assert [(one["name"], one["n"], one["rank"]) for one in training["settings"]] == [("dqn-fast", 2, 1), ("dqn", 2, 2)]
    assert len({one["slot"] for one in training["settings"]}) == 2
    assert {one["name"]: one["slot"] for one in training["settings"]} == {
        one["name"]: one["slot"] for one in greedy["settings"]
    }
    (pair,) = training["comparisons"]
    assert pair["probability"][0] == 1
    assert pair["p"] == pair["corrected"] == pytest.approx(1 / 3, rel=1e-5)  # 2 of the 6 ways to divide four runs
    assert data["cost"]["words"].endswith(" minutes by the clock, of 4 runs together")
    for environment in data["environments"]:
        assert "exact two-sided Mann-Whitney" in environment["methods"]
        assert "Holm" not in environment["methods"]  # there is one comparison
    assert "monitor.csv (Stable-Baselines3)" in training["methods"]
    rows = rows_of(tmp_path / "page" / "runs.csv")
    assert {(row["measure"], row["setting"], row["seed"]) for row in rows} == {
        (measure, setting, seed)
        for measure in ("training returns", "greedy evaluation")
        for setting in ("dqn", "dqn-fast")
        for seed in ("0", "1")
    }
    for name in ("CartPole-v1_greedy_evaluation-learning_curves.png", "learning_curves.png", "learning_curves.pdf"):
        assert (tmp_path / "page" / name).is_file()


def test_cleanrls_runs_become_a_page_with_sensitivity(tmp_path: Path) -> None:
    assert main(["report", str(SAMPLES / "cleanrl"), "--out", str(tmp_path / "page")]) == 0
    (environment,) = data_of(tmp_path / "page" / "report.html")["environments"]
    rates = [one["varied"]["learning_rate"] for one in environment["settings"]]
    assert sorted(rates) == [0.00025, 0.002]
    assert [panel["hyperparameter"] for panel in environment["sensitivity"]] == ["learning_rate"]
    assert environment["differences"] == {"learning_rate": rates}


@pytest.mark.slow
def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert main(["report", str(SAMPLES / "zoo"), "--out", str(tmp_path / name)]) == 0
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes(), file.name


def test_a_table_with_names_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"{algo},{seed},{t},{t * (seed + 1)}" for algo in ("x", "y") for seed in (0, 1) for t in (10, 20)]
    (tmp_path / "results.csv").write_text("\n".join(["who,seed,t,G", *rows]))
    monkeypatch.chdir(tmp_path)
    columns = ["--columns", "setting=who,step=t,return=G", "--environment", "Maze", "--window", "2"]
    assert main(["report", "results.csv", *columns]) == 0
    (environment,) = data_of(tmp_path / "report" / "report.html")["environments"]
    assert environment["id"] == "Maze"
    assert environment["measure"]["curve"] == "return, mean of the last 2 records"
    assert sorted(one["name"] for one in environment["settings"]) == ["x", "y"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tag", "x"], "there is no event file of TensorBoard in it"),
        (["--tag", "x", "--source", "monitor"], "tag is for the source tensorboard, and the source is monitor"),
        (["--source", "csv"], "there is no .csv file in it"),
        (["--source", "nonsense"], "--source must be one of"),
        (["--layout", "{setting}/x{seed}"], "layout: 'dqn/0' does not fit '{setting}/x{seed}'"),
        (["--layout", "x"], "layout: 'x' names nothing"),
        (["--columns", "x=y"], "columns: 'x' is none of step, return"),
        (["--columns", "x"], "parameters are key=value"),
        (["--confirm", "x"], "--confirm is for a sweep of ipe"),
        (["--window", "0"], "--window must be at least 1"),
        (["--steps", "none"], "--steps must be a whole number"),
    ],
)
def test_wrong_uses_are_a_sentence(
    tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monitor(tmp_path / "logs" / "dqn" / "0" / "monitor.csv", EPISODES)
    assert main(["report", str(tmp_path / "logs"), "--out", str(tmp_path / "page"), *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error
    assert not (tmp_path / "page").exists()


def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = monitor(tmp_path / "dqn" / "0" / "monitor.csv", EPISODES, end="1,x,2\n")
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page")]) == 2
    assert f"{path}: line 43: l must be a finite number, found 'x'" in capsys.readouterr().err
    assert not (tmp_path / "page").exists()


def test_tags_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    returns(tmp_path / "a", [(1, 1.0)], tag="my/score")
    assert main(["report", str(tmp_path), "--out", str(tmp_path / "page")]) == 2
    assert "--tag NAME; the tags are my/score" in capsys.readouterr().err


def test_options_for_others_are_refused_for_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish_all(make_store(tmp_path / "sweep"))
    assert main(["report", str(tmp_path / "sweep"), "--window", "5"]) == 2
    assert "--window is for runs of other programs" in capsys.readouterr().err
    assert not (tmp_path / "sweep" / "report").exists()
