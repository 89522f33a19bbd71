"""`ipe sweep --halving` and the studies that use it: planned, run, resumed, shown, reported, confirmed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium")

from ipe.cli import main
from ipe.deep.settings import TrainingSettings
from ipe.experiments.calibration import Calibration
from ipe.experiments.grids import read_sweep
from ipe.experiments.halving_plan import plan_halving
from ipe.experiments.results import load_results
from ipe.studies.learning import reporting
from ipe.studies.learning.run import run_learning_study
from ipe.studies.learning.study import CURVES, GRID, LearningStudy
from tests.sweep_helpers import SMALL, small_sweep, toml

RUNGS = "[halving]\nframes = [1000, 1500]\nruns = [2, 3]\n"


def measured(asked: Sequence[tuple[TrainingSettings, int]]) -> Iterator[Calibration]:
    """A machine on which a frame of a seed takes a millisecond, and nothing else takes any time."""
    for _, seeds in asked:
        yield Calibration(seeds, 0.0, 1e-3 * seeds, 10**6, 0, 0.001)


def test_the_plan_counts_what_is_trained() -> None:
    sweep = replace(
        read_sweep("freeway-epsilon-ipe"), halving={"frames": [100_000, 500_000, 2_000_000], "runs": [2, 3, 3]}
    )
    plans = plan_halving(sweep, [1, 3], measure=measured)
    assert [(own.settings, own.runs, own.run_frames) for own in plans] == [
        (18, 2, 100_000),
        (9, 3, 500_000),
        (5, 3, 2_000_000),
    ]
    assert [own.frames for own in plans] == [
        18 * 2 * 100_000,
        9 * (2 * 400_000 + 500_000),  # two runs go on, one begins
        5 * 3 * 1_500_000,
    ]
    for own in plans:
        assert own.seconds[1] == pytest.approx(own.frames * 1e-3)
        assert own.seconds[3] >= own.seconds[1] / 3
    assert [own.checkpoint_bytes for own in plans] == [18 * 2 * 10**6, 9 * 3 * 10**6, 0]


def test_the_plan_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ipe.experiments.halving_plan.plan_halving.__defaults__", (None, measured))
    assert main(["sweep", "freeway-epsilon-ipe", "--halving", "--plan", "--cores", "64"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert rows[0] == "freeway-epsilon-ipe, by halving"
    assert re.fullmatch(r"rung +settings +runs each +frames each +frames to train +on . cores? +on 64 cores", rows[1])
    assert len(rows) == 1 + 1 + 4 + 1 + 2 + 1
    assert rows[-1].startswith("next: the same command without --plan")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_sweep_by_halving_from_the_plan_to_the_fresh_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    Path("grid.toml").write_text(toml(3, "", "value_step_size = [1e-4, 1e-3, 1e-2]", frames=1500) + RUNGS)
    words = ["sweep", "grid.toml", "--out", "out", "--workers", "1", "--halving", "--confirm-seeds", "2"]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "in out/rung-1" in printed
    assert "next: ipe report out\n" in printed
    assert len(load_results("out/rung-0").sweep.settings) == 3
    assert len(load_results("out/rung-1").sweep.settings) == 2
    assert load_results("out/confirm").sweep.seeds == [1_000_000, 1_000_001]

    assert main(["status", "out"]) == 0
    assert "small, rung 1: 2 settings, 6 runs" in capsys.readouterr().out
    assert main(["sweep", "--resume", "out"]) == 0
    assert main(["report", "out"]) == 0
    data = page_data(Path("out/report/report.html"))
    assert (data["title"], data["confirmed"]) == ("small", True)
    (selected,) = data["selection"]
    assert [(own["settings"], own["runs"], own["frames"]) for own in selected["rungs"]] == [(3, 2, 1000), (2, 3, 1500)]
    assert 0.0 <= selected["probability"] <= selected["probabilityOfFinalists"] <= 1.0
    (panel,) = data["environments"][0]["sensitivity"]
    assert len(panel["values"]) == 3, "what was cut is shown too"
    assert sum("cut" in point for point in panel["curves"][0]["points"]) == 1
    assert data["cost"]["hours"] > 0

    capsys.readouterr()
    assert main(["sweep", "grid.toml", "--out", "out", "--halving", "--seeds", "4"]) == 2
    assert "was made for another sweep" in capsys.readouterr().err


def page_data(page: Path) -> Any:
    return json.loads(
        re.findall(r"<script[^>]*json[^>]*>(.*?)</script>", page.read_text(encoding="utf-8"), re.DOTALL)[0]
    )


def test_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(toml(3, "", "value_step_size = [1e-4, 1e-3]", frames=1500) + RUNGS)
    assert main(["sweep", "grid.toml", "--halving", "--shard", "0/2"]) == 2
    assert "--halving waits for all runs of a rung, which no shard has" in capsys.readouterr().err
    assert main(["sweep", "grid.toml", "--halving", "--frames", "3000"]) == 2
    assert "halving.frames ends with 1500, and the sweep's runs have 3000 frames" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["grid.toml"]


@pytest.mark.slow
def test_a_study_of_the_whole_grid_beside_the_bold_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in study: its grid by halving, confirmed, judged beside the bold settings."""
    bold = small_sweep(seeds=3, frames=1500)
    grid = replace(small_sweep(seeds=3, grid={"value_step_size": [1e-4, 1e-3, 1e-2]}, frames=1500),
                   halving={"frames": [1000, 1500], "runs": [2, 3]})  # fmt: skip
    monkeypatch.setattr("ipe.studies.learning.study.whole_grid", lambda *_: grid)
    study = LearningStudy("stand-in", "A stand-in", 3, 1500, lambda *_: {CURVES: bold}, {}, lambda *_: [])
    assert run_learning_study(study, tmp_path, workers=1).status == "done"
    found = run_learning_study(study, tmp_path, full_grid=True, halving=True, confirm_seeds=2, workers=1)
    assert found.status == "done"
    assert [page.relative_to(tmp_path).as_posix() for page in found.reports] == [
        "report/report.html",
        "report/grid/report.html",
    ]
    data = page_data(found.reports[1])
    assert data["title"] == "A stand-in, each at its best"
    assert data["confirmed"]
    assert len(data["selection"]) == 1
    assert page_data(found.reports[0])["selection"] == []
    folder = reporting.open_study(tmp_path)
    assert folder.main == [CURVES, GRID]
    assert (folder.confirmed(CURVES), folder.confirmed(GRID)) == (False, True)
    assert SMALL["width"] == 16
