"""The study of exploration: its declaration, its files, and its numbers on tables whose answers are known."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ipe.analysis import Interval
from ipe.analysis.series import Group, Series
from ipe.behaviours import BEHAVIOURS
from ipe.cli import main
from ipe.errors import InputError
from ipe.experiments.results import Results, load_results
from ipe.planning import greedy_policy, optimal_values, policy_values
from ipe.studies.exploration import (
    CONTENDERS,
    TASKS,
    UNIFORM,
    Contender,
    TabularSettings,
    Task,
    choosing,
    deep_report,
    deep_run,
    run,
)
from ipe.studies.exploration import deep as deep_part
from ipe.studies.exploration.claims import agreed
from ipe.studies.exploration.files import Runs, run_contender
from ipe.studies.exploration.findings import Comparison, findings_of
from ipe.studies.exploration.scores import scores_of
from ipe.studies.exploration.simulating import greedy_values, simulated
from ipe.studies.exploration.tables import tuned_table, untuned_table
from ipe.tabular import simulate
from ipe.zoo import chain, deep_sea, garnet, switch_stay

FEW = TabularSettings(choosing_runs=2, fresh_runs=3)


def test_every_contender_has_five_settings_of_a_number_that_it_has() -> None:
    assert len({contender.name for contender in CONTENDERS}) == len(CONTENDERS)
    for contender in CONTENDERS:
        assert len(set(contender.grid)) == 5, contender.name
        numbers = {each.name for each in BEHAVIOURS[contender.behaviour].hyperparameters} | {"alpha_pi"}
        assert {contender.parameter, *contender.options} <= numbers
        assert (contender.policy_update == "none") == (not BEHAVIOURS[contender.behaviour].needs_policy)
    for other in deep_part.DEEP_CONTENDERS:
        assert len(set(other.grid)) == 5, other.name


def test_the_tasks_are_those_that_were_asked_for() -> None:
    families = [task.family for task in TASKS]
    assert (families.count("garnets"), families.count("deterministic garnets")) == (10, 10)
    assert {"switch-stay", "river-swim", "frozen lake", "cliff walking", "taxi", "deep sea"} < set(families)
    sizes = [int(task.name.rpartition("-")[2]) for task in TASKS if task.family == "deep sea"]
    assert (min(sizes), max(sizes)) == (5, 20)
    assert [task.mdp().is_deterministic for task in TASKS if "garnet" in task.family] == [False] * 10 + [True] * 10


def test_a_table_holds_what_simulate_gives() -> None:
    contender = next(each for each in CONTENDERS if each.name == "linear")
    task = Task("chain", "chains", lambda: chain(4), 60, "return per episode")
    table = simulated(contender, task, FEW)
    runs = simulate(
        chain(4), "linear", steps=60, runs=5, update="none", final_epsilon=0.05,
        sweep={"anneal_steps": [0.2 * 60], "alpha_q": [0.5]},
    )  # fmt: skip
    rows = (table["value"] == 0.2) & (table["alpha_q"] == 0.5)
    assert table["run"][rows].tolist() == [0, 1, 2, 3, 4]
    returns = runs.reward[0] * 60 / np.maximum(runs.episodes[0], 1)
    assert table["score"][rows] == pytest.approx(returns, rel=1e-6)
    assert (runs.episodes[0] == np.rint(runs.reward[0] * 60)).all()  # every episode of the chain pays 1 at its end
    assert len(table["score"]) == 5 * 2 * 5


@pytest.mark.parametrize("mdp", [garnet(12, 3, 2), deep_sea(15), switch_stay()], ids=repr)
def test_greedy_values_are_those_of_the_greedy_policies(mdp: Any) -> None:
    q = np.random.default_rng(0).integers(0, 3, (6, mdp.n_states, mdp.n_actions)).astype(float)
    q[5] = optimal_values(mdp).q
    q[:, mdp.terminal] = 0.0
    found = greedy_values(mdp, q)
    start = np.full(mdp.n_states, 1 / mdp.n_states) if mdp.start is None else mdp.start
    expected = [start @ policy_values(mdp, greedy_policy(mdp, q=table)).v for table in q]
    assert found == pytest.approx(expected, abs=1e-9)
    q[2, 0, 0] = np.nan
    assert np.isnan(greedy_values(mdp, q)).tolist() == [False, False, True, False, False, False]


SMALL = (Task("switch-stay", "switch-stay", switch_stay, 40), Task("chain", "chain", lambda: chain(3), 30))


@pytest.mark.slow
def test_a_stopped_contender_goes_on_and_is_the_same_to_the_byte(tmp_path: Path) -> None:
    contender = CONTENDERS[0]
    run_contender(tmp_path / "whole", contender, SMALL, FEW)

    def stop(task: str, done: int, total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_contender(tmp_path / "again", contender, SMALL, FEW, stop)
    assert [path.name for path in (tmp_path / "again").rglob("*.parquet")] == ["switch-stay.parquet"]
    run_contender(tmp_path / "again", contender, SMALL, FEW)
    tables = [(tmp_path / name / "epsilon-greedy.parquet").read_bytes() for name in ("whole", "again")]
    assert tables[0] == tables[1]
    assert not (tmp_path / "again" / "pieces" / "epsilon-greedy").exists()


def test_what_is_damaged_or_declared_otherwise_is_refused(tmp_path: Path) -> None:
    contender = CONTENDERS[0]
    run_contender(tmp_path, contender, SMALL[:1], FEW)
    with pytest.raises(InputError, match="holds runs that were declared otherwise"):
        run_contender(tmp_path, contender, SMALL[:1], TabularSettings(choosing_runs=3, fresh_runs=3))
    path = tmp_path / "epsilon-greedy.parquet"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError, match="it is damaged"):
        run_contender(tmp_path, contender, SMALL[:1], FEW)


def made_up(contender: Contender, scores: Sequence[Sequence[float]], greedy: float = 9.9) -> Runs:
    """Runs of two tasks whose scores are given for each setting; the runs of a setting differ a little."""
    wiggle = np.linspace(-0.01, 0.01, FEW.runs)
    values = np.concatenate([score + wiggle for task in scores for score in task])
    table = pa.table({"score": values, "greedy": np.full(values.size, greedy)})
    return Runs(contender.name, table, {"tasks": [{"seconds": 30.0}, {"seconds": 30.0}]})


def test_scores_choices_and_prices_by_hand() -> None:
    """One contender is best at different settings on the two tasks; the other always at the same."""
    tasks = (Task("a", "a", switch_stay, 10), Task("b", "b", switch_stay, 10))
    by_name = {contender.name: contender for contender in CONTENDERS}
    fussy, steady = by_name["epsilon-greedy"], by_name["epsilon-ipe"]
    n = 2 * len(fussy.grid)
    first, second = [1.0] * n, [1.0] * n
    first[3], second[7] = 5.0, 5.0  # the best of all: it is 1, and uniform behaviour's 1 is 0
    first[5] = second[5] = 3.4
    even = [1.0] * n
    even[4] = 4.0
    runs = {
        "uniform": made_up(UNIFORM, [[1.0] * 2] * 2),
        fussy.name: made_up(fussy, [first, second], greedy=17.0),
        steady.name: made_up(steady, [even, even]),
    }
    scores = scores_of(runs, CONTENDERS, tasks, FEW)
    assert scores.unsolved == ()
    assert scores.high - scores.low == pytest.approx([4.0, 4.0], abs=0.02)
    findings = findings_of(scores)
    rows = {row.contender.name: row for row in findings.rows}
    assert [row.contender.name for row in findings.rows] == [steady.name, fussy.name]
    # With one setting for all: .6 on both tasks, which is more than 1 on one and 0 on the other.
    assert rows[fussy.name].mean["one for all"].estimate == pytest.approx(0.6, abs=0.01)
    assert rows[fussy.name].mean["per task"].estimate == pytest.approx(1.0, abs=0.01)
    assert rows[fussy.name].prices["one for all"].estimate == pytest.approx(0.4, abs=0.01)
    assert rows[fussy.name].mean["unseen"].estimate == pytest.approx(0.0, abs=0.01)
    assert rows[steady.name].mean["one for all"].estimate == pytest.approx(0.75, abs=0.01)
    assert rows[steady.name].prices["one for all"].estimate == pytest.approx(0.0, abs=1e-12)
    assert rows[steady.name].rank["one for all"].estimate == pytest.approx(1.0)
    assert rows[steady.name].rank["per task"].estimate == pytest.approx(2.0)
    assert rows[fussy.name].ends["per task"].estimate == pytest.approx(1.0)  # 17 is Switch-Stay's optimal value
    assert untuned_table(findings).count("\n") == tuned_table(findings).count("\n") == 4
    assert f"{steady.parameter} 1, alpha_q 0.1" in untuned_table(findings)


def test_a_task_that_nobody_solved_does_not_count() -> None:
    tasks = (Task("a", "a", switch_stay, 10), Task("b", "b", lambda: deep_sea(12), 10))
    n = 2 * len(CONTENDERS[0].grid)
    runs = {
        "uniform": made_up(UNIFORM, [[1.0] * 2] * 2),
        "epsilon-greedy": made_up(CONTENDERS[0], [[2.0] * n] * 2, greedy=10.0),
    }
    table = runs["epsilon-greedy"].table
    greedy = np.asarray(table["greedy"]).copy()
    greedy[len(greedy) // 2 :] = 0.0  # never going right is worth 0, a little more than the uniform policy
    runs["epsilon-greedy"] = Runs("epsilon-greedy", table.set_column(1, "greedy", pa.array(greedy)), {"tasks": []})
    scores = scores_of(runs, CONTENDERS, tasks, FEW)
    assert (scores.unsolved, [task.name for task in scores.tasks]) == (("b",), ["a"])
    with pytest.raises(InputError, match="there is nothing to report"):
        scores_of({"uniform": runs["uniform"]}, CONTENDERS, tasks, FEW)


@pytest.mark.parametrize(
    ("difference", "probability", "p", "verdict"),
    [
        ((0.2, 0.1, 0.3), (0.7, 0.6, 0.8), 0.01, "holds"),
        ((-0.2, -0.3, -0.1), (0.3, 0.2, 0.4), 0.01, "does not hold"),
        ((0.2, 0.1, 0.3), (0.7, 0.6, 0.8), 0.2, "depends"),
        ((0.2, 0.1, 0.3), (0.4, 0.3, 0.45), 0.01, "depends"),
    ],
)
def test_a_verdict_takes_the_mean_and_the_test(difference: Any, probability: Any, p: float, verdict: str) -> None:
    intervals = [Interval(estimate, low, high, 0.95) for estimate, low, high in (difference, probability)]
    compared = Comparison("a", "b", intervals[0], intervals[1], p)
    assert agreed(compared) == verdict


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study with three contenders and two tasks."""
    few = tuple(each for each in CONTENDERS if each.name in ("epsilon-greedy", "linear", "epsilon-ipe"))
    monkeypatch.setattr(run, "CONTENDERS", few)
    monkeypatch.setattr(run, "TASKS", SMALL)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_the_command_runs_reads_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "study"
    words = ["reproduce", "exploration", "--only", "tabular", "--out", str(out)]
    assert main([*words, "--runs", "3"]) == 0
    printed = capsys.readouterr().out
    assert "| behaviour | its setting | mean over families |" in printed
    assert "untuned-against-schedules  (tabular)" in printed
    names = {path.name for path in (out / "report").iterdir()}
    assert names >= {"report.md", "claims.json", "price.png", "sensitivity.png", "profiles.pdf"}
    page, claims = (out / "report/report.md").read_bytes(), (out / "report/claims.json").read_bytes()
    assert len(json.loads(claims)) == 6
    assert main([*words, "--runs", "3", "--report"]) == 0  # reads, and runs nothing
    assert ((out / "report/report.md").read_bytes(), (out / "report/claims.json").read_bytes()) == (page, claims)
    assert main([*words, "--runs", "4"]) == 2
    assert "declared otherwise" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--only", "tables"], "there is no part 'tables'; the parts are tabular, classic-control"),
        (["--runs", "1"], "--runs must be at least 2"),
        (["--only", "tabular", "--report"], "there are no results yet"),
        (["--only", "classic-control", "--report"], "the group classic-control has no runs yet"),
    ],
)
def test_wrong_words_get_one_sentence(
    words: list[str], sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "exploration", *words, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.strip().splitlines()) == 1


