"""`ipe curves`: the figure and the table of training runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ipe.analysis import aucs
from ipe.base.looks import look_of
from ipe.cli import main
from ipe.deep import paper_settings
from ipe.deep.records import Records
from tests.old_layout import create_run, read_episodes, write_records, write_run


def make_run(
    folder: Path, behaviour: str, shift: float, frames: int = 1000, stopped: int | None = None, seeds: int = 3
) -> Path:
    """A run whose records are written, not trained: what `ipe curves` reads."""
    settings = paper_settings("CartPole-v1", behaviour, frames=frames)
    run = create_run(folder, settings, [list(range(seeds))])
    last = frames if stopped is None else stopped
    records = Records()
    rng = np.random.default_rng(0)
    for seed in range(seeds):
        for frame in range(50, last + 1, 50):
            records.episode(seed, frame, shift + frame / 100 + rng.normal(), 50)
        epsilon = np.nan if behaviour == "ipe" else 0.5
        records.progress(seed, last, epsilon, np.nan, 1.0, np.nan, 0.0, 100.0)
    write_records(folder, records)
    status = "done" if stopped is None else "running"
    outcomes = [{"seed": seed, "status": status, "frame": last, "reason": ""} for seed in range(seeds)]
    write_run(folder, run.content | {"status": "done" if stopped is None else "stopped", "outcomes": outcomes})
    return folder


def drawn_lines(path: Path, colour: str) -> list[float]:
    """Where the curves of a colour end in an SVG figure: the largest x of each path; a legend has fewer points."""
    text = path.read_text()
    paths = re.findall(r'<path d="([^"]*)"[^>]*style="[^"]*stroke: ' + colour, text)
    points = [[float(x) for x, _ in re.findall(r"[ML] (\S+) (\S+)", one)] for one in paths]
    return [max(line) for line in points if len(line) > 3]


def test_the_table_has_the_areas_of_the_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [make_run(tmp_path / "a", "epsilon-ipe", 0.0), make_run(tmp_path / "b", "epsilon-greedy", 5.0)]
    out = tmp_path / "curves.png"
    assert main(["curves", *map(str, runs), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    for run, name in zip(runs, ("epsilon-ipe", "epsilon-greedy"), strict=True):
        area = aucs(read_episodes(run), 1000).mean()
        line = next(line for line in said.splitlines() if line.startswith(name + " "))
        assert f"{area:.2f}" in line
    assert out.read_bytes().startswith(b"\x89PNG")
    assert said.splitlines()[-1] == f"next: ipe evaluate {runs[0]}; ipe evaluate {runs[1]}"


def test_one_seed_has_no_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [make_run(tmp_path / "a", "epsilon-ipe", 0.0, seeds=1), make_run(tmp_path / "b", "epsilon-greedy", 5.0)]
    assert main(["curves", *map(str, runs), "--out", str(tmp_path / "c.png")]) == 0
    said = capsys.readouterr().out.splitlines()
    one, three = (
        next(line for line in said if line.startswith(name + " ")) for name in ("epsilon-ipe", "epsilon-greedy")
    )
    assert "nan" not in one
    assert "+-" not in one
    assert three.count("+-") == 2
    assert one.rindex(".") == three.rindex(".")  # the columns stand below each other


def test_runs_of_the_same_behaviour_go_by_their_folders(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [make_run(tmp_path / "first", "ipe", 0.0), make_run(tmp_path / "second", "ipe", 1.0)]
    assert main(["curves", *map(str, runs), "--out", str(tmp_path / "c.svg")]) == 0
    said = capsys.readouterr().out
    assert "first " in said
    assert "second " in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--out", "c.png"], "RUN is missing"),
        (["nowhere", "--out", "c.png"], "there is no run nowhere"),
        (["nowhere", "--out", "c.doc"], "c.doc"),
        (["nowhere"], "--out"),
    ],
)
def test_wrong_arguments(
    words: list[str],
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["curves", *words]) == 2
    assert expected in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_an_episode_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "empty"
    create_run(folder, paper_settings("CartPole-v1", frames=100), [[7]])
    write_records(folder, Records())
    assert main(["curves", str(folder), "--out", str(tmp_path / "c.png")]) == 2
    assert "seed 7 has not finished an episode within 0 frames, which is how far the run got" in capsys.readouterr().err
    whole = make_run(tmp_path / "whole", "epsilon-greedy", 0.0)
    assert main(["curves", str(whole), str(folder), "--out", str(tmp_path / "c.png")]) == 2
    assert f"is how far {folder}, the shortest of these runs, got" in capsys.readouterr().err


def test_a_stopped_run_ends_where_it_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is drawn of the frames that never ran, and areas are compared over the frames that both runs have."""
    whole = make_run(tmp_path / "whole", "epsilon-ipe", 0.0, frames=5000)
    half = make_run(tmp_path / "half", "epsilon-greedy", 5.0, frames=5000, stopped=1270)
    out = tmp_path / "c.svg"
    assert main(["curves", str(whole), str(half), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "epsilon-greedy: its seeds are at frame 1270 of 5000; its curve ends there" in said
    assert "area over the first 1270 frames, which all of these runs have" in said
    for run, name in ((whole, "epsilon-ipe"), (half, "epsilon-greedy")):
        line = next(line for line in said.splitlines() if line.startswith(name + " "))
        assert f"{aucs(read_episodes(run), 1270).mean():.2f}" in line
    long, short = (max(drawn_lines(out, look_of(name).colour.lower())) for name in ("epsilon-ipe", "epsilon-greedy"))
    assert short < 0.5 * long


def test_the_settings_in_which_runs_differ_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [make_run(tmp_path / "a", "epsilon-ipe", 0.0), make_run(tmp_path / "b", "epsilon-greedy", 5.0)]
    assert main(["curves", *map(str, runs), "--out", str(tmp_path / "c.png")]) == 0
    said = capsys.readouterr().out
    table = said[said.index("settings that differ") :].splitlines()
    assert table[0].split()[-2:] == ["epsilon-ipe", "epsilon-greedy"]
    assert any(line.split() == ["width", "128", "256"] for line in table)
    assert not any(line.split()[0] == "frames" for line in table)
    assert main(["curves", *map(str, runs), "--out", str(tmp_path / "c.svg")]) == 0
    assert "Settings that differ: width (128, 256)." in (tmp_path / "c.svg").read_text()  # as a comment to the glyphs
