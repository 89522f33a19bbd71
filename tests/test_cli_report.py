"""`ipe report` on real stores: what it writes, what it says, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ipe.cli import main
from ipe.deep.machine import versions
from ipe.experiments.store import open_store
from tests.store_helpers import files, make_store, make_sweep, publish, publish_all


def data_of(page: Path) -> Any:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(found[1])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    store = make_store(tmp_path / "sweep")
    publish_all(store)
    return tmp_path / "sweep"


def test_a_store_becomes_a_page_figures_and_tables(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files(store)
    assert main(["report", str(store)]) == 0
    said = capsys.readouterr()
    assert "8 runs of 2 settings." in said.out
    assert f"wrote {store / 'report' / 'report.html'}" in said.out
    assert said.err == ""
    data = data_of(store / "report" / "report.html")
    (environment,) = data["environments"]
    assert [(one["n"], one["rank"]) for one in environment["settings"]] == [(4, 1), (4, 1)]  # the same records: a tie
    assert data["versions"]["runs"]["numpy"] == [versions()["numpy"]]
    assert data["problems"] == []
    assert {name: content for name, content in files(store).items() if not name.startswith("report/")} == before
    assert len(open_store(store).jobs) == 4


@pytest.mark.slow
def test_a_report_is_not_replaced_unasked(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(store), "--out", str(store / "mine")]) == 0
    before = files(store / "mine")
    assert main(["report", str(store), "--out", str(store / "mine")]) == 2
    assert "is not empty; give --overwrite" in capsys.readouterr().err
    assert main(["report", str(store), "--out", str(store / "mine"), "--overwrite"]) == 0
    assert files(store / "mine") == before  # the same results give the same bytes


@pytest.mark.slow
def test_a_sweep_that_is_not_finished_is_reported_on_what_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make_store(tmp_path / "sweep", make_sweep(widths=(16, 32, 64)))
    publish(store, store.jobs[0], seed_1={"status": "diverged", "frame": 500, "reason": "not finite"})
    publish(store, store.jobs[2], shift=5.0)
    assert main(["report", str(tmp_path / "sweep"), "--failed", "worst", "--title", "half"]) == 0
    assert "no result for" in capsys.readouterr().err
    data = data_of(tmp_path / "sweep" / "report" / "report.html")
    (environment,) = data["environments"]
    assert data["title"] == "half"
    assert [(one["name"], one["n"], one["planned"], one["diverged"]) for one in environment["settings"]] == [
        ("width=32", 2, 4, 0),
        ("width=16", 2, 4, 1),
    ]
    assert environment["problems"] == ["not run yet, and not in the ranking: width=64"]
    assert [(run["seed"], run["status"]) for run in environment["unfinished"]] == [(1, "diverged")]


def test_damaged_results_are_named_and_not_used(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    victim = min((store / "results").rglob("*.parquet"))
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(bytes(content))
    assert main(["report", str(store)]) == 0
    said = capsys.readouterr()
    assert victim.name in said.err
    assert "6 runs of 2 settings." in said.out
    assert any(victim.name in problem for problem in data_of(store / "report" / "report.html")["problems"])


@pytest.mark.slow
def test_fresh_runs_are_what_is_compared(store: Path, tmp_path: Path) -> None:
    fresh = make_store(tmp_path / "fresh", make_sweep(seeds=(10, 11, 12)))
    publish_all(fresh)
    assert main(["report", str(store), "--confirm", str(tmp_path / "fresh")]) == 0
    data = data_of(store / "report" / "report.html")
    (environment,) = data["environments"]
    assert data["confirmed"] is True
    assert [environment["settings"][i]["fresh"] for i in environment["shown"]] == [True, True]
    assert [environment["settings"][i]["n"] for i in environment["shown"]] == [3, 3]


def test_a_sweep_cannot_confirm_itself(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(store), "--confirm", str(store)]) == 2
    assert "confirm: seed 0 of 'width=16' is among the runs that it was chosen by" in capsys.readouterr().err
    assert not (store / "report").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--seed", "-1"], "--seed must be at least 0"),
        (["--failed", "drop"], "--failed"),
        (["--out", ""], "--out is empty"),
        (["--confrim", "x"], "did you mean --confirm?"),
    ],
)
def test_wrong_arguments_are_a_sentence(
    store: Path, more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(store), *more]) == 2
    assert said in capsys.readouterr().err
    assert not (store / "report").exists()


def test_what_is_no_store_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path / "nothing")]) == 2
    assert main(["report", str(tmp_path)]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["report", "status"])
def test_folders_of_another_kind_are_told_apart(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_store(tmp_path / "study" / "curves")
    assert main([command, str(tmp_path / "study")]) == 2
    said = capsys.readouterr().err
    assert said.endswith(f"study is no sweep, but holds 1; name one of them: {tmp_path / 'study' / 'curves'}\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text("{}")
    assert main([command, str(tmp_path / "run")]) == 2
    assert "run.json: not a run of ipe" in capsys.readouterr().err


def test_a_store_without_a_result_has_nothing_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_store(tmp_path / "sweep")
    assert main(["report", str(tmp_path / "sweep")]) == 2
    assert "has no finished run yet" in capsys.readouterr().err
    assert not (tmp_path / "sweep" / "report").exists()