def test_the_deep_sweeps_have_five_settings_by_two_step_sizes() -> None:
    for task in deep_part.DEEP_TASKS:
        sweep = deep_part.choosing_sweep(task)
        cases = [setting.case for setting in sweep.settings]
        assert cases.count("uniform") == 2
        assert {cases.count(each.name) for each in deep_part.DEEP_CONTENDERS} == {10}
        assert {setting.settings.frames for setting in sweep.settings} == {task.frames}
    settings = deep_part.choosing_sweep(deep_part.DEEP_TASKS[0]).settings
    annealed = [each.settings.epsilon.steps for each in settings if each.case == "linear"]
    assert sorted(set(annealed)) == [2500, 5000, 10_000, 25_000, 50_000]  # shares of 50,000 frames


def chosen_by(areas: dict[str, dict[str, list[float]]], tasks: list[deep_part.DeepTask]) -> choosing.Chosen:
    """What is chosen by the mean areas of each case's settings on each task."""
    found = {task: {name: np.array(values) for name, values in cases.items()} for task, cases in areas.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choosing, "_mean_areas", lambda task, _: dict(found[task]))
        return choosing.choose(dict.fromkeys(found), tasks)  # type: ignore[arg-type]


def test_settings_are_chosen_for_all_groups_together_and_for_a_group_by_the_others() -> None:
    tasks = [deep_part.DeepTask(name, group, "CartPole-v1", 100, 2, 3) for name, group in ("ax", "bx", "cy")]
    areas = {
        "a": {"uniform": [1.0, 1.0], "one": [11.0, 1.0, 7.0], "two": [6.0, 6.0, 6.0]},
        "b": {"uniform": [0.0, 0.0], "one": [10.0, 0.0, 6.0], "two": [0.0, 0.0, 5.0]},
        "c": {"uniform": [0.0, 2.0], "one": [1.0, 5.0, 4.0], "two": [2.0, 1.0, 1.0]},
    }
    chosen = chosen_by(areas, tasks)
    assert chosen.family == {"a": "x", "b": "x", "c": "y"}
    assert (chosen.low, chosen.high) == ({"a": 1.0, "b": 0.0, "c": 1.0}, {"a": 11.0, "b": 10.0, "c": 5.0})
    # Group x counts as much as group y: "one" has (1, 0, .6) on x and (0, 1, .75) on y.
    assert chosen.settings["one for all"]["a"] == {"one": 2, "two": 0}
    assert chosen.settings["unseen"]["a"]["one"] == 1
    assert chosen.settings["unseen"]["c"]["one"] == 0
    assert [chosen.settings["per task"][task]["one"] for task in "abc"] == [0, 0, 1]
    assert chosen.of_task("c")["one"] == [0, 1, 2]
    assert chosen.normalised("a", np.array([6.0])).tolist() == [0.5]
    alone = chosen_by({"c": areas["c"]}, tasks[2:])
    assert set(alone.settings) == {"one for all", "per task"}
    # The tasks of a single group are families: the settings of each are chosen by the others.
    assert chosen_by({task: areas[task] for task in "ab"}, tasks[:2]).family == {"a": "a", "b": "b"}


