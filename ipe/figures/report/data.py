"""The report as plain data, small enough to be mailed: what the page draws from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ipe.analysis import Interval
from ipe.analysis.bootstrap import Seed, check_generator
from ipe.analysis.curves import WINDOW
from ipe.base.arrays import Array
from ipe.base.nested import flatten
from ipe.experiments.declared import Setting, Sweep
from ipe.figures.report.bands import curve_bands
from ipe.figures.report.findings import Findings, Row, unfinished_runs
from ipe.figures.report.sensitivity import SensitivityPanel
from ipe.figures.report.series import Series

Step: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

SINGLE_RUNS = 12
"""How many settings of a large sweep have their single runs in the page, beside the contenders."""
_ALL_RUNS = 16
_RESOLUTION = 4000.0
"""Steps in the range of a curve: finer than a screen."""


def environment_data(
    findings: Findings, panels: Sequence[SensitivityPanel], *, seed: Seed, step: Step | None = None
) -> dict[str, Any]:
    """One environment: its settings with their curves, the comparisons, the sensitivity.

    Args:
        findings: what its runs say.
        panels: its sensitivity curves.
        seed: of the bootstrap of the curves.
        step: called setting by setting.
    """
    rows = [*findings.ranking, *findings.fresh]
    index = {id(row.series): i for i, row in enumerate(rows)}
    decimals = _decimals([row.series.curves for row in rows])
    few = len(rows) <= _ALL_RUNS
    contenders = {id(row) for row in findings.contenders}
    rng, settings = check_generator(seed), []
    for i, row in enumerate(rows):
        if step is not None:
            step("intervals of the curves", i, len(rows))
        runs = few or i < SINGLE_RUNS or row.series.fresh or id(row) in contenders
        settings.append(_setting(row, runs, decimals, rng))
    return {
        "id": findings.group.environment,
        "frames": findings.group.frames,
        "grid": findings.group.grid.tolist(),
        "settings": settings,
        "shown": [index[id(row.series)] for row in findings.contenders],
        "chosen": [index[id(row.series)] for row in findings.chosen],
        "comparisons": [
            {
                "first": index[id(pair.first.series)],
                "second": index[id(pair.second.series)],
                "probability": interval(pair.probability),
                "difference": interval(pair.difference),
            }
            for pair in findings.comparisons
        ],
        "profiles": [
            {
                "setting": index[id(row.series)],
                "tau": [number(value) for value in profile.tau],
                "mean": rounded(profile.fraction, 3),
                "low": rounded(profile.low, 3),
                "high": rounded(profile.high, 3),
            }
            for row, profile in zip(findings.contenders, findings.profiles, strict=True)
        ],
        "sensitivity": [_panel(panel, index) for panel in panels],
        "unfinished": unfinished_runs(findings.group),
        "problems": findings.problems,
    }


def settings_data(sweep: Sweep) -> dict[str, Any]:
    """What all settings share, by path, and what differs between them."""
    flat = [flatten(setting.settings.model_dump()) for setting in sweep.settings]
    paths = list(dict.fromkeys(path for one in flat for path in one))
    same = {path: flat[0].get(path) for path in paths if all(one.get(path) == flat[0].get(path) for one in flat)}
    varied = {path: _distinct([one.get(path) for one in flat]) for path in paths if path not in same}
    return {"common": same, "varied": varied, "window": WINDOW}


def number(value: float) -> float | int | None:
    """A number with six digits, or None where there is none.

    Example:
        >>> number(123.456789), number(2.0), number(float("nan"))
        (123.457, 2, None)
    """
    if not math.isfinite(value):
        return None
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def rounded(values: Array, decimals: int) -> list[float | int | None]:
    """Numbers with so many decimals, None where there is none.

    Example:
        >>> rounded(np.array([np.nan, 1.26, 3.0]), 1)
        [None, 1.3, 3]
    """
    out: list[float | int | None] = []
    for value in np.round(values, decimals).tolist():
        if not math.isfinite(value):
            out.append(None)
        else:
            out.append(int(value) if value.is_integer() else value)
    return out


def interval(found: Interval) -> list[float | int | None]:
    """Estimate, lower and upper end."""
    return [number(found.estimate), number(found.low), number(found.high)]


def _setting(row: Row, runs: bool, decimals: int, rng: np.random.Generator) -> dict[str, Any]:
    own = row.series
    bands = curve_bands(own.curves, seed=rng) if np.isfinite(own.curves).any() else None
    return {
        "name": own.name,
        **_identity(own.setting),
        "fresh": own.fresh,
        "rank": row.rank,
        "n": own.n,
        "planned": own.planned,
        "failed": own.count("failed"),
        "diverged": own.count("diverged"),
        "mean": number(row.mean),
        "error": number(row.standard_error),
        "iqm": interval(row.iqm),
        "worst": number(row.worst),
        "final": number(row.final),
        "finalError": number(row.final_error),
        "best": number(row.probability_best),
        "curve": None if bands is None else {name: rounded(values, decimals) for name, values in vars(bands).items()},
        "epsilon": _range(own.epsilon),
        "entropy": _range(own.entropy),
        "runs": _runs(own, decimals) if runs else None,
    }


def _identity(setting: Setting) -> dict[str, Any]:
    return {"case": setting.case, "varied": setting.varied, "key": setting.key}


def _runs(own: Series, decimals: int) -> list[dict[str, Any]]:
    return [
        {
            "seed": outcome["seed"],
            "status": outcome["status"],
            "auc": number(float(area)),
            "curve": rounded(values, decimals),
        }
        for outcome, area, values in zip(own.outcomes, own.auc, own.curves, strict=True)
    ]


def _range(values: Array | None) -> dict[str, Any] | None:
    """Mean, least and greatest over runs; the mean alone where all runs have the same, as with a schedule."""
    if values is None:
        return None
    seen = ~np.isnan(values).all(axis=0)
    out = np.full((3, values.shape[1]), np.nan)
    some = values[:, seen]
    out[:, seen] = np.nanmean(some, axis=0), np.nanmin(some, axis=0), np.nanmax(some, axis=0)
    mean, low, high = (rounded(line, 4) for line in out)
    return {"mean": mean} if low == high else {"mean": mean, "low": low, "high": high}


def _panel(panel: SensitivityPanel, index: Mapping[int, int]) -> dict[str, Any]:
    curves = []
    for case, curve in panel.curves.items():
        points = [
            {
                "x": panel.values.index(value),
                "mean": number(float(curve.mean[i])),
                "error": number(float(curve.error[i])),
                "n": curve.n[i],
                "setting": index[id(panel.series[case][curve.settings[i]])],
                "candidates": curve.candidates[i],
            }
            for i, value in enumerate(curve.values)
        ]
        curves.append({"case": case, "kind": curve.kind, "points": points})
    return {"hyperparameter": panel.hyperparameter, "values": panel.values, "curves": curves}


def _decimals(curves: Sequence[Array]) -> int:
    """So many decimals that the range of all curves has some thousand steps."""
    ends = [(np.nanmin(values), np.nanmax(values)) for values in curves if np.isfinite(values).any()]
    span = max(high for _, high in ends) - min(low for low, _ in ends)
    return int(np.clip(math.ceil(math.log10(_RESOLUTION / span)), 0, 12)) if span > 0 else 3


def _distinct(values: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if value not in out:
            out.append(value)
    return out
