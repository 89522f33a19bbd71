"""The study of updates: verdicts on simulated runs whose truth is known, its folder, and what it refuses."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from ipe.cli import main
from ipe.experiments.declared import Setting
from ipe.experiments.results import load_results
from ipe.studies.updates import PARTS, report_updates, run_updates, sweeps
from ipe.studies.updates.drawing import GROUPS, draw_lambda, draw_updates
from ipe.studies.updates.judging import KINDS, NAMES, PAPER, by_case, fixed_lambdas, judge_lambda, judge_updates
from tests.sweep_results import simulated_results

RESULTS = Path(__file__).parents[1] / "results" / "updates"
FALL = {1e-5: 60.0, 1e-4: 0.0, 1e-3: 30.0, 1e-2: 90.0, 1e-1: 90.0}
"""How much less than at its best a setting earns at each policy step size."""


def level(setting: Setting) -> float:
    """The natural gradient is better than the paper's update, Fenchel's is worse, the others are as good. The lift
    depends on its step size a tenth as much, the cross-entropy update twice as much."""
    more = {"natural": 100.0, "fenchel": -100.0}.get(setting.case, 0.0)
    fall = FALL[setting.varied["policy_step_size"]] * {"lift": 0.1, "cross-entropy": 2.0}.get(setting.case, 1.0)
    return 200.0 + more - fall


def test_the_verdicts_say_which_updates_are_better_at_their_best() -> None:
    sweep = sweeps(["cart-pole"], runs=20, frames=5000)["cart-pole"]
    claims = {claim.name: claim for claim in judge_updates("cart-pole", simulated_results(sweep, level=level))}
    assert len(claims) == 12 + 3
    assert claims["cart-pole-natural-earns-more"].verdict == "holds"
    assert claims["cart-pole-fenchel-earns-more"].verdict == "does not hold"
    assert "(step size 0.0001)" in claims["cart-pole-natural-earns-more"].finding
    assert claims["cart-pole-lift-matters-less"].verdict == "holds"
    assert claims["cart-pole-cross-entropy-matters-less"].verdict == "does not hold"
    assert claims["cart-pole-lift-matters-less"].numbers["difference"] > 0.0


def test_without_runs_of_the_papers_update_there_is_nothing_to_compare_with() -> None:
    sweep = sweeps(["cart-pole"], runs=1, frames=5000)["cart-pole"]
    assert judge_updates("cart-pole", simulated_results(sweep, level=level)) == []


def test_a_case_with_missing_runs_is_not_judged() -> None:
    sweep = sweeps(["cart-pole"], runs=3, frames=5000)["cart-pole"]
    results = simulated_results(sweep, level=level)
    missing = next(i for i, setting in enumerate(sweep.settings) if setting.case == "natural")
    results = replace(results, missing=[(missing, 0)])
    names = {claim.name for claim in judge_updates("cart-pole", results)}
    assert "cart-pole-natural-earns-more" not in names
    assert "cart-pole-fenchel-earns-more" in names


def test_lambda_from_entropy_is_compared_with_one_step_and_with_the_best_fixed_value() -> None:
    sweep = sweeps(["cart-pole-lambda"], runs=20, frames=5000)["cart-pole-lambda"]
    means = {"one-step": 0.0, "eight-steps": 50.0, "peng-0.8": 150.0, "peng-entropy": 100.0, "watkins-entropy": 200.0}
    results = simulated_results(sweep, level=lambda setting: means.get(setting.case, 20.0))
    found = {claim.name: claim for claim in judge_lambda("cart-pole-lambda", results)}
    assert {name: claim.verdict for name, claim in found.items()} == {
        "cart-pole-lambda-peng-beats-one-step": "holds",
        "cart-pole-lambda-peng-beats-fixed": "does not hold",
        "cart-pole-lambda-watkins-beats-one-step": "holds",
        "cart-pole-lambda-watkins-beats-fixed": "holds",
    }
    assert "the best fixed λ (0.8)" in found["cart-pole-lambda-peng-beats-fixed"].finding
    cases = {case: settings[0] for case, settings in by_case(results).items()}
    for kind in KINDS:
        assert list(fixed_lambdas(kind, cases)) == [0.0, 0.5, 0.8, 0.95, 1.0]


def test_every_case_has_a_name_and_a_place_in_the_figure() -> None:
    shown = {case for group in GROUPS.values() for case in group}
    for part in ("cart-pole", "lunar-lander"):
        cases = {setting.case for setting in sweeps([part])[part].settings}
        assert cases == set(NAMES) == shown | {PAPER}


def test_the_closed_forms_have_five_orders_of_step_sizes_on_lunar_lander() -> None:
    for case in (PAPER, "lift", "cross-entropy"):
        steps = [s.varied["policy_step_size"] for s in sweeps()["lunar-lander"].settings if s.case == case]
        assert max(steps) / min(steps) == pytest.approx(1e5)


@pytest.mark.slow
def test_the_figures_have_a_line_for_every_setting_with_runs() -> None:
    sweep = sweeps(["cart-pole"], runs=2, frames=5000)["cart-pole"]
    figure = draw_updates({"CartPole": simulated_results(sweep, level=level)})
    assert [len(ax.containers) for ax in figure.axes] == [1 + len(group) for group in GROUPS.values()]
    sweep = sweeps(["cart-pole-lambda"], runs=2, frames=5000)["cart-pole-lambda"]
    (ax,) = draw_lambda(simulated_results(sweep, level=lambda _: 0.0)).axes
    assert len(ax.containers) == 2
    assert np.isfinite(ax.get_ylim()).all()


@pytest.mark.slow
def test_a_study_is_stopped_goes_on_and_is_reported_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ipe.experiments.ledger.TELL_SECONDS", 0.0)  # or all jobs may be done when it is told
    out = tmp_path / "out"
    sizes: dict[str, Any] = {"only": ["cart-pole-lambda"], "runs": 2, "frames": 300, "workers": 1}
    stopped = run_updates(out, callback=lambda part, sweep, progress: progress.done >= 3, **sizes)
    assert stopped.status == "stopped"
    assert 0 < len(load_results(out / "cart-pole-lambda").outcomes) < 22
    result = run_updates(out, **sizes)
    assert result.status == "done"
    assert len(result.claims) == 4
    page, claims = out / "report" / "cart-pole-lambda" / "report.html", out / "claims.json"
    assert page.is_file()
    before = claims.read_bytes()
    claims.unlink()
    assert main(["reproduce", "updates", "--report", "--out", str(out)]) == 0
    assert "4 claims" in capsys.readouterr().out
    assert claims.read_bytes() == before
    assert len(json.loads(before)) == 4


def test_wrong_uses_are_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in {
        ("--only", "lunar"): "there is no part 'lunar'; the parts are cart-pole, lunar-lander, cart-pole-lambda",
        ("--runs", "1"): "--runs must be at least 2, found 1",
        ("--report",): "there are no runs of this study yet",
    }.items():
        assert main(["reproduce", "updates", *words, "--out", str(tmp_path / "out")]) != 0
        assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.skipif(not RESULTS.is_dir(), reason="the study's results are not published yet")
def test_the_published_verdicts_follow_from_the_published_runs(tmp_path: Path) -> None:
    shutil.copytree(RESULTS, tmp_path / "copy")
    report = report_updates(tmp_path / "copy")
    assert set(report.claims) <= set(PARTS)
    assert (tmp_path / "copy" / "claims.json").read_bytes() == (RESULTS / "claims.json").read_bytes()
