"""The study of batches: FrozenLake's truth, verdicts that follow from returns, and results that are not mixed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from hypothesis import given
from hypothesis import strategies as st

from ipe.base.sealed import sealed_bytes
from ipe.cli import main
from ipe.errors import InputError
from ipe.experiments.trained import read_trained
from ipe.experiments.training import train
from ipe.studies.batches import report_batches, run_batches, tasks
from ipe.studies.batches.cells import FORMAT, SCHEMA, Cell, file_of, read_cell
from ipe.studies.batches.exact import collect, epsilon_optimal, expected_return, largest_return, table_of
from ipe.studies.batches.judging import judge
from ipe.studies.batches.settings import CLONING, CONSERVATIVE, GREEDY, TRAININGS

RESULTS = Path(__file__).parents[1] / "results" / "batches"


def test_the_expected_return_is_that_of_many_episodes() -> None:
    """The chance to reach FrozenLake's goal within 100 steps: of uniform behaviour, of the optimum, and as counted in
    episodes of the environment."""
    mdp = table_of("FrozenLake-v1")
    uniform = np.full((mdp.n_states, mdp.n_actions), 0.25)
    assert expected_return(mdp, uniform) == pytest.approx(expected_return(mdp, epsilon_optimal(mdp, 1.0)), abs=1e-12)
    assert expected_return(mdp, uniform, steps=1) == 0.0
    pi = epsilon_optimal(mdp, 0.1)
    batch = collect("FrozenLake-v1", pi, 20_000, seed=3)
    chance = expected_return(mdp, pi)
    ended = batch.terminated.sum() + 1
    # Episodes that are cut off after 100 steps count neither as won nor as ended here: they are a few in a hundred.
    assert batch.reward.sum() / ended == pytest.approx(chance, abs=5 * np.sqrt(chance * (1 - chance) / ended))


LAKE = table_of("FrozenLake-v1")


@given(seed=st.integers(0, 2**32 - 1))
def test_no_policy_earns_more_than_the_largest_return(seed: int) -> None:
    pi = np.random.default_rng(seed).dirichlet(np.full(LAKE.n_actions, 0.2), LAKE.n_states)
    for steps in (3, 100):
        assert expected_return(LAKE, pi, steps) <= largest_return(LAKE, steps) + 1e-12


def test_the_largest_return_is_above_that_of_the_discounted_optimum() -> None:
    mdp = LAKE
    # What is best with a discount is not quite the best within 100 steps, in which a policy may look at the clock.
    assert expected_return(mdp, epsilon_optimal(mdp, 0.0)) == pytest.approx(0.74016, abs=1e-5)
    assert largest_return(mdp) == pytest.approx(0.74419, abs=1e-5)


def test_without_a_limit_the_goal_is_reached_in_fourteen_of_seventeen_episodes() -> None:
    """The undiscounted optimum of FrozenLake without a limit is 14/17; within fewer steps it is less."""
    mdp = table_of("FrozenLake-v1")
    found = [expected_return(mdp, epsilon_optimal(mdp, 0.0), steps) for steps in (10, 100, 1000, 10_000)]
    assert found == sorted(found)
    assert found[1] < found[-1] <= 14 / 17 + 1e-9
    assert found[-1] == pytest.approx(14 / 17, abs=1e-3)


def cells(**means: dict[str, float]) -> list[Cell]:
    """Made-up returns of ten runs, by quality and way of acting; the data's policy earns 1."""
    rng = np.random.default_rng(0)
    found = []
    for quality, ways in means.items():
        returns = {way: (mean + 0.01 * rng.normal(size=10)).tolist() for way, mean in ways.items()}
        found.append(Cell("cart-pole", quality, "all", returns, of_data=[1.0], best=None, seeds=10))
    return found


def test_verdicts_follow_from_the_returns() -> None:
    random = {GREEDY: 2.0, "ε-IPE": 1.0, "τ-IPE": 1.0, "IPE": 3.0, CONSERVATIVE: 2.5, CLONING: 0.5}
    expert = {GREEDY: 0.2, "ε-IPE": 0.4, "τ-IPE": 0.2, "IPE": 0.4, CONSERVATIVE: 1.5, CLONING: 1.0}  # τ-IPE: undecided
    found = {claim.name: claim.verdict for claim in judge("cart-pole", cells(random=random, expert=expert))}
    assert found == {
        "cart-pole-epsilon-ipe-beats-greedy": "depends",
        "cart-pole-tau-ipe-beats-greedy": "does not hold",
        "cart-pole-ipe-beats-greedy": "holds",
        "cart-pole-greedy-beats-cloning": "depends",
        "cart-pole-cql-beats-greedy": "holds",
        "cart-pole-cql-beats-cloning": "holds",
        "cart-pole-cql-beats-the-data": "holds",
    }


