"""`ipe sweep --confirm-seeds`: fresh runs of the best setting of each case, and the report that rests on them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")

from ipe.cli import main
from ipe.experiments import open_store
from tests.sweep_helpers import toml


@pytest.mark.slow
def test_the_chosen_setting_is_run_again_with_other_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent))
    Path("grid.toml").write_text(toml(2, "", "gamma = [0.5, 0.9]", frames=300))
    words = ["sweep", "grid.toml", "--out", "out", "--workers", "1", "--confirm-seeds", "3"]
    assert main(words) == 0
    fresh = open_store("out/confirm")
    assert fresh.sweep.seeds == [1_000_000, 1_000_001, 1_000_002]
    assert len(fresh.sweep.settings) == 1
    assert fresh.sweep.settings[0].key in open_store("out").sweep.by_key
    assert all(fresh.published(job) for job in fresh.jobs)
    assert "in out/confirm" in capsys.readouterr().out
    assert main(["report", "out"]) == 0
    page = Path("out/report/report.html").read_text(encoding="utf-8")

    data = json.loads(re.findall(r"<script[^>]*json[^>]*>(.*?)</script>", page, re.DOTALL)[0])
    assert data["confirmed"] is True


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--confirm-seeds", "0"], "--confirm-seeds must be 1 or more"),
        (["--confirm-seeds", "2", "--shard", "0/1"], "--confirm-seeds needs all runs, which no shard has"),
    ],
)
def test_refused(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("grid.toml").write_text(toml(2, "", "gamma = [0.5, 0.9]", frames=300))
    assert main(["sweep", "grid.toml", *words]) == 2
    assert sentence in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["grid.toml"]