def test_a_deep_task_that_nobody_solved_chooses_nothing() -> None:
    known = deep_part.DeepTask("a", "x", "CartPole-v1", 100, 2, 3, goal=1.0)
    other = deep_part.DeepTask("b", "x", "CartPole-v1", 100, 2, 3)
    areas = {"a": {"uniform": [0.0], "one": [0.04, 0.0]}, "b": {"uniform": [0.0], "one": [0.0, 0.04]}}
    chosen = chosen_by(areas, [known, other])
    assert (chosen.unsolved, chosen.settings["one for all"]) == (("a",), {"b": {"one": 1}})
    with pytest.raises(InputError, match="a: nobody solved any of these tasks"):
        chosen_by({"a": areas["a"]}, [known])
    pytest.importorskip("gymnasium")
    from gymnasium import spec

    for task in deep_part.DEEP_TASKS:
        if isinstance(task.environment, str) and not task.environment.startswith("minatar/"):
            assert task.goal == spec(task.environment).reward_threshold, task.name
        else:
            assert task.goal == (0.99 if task.group == "deep-sea" else None)  # 1 less the cost of moving


def declare(
    patch: pytest.MonkeyPatch, contenders: Sequence[deep_part.DeepContender], tasks: Sequence[deep_part.DeepTask]
) -> None:
    """Declare a study of other deep contenders and tasks."""
    for module in (deep_part, deep_run, deep_report):
        patch.setattr(module, "DEEP_CONTENDERS", tuple(contenders))
    for module in (deep_part, deep_run):
        patch.setattr(module, "DEEP_TASKS", tuple(tasks))


