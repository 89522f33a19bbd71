"""Does it last? The definition on runs made by hand, on the published runs, and the claims and the figure from it."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ipe.experiments.declared import Setting
from ipe.experiments.results import load_results
from ipe.studies import lunar_lander
from ipe.studies.learning.lasting import Lasting, Lastings, lasting_of, read_lasting
from ipe.studies.learning.lasting_report import draw_lasting, lasting_claims, lasting_csv, lasting_words

PUBLISHED = Path(__file__).parent.parent / "results" / "lunar_lander" / "curves"


def run(*stretches: tuple[float, int], status: str = "done") -> Lasting:
    """A run of episodes of 1000 frames: stretches of a return and how many episodes have it."""
    returns = np.concatenate([np.full(count, value) for value, count in stretches])
    ends = 1000 * np.arange(1, returns.size + 1)
    return lasting_of(ends, returns, {"seed": 0, "status": status, "frame": int(ends[-1])})


LEARNS = ((-200.0, 20), (240.0, 80))


def test_a_run_that_stays() -> None:
    """The mean of 20 episodes is 200 when 400/440 of 20, 19 of them, are at 240."""
    assert run(*LEARNS) == Lasting(0, 39_000, 100_000, collapsed=False)


def test_a_lasting_collapse_begins_half_way_down() -> None:
    """Half-way between -200 and 240 is 20, below which the mean is from the 11th bad episode on."""
    found = run(*LEARNS, (-200.0, 80))
    assert found == Lasting(0, 39_000, 111_000, collapsed=True)
    assert found.time == 72_000


def test_a_fall_that_does_not_last_is_none() -> None:
    assert run(*LEARNS, (-200.0, 40), (240.0, 60)) == Lasting(0, 39_000, 200_000, collapsed=False)
    # below half-way from episode 111 on until the 10th good one after episode 150 makes it 20: at 160
    assert run(*LEARNS, (-200.0, 51), (240.0, 60)).collapsed is True
    assert run(*LEARNS, (-200.0, 50), (240.0, 60)).collapsed is False


def test_what_the_end_leaves_open_is_censored_where_it_began() -> None:
    assert run(*LEARNS, (-200.0, 40)) == Lasting(0, 39_000, 111_000, collapsed=False)


def test_a_level_follows_the_best_so_far() -> None:
    """With a best of 1000, half-way is 400: 300 is a collapse then, though it is competent."""
    assert run(*LEARNS, (1000.0, 30), (300.0, 90)).collapsed is True
    assert run(*LEARNS, (300.0, 90)).collapsed is False


def test_ends_that_are_no_ends() -> None:
    assert run(*LEARNS, status="diverged") == Lasting(0, 39_000, 100_000, collapsed=True)
    assert run(*LEARNS, status="failed") == Lasting(0, 39_000, 100_000, collapsed=False)
    never = run((-200.0, 100))
    assert (never.competent, never.collapsed, never.time) == (None, False, 0)
    assert run((-200.0, 5)).competent is None, "fewer than 20 episodes"


def test_the_published_runs() -> None:
    """Four runs of epsilon-greedy collapse between 410,000 and 450,000 frames, none of epsilon-IPE."""
    found = {one.setting.case: one for one in read_lasting([load_results(PUBLISHED, progress=False)])}
    assert [len(one.at_risk) for one in found.values()] == [30, 30]
    collapsed = {case: {run.seed: run.end for run in one.runs if run.collapsed} for case, one in found.items()}
    assert collapsed == {"epsilon-ipe": {}, "epsilon-greedy": {12: 416_454, 17: 415_529, 27: 413_442, 28: 441_882}}
    (claim,) = lasting_claims(list(found.values()))
    assert (claim.name, claim.verdict) == ("lasting", "depends"), "the interval is above 0, and log-rank's p is 0.0504"
    assert claim.numbers["difference_low"] > 0.0
    assert claim.numbers["p_value"] == pytest.approx(0.0504, abs=1e-4)


def lastings(case: str, times: list[int], collapsed: list[bool], never: int = 0) -> Lastings:
    settings = lunar_lander.STUDY.sweeps()["lasting"].settings[0].settings
    runs = [Lasting(i, 1000, 1000 + t, end) for i, (t, end) in enumerate(zip(times, collapsed, strict=True))]
    runs += [Lasting(100 + i, None, 9, False) for i in range(never)]
    return Lastings(Setting(case, case, {}, settings), runs)


def some() -> list[Lastings]:
    long, short = [900_000] * 16, [100_000 + 1000 * i for i in range(16)]
    return [
        lastings("epsilon-ipe", long, [False] * 16),
        lastings("epsilon-greedy", short, [True] * 16, never=2),
        lastings("epsilon-greedy huber", long[:8], [False] * 8),
        lastings("epsilon-greedy target-100", short[:8], [True] * 8),
        lastings("epsilon-ipe double-q", short[:8], [True] * 8),
    ]


def test_claims() -> None:
    found = {claim.name: claim for claim in lasting_claims(some())}
    assert {name: claim.verdict for name, claim in found.items()} == {
        "lasting": "holds",
        "lasting-epsilon-ipe-double-q": "does not hold",
        "lasting-epsilon-greedy-huber": "holds",
        "lasting-epsilon-greedy-target-100": "depends",
    }
    assert found["lasting"].addition
    assert "16 of 16 runs of epsilon-greedy collapsed" in found["lasting"].finding
    assert found["lasting-epsilon-greedy-huber"].words == "Huber loss makes ε-greedy last longer"
    assert lasting_claims([]) == []


def test_figure_and_table() -> None:
    figure = draw_lasting(some())
    assert figure is not None
    assert [ax.get_title() for ax in figure.axes] == ["bold settings", "ε-ipe", "ε-greedy"]
    labels = [line.get_label() for line in figure.axes[2].lines]
    assert labels == ["the bold setting (16 of 16)", "Huber loss (0 of 8)", "target period 100 (8 of 8)"]
    assert draw_lasting([lastings("epsilon-ipe", [], [], never=3)]) is None
    rows: list[Any] = list(csv.DictReader(io.StringIO(lasting_csv(some()).decode())))
    assert len(rows) == 16 + 18 + 8 + 8 + 8
    assert sum(row["competent_at"] == "" for row in rows) == 2
    assert "not at risk: 2 of epsilon-greedy" in lasting_words(some())


def test_what_is_run() -> None:
    parts = lunar_lander.STUDY.sweeps()
    bold, changed = parts["lasting"], parts["lasting-changes"]
    assert bold.seeds == list(range(200, 216))
    assert changed.seeds == list(range(200, 208))
    assert {one.settings.frames for one in [*bold.settings, *changed.settings]} == {1_000_000}
    assert [one.case for one in bold.settings] == ["epsilon-ipe", "epsilon-greedy"]
    kinds = {
        one.case: (one.settings.huber, one.settings.double_q, one.settings.target_period) for one in changed.settings
    }
    for behaviour in ("epsilon-ipe", "epsilon-greedy"):
        assert kinds[f"{behaviour} huber"] == (1.0, False, 500)
        assert kinds[f"{behaviour} double-q"] == (0.0, True, 500)
        assert kinds[f"{behaviour} target-100"] == (0.0, False, 100)
    seeds = {seed for name, part in parts.items() if not name.startswith("lasting") for seed in part.seeds}
    assert not seeds & set(bold.seeds), "the definition was tried on other runs"
