"""Successive halving: rungs declared and refused, nothing trained twice, longer runs to the byte, sure choices."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("gymnasium")

from ipe.analysis.halving import Rungs, read_rungs, selections, survivors
from ipe.analysis.halving_panels import halving_panels
from ipe.errors import InputError
from ipe.experiments.declared import Sweep
from ipe.experiments.engine import run_sweep
from ipe.experiments.grids import make_sweep, read_sweep
from ipe.experiments.halving import is_halving, make_halving, open_halving, rung_folder, rung_sweep, rungs_of
from ipe.experiments.results import Results, load_results
from ipe.experiments.rungs import Halving, default_halving
from ipe.experiments.store import create_store, open_store
from ipe.studies.learning import halving as driver
from ipe.studies.learning.confirming import confirming_sweep
from ipe.studies.learning.halving import run_halving
from tests.sweep_helpers import SMALL, TROUBLE, small_sweep, tables
from tests.sweep_results import simulated_results

STEPS = [1e-4, 1e-3, 1e-2, 3e-3]
CASES = {name: {"behaviour": name} for name in ("epsilon-ipe", "epsilon-greedy")}
TABLE: dict[str, Any] = {"frames": [1000, 2000, 2500], "runs": [1, 2, 3], "factor": 2}


def halved(table: dict[str, Any] | None = None, **base: Any) -> Sweep:
    """Two cases of four settings."""
    environment = {"id": TROUBLE}
    content = {"name": "small", "seeds": 3, "base": SMALL | {"environment": environment, "frames": 2500} | base}
    sweep = make_sweep(content | {"grid": {"value_step_size": STEPS}, "cases": CASES})
    return replace(sweep, halving=TABLE if table is None else table)


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of everything: rows of progress every 100 frames. Jobs are done in this process."""

    def run_here(sweep: Any, folder: Any, **options: Any) -> Any:
        return run_sweep(sweep, folder, shard=(0, 1), batch_seeds=2, **options)

    monkeypatch.setattr(driver, "run_sweep", run_here)
    monkeypatch.setattr("ipe.experiments.rungs.WINDOW", 100)
    monkeypatch.setattr("ipe.deep.loop.WINDOW", 100)
    monkeypatch.setattr("ipe.experiments.ledger.TELL_SECONDS", 0.0)
    monkeypatch.setattr("ipe.experiments.jobs.REPORT_SECONDS", 0.01)


SHORT = {"frames": [100, 200, 250], "runs": [1, 2, 3]}


def tenth() -> Sweep:
    return halved(SHORT, frames=250)


