"""`ipe sweep --sampler optuna`: what is proposed, that a search goes on as it was, and what is refused."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("optuna", reason="optuna is not installed")
pytest.importorskip("gymnasium")

from ipe.cli import main
from ipe.errors import InputError
from ipe.experiments.declared import Setting, Sweep
from ipe.experiments.engine import run_sweep
from ipe.experiments.grids import jobs, make_sweep
from ipe.experiments.store import create_store, open_store
from ipe.studies.learning import searching
from ipe.studies.learning.searching import AT_RANDOM, TOGETHER, Space, propose, run_search, spaces_of
from tests.sweep_helpers import SMALL, TROUBLE, small_sweep, tables, toml

STEPS = [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1]
WIDTHS = [8, 16, 32, 64, 128]


def wide(seeds: int = 2, **content: Any) -> Sweep:
    """35 settings of each case."""
    base = SMALL | {"environment": {"id": TROUBLE}}
    grid = {"value_step_size": STEPS, "width": WIDTHS}
    return make_sweep({"name": "wide", "seeds": seeds, "base": base, "grid": grid} | content)


def good(setting: Setting) -> float:
    """Best at a step size of 0.003 and a width of 64."""
    away = (STEPS.index(setting.settings.value_step_size) - 3) ** 2 + (WIDTHS.index(setting.settings.width) - 3) ** 2
    return -float(away)


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search whose runs are never trained, and scored by `good`."""

    def run(sweep: Sweep, folder: Any, **_: Any) -> Any:
        create_store(folder, sweep, jobs(sweep))
        return SimpleNamespace(status="done", folder=folder)

    monkeypatch.setattr(searching, "run_sweep", run)
    monkeypatch.setattr(
        searching, "_scores", lambda folder: {one.key: good(one) for one in open_store(folder).sweep.settings}
    )


def tried(folder: Path) -> list[Setting]:
    return open_store(folder).sweep.settings


def test_the_lists_of_the_grid_are_the_space() -> None:
    sweep = wide(cases={"a": {"behaviour": "epsilon-ipe"}, "b": {"grid": {"width": [64, 8], "gamma": [0.8, 0.9]}}})
    one, two = spaces_of(sweep)
    assert one.lists == {"value_step_size": STEPS, "width": WIDTHS}
    assert two.lists["width"] == [8, 64]  # numbers in order
    assert [len(space.settings) for space in (one, two)] == [35, 28]
    assert all(one.settings[one.places(setting)] is setting for setting in one.settings.values())


def test_a_search_finds_what_is_good_and_tries_nothing_twice() -> None:
    """By chance, 24 of 81 settings hold the best one 30 times in a hundred, and score -15.3 on average."""
    places = list(itertools.product(range(9), range(9)))
    found, means = 0, []
    for name in "abcdefgh":  # the case's name seeds the sampler
        space = Space(name, {"x": list(range(9)), "y": list(range(9))}, dict.fromkeys(places))  # type: ignore[arg-type]
        trials: list[tuple[int, ...]] = []
        while len(trials) < 24:
            known = len(trials) // TOGETHER * TOGETHER
            done: dict[tuple[int, ...], float] = {
                (x, y): -float((x - 3) ** 2 + (y - 5) ** 2) for x, y in trials[:known]
            }
            trials.append(propose(space, done, trials[known:], len(trials)))
        assert len(set(trials)) == 24
        found += (3, 5) in trials
        means.append(np.mean([-float((x - 3) ** 2 + (y - 5) ** 2) for x, y in trials[AT_RANDOM:]]))
    assert found >= 6
    assert np.mean(means) > -12


@pytest.mark.usefixtures("untrained")
def test_a_search_goes_on_as_if_it_had_not_stopped(tmp_path: Path) -> None:
    cases: dict[str, Any] = {"cases": {name: {"behaviour": name} for name in ("epsilon-ipe", "epsilon-greedy")}}
    run_search(wide(**cases), tmp_path / "once", trials=14)
    whole = [one.name for one in tried(tmp_path / "once")]
    assert [one.case for one in tried(tmp_path / "once")] == ["epsilon-ipe"] * 14 + ["epsilon-greedy"] * 14
    for trials in (3, 6, 14, 14):  # in the middle of a batch too
        run_search(wide(**cases), tmp_path / "parts", trials=trials)
    assert [one.name for one in tried(tmp_path / "parts")] == whole
    run_search(wide(**cases), tmp_path / "fewer", trials=3)
    assert len(tried(tmp_path / "fewer")) == 6


@pytest.mark.usefixtures("untrained")
def test_all_settings_are_tried_if_there_are_no_more(tmp_path: Path) -> None:
    sweep = small_sweep(1, {"width": [8, 16, 32]})
    run_search(sweep, tmp_path / "out")
    assert {one.key for one in tried(tmp_path / "out")} == {one.key for one in sweep.settings}
    alone = small_sweep(1)
    run_search(alone, tmp_path / "alone")
    assert len(tried(tmp_path / "alone")) == 1


@pytest.mark.slow
def test_trained_trials_are_the_runs_of_the_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same store, the same bytes as the whole grid's; more seeds extend it."""
    monkeypatch.setattr(searching, "run_sweep", lambda *a, **more: run_sweep(*a, shard=(0, 1), **more))
    sweep = small_sweep(1, {"value_step_size": [1e-3, 1e-2]}, frames=300)
    result = run_search(sweep, tmp_path / "found", trials=1)
    assert (result.status, result.seeds["done"]) == ("done", 1)
    assert run_search(sweep, tmp_path / "found", trials=2).seeds["done"] == 2
    run_sweep(sweep, tmp_path / "grid", shard=(0, 1))
    assert tables(tmp_path / "found") == tables(tmp_path / "grid")


def test_what_cannot_be_searched_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="one_at_a_time: a sampler looks for the best of all combinations"):
        run_search(wide(one_at_a_time=True), tmp_path / "a")
    with pytest.raises(InputError, match="frames are what the grid varies"):
        run_search(small_sweep(1, {"frames": [1000, 2000]}), tmp_path / "a")
    for trials in (0, 36):
        with pytest.raises(InputError, match=f"trials must be from 1 to 35, the settings of a case; found {trials}"):
            run_search(wide(), tmp_path / "a", trials=trials)
    create_store(tmp_path / "other", *_other())
    with pytest.raises(InputError, match="was made for another sweep: its setting"):
        run_search(wide(), tmp_path / "other", trials=4)
    monkeypatch.setattr(searching, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r'needs Optuna, which is not installed: pip install "ipe-rl\[optuna\]"'):
        run_search(wide(), tmp_path / "a", trials=4)
    assert not (tmp_path / "a").exists()


def _other() -> tuple[Sweep, Any]:
    other = small_sweep(2, {"gamma": [0.9, 0.99]})
    return other, jobs(other)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--trials", "3"], "--trials is for --sampler"),
        (["--sampler", "grid"], "--sampler must be"),
        (["--sampler", "optuna", "--halving"], "--halving and --sampler are two ways to choose"),
        (["--sampler", "optuna", "--plan"], "--plan does not know what a sampler will propose"),
        (["--sampler", "optuna", "--shard", "0/2"], "--sampler waits for the runs before"),
        (["--sampler", "optuna", "--trials", "9"], "trials must be from 1 to 2"),
    ],
)
def test_wrong_options(words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "grid.toml"
    file.write_text(toml(1, grid="value_step_size = [0.001, 0.01]"))
    assert main(["sweep", str(file), "--out", str(tmp_path / "out"), *words]) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert TOGETHER == 4  # as the help says
