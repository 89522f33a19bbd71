"""The study of exploration: its declaration, its files, and its numbers on tables whose answers are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ipe.analysis import Interval
from ipe.behaviours import BEHAVIOURS
from ipe.cli import main
from ipe.errors import InputError
from ipe.experiments.results import load_results
from ipe.planning import greedy_policy, optimal_values, policy_values
from ipe.studies.exploration import CONTENDERS, TASKS, UNIFORM, Contender, TabularSettings, Task, groups, run
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
        (["--only", "classic-control", "--report"], "the group classic-control has no fresh runs yet"),
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


@pytest.mark.slow
def test_a_group_of_deep_tasks_is_run_chosen_reported_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = tuple(each for each in deep_part.DEEP_CONTENDERS if each.name in ("epsilon-greedy", "epsilon-ipe"))
    small = {"width": 8, "batch": 4, "replay": 100}
    task = deep_part.DeepTask("cartpole", "classic-control", "CartPole-v1", 400, 2, 3, small)
    for module in (deep_part, groups):
        monkeypatch.setattr(module, "DEEP_CONTENDERS", few)
        monkeypatch.setattr(module, "DEEP_TASKS", (task,))
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
