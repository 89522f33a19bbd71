"""The studies of deep learning: what they declare, and verdicts on curves whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ipe.analysis import Claim
from ipe.analysis.series import Series
from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.experiments.declared import Setting, Sweep
from ipe.experiments.engine import SweepResult
from ipe.experiments.results import Results
from ipe.studies import freeway, lunar_lander
from ipe.studies.learning import evidence
from ipe.studies.learning import run as study_run
from ipe.studies.learning.confirming import confirming_sweep
from ipe.studies.learning.run import chosen_parts
from ipe.studies.learning.study import joined
from tests.sweep_results import simulated_results

GRID = np.arange(1, 201) * 2500
FRAME = 25_000


def series(case: str, shape: Callable[[Array], Array], spread: float = 10.0, runs: int = 30, seed: int = 1) -> Series:
    """Runs of a mean curve, each moved by an amount of its own and a little noise."""
    rng = np.random.default_rng(seed)
    curves = shape(GRID / GRID[-1]) + rng.normal(0.0, spread, (runs, 1)) + rng.normal(0.0, 2.0, (runs, GRID.size))
    setting = next(s for s in lunar_lander.STUDY.sweeps()["curves"].settings if s.case == "epsilon-greedy")
    outcomes = [{"seed": i, "status": "done", "frame": 500_000, "reason": ""} for i in range(runs)]
    return Series(
        setting=Setting(case, case, {}, setting.settings), fresh=False, planned=runs, outcomes=outcomes, curves=curves,
        epsilon=None, entropy=None, auc=curves.mean(axis=1), final=curves[:, -1], without=0,
    )  # fmt: skip


def rising(x: Array) -> Array:
    return np.asarray(300.0 * (1.0 - np.exp(-5.0 * x)))


def dipping(x: Array) -> Array:
    """The same, with a dip of 120 after the annealing."""
    return np.asarray(rising(x) - 120.0 * np.exp(-(((x - 0.12) / 0.03) ** 2)))


def higher(x: Array) -> Array:
    return rising(x) + 40.0


def test_a_larger_area_is_seen_and_its_opposite_and_neither() -> None:
    def found(first: Series, second: Series) -> str:
        return evidence.larger_area("larger", first, second).verdict

    high, low, same = series("a", higher), series("b", rising, seed=2), series("c", rising, seed=3)
    assert (found(high, low), found(low, high), found(low, same)) == ("holds", "does not hold", "depends")
    assert evidence.same_area("same", low, same).verdict == "holds"
    assert evidence.same_area("same", high, same).verdict == "does not hold"


def test_the_end_is_the_last_tenth() -> None:
    late = series("a", lambda x: np.where(x > 0.95, 500.0, 0.0), spread=0.0)
    half = (0.95 * GRID[-1] < GRID).sum() / (0.9 * GRID[-1] < GRID).sum()
    np.testing.assert_allclose(evidence.ending(late, GRID), 500.0 * half, atol=3.0)
    nothing = replace(late, curves=np.full_like(late.curves, np.nan), final=np.full(late.n, -7.0))
    np.testing.assert_array_equal(evidence.ending(nothing, GRID), -7.0)
    assert evidence.better_end("better", series("a", higher), series("b", rising), GRID).verdict == "holds"


def test_lower_variance() -> None:
    tight, loose = series("a", rising, spread=5.0), series("b", rising, spread=60.0, seed=2)
    claim = evidence.lower_variance("variance", "lower", tight, loose, GRID)
    assert claim.verdict == "holds"
    assert claim.numbers["area"] == pytest.approx(np.std(loose.auc, ddof=1) - np.std(tight.auc, ddof=1))
    assert evidence.lower_variance("variance", "lower", loose, tight, GRID).verdict == "does not hold"


def test_a_dip_where_the_annealing_ends() -> None:
    dips, smooth = series("epsilon-greedy", dipping), series("epsilon-ipe", rising, seed=2)
    claim = evidence.dip("dip", dips, smooth, GRID, FRAME)
    assert claim.verdict == "holds"
    assert claim.numbers["first"] == pytest.approx(70.0, abs=25.0)  # 120, less what the curve rises meanwhile
    assert evidence.dip("dip", smooth, dips, GRID, FRAME).verdict == "does not hold"
    assert evidence.dip("dip", dips, replace(dips), GRID, FRAME).verdict == "depends"
    later = series("epsilon-greedy", lambda x: rising(x) - 120.0 * np.exp(-(((x - 0.6) / 0.03) ** 2)))
    assert evidence.dip("dip", later, smooth, GRID, FRAME).verdict == "depends", "one at another place is none"


def test_monotone() -> None:
    assert evidence.more_monotone("monotone", series("a", rising), series("b", dipping)).verdict == "holds"
    assert evidence.more_monotone("monotone", series("b", dipping), series("a", rising)).verdict == "does not hold"
    assert evidence.more_monotone("monotone", series("a", rising), series("b", rising, seed=4)).verdict == "depends"


def test_what_the_studies_declare() -> None:
    parts = lunar_lander.STUDY.sweeps()
    assert {name: (len(own.settings), len(own.seeds), own.frames) for name, own in parts.items()} == {
        "curves": (2, 30, 30_000_000),
        "ipe": (1, 10, 5_000_000),
        "sensitivity": (20, 5, 20_000_000),
        "lasting": (2, 16, 32_000_000),
        "lasting-changes": (6, 8, 48_000_000),
    }
    assert [own.settings.width for own in parts["curves"].settings] == [128, 256]
    assert parts["sensitivity"].one_at_a_time
    whole = lunar_lander.STUDY.sweeps(full_grid=True)
    assert len(whole["grid"].settings) == 243 + 81
    assert "curves" not in whole
    bold = {own.key for own in parts["curves"].settings}
    assert bold <= {own.key for own in whole["grid"].settings}, "the bold settings are among the grid's"
    assert {own.case for own in whole["grid"].settings} == {"epsilon-ipe", "epsilon-greedy"}
    minatar = freeway.STUDY.sweeps(full_grid=True)["grid"]
    assert len(minatar.settings) == 54 + 18
    assert minatar.settings[0].settings.frames == 2_000_000
    rows = freeway.STUDY.sweeps()["sensitivity"]
    assert (len(rows.settings), rows.seeds, rows.settings[0].settings.frames) == (14, [0, 1, 2, 3, 4], 500_000)
    listed = {(own.case, path): set() for own in rows.settings for path in own.varied}  # type: ignore[var-annotated]
    for own in minatar.settings:
        for path, value in own.varied.items():
            listed[own.case, path].add(value)
    for path in {path for _, path in listed}:
        cases = [case for case, name in listed if name == path]
        assert cases, "the five panels"
        for case in cases:
            found = {own.varied[path] for own in rows.settings if own.case == case}
            assert found == listed[case, path], "every value of the appendix, and no other"
    assert len({path for _, path in listed}) == 5
    assert {own.settings.frames for own in rows.settings} == {500_000}
    few = freeway.STUDY.sweeps(runs=2, frames=1000)["curves"]
    assert (few.seeds, few.settings[0].settings.frames) == ([0, 1], 1000)


def test_only_some_parts() -> None:
    assert list(chosen_parts(lunar_lander.STUDY, only=["ipe"])) == ["ipe"]
    with pytest.raises(
        InputError, match="there is no part 'figure-2a'; the parts are curves, ipe, sensitivity, lasting, "
    ):
        chosen_parts(lunar_lander.STUDY, only=["figure-2a"])


def made(name: str, runs: int, level: dict[str, float]) -> Results:
    sweep = lunar_lander.STUDY.sweeps(runs=runs, frames=60_000)[name]
    return simulated_results(sweep, level=lambda setting: level[setting.case])


def test_claims_from_results_of_several_sweeps() -> None:
    curves = made("curves", 12, {"epsilon-ipe": 250.0, "epsilon-greedy": 100.0})
    alone = made("ipe", 12, {"ipe": 50.0})
    both = joined([curves, alone])
    assert [own.case for own in both.sweep.settings] == ["epsilon-ipe", "epsilon-greedy", "ipe"]
    assert both.episodes.num_rows == curves.episodes.num_rows + alone.episodes.num_rows
    assert [own["seed"] for own in both.outcomes_of(2)] == [own["seed"] for own in alone.outcomes_of(0)]
    assert both.episodes_of(2)["return"].equals(alone.episodes_of(0)["return"])
    claims = {claim.name: claim for claim in lunar_lander.STUDY.claims(both)}
    assert list(claims) == ["area", "asymptote", "variance", "monotone", "dip", "consistency"]
    assert claims["area"].verdict == "holds"
    assert claims["asymptote"].verdict == "holds"
    assert isinstance(claims["dip"], Claim)
    assert lunar_lander.STUDY.claims(alone) == []


def test_freeways_claims() -> None:
    sweep = freeway.STUDY.sweeps(runs=10, frames=60_000)["curves"]
    same = simulated_results(sweep, level=lambda setting: 50.0)
    claims = {claim.name: claim.verdict for claim in freeway.STUDY.claims(same)}
    assert list(claims) == ["area", "asymptote"]


def test_fresh_runs_of_the_chosen_settings() -> None:
    sweep = lunar_lander.STUDY.sweeps(runs=3, frames=60_000)["sensitivity"]
    results = simulated_results(
        replace(sweep, seeds=[0, 1, 2, 3]), level=lambda own: 200.0 if own.settings.width == 64 else 0.0, spread=1.0
    )
    fresh = confirming_sweep(results, 5)
    assert fresh.seeds == [1_000_000 + i for i in range(5)]
    more = confirming_sweep(replace(results, sweep=replace(results.sweep, seeds=list(range(9)))), 5)
    assert more.seeds == fresh.seeds  # so that runs can be added later
    assert sorted((own.case, own.settings.width) for own in fresh.settings) == [
        ("epsilon-greedy", 64),
        ("epsilon-ipe", 64),
    ]
    with pytest.raises(InputError, match="1 runs are missing, the first seed 2 of"):
        confirming_sweep(replace(results, missing=[(0, 2)]), 5)
    with pytest.raises(InputError, match="confirm_seeds must be 1 or more, found 0"):
        confirming_sweep(results, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"frames": 0}, "frames must be 1 or more, found 0"),
        ({"runs": 0}, "runs must be 1 or more, found 0"),
        ({"only": []}, "only: it names no part; the parts are curves"),
    ],
)
def test_nothing_is_not_everything(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        chosen_parts(lunar_lander.STUDY, **arguments)


@pytest.mark.parametrize("status", ["stopped", "failed"])
def test_what_becomes_of_the_fresh_runs_is_told(status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine is stood in for: what is tested is what is made of its answers."""

    def ran(sweep: Sweep, folder: Path, **_: Any) -> SweepResult:
        fresh = folder.name == "confirm"
        notes = ["one could not be done"] if fresh else []
        return SweepResult(folder, status if fresh else "done", 1, 0, {}, {}, notes)

    monkeypatch.setattr(study_run, "run_sweep", ran)
    monkeypatch.setattr(study_run, "load_results", lambda *_, **__: None)
    monkeypatch.setattr(study_run, "confirming_sweep", lambda *_: lunar_lander.STUDY.sweeps(2, 100)["curves"])
    monkeypatch.setattr(study_run, "report_study", lambda *_: ([], []))
    found = study_run.run_learning_study(
        lunar_lander.STUDY, tmp_path, runs=2, frames=60_000, only=["curves"], confirm_seeds=2
    )
    assert (found.status, found.notes) == (status, ["one could not be done"])
