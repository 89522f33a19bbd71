"""`ipe reproduce`, and the example script, as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ipe.cli import main
from tests.needs import ROOT


def test_one_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "study"
    assert main(["reproduce", "switch-stay", "--only", "figure-3", "--out", str(out)]) == 0
    printed = capsys.readouterr()
    assert "HOLDS         near-values-map-to-stochastic-policies  (figure-3)" in printed.out
    assert "5 claims: 4 holds, 0 does not hold, 1 depends." in printed.out
    assert f"Wrote figures, data and claims to {out}/" in printed.out
    assert "[1/1] figure-3" in printed.err
    names = {file.name for file in out.iterdir()}
    assert {"figure-3.png", "figure-3.pdf", "figure-3.parquet", "claims.json", "claims.md", "report.md"} <= names
    assert json.loads((out / "settings.json").read_text(encoding="utf-8"))["runs"] == 1000


@pytest.mark.slow
def test_runs_and_seed_reach_the_study(tmp_path: Path) -> None:
    out = tmp_path / "study"
    words = ["reproduce", "switch-stay", "--only", "figure-2b", "--runs", "5", "--seed", "3", "--out", str(out)]
    assert main(words) == 0
    settings = json.loads((out / "settings.json").read_text(encoding="utf-8"))
    assert (settings["runs"], settings["trajectory_runs"], settings["seed"]) == (5, 5, 3)


def test_a_folder_in_use_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    words = ["reproduce", "switch-stay", "--only", "figure-3", "--out", str(tmp_path)]
    assert main(words) == 2
    assert "is not empty; give --overwrite" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]
    assert main([*words, "--overwrite"]) == 0
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["switch-sty"], "there is no study 'switch-sty' (did you mean switch-stay?); the studies are switch-stay"),
        (["switch-stay", "--only", "figure-9"], "there is no part 'figure-9'; the parts are figure-2a, figure-2b"),
        (["switch-stay", "--runs", "0"], "--runs must be at least 1"),
        (["switch-stay", "--runs", "many"], "--runs"),
        (["switch-stay", "--seed", "-1"], "--seed"),
        (["switch-stay", "--run", "5"], "there is no option --run (did you mean --runs?)"),
        ([], "STUDY"),
    ],
)
def test_wrong_words_get_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_example_script_runs(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "examples" / "first_steps.py"), "--states", "2000", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "18 of 18 achievable ones kept" in done.stdout
    assert {file.name for file in tmp_path.iterdir()} == {
        "figure-1.png", "figure-1.svg", "figure-3.png", "figure-3.svg",
    }  # fmt: skip
