"""The study of returns: what its tables hold, and verdicts that follow from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ipe.cli import main
from ipe.studies.parts import Table, stacked
from ipe.studies.returns import PARTS, ReturnsSettings, settings_for
from ipe.studies.returns.closed_form import TASKS as CLOSED_FORM_TASKS
from ipe.studies.returns.closed_form import judge_closed_form
from ipe.studies.returns.computing import compute_gamma, judge_gamma, judge_lambda
from ipe.studies.returns.settings import SOURCES, TASKS, TRACES
from ipe.tabular import simulate


def made_up(rewards: dict[str, float], traces: tuple[str, ...] = TRACES) -> Table:
    """A table in which the mean reward depends on what sets the number: its source, or the number itself."""
    rng = np.random.default_rng(0)
    rows = [
        {
            "task": task.name, "traces": kind, "source": source if source in SOURCES else "number",
            "value": np.nan if source in SOURCES else float(source), "run": run,
            "reward": mean + 0.01 * rng.normal(), "rmse": 0.0,
        }
        for task in TASKS for kind in traces for source, mean in rewards.items() for run in range(20)
    ]  # fmt: skip
    return stacked(rows)


@pytest.mark.parametrize(
    ("entropy", "expected"), [(0.7, "does not hold"), (0.9, "holds"), (0.8, "holds")], ids=["worse", "better", "equal"]
)
def test_a_verdict_compares_with_the_best_fixed_value(entropy: float, expected: str) -> None:
    table = made_up({"0.0": 0.5, "0.5": 0.8, "1.0": 0.6, "actions": entropy, "coin": 0.1})
    for claims in (
        judge_lambda(ReturnsSettings(), {"lambda": table}),
        judge_gamma(ReturnsSettings(), {"gamma": table}),
    ):
        for claim in claims:
            assert claim.verdict == expected
            assert claim.numbers["chain/best_value"] == 0.5
            assert claim.numbers["chain/entropy"] == pytest.approx(entropy, abs=0.01)


@pytest.mark.parametrize("worst", [0.1, 0.9])
@pytest.mark.parametrize("best", [0.8, 1.2])
def test_a_closed_form_is_compared_at_its_best_and_at_its_worst_rate(worst: float, best: float) -> None:
    """The paper's update earns 1 at its best step size and a half at the worst one; the lift earns what is given."""
    settings, rng = ReturnsSettings(policy_steps=(0.1, 1.0, 10.0)), np.random.default_rng(0)
    means = {"paper": (0.5, 1.0, 0.7), "lift": (worst * best, best, best), "cross-entropy": (0.4, 1.0, 0.4)}
    rows = [
        {"task": task, "update": update, "value": value, "run": run, "reward": mean + 0.001 * rng.normal(), "rmse": 0.0}
        for task in CLOSED_FORM_TASKS for update, curve in means.items()
        for value, mean in zip(settings.policy_steps, curve, strict=True) for run in range(20)
    ]  # fmt: skip
    claims = {claim.name: claim for claim in judge_closed_form(settings, {"closed-form": stacked(rows)})}
    assert claims["lift-depends-less-on-its-rate"].verdict == ("holds" if worst > 0.5 else "does not hold")
    assert claims["lift-earns-as-much"].verdict == ("holds" if best > 1.0 else "does not hold")
    assert claims["cross-entropy-depends-less-on-its-rate"].verdict == "does not hold"
    assert claims["lift-earns-as-much"].numbers["Garnet 0/ours"] == pytest.approx(best, abs=0.01)


@pytest.mark.slow
def test_the_tables_hold_what_simulate_gives() -> None:
    settings = settings_for(runs=3, seed=2)
    table = compute_gamma(settings, lambda *_: None)["gamma"]
    task = TASKS[1]
    mdp = task.make()
    at = (table["task"] == task.name) & (table["source"] == "coin")
    expected = simulate(
        mdp, "epsilon-ipe", steps=task.steps, runs=3, seed=2, alpha_pi=task.alpha_pi, discount_from="coin",
        least_gamma=0.5 * mdp.gamma,
    )  # fmt: skip
    np.testing.assert_array_equal(table["reward"][at], expected.reward[0])
    fixed = (table["task"] == task.name) & (table["value"] == 1.0)
    plain = simulate(mdp, "epsilon-ipe", steps=task.steps, runs=3, seed=2, alpha_pi=task.alpha_pi)
    np.testing.assert_allclose(table["reward"][fixed], plain.reward[0])


@pytest.mark.slow
def test_the_command_writes_figures_tables_and_claims(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "returns", "--runs", "2", "--out", str(tmp_path / "out")]) == 0
    assert "lambda-from-entropy-watkins" in capsys.readouterr().out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names >= {f"{part.name}{suffix}" for part in PARTS for suffix in (".png", ".pdf", ".parquet")}
