"""`ipe reproduce lunar-lander` and `freeway`, as a user runs them: real sweeps, short."""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path

import pytest

from ipe.cli import main
from ipe.cli.reproduce import STUDIES, choose

pytest.importorskip("Box2D", reason='LunarLander needs Box2D: pip install "ipe-rl[gymnasium]"')


@pytest.mark.slow
def test_a_short_study_is_run_judged_reported_and_gone_on_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "lander"
    words = ["reproduce", "lunar-lander", "--only", "curves", "--runs", "2", "--frames", "600", "--out", str(out)]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert "5 claims:" in printed.out
    page_of = out / "report" / "report.html"
    assert f"wrote {page_of}" in printed.out
    assert printed.out.splitlines()[-1] == f"next: open {page_of} in a browser; it needs no server"
    claims = json.loads((out / "claims.json").read_text(encoding="utf-8"))
    assert [claim["name"] for claim in claims] == ["area", "asymptote", "variance", "monotone", "dip"]
    page = (out / "report" / "report.html").read_text(encoding="utf-8")
    assert "ε-IPE and ε-greedy behaviour of DQN" in page
    files = {path: path.read_bytes() for path in (out / "curves" / "results").rglob("*.parquet")}
    assert len(files) == 2

    assert main(words) == 0, "the same command goes on: there is nothing left to do"
    assert {path: path.read_bytes() for path in (out / "curves" / "results").rglob("*.parquet")} == files
    assert (out / "report" / "report.html").read_text(encoding="utf-8") == page
    capsys.readouterr()

    assert main([*words[:-4], "--frames", "700", "--out", str(out)]) == 2
    assert "600" in capsys.readouterr().err, "results of other settings are refused, with the difference"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["lunar-lander", "--seed", "1"], "there is no option --seed"),
        (["freeway", "--overwrite"], "there is no option --overwrite"),
        (["switch-stay", "--full-grid"], "there is no option --full-grid"),
        (["switch-stay", "--frames", "10"], "there is no option --frames"),
        (["freeway", "--only", "ipe"], "there is no part 'ipe'; the parts are curves, sensitivity"),
        (["freeway", "--runs", "0"], "--runs must be at least 1"),
        (["freeway", "--frames", "0"], "--frames must be at least 1"),
        (["freeway", "--confirm-seeds", "0"], "--confirm-seeds must be at least 1"),
        (["freeway", "--cores", "4"], "--cores is for --plan"),
        (["freeway", "--halving"], "--halving is for the whole grid: give --full-grid too"),
        (
            ["lander"],
            "there is no study 'lander' (did you mean lunar-lander?); the studies are switch-stay, returns, "
            "lunar-lander, freeway",
        ),
    ],
)
def test_wrong_words_get_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert len(printed.err.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", STUDIES)
def test_the_help_of_a_study_names_its_parts(name: str) -> None:
    declared = import_module(STUDIES[name].MODULE)
    if name in ("switch-stay", "returns"):
        parts = [part.name for part in declared.PARTS]
    elif name == "exploration":
        parts = [declared.TABULAR, *declared.group_names()]
    elif name == "updates":
        parts = list(declared.PARTS)
    elif name == "batches":
        parts = [task.name for task in declared.TASKS]
    else:
        parts = list(declared.STUDY.sweeps())
    text = " ".join((STUDIES[name].__doc__ or "").split())
    (listed,) = re.findall(r"Parts: (.*?)\. ", text)
    assert re.sub(r" \(.*?\)", "", listed).split(", ") == parts


def test_a_study_may_stand_behind_its_options() -> None:
    words = ["--runs", "5", "--out", "freeway", "lunar-lander", "--plan"]
    assert choose(words) == ("lunar-lander", STUDIES["lunar-lander"], ["--runs", "5", "--out", "freeway", "--plan"])


@pytest.mark.slow
def test_the_plan_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["reproduce", "lunar-lander", "--only", "curves", "--plan"]) == 0
    printed = capsys.readouterr().out
    assert "60 (30 seeds each)" in printed
    assert "on 2 cores" in printed or "cores" in printed
    assert list(tmp_path.iterdir()) == []