def test_fresh_runs_are_those_of_the_seeds_that_all_settings_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = deep_part.choosing_sweep(deep_part.DEEP_TASKS[0]).settings[:3]

    def series(setting: Any, seeds: Sequence[int], status: str, ends: Sequence[float] | None) -> Series:
        outcomes = [{"seed": seed, "status": status} for seed in seeds]
        values = np.array(seeds, float)
        evaluated = None if ends is None else np.array(ends)[:, None]
        return Series(setting, True, 4, outcomes, values[:, None], None, None, values, values, 0, evaluated)

    first = series(settings[0], [5, 6, 7, 8], "done", [50.0, 60.0, np.nan, 80.0])
    second = series(settings[1], [6, 7, 8], "diverged", None)  # no run of it came to its end
    third = series(settings[2], [5, 7, 8], "done", None)
    sweep = replace(deep_part.choosing_sweep(deep_part.DEEP_TASKS[0]), seeds=[5, 6, 7, 8])
    results = Results(sweep, pa.table({}), pa.table({}), [{}], ["a problem"])
    monkeypatch.setattr(deep_report, "load_results", lambda *_, **__: results)
    monkeypatch.setattr(
        deep_report, "read_groups", lambda _: [Group("e", 1, np.arange(1), [first, second, third], [], [])]
    )
    found = deep_report._fresh_runs(tmp_path, settings[:2])
    assert found is not None
    keys = [setting.key for setting in settings]
    assert (found.seeds, found.planned, found.problems) == (3, 4, ["a problem"])
    assert (found.areas[keys[0]].tolist(), found.areas[keys[1]].tolist()) == ([6.0, 7.0, 8.0], [6.0, 7.0, 8.0])
    assert found.ends[keys[0]].tolist() == [60.0, 50.0, 80.0]  # a run without an end gets the worst of all runs
    assert found.ends[keys[1]].tolist() == [50.0, 50.0, 50.0]
    with pytest.raises(InputError, match="have no greedy evaluation at their end"):
        deep_report._fresh_runs(tmp_path, settings[1:])
    assert deep_report._fresh_runs(tmp_path / "nowhere", settings[:2]) is None
    more = deep_part.choosing_sweep(deep_part.DEEP_TASKS[0]).settings[:4]
    assert deep_report._fresh_runs(tmp_path, more) is None