def test_a_task_without_all_trainings_is_judged_by_what_there_is() -> None:
    found = judge("cart-pole", cells(random={GREEDY: 2.0, CLONING: 0.5}))
    assert [claim.name for claim in found] == ["cart-pole-greedy-beats-cloning"]


@pytest.mark.slow
def test_a_study_goes_on_keeps_what_is_done_and_refuses_other_settings(tmp_path: Path) -> None:
    (task,) = tasks(["frozen-lake"], runs=2, updates=40)
    begun: list[str] = []

    def stop(_: str, what: str, done: int, total: int) -> None:
        begun.append(what)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_batches(tmp_path, [task], processes=1, progress=stop)
    first = file_of(tmp_path / task.name, "random", "ipe")
    before = first.read_bytes()
    plan = [f"{quality} data, {training.name}" for quality in task.sources for training in TRAININGS]
    assert begun == plan[:3]
    run_batches(tmp_path, [task], processes=1, progress=lambda _, what, *__: begun.append(what))
    assert begun == [*plan[:3], *plan[2:]]
    assert first.read_bytes() == before
    report = report_batches(tmp_path)
    assert len(report.results["frozen-lake"]) == 9
    assert json.loads((tmp_path / "claims.json").read_text())[0]["name"] == report.claims[0].name
    assert report.page.read_text().count("| cloning |") == 1
    with pytest.raises(InputError, match="has results with other settings than these"):
        run_batches(tmp_path, [replace(task, updates=41)], processes=1)


@pytest.mark.slow
def test_a_training_that_was_stopped_goes_on_with_its_own_numbers_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A study of few updates is stopped in its first training; one of more updates then begins anew."""
    few, more = (tasks(["frozen-lake"], runs=2, updates=updates)[0] for updates in (40, 60))
    monkeypatch.setattr("ipe.studies.batches.cells.train", stopped_by_hand)
    with pytest.raises(KeyboardInterrupt):
        run_batches(tmp_path, [few], processes=1)
    monkeypatch.undo()
    run_batches(tmp_path, [more], processes=1)
    frames = {
        read_trained(folder).settings.frames
        for folder in (tmp_path / "frozen-lake" / "trained").glob("*/*/*")
        if folder.is_dir()
    }
    assert frames == {40, 60}
    assert read_cell(file_of(tmp_path / "frozen-lake", "random", "ipe"), more).seeds == 2


def stopped_by_hand(*arguments: Any, **options: Any) -> Any:
    """Train, and be stopped at the end."""
    train(*arguments, **options)
    raise KeyboardInterrupt


def test_a_file_that_was_changed_is_noticed(tmp_path: Path) -> None:
    (task,) = tasks(["frozen-lake"])
    content = {
        "format": FORMAT, "schema": SCHEMA, "declared": {"name": task.name, "seeds": 2}, "quality": "random",
        "training": "ipe", "returns": {GREEDY: [0.5, 0.75]}, "of_data": [0.25], "best": 1.0,
    }  # fmt: skip
    file = tmp_path / "random-ipe.json"
    data = sealed_bytes(content, "returns")
    file.write_bytes(data)
    assert read_cell(file).returns == {GREEDY: [0.5, 0.75]}
    file.write_bytes(data.replace(b"0.75", b"0.85"))
    with pytest.raises(InputError, match=r"random-ipe\.json.*damaged"):
        read_cell(file)


def test_wrong_uses_are_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in {
        ("--only", "frozen-lak"): "there is no part 'frozen-lak'",
        ("--runs", "1"): "--runs must be at least 2",
        ("--report",): "there are no results of this study yet",
        ("--report", "--only", "cart-pole"): "--only has no effect with --report",
    }.items():
        assert main(["reproduce", "batches", *words, "--out", str(tmp_path / "out")]) != 0
        assert said in capsys.readouterr().err
    assert main(["reproduce", "batches", "--plan"]) == 0
    assert "cart-pole: 3 data sets of 10000 transitions" in capsys.readouterr().out


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the study's results are not published yet")
def test_the_published_verdicts_follow_from_the_published_returns(tmp_path: Path) -> None:
    shutil.copytree(RESULTS, tmp_path / "copy")
    report = report_batches(tmp_path / "copy")
    for name in ("claims.json", "report/report.md"):
        assert (tmp_path / "copy" / name).read_bytes() == (RESULTS / name).read_bytes()
    assert len(report.claims) == 7 * len(report.results)
