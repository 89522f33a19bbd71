"""The report as plain data, small enough to be mailed: what the page draws from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, TypeAlias

import numpy as np

from ipe.analysis import Interval
from ipe.analysis.bands import bootstrap_band, curve_bands, tolerance_band
from ipe.analysis.bootstrap import Seed, check_generator
from ipe.analysis.curves import WINDOW, mean_and_standard_error
from ipe.analysis.differences import compare_settings
from ipe.analysis.findings import TOLERANCE, Findings, Row
from ipe.analysis.halving import CaseSelection
from ipe.analysis.panels import SensitivityPanel
from ipe.analysis.provenance import RunCost
from ipe.analysis.sensitivity import SensitivityCurve
from ipe.analysis.series import ComparedSetting, Series, unfinished_runs
from ipe.base.arrays import Array
from ipe.base.looks import slot_of

Step: TypeAlias = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is."""

SINGLE_RUNS = 12
"""How many settings of a large sweep have their single runs in the page, beside the contenders."""
_ALL_RUNS = 16
_RESOLUTION = 4000.0
"""How many steps the range of the curves is rounded to: finer than a screen."""


def environment_data(
    findings: Findings, panels: Sequence[SensitivityPanel], *, seed: Seed, step: Step | None = None
) -> dict[str, Any]:
    """One environment: its settings with their curves, the comparisons, the sensitivity. `step` is called before each
    setting."""
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
        "measure": asdict(findings.group.measure) | {"sources": list(findings.group.measure.sources)},
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
                "p": number(pair.p_value),
                "corrected": number(pair.corrected),
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
        "differences": compare_settings([row.series.setting.fields() for row in findings.contenders])[1],
        "tolerance": TOLERANCE,
        "sensitivity": [_panel(panel) for panel in panels],
        "unfinished": unfinished_runs(findings.group),
        "problems": findings.problems,
    }


def cost_data(cost: RunCost) -> dict[str, Any]:
    """What the runs took: hours, processors and dates."""
    return {
        "hours": number(cost.core_hours),
        "words": cost.words,
        "machines": list(cost.machines),
        "first": cost.first,
        "last": cost.last,
    }


def selection_data(found: CaseSelection) -> dict[str, Any]:
    """How successive halving chose the setting of a case: every rung, what it cut, and how sure the choice is."""
    rungs = [
        {
            "frames": rung.frames,
            "runs": rung.runs,
            "settings": rung.settings,
            "kept": rung.kept,
            "bar": number(rung.bar),
            "beaten": number(rung.beaten),
            "cut": [[one.name, number(one.mean), number(one.standard_error)] for one in rung.cut],
        }
        for rung in found.rungs
    ]
    return {
        "environment": found.environment,
        "case": found.case,
        "chosen": found.chosen,
        "probabilityOfFinalists": number(found.probability_of_finalists),
        "probability": number(found.probability),
        "rungs": rungs,
    }


def settings_data(settings: Sequence[ComparedSetting]) -> dict[str, Any]:
    """The fields that all settings share, by path, and the values of those that differ between settings."""
    common, differing = compare_settings([setting.fields() for setting in settings])
    varied = {path: _distinct(values) for path, values in differing.items()}
    return {"common": common, "varied": varied, "window": WINDOW}


def number(value: float) -> float | int | None:
    """A number with six digits, or None for NaN and infinity.

    Example:
        >>> number(123.456789), number(2.0), number(float("nan"))
        (123.457, 2, None)
    """
    if not math.isfinite(value):
        return None
    short = float(f"{value:.6g}")
    return int(short) if short.is_integer() and abs(short) < 2**53 else short