def straight(rung: Path, folder: Path) -> dict[str, Any]:
    """The results of a rung's jobs, trained from their first frame without a stop."""
    store = open_store(rung)
    alone = create_store(folder, store.sweep, store.jobs)
    assert run_sweep(store.sweep, alone.folder, shard=(0, 1)).status == "done"
    return tables(alone.folder)


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_a_job_goes_on_from_a_shorter_one(tmp_path: Path) -> None:
    frames: list[int] = []
    for name, length, earlier in (("first", 100, None), ("longer", 150, tmp_path / "first"), ("straight", 150, None)):
        sweep = small_sweep(seeds=2, frames=length, behaviour="epsilon-greedy", width=8)
        run_sweep(
            sweep,
            tmp_path / name,
            shard=(0, 1),
            keep_checkpoints=name == "first",
            earlier=earlier,
            callback=lambda progress: frames.append(progress.frames_done),
        )
        if name == "longer":
            assert min(done for done in frames[-2:] if done) > 200, "it began where the first one ended"
    assert tables(tmp_path / "longer") == tables(tmp_path / "straight")
    assert list((tmp_path / "first" / "work").glob("*/checkpoint-*")), "what is kept is not used up"
    assert not list((tmp_path / "longer").glob("work/*"))


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_a_longer_run_goes_on_from_its_rung_to_the_byte(tmp_path: Path) -> None:
    frames: list[tuple[int, int]] = []

    def told(rung: int, part: Sweep, progress: Any) -> None:
        frames.append((rung, progress.frames_done))

    out = tmp_path / "out"
    result = run_halving(tenth(), out, callback=told)
    assert (result.status, result.folder) == ("done", rung_folder(out, 2))
    sizes = [len(open_store(rung_folder(out, i)).sweep.settings) for i in range(3)]
    assert sizes == [8, 4, 2]
    found = tables(rung_folder(out, 2))
    assert len(found) == 6
    assert [len(job.seeds) for job in open_store(rung_folder(out, 2)).jobs] == [1] * 6, "a job goes on as it was begun"
    assert found == straight(rung_folder(out, 2), tmp_path / "straight"), "every run is that of an uninterrupted one"
    for rung in (1, 2):  # the first report of each job that goes on comes after the frames of the rung before
        first = next(done for at, done in frames if at == rung and done > 0)
        assert first > SHORT["frames"][rung - 1]
    assert not any(rung_folder(out, i).joinpath("work").exists() and list(rung_folder(out, i).glob("work/*"))
                   for i in range(3))  # fmt: skip
    again: list[Any] = []
    assert run_halving(tenth(), out, callback=lambda *own: again.append(own[-1].frames_done)).status == "done"
    assert tables(rung_folder(out, 2)) == found, "there is nothing left to do"


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_it_is_stopped_anywhere_and_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    run_halving(tenth(), whole)
    out, stops = tmp_path / "out", 0
    for rung, most in ((0, 250), (0, 700), (1, 900), (1, 1500), (2, 1300), (2, 1450)):

        def reached(at: int, _: Sweep, own: Any, rung: int = rung, most: int = most) -> bool:
            return at == rung and bool(own.frames_done >= most)

        stops += run_halving(tenth(), out, callback=reached).status == "stopped"
    assert stops >= 5
    assert run_halving(tenth(), out).status == "done"
    for i in range(3):
        assert tables(rung_folder(out, i)) == tables(rung_folder(whole, i))


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_without_checkpoints_the_runs_are_trained_from_the_beginning(tmp_path: Path) -> None:
    """As in a copy of a published folder."""
    out = tmp_path / "out"
    run_halving(tenth(), out, callback=lambda rung, _, own: rung == 1)
    copy = tmp_path / "copy"
    shutil.copytree(out, copy, ignore=shutil.ignore_patterns("work", "claims"))
    assert run_halving(tenth(), copy).status == "done"
    assert tables(rung_folder(copy, 2)) == straight(rung_folder(copy, 2), tmp_path / "straight")