def test_the_panels_show_the_better_value_step_size() -> None:
    contender = deep_part.DEEP_CONTENDERS[0]
    sweep = deep_part.choosing_sweep(deep_part.DEEP_TASKS[0])
    settings = [setting.varied for setting in deep_part.settings_of_case(sweep, contender.name)]
    # A score that tells the setting: the place in the grid, and a tenth more at the larger value step size.
    scores = [
        contender.grid.index(each[contender.path]) + 0.1 * (each["value_step_size"] == max(deep_part.VALUE_STEP_SIZES))
        for each in settings
    ]
    means = {contender.name: np.array([scores, [2.0 * score for score in scores]])}
    (panel,) = deep_report.deep_panels(choosing.Chosen({"a": "x", "b": "y"}, (), {}, {}, means, {}))
    assert panel.grid == contender.grid
    assert panel.tasks[0] == pytest.approx([0.1, 1.1, 2.1, 3.1, 4.1])
    assert panel.mean == pytest.approx(1.5 * panel.tasks[0])


@pytest.mark.slow
def test_groups_of_deep_tasks_choose_together_and_keep_what_they_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ("epsilon-greedy", "linear", "epsilon-ipe", "tau-ipe")
    few = tuple(each for each in deep_part.DEEP_CONTENDERS if each.name in wanted)
    small = {"width": 8, "batch": 4, "replay": 100}
    tasks = tuple(
        deep_part.DeepTask(name, group, environment, 400, 2, 3, small)
        for name, group, environment in (
            ("cartpole", "classic-control", "CartPole-v1"),
            ("frozen-lake", "deep-sea", "FrozenLake-v1"),
        )
    )
    declare(monkeypatch, few, tasks)
    words = ["reproduce", "exploration", "--workers", "1", "--out", str(tmp_path / "out"), "--only"]
    assert main([*words, "classic-control"]) == 0
    alone = {setting.key for setting in load_results(tmp_path / "out/cartpole-fresh").sweep.settings}
    assert main([*words, "classic-control,deep-sea"]) == 0
    printed = capsys.readouterr().out
    assert "unseen family" in printed
    assert "tau-unseen-against-all-rivals  (deep)" in printed
    together = load_results(tmp_path / "out/cartpole-fresh")
    assert alone <= {setting.key for setting in together.sweep.settings}
    assert not together.missing
    page = (tmp_path / "out/report/deep.md").read_text(encoding="utf-8")
    assert "| behaviour | cartpole | frozen-lake |" in page
    assert "core-minutes" in page
    judged = json.loads((tmp_path / "out/report/claims-deep.json").read_bytes())
    assert len(judged) == 9
    assert {claim["figure"] for claim in judged} == {"deep"}
    assert {path.name for path in (tmp_path / "out/report").glob("*.png")} >= {"price-deep.png", "sensitivity-deep.png"}
    assert "epsilon.steps / frames" in page
    assert "cartpole 2 and 3; frozen-lake 2 and 3" in page
    assert main([*words, "classic-control,deep-sea", "--report"]) == 0
    assert (tmp_path / "out/report/deep.md").read_text(encoding="utf-8") == page
    assert deep_run.chosen_groups(tmp_path / "out") == ["classic-control", "deep-sea"]
    assert deep_run.chosen_groups(tmp_path) == []
    # A stop: a setting without one of its runs, a task without fresh runs. What is left is reported on.
    gone = next(iter((tmp_path / "out/cartpole-fresh/results").glob("*/*.json")))
    gone.unlink()
    shutil.rmtree(tmp_path / "out/frozen-lake-fresh")
    assert main([*words, "classic-control,deep-sea", "--report"]) == 2
    assert "there are no fresh runs of all chosen settings" in capsys.readouterr().err
    # Without fresh runs of the other task, the first run's jobs are enough.
    assert main([*words, "classic-control,deep-sea", "--runs", "3"]) == 0
    assert deep_report.settled_groups(tmp_path / "out") == ["classic-control", "deep-sea"]
    shutil.rmtree(tmp_path / "out/frozen-lake-fresh")
    assert main([*words, "classic-control,deep-sea", "--report"]) == 0
    assert "Not run yet: frozen-lake." in (tmp_path / "out/report/deep.md").read_text(encoding="utf-8")
    # If no groups are named, those are reported on that have all they need.
    (tmp_path / "out/report/classic-control.md").unlink()
    assert deep_report.settled_groups(tmp_path / "out") == ["classic-control"]
    assert main([*words[:-1], "--report"]) == 0
    assert "| behaviour | cartpole |" in (tmp_path / "out/report/classic-control.md").read_text(encoding="utf-8")
    declare(monkeypatch, few[:2], tasks)
    assert main([*words[:-1], "--report"]) == 2
    assert "holds runs of other settings than the study declares" in capsys.readouterr().err


