"""The sweeps that the tests of the report look at."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from ipe.experiments.declared import Setting, Sweep
from ipe.experiments.grids import make_sweep
from ipe.experiments.results import Results
from tests.sweep_results import simulated_results

FRAMES = 20_000
HOSTILE = "</script><script>alert(1)</script>"
CASES = {"epsilon-ipe": {"behaviour": "epsilon-ipe"}, "epsilon-greedy": {"behaviour": "epsilon-greedy"}}


def level(setting: Setting) -> float:
    bonus = {64: 0.0, 128: 30.0, 256: 10.0}[setting.varied.get("width", 64)]
    return bonus + (100.0 if setting.settings.learns_policy else 50.0) - 1e3 * setting.settings.value_step_size


def a_sweep(**changes: Any) -> Sweep:
    content: dict[str, Any] = {
        "name": "small",
        "seeds": 4,
        "base": {"environment": "LunarLander-v3", "frames": FRAMES},
        "grid": {"width": [64, 128, 256], "value_step_size": [0.01, 0.001]},
        "cases": CASES,
    }
    return make_sweep(content | changes)


def results_of(sweep: Sweep, **more: Any) -> Results:
    return simulated_results(sweep, level=level, **more)


def small_results() -> Results:
    """Twelve settings, with a run that diverged and one that never finished an episode."""
    return results_of(a_sweep(), bad={(7, 2): ("diverged", 9000), (8, 1): ("failed", 0)})


def fresh_runs(seeds: list[int]) -> Results:
    base = {"environment": "LunarLander-v3", "frames": FRAMES, "width": 128, "value_step_size": 0.001}
    return results_of(make_sweep({"name": "fresh", "seeds": seeds, "base": base, "cases": CASES}))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
