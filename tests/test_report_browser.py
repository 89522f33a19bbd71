"""The report in headless chromium: it renders, answers pointer and keys, sorts, filters, and asks nobody anything."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ipe.analysis import Claim
from ipe.experiments.declared import Setting
from ipe.experiments.grids import make_sweep
from ipe.figures.report import write_report
from tests.browser_setup import chromium, why_not
from tests.sweep_results import simulated_results

pytestmark = [pytest.mark.slow, pytest.mark.skipif(why_not() is not None, reason=f"browser tests: {why_not()}")]

HOSTILE = "</script><script>alert(1)</script>"
BROWSER = Path(__file__).with_name("browser")
FRAMES = 20_000
POINTS = 60
RUNS = 4


def level(setting: Setting) -> float:
    bonus = {64: 0.0, 128: 30.0, 256: 10.0}[setting.varied["width"]]
    return bonus + (100.0 if setting.settings.learns_policy else 50.0)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("browser") / "out"
    base = {"environment": "LunarLander-v3", "frames": FRAMES}
    grid = {"width": [64, 128, 256], "value_step_size": [0.01, 0.001, 0.0001], "target_period": [1, 500]}
    cases = {
        HOSTILE: {"behaviour": "epsilon-ipe", "gamma": 0.95, "grid": {"width": [64], "target_period": [1]}},
        "epsilon-ipe": {"behaviour": "epsilon-ipe"},
        "epsilon-greedy": {"behaviour": "epsilon-greedy", "gamma": 0.9},
    }
    sweep = make_sweep({"name": HOSTILE, "seeds": RUNS, "base": base, "grid": grid, "cases": cases})
    results = simulated_results(
        sweep, level=level, bad={(4, 1): ("diverged", 9000)}, problems=[f"the file {HOSTILE} is damaged"]
    )
    claims = [Claim("first", "Figure 5", f"{HOSTILE} wins.", "holds", f"{HOSTILE} does.", {"difference": 1.0})]
    page = write_report(results, out, claims=claims, links=[("Other", "grid/report.html")], grid_points=POINTS)[0]
    shots = os.environ.get("IPE_SHOTS")
    done = subprocess.run(
        ["node", BROWSER / "report.mjs", page, *([shots] if shots else [])],
        env={**os.environ, "IPE_CHROMIUM": chromium()},
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


def test_it_renders(seen: Any) -> None:
    assert seen["sections"] == [
        "Claims",
        "Learning curves",
        "Exploration",
        "Ranking",
        "Comparison",
        "Sensitivity (best over the rest)",
        "Problems",
        "Methods",
        "Settings and versions",
    ]
    assert seen["means"] == seen["bands"] == 3  # the best of each case
    assert seen["charts"] == 1 + 2 + 1 + 3
    assert seen["exploration"] == 3 + 2  # epsilon of all, entropy of those that learn a policy
    assert seen["claims"] == ["holds"]


def test_it_says_nothing_on_the_console_and_asks_for_nothing(seen: Any) -> None:
    for heard in (seen["heard"], seen["phoneHeard"]):
        assert heard["console"] == heard["errors"] == heard["dialogs"] == []
        assert len(heard["requests"]) == 1
        assert heard["requests"][0].startswith("file://")


def test_markup_in_names_is_text(seen: Any) -> None:
    assert seen["title"] == seen["heading"] == HOSTILE
    assert seen["scripts"] == 2
    assert seen["problems"][0] == f"the file {HOSTILE} is damaged"
    assert any(name.startswith(HOSTILE) for name in seen["all"])


def test_the_policy_refuses_other_scripts_styles_and_requests(seen: Any) -> None:
    assert seen["attack"] == {"script": False, "style": False, "asked": "refused"}


def test_pointing_shows_the_values_there_and_single_runs(seen: Any) -> None:
    assert seen["legendBefore"] != seen["legendHover"]
    assert seen["legendBefore"][0].startswith(f"at {FRAMES // 1000}k frames")
    assert seen["runs"] == RUNS + 1  # all of the nearest setting, and the nearest of them once more
    assert seen["runName"].startswith("seed ")
    assert seen["runsAfter"] == 0
    assert seen["sensitivity"].startswith("value_step_size = 1e-4: ")
    assert f"({RUNS} runs" in seen["sensitivity"]
    assert seen["sensitivityFocus"].startswith("value_step_size = 0.001: ")


def test_tables_are_saved_from_the_page_as_they_lie_beside_it(seen: Any) -> None:
    folder = Path(seen["heard"]["requests"][0].removeprefix("file://")).parent
    assert sorted(seen["saved"]) == ["comparisons.csv", "curves.csv", "ranking.csv", "runs.csv", "sensitivity.csv"]
    for name in ("comparisons.csv", "ranking.csv", "runs.csv", "sensitivity.csv"):
        assert seen["saved"][name] == (folder / name).read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(seen["saved"]["curves.csv"])))
    assert len(rows) == 39 * POINTS
    assert {row["measure"] for row in rows} == {"training returns"}
    assert int(rows[POINTS - 1]["frames"]) == FRAMES


def test_the_methods_can_be_pasted_and_pages_are_linked(seen: Any) -> None:
    assert seen["methods"] == seen["selected"]
    assert "On LunarLander-v3 we report 39 settings with 4 runs each (156 in all)." in seen["methods"]
    assert "ranking.csv" in seen["beside"]
    assert seen["pages"] == ["grid/report.html"]


def test_the_arrow_keys_move_the_cursor(seen: Any) -> None:
    step = FRAMES / POINTS
    assert seen["keyStart"] == FRAMES
    assert seen["keyLeft"] == pytest.approx(FRAMES - step, abs=1)
    assert seen["keyHome"] == pytest.approx(step, abs=1)
    assert seen["keyTen"] == pytest.approx(11 * step, abs=1)
    assert "frames. " in seen["keyWords"]


def test_the_switches_change_what_is_drawn(seen: Any) -> None:
    assert seen["errorBandDiffers"]
    assert seen["noBands"] == 0
    assert seen["meanAgain"]
    assert seen["runsAlways"] == 3 * RUNS
    assert seen["runsNever"] == 0


def test_the_interquartile_mean_is_another_curve(seen: Any) -> None:
    assert seen["iqmDiffers"]


def numbers(cells: list[str]) -> list[float]:
    return [float(cell.replace("−", "-")) for cell in cells]


def test_it_sorts_by_pointer_and_key(seen: Any) -> None:
    down, up = numbers(seen["worstDown"]), numbers(seen["worstUp"])
    assert down == sorted(down, reverse=True)
    assert up == sorted(up)
    assert (seen["ariaDown"], seen["ariaUp"]) == ("descending", "ascending")
    assert len(seen["first"]) == len(seen["byName"]) == 20
    assert seen["byName"] != seen["first"]
    assert seen["byName"][0].startswith(HOSTILE)


def test_it_filters_by_words_and_case(seen: Any) -> None:
    assert seen["filtered"]
    assert all("width=64" in name and "0.001" in name for name in seen["filtered"])
    assert f"({len(seen['filtered'])} match)" in seen["filterWords"]
    assert seen["filteredOut"] == []
    assert len(seen["ofCase"]) == 18
    assert all(name.startswith("epsilon-greedy ") for name in seen["ofCase"])
    assert len(seen["all"]) == 39


def test_settings_can_be_added_to_the_curves_and_taken_away(seen: Any) -> None:
    assert seen["meansAdded"] == 4
    assert seen["focusKept"]
    assert seen["added"].removeprefix("Show the curve of ") in seen["legendAdded"][-1]
    assert seen["meansRemoved"] == 3
    assert seen["meansTyped"] == 4


def test_it_can_be_read_in_light_dark_and_print(seen: Any) -> None:
    for theme in ("light", "dark"):
        assert seen[theme]["contrast"]["ratio"] >= 4.5, seen[theme]["contrast"]
    assert seen["light"]["back"] == "rgb(255, 255, 255)"
    assert seen["dark"]["back"] == seen["toggled"]["back"] != seen["light"]["back"]
    assert seen["toggled"]["words"] == "Theme: dark"
    assert seen["printed"] is False


def test_a_phone_needs_no_scrolling_sideways(seen: Any) -> None:
    assert seen["phone"] == {"scroll": 0, "out": []}
    assert seen["tapped"] == 1


def test_every_control_has_a_name(seen: Any) -> None:
    assert seen["unnamed"] == []


def test_the_first_paint_takes_less_than_a_second(seen: Any) -> None:
    assert seen["paint"]
    assert max(seen["paint"]) < 1000