def test_the_default_rungs() -> None:
    found = default_halving(243, 30, 500_000)
    assert found.sizes(243) == [243, 122, 61, 31, 16, 8, 4]
    assert (found.frames[0], found.frames[-1], found.runs[0], found.runs[-1]) == (50_000, 500_000, 2, 10)
    assert default_halving(3, 1, 1500) == Halving((1000, 1500), (1, 1), 2.0)
    assert default_halving(243, 30, 500_000, least=100_000).frames[0] == 100_000
    assert rungs_of(read_sweep("lunar-lander-dqn")).frames[0] == 100_000, "as long as the longest schedule"
    assert rungs_of(read_sweep("lunar-lander-epsilon-ipe")).frames[0] == 50_000, "which has none"
    sweep = halved({})
    assert rungs_of(sweep) == Halving((1000, 2500), (2, 3), 2.0), "a tenth would be less than the least"
    assert [len(rung_sweep(sweep, rungs_of(sweep), i).seeds) for i in range(2)] == [2, 3]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": ({"rung": 3}, r"there is no key halving.rung \(did you mean runs\?\)"),
    "no list": ({"frames": 1000}, "halving.frames must be a list with a number for each rung, found 1000"),
    "lists of two lengths": (
        {"frames": [1000, 2500], "runs": [1]},
        "halving.runs has 1 rungs, and halving.frames has 2",
    ),
    "fewer frames": (
        {"frames": [2000, 1000, 2500]},
        r"halving.frames\[1\] = 1000 is less than the rung before has, 2000",
    ),
    "fewer runs": ({"frames": [1000, 2500], "runs": [3, 2]}, r"halving.runs\[1\] = 2 is less than"),
    "another end": ({"frames": [1000, 2000]}, "halving.frames ends with 2000, and the sweep's runs have 2500 frames"),
    "between the records": ({"frames": [1500, 2500]}, r"halving.frames\[0\] = 1500 must be a multiple of 1000"),
    "too many runs": ({"runs": [1, 9]}, r"halving.runs\[1\] = 9, and the sweep has 3 seeds"),
    "no factor": ({"factor": 1.0}, "halving.factor"),
    "one rung": ({"frames": [2500]}, "halving has 1 rung; with fewer than two nothing is halved"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rungs_that_are_refused(name: str, tmp_path: Path) -> None:
    table, sentence = REFUSED[name]
    with pytest.raises(InputError, match=sentence):
        run_halving(halved(table), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    content = {"name": "n", "seeds": 3, "base": {"environment": "LunarLander-v3", "frames": 2500}, "halving": table}
    with pytest.raises(InputError, match=sentence):
        make_sweep(content | {"grid": {"width": [64, 128]}})


def test_sweeps_that_cannot_be_halved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="each case has one setting: there is nothing to choose"):
        rungs_of(small_sweep())
    with pytest.raises(InputError, match="frames are what the grid varies"):
        rungs_of(small_sweep(grid={"frames": [1000, 2000]}))
    with pytest.raises(InputError, match="one_at_a_time: halving looks for the best of all combinations"):
        rungs_of(replace(halved(), one_at_a_time=True))
    with pytest.raises(InputError, match="a shard has no part in halving"):
        run_halving(halved(), tmp_path / "out", shard=(0, 2))
    make_halving(tmp_path / "out", halved(), rungs_of(halved()))
    assert is_halving(tmp_path / "out")
    assert open_halving(tmp_path / "out")[1] == rungs_of(halved())
    with pytest.raises(InputError, match="was made with other rungs: 1 runs of 1000, 2 runs of 2000, 3 runs of 2500"):
        run_halving(halved({}), tmp_path / "out")
    with pytest.raises(InputError, match="was made for another sweep, 'small'"):
        run_halving(halved(gamma=0.5), tmp_path / "out")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(InputError, match="is not empty and holds no sweep by halving"):
        run_halving(halved(), tmp_path / "other")


# ---- choosing

SIZES = [0.001, 0.002, 0.003, 0.004]


def grid_sweep() -> Sweep:
    base = {"environment": "LunarLander-v3", "frames": 40_000}
    content = {"name": "grid", "seeds": 12, "base": base, "grid": {"width": [64, 128], "value_step_size": SIZES}}
    return make_sweep(content | {"cases": {"a": {"behaviour": "epsilon-ipe"}, "b": {"behaviour": "epsilon-greedy"}}})


def level(setting: Any) -> float:
    """Each setting is three times as good as the next: the noise of four short runs changes no order."""
    rank = 2 * SIZES.index(setting.settings.value_step_size) + (setting.settings.width == 128)
    return 100.0 * float(3**rank)


def simulated(spread: float) -> Rungs:
    """Three rungs of simulated runs: in each, the better half goes on; a longer run begins as the shorter one did."""
    halving = Halving((10_000, 20_000, 40_000), (4, 8, 12), 2.0)
    whole = simulated_results(grid_sweep(), level=level, spread=spread)
    found: list[Results] = []
    stems: list[str] | None = None
    for rung in range(3):
        found.append(_begun(whole, rung_sweep(grid_sweep(), halving, rung, stems)))
        stems = survivors(found[-1], halving)
    return Rungs(halving, found)


def _begun(whole: Results, part: Sweep) -> Results:
    """The first frames of some runs."""
    stems = [one.stem for one in whole.sweep.settings]
    at = {stems.index(one.stem): i for i, one in enumerate(part.settings)}
    frames = part.settings[0].settings.frames
    rows = whole.episodes.to_pydict()
    setting, seed, frame = (np.array(rows[name]) for name in ("setting", "seed", "frame"))
    keep = np.isin(setting, list(at)) & np.isin(seed, part.seeds) & (frame <= frames)
    columns = {name: np.array(column)[keep] for name, column in rows.items()}
    columns["setting"] = np.array([at[i] for i in columns["setting"].tolist()], np.int32)
    outcomes = [
        {"setting": i, "seed": seed, "status": "done", "frame": frames, "reason": ""}
        for i in range(len(part.settings))
        for seed in part.seeds
    ]
    return Results(part, pa.table(columns), whole.progress.slice(0, 0), outcomes, [])


def test_the_better_half_of_each_case_goes_on() -> None:
    rungs = simulated(spread=1.0)
    for results, kept in zip(rungs.results[1:], (4, 2), strict=True):
        for case in ("a", "b"):
            settings = [one for one in results.sweep.settings if one.case == case]
            best = sorted(grid_sweep().settings[:8], key=level)[-kept:]
            assert sorted(level(one) for one in settings) == sorted(level(one) for one in best)
    missing = replace(rungs.results[0], missing=[(0, 3)])
    with pytest.raises(InputError, match="1 runs of the rung are missing, the first seed 3 of 'a width=64"):
        survivors(missing, rungs.halving)


def test_how_sure_the_choice_is() -> None:
    sure = selections(simulated(spread=1.0), seed=0)
    assert [one.case for one in sure] == ["a", "b"]
    for found in sure:
        assert found.chosen == f"{found.case} width=128 value_step_size=0.004"
        assert (found.probability, found.probability_of_finalists) == (1.0, 1.0)
        assert [(own.settings, own.kept, len(own.cut), own.runs) for own in found.rungs] == [
            (8, 4, 4, 4),
            (4, 2, 2, 8),
            (2, 1, 1, 12),
        ]
        for own in found.rungs[:-1]:
            assert own.bar > max(cut.mean for cut in own.cut), "what was cut lay below the bar"
            assert own.beaten == 1.0
    unsure = selections(simulated(spread=100_000.0), seed=0)
    for found in unsure:
        assert 0.0 < found.probability < found.probability_of_finalists < 1.0
        assert found.probability <= min(own.beaten for own in found.rungs)


def test_the_bootstrap_of_the_choice_is_that_of_two_means() -> None:
    """With one rival left and none cut before that could win, the chance is that of two resampled means."""
    rungs = simulated(spread=250_000.0)
    (found, _) = selections(rungs, seed=0, resamples=20_000)
    last = [one for one in rungs.groups[-1][0].series if one.setting.case == "a"]
    rng = np.random.default_rng(5)
    first, second = sorted(last, key=lambda one: -one.auc.mean())
    draws = [rng.choice(one.auc, (20_000, one.n)).mean(axis=1) for one in (first, second)]
    assert found.probability_of_finalists == pytest.approx((draws[0] > draws[1]).mean(), abs=0.015)


def test_the_papers_curves_with_what_was_cut_marked() -> None:
    rungs = simulated(spread=1.0)
    ((_, panels),) = halving_panels(rungs).items()
    assert [panel.hyperparameter for panel in panels] == ["width", "value_step_size"]
    steps = next(panel for panel in panels if panel.hyperparameter == "value_step_size").curves["a"]
    assert steps.values == (0.001, 0.002, 0.003, 0.004)
    assert steps.candidates == (2, 2, 2, 2)
    assert [None if own is None else own.frames for own in steps.cut] == [10_000, 10_000, 20_000, None]
    widths = next(panel for panel in panels if panel.hyperparameter == "width").curves["a"]
    assert widths.cut == (None, None), "of each width one setting came to the end"
    for i, own in enumerate(steps.cut):
        series = panels[0].series["a"][steps.settings[i]]
        assert series.trained.settings.width == 128
        assert series.trained.settings.value_step_size == steps.values[i]
        assert steps.mean[i] == pytest.approx(series.auc.mean())
        if own is not None:
            assert own.chosen > steps.mean[i], "the chosen setting was ahead by then"


def test_fresh_runs_of_the_winners() -> None:
    fresh = confirming_sweep(simulated(spread=1.0).last, 5)
    assert fresh.seeds == list(range(1_000_000, 1_000_005))
    assert sorted(one.name for one in fresh.settings) == [f"{case} width=128 value_step_size=0.004" for case in "ab"]
    assert {one.settings.frames for one in fresh.settings} == {40_000}


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_rungs_are_read_from_their_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make_halving(out, tenth(), rungs_of(tenth()))
    with pytest.raises(InputError, match="the first rung has not begun"):
        read_rungs(out)
    run_halving(tenth(), out, callback=lambda rung, _, own: rung == 1)
    rungs = read_rungs(out)
    assert (len(rungs.results), rungs.finished) == (2, False)
    assert rungs.last.sweep.name == load_results(rung_folder(out, 0)).sweep.name
