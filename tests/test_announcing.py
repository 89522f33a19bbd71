"""What is said before a training starts: how images are read, and how long a long one will take."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ipe.deep.environments import EnvironmentSpec
from ipe.deep.environments.layouts import Layout
from ipe.deep.settings import paper_settings
from ipe.errors import InputError
from ipe.experiments import announcing
from ipe.experiments.announcing import Announcement
from ipe.experiments.declared import Job, Sweep
from ipe.experiments.grids import jobs, make_sweep
from ipe.experiments.training import train

FILM = "tests.deep_environments:Film-v0"


def spec(shape: tuple[int, ...], layout: Layout = Layout()) -> EnvironmentSpec:  # noqa: B008
    return EnvironmentSpec("Own-v0", shape, np.dtype(np.uint8), len(shape) > 1, False, 1 / 255, 6, layout)


@pytest.mark.parametrize(
    ("shape", "layout", "said"),
    [
        ((4,), Layout(), ""),
        ((10, 10, 4), Layout(), ""),
        ((10, 10, 4), Layout(1, "first"), "10 x 10 pixels with 4 channels, which the environment shows first"),
        ((84, 84, 4), Layout(4), "with 4 channels, the last 4 frames, each kept once; the network atari"),
        ((36, 40, 1), Layout(), "images of 36 x 40 pixels with 1 channel; the network atari"),
    ],
)  # fmt: skip
def test_it_is_said_how_images_are_read(shape: Any, layout: Layout, said: str) -> None:
    found = Announcement(paper_settings("Own-v0"), spec(shape, layout)).images()
    assert said in found
    assert bool(said) == bool(found)


def sentences(frames: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    def measured(sweep: Sweep, jobs: list[Job], cores: list[int]) -> Any:
        return SimpleNamespace(seconds=dict.fromkeys(cores, 9000.0))

    monkeypatch.setattr(announcing, "plan_sweep", measured)
    settings = paper_settings("Own-v0", frames=frames)
    sweep = Sweep.of_one(settings, [0])
    out: list[str] = []
    Announcement(settings, spec((84, 84, 4))).say(out.append, sweep, [Job(sweep.settings[0].key, (0,))], 2)
    return out


def test_a_long_training_is_measured_and_its_length_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    said = sentences(500_000, monkeypatch)
    assert said[1:] == [
        "this is a long training: measuring how long it will take",
        "it will take about 2.5 hours at 55.6 frames x seeds per second, as measured here",
    ]


def test_a_short_training_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(sentences(300, monkeypatch)) == 1


def test_train_says_it_before_anything_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = paper_settings(FILM, environment={"options": {"channels": 3, "first": True}}, frames=3)
    heard: list[str] = []

    def stop(*_: Any) -> None:
        raise InputError(f"stopped after {len(heard)}")

    monkeypatch.setattr("ipe.experiments.training.create_store", stop)
    with pytest.raises(InputError, match="stopped after 1"):
        train(settings, out=tmp_path / "run", progress=False, say=heard.append)
    assert "36 x 40 pixels with 3 channels, which the environment shows first; the network atari" in heard[0]
    assert not (tmp_path / "run").exists()


def test_a_grid_over_a_size_that_the_network_does_not_have_is_refused() -> None:
    sweep = make_sweep({"name": "sizes", "base": {"environment": {"id": FILM}}, "grid": {"width": [32, 64]}})
    with pytest.raises(InputError, match=r"the grid's width has no effect with .*Film-v0, whose images go through the"):
        jobs(sweep)
