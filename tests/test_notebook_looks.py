"""What notebooks show of results: short texts, tables, films; and how far a training has come."""

from __future__ import annotations

import base64
import io
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import ipe
from ipe.deep import evaluate, paper_settings, train, watch
from ipe.deep.progress import Progress, SeedProgress
from ipe.experiments import printed_progress
from ipe.experiments.printed_progress import PrintedProgress, text_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Any:
    pytest.importorskip("gymnasium")
    settings = paper_settings("CartPole-v1", frames=300, width=8, batch=4, replay=100)
    return train(settings, seeds=2, out=tmp_path_factory.mktemp("runs") / "run", processes=0)


def test_the_result_of_a_training_is_short_as_text_and_a_table_in_a_notebook(trained: Any) -> None:
    assert re.fullmatch(rf"TrainingResult\(done: 2 seeds, \d+ episodes, in {trained.folder}\)", repr(trained))
    page = trained._repr_html_()
    assert page.count("<tr>") == 3
    last = trained.episodes.to_pandas().query("seed == 1")["return"].tail(20).mean()
    assert f"<tr><td>1</td><td>done</td><td>300</td><td>{last:.1f}</td><td></td></tr>" in page


def test_an_evaluation_is_short_as_text_and_a_table_in_a_notebook(trained: Any) -> None:
    found = evaluate(trained.folder, episodes=3)
    text = f"CartPole-v1, epsilon-ipe: greedy on Q; mean return {found.mean:.2f} of 2 seeds, 3 episodes each"
    assert repr(found) == f"Evaluation({text})"
    page = found._repr_html_()
    assert page.count("<tr>") == 3
    assert f"<tr><td>1</td><td>{found.seeds[1].mean:.2f}</td>" in page


def test_an_evaluation_policy_is_its_table() -> None:
    result = ipe.evaluation_policy(ipe.zoo.switch_stay(), v=[18.0, -6.0])
    assert result._repr_html_() == f"<pre>{result}</pre>"


def test_a_recording_is_its_film(trained: Any, tmp_path: Path) -> None:
    recording = watch(trained.folder, tmp_path / "film.gif", frame_limit=5)
    (film,) = re.findall(r'src="data:image/gif;base64,([^"]+)"', recording._repr_html_())
    assert base64.b64decode(film) == (tmp_path / "film.gif").read_bytes()
    (tmp_path / "film.gif").unlink()
    assert "is not there any more" in recording._repr_html_()


def progress(batch: int, frame: int, total: float | None) -> Progress:
    return Progress(batch, frame, 1000, 200.0, 1, [SeedProgress(batch, "running", frame, 3, total, None)])


def test_progress_in_words() -> None:
    found = text_of([progress(0, 500, 10.0), progress(1, 300, 20.0)], seeds=4)
    assert found == "20% of 4 x 1000 frames, return 15.0 (mean of the last 20 episodes), 400 frames per second"
    assert "return" not in text_of([progress(0, 0, None)], seeds=1)


def test_progress_stays_in_its_line_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printed_progress, "IN_PLACE_SECONDS", 0.0)
    monkeypatch.setattr(printed_progress, "LINE_SECONDS", 0.0)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    for stream, start, end in ((Terminal(), "\r10%", "second\n"), (io.StringIO(), "10%", "second\n")):
        printed = PrintedProgress(1, stream)
        printed.show(progress(0, 100, 1.0))
        printed.show(progress(0, 200, 1.0))
        printed.end()
        assert stream.getvalue().startswith(start)
        assert stream.getvalue().endswith(end)
        assert stream.getvalue().count("\n") == (1 if stream.isatty() else 2)


def test_a_training_prints_unless_it_is_told_not_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(printed_progress, "LINE_SECONDS", 0.0)
    monkeypatch.setattr(printed_progress, "IN_PLACE_SECONDS", 0.0)
    settings = paper_settings("CartPole-v1", frames=300, width=8, batch=4, replay=100)
    train(settings, out=tmp_path / "loud", processes=0)
    assert "of 1 x 300 frames" in capsys.readouterr().err
    train(settings, out=tmp_path / "quiet", processes=0, progress=False)
    assert capsys.readouterr().err == ""