@pytest.mark.slow
def test_a_group_of_deep_tasks_is_run_chosen_reported_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tuple(each for each in deep_part.DEEP_CONTENDERS if each.name in ("epsilon-greedy", "epsilon-ipe"))
    small = {"width": 8, "batch": 4, "replay": 100}
    task = deep_part.DeepTask("cartpole", "classic-control", "CartPole-v1", 400, 2, 3, small)
    declare(monkeypatch, few, (task,))
    words = ["reproduce", "exploration", "--only", "classic-control", "--workers", "1", "--out", str(tmp_path / "out")]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "greedy policy at the end" in printed
    page = (tmp_path / "out/report/classic-control.md").read_text(encoding="utf-8")
    assert "| ε-IPE | " in page
    first = load_results(tmp_path / "out/cartpole")
    fresh = load_results(tmp_path / "out/cartpole-fresh")
    assert (len(first.sweep.settings), len(first.sweep.seeds)) == (2 + 2 * 10, 2)
    assert 2 <= len(fresh.sweep.settings) <= 4
    assert len(fresh.sweep.seeds) == 3
    evaluations = fresh.evaluations_of(0)
    assert evaluations["frame"].to_pylist() == [400] * 3
    assert {len(returns) for returns in evaluations["returns"].to_pylist()} == {deep_part.GREEDY_EPISODES}
    assert not set(fresh.sweep.seeds) & set(first.sweep.seeds)
    assert main([*words, "--report"]) == 0
    assert (tmp_path / "out/report/classic-control.md").read_text(encoding="utf-8") == page
