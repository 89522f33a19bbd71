"""A study's published folder, which has results and no checkpoints, is gone on with where its seeds end."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium")

from ipe.cli import main
from ipe.experiments.grids import make_sweep
from ipe.experiments.results import load_results
from ipe.studies import freeway
from ipe.studies.learning.run import run_learning_study
from ipe.studies.learning.study import CURVES, LASTING, LearningStudy, Parts
from tests.sweep_helpers import SMALL, TROUBLE, small_sweep, tables


def _parts(runs: int, frames: int) -> Parts:
    return {CURVES: small_sweep(seeds=runs, grid={"behaviour": ["epsilon-ipe", "epsilon-greedy"]}, frames=frames)}


STUDY = LearningStudy("stand-in", "A stand-in", 3, 200, _parts, {}, lambda chosen, group: [])


def published(folder: Path, copy: Path) -> Path:
    """What is published of a study: descriptions and results, no checkpoints and no leases."""
    shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("work", "claims", "report", "claims.json"))
    return copy


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are done in this process, one seed each, as Freeway's are."""
    from ipe.experiments import engine
    from ipe.studies.learning import run

    def run_here(sweep: Any, folder: Any, *, workers: Any = None, callback: Any = None) -> Any:
        return engine.run_sweep(sweep, folder, shard=(0, 1), batch_seeds=1, callback=callback)

    monkeypatch.setattr(run, "run_sweep", run_here)
    monkeypatch.setattr("ipe.experiments.ledger.TELL_SECONDS", 0.0)


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ipe.studies.learning.run.report_study", lambda *_: ([], []))


@pytest.mark.slow
@pytest.mark.usefixtures("here", "no_report")
def test_a_copy_of_a_published_store_goes_on_at_the_missing_seeds(tmp_path: Path) -> None:
    whole = run_learning_study(STUDY, tmp_path / "whole")
    assert whole.status == "done"
    reference = tables(tmp_path / "whole" / CURVES)

    stopped = run_learning_study(STUDY, tmp_path / "first", callback=lambda _, progress: progress.done >= 2)
    assert stopped.status == "stopped"
    copy = published(tmp_path / "first", tmp_path / "copy")
    have = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    results = load_results(copy / CURVES)
    assert sorted((own["setting"], own["seed"]) for own in results.outcomes) == [(0, 0), (1, 0)]
    assert results.missing == [(0, 1), (0, 2), (1, 1), (1, 2)]

    trained: list[int] = []
    assert run_learning_study(STUDY, copy, callback=lambda _, own: trained.append(own.done)).status == "done"
    assert trained[0] == 2, "what is published is not trained again"
    assert tables(copy / CURVES) == reference
    assert {path: path.read_bytes() for path in have} == have


@pytest.mark.slow
@pytest.mark.usefixtures("here", "no_report")
def test_a_study_that_is_published_with_fewer_runs_is_given_more(tmp_path: Path) -> None:
    assert run_learning_study(STUDY, tmp_path / "few", runs=1).status == "done"
    copy = published(tmp_path / "few", tmp_path / "copy")
    assert run_learning_study(STUDY, copy).status == "done"
    assert run_learning_study(STUDY, tmp_path / "whole").status == "done"
    assert tables(copy / CURVES) == tables(tmp_path / "whole" / CURVES)


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_command_goes_on_with_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(freeway, "STUDY", STUDY)
    words = ["reproduce", "freeway", "--out"]
    assert main([*words, str(tmp_path / "few"), "--runs", "1"]) == 0
    copy = published(tmp_path / "few", tmp_path / "copy")
    assert main([*words, str(copy)]) == 0
    assert f"wrote {copy / 'report' / 'report.html'}" in capsys.readouterr().out
    assert len(load_results(copy / CURVES).outcomes) == 6


@pytest.mark.slow
@pytest.mark.usefixtures("here")
def test_the_page_about_lasting_is_written_though_nobody_became_competent(tmp_path: Path) -> None:
    def parts(runs: int, frames: int) -> Parts:
        both = {"epsilon-ipe": {"behaviour": "epsilon-ipe"}, "epsilon-greedy": {"behaviour": "epsilon-greedy"}}
        base = SMALL | {"environment": {"id": TROUBLE}, "frames": frames}
        sweep = make_sweep({"name": "lasting", "seeds": [7, 9], "base": base, "cases": both})
        return {**_parts(runs, frames), LASTING: sweep}

    found = run_learning_study(replace(STUDY, parts=parts), tmp_path, runs=1)
    pages = [page.relative_to(tmp_path).as_posix() for page in found.reports]
    assert pages == ["report/report.html", "report/lasting/report.html"]
    rows = (tmp_path / "report" / "lasting" / "lasting.csv").read_text().splitlines()
    assert rows[0] == "setting,seed,competent_at,end,collapsed,time"
    assert rows[1:] == [f"{case},{seed},,200,false,0" for case in ("epsilon-ipe", "epsilon-greedy") for seed in (7, 9)]
    assert found.claims == []