def rounded(values: Array, decimals: int) -> list[float | int | None]:
    """Numbers rounded to some decimals, None where there is no number.

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
    series, tolerance = row.series, row.tolerance
    return {
        "name": series.name,
        **_identity(series.setting),
        "slot": slot_of(series.setting.behaviour),
        "fresh": series.fresh,
        "rank": row.rank,
        "n": series.n,
        "planned": series.planned,
        "failed": series.count("failed"),
        "diverged": series.count("diverged"),
        "short": series.count("short"),
        "mean": number(row.mean),
        "error": number(row.standard_error),
        "interval": interval(row.interval),
        "iqm": interval(row.iqm),
        "tolerance": None if tolerance is None else [number(tolerance.low), number(tolerance.high)],
        "covered": number(row.covered),
        "worst": number(row.worst),
        "greatest": number(row.greatest),
        "final": number(row.final),
        "finalError": number(row.final_error),
        "best": number(row.probability_best),
        "curve": _curve(row, decimals, rng),
        "evaluated": _evaluated(series, decimals, rng),
        "epsilon": _range(series.epsilon),
        "entropy": _range(series.entropy),
        "runs": _runs(series, decimals) if runs else None,
    }


def _curve(row: Row, decimals: int, rng: np.random.Generator) -> dict[str, Any] | None:
    """The mean curve and its bands; the band where most runs lie only if there are enough runs for it."""
    curves = row.series.curves
    if not np.isfinite(curves).any():
        return None
    lines = dict(vars(curve_bands(curves, seed=rng)))
    if row.tolerance is not None:
        lines["tolerance_low"], lines["tolerance_high"] = tolerance_band(curves, coverage=TOLERANCE)
    return {name: rounded(values, decimals) for name, values in lines.items()}


def _evaluated(series: Series, decimals: int, rng: np.random.Generator) -> dict[str, Any] | None:
    """The mean over runs of the last greedy evaluation, its interval, and both returns where the curves end."""
    values = series.evaluated
    if values is None:
        return None
    low, high = bootstrap_band(values, seed=rng)
    greedy, training = mean_and_standard_error(values), mean_and_standard_error(series.curves)
    lines = {"mean": greedy.mean, "low": low, "high": high}
    ends = {"end": greedy, "trained": training}
    return {name: rounded(line, decimals) for name, line in lines.items()} | {
        name: [number(float(one.mean[-1])), number(float(one.error[-1]))] for name, one in ends.items()
    }


def _identity(setting: ComparedSetting) -> dict[str, Any]:
    return {"case": setting.case, "varied": setting.varied, "key": setting.key}


def _runs(series: Series, decimals: int) -> list[dict[str, Any]]:
    return [
        {
            "seed": outcome["seed"],
            "status": outcome["status"],
            "auc": number(float(area)),
            "curve": rounded(values, decimals),
        }
        for outcome, area, values in zip(series.outcomes, series.auc, series.curves, strict=True)
    ]


def _range(values: Array | None) -> dict[str, Any] | None:
    """Mean, least and greatest over runs; the mean alone where all runs are equal, as with a schedule."""
    if values is None:
        return None
    seen = ~np.isnan(values).all(axis=0)
    out = np.full((3, values.shape[1]), np.nan)
    some = values[:, seen]
    out[:, seen] = np.nanmean(some, axis=0), np.nanmin(some, axis=0), np.nanmax(some, axis=0)
    mean, low, high = (rounded(line, 4) for line in out)
    return {"mean": mean} if low == high else {"mean": mean, "low": low, "high": high}


def _panel(panel: SensitivityPanel) -> dict[str, Any]:
    curves = []
    for case, curve in panel.curves.items():
        points = [
            {
                "x": panel.values.index(value),
                "mean": number(float(curve.mean[i])),
                "error": number(float(curve.error[i])),
                "n": curve.n[i],
                "setting": panel.series[case][curve.settings[i]].setting.name,
                "frames": panel.series[case][curve.settings[i]].setting.frames,
                "candidates": curve.candidates[i],
                **_cut(curve, i),
            }
            for i, value in enumerate(curve.values)
        ]
        curves.append({"case": case, "kind": curve.kind, "points": points})
    return {"hyperparameter": panel.hyperparameter, "values": panel.values, "curves": curves}


def _cut(curve: SensitivityCurve, i: int) -> dict[str, Any]:
    cut = curve.cut[i] if curve.cut else None
    return {} if cut is None else {"cut": cut.frames, "chosen": number(cut.chosen)}


def _decimals(curves: Sequence[Array]) -> int:
    """The number of decimals with which the range of all curves has some thousand steps."""
    ends = [(np.nanmin(values), np.nanmax(values)) for values in curves if np.isfinite(values).any()]
    span = max(high for _, high in ends) - min(low for low, _ in ends)
    return int(np.clip(math.ceil(math.log10(_RESOLUTION / span)), 0, 12)) if span > 0 else 3


def _distinct(values: Sequence[Any]) -> list[Any]:
    out: list[Any] = []
    for value in values:
        if value not in out:
            out.append(value)
    return out
