"""The sensitivity curves of a sweep: a panel per hyperparameter, a curve per case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ipe.analysis.sensitivity import SensitivityCurve, ordered, sensitivity_curves
from ipe.analysis.series import ComparedSetting, Group, Series, read_groups
from ipe.experiments.declared import Sweep
from ipe.experiments.results import Results


@dataclass(frozen=True, eq=False)
class SensitivityPanel:
    """The curves of one hyperparameter.

    Attributes:
        hyperparameter: the hyperparameter's path in the settings.
        values: all values that any case takes, ascending where they can be ordered.
        curves: the curve of each case; `SensitivityCurve.settings` are indices into `series` of that case.
        series: the runs that the curves point to, by case.
    """

    hyperparameter: str
    values: list[Any]
    curves: dict[str, SensitivityCurve]
    series: dict[str, list[Series]]


def panels_by_environment(results: Results) -> dict[str, list[SensitivityPanel]]:
    """The panels of every environment of a sweep, by the environment's name in groups."""
    return {group.environment: sensitivity_panels(results.sweep, group) for group in read_groups(results)}


def sensitivity_panels(sweep: Sweep | None, group: Group) -> list[SensitivityPanel]:
    """The panels of one environment: best over the others, or one at a time, as the sweep was made. Recorded runs are
    of no sweep, and count as made in all combinations."""
    found: dict[str, dict[str, SensitivityCurve]] = {}
    by_case: dict[str, list[Series]] = {}
    for series in group.series:
        by_case.setdefault(series.setting.case, []).append(series)
    for case, members in by_case.items():
        for name, curve in _curves(sweep, members, case).items():
            found.setdefault(name, {})[case] = curve
    return [
        SensitivityPanel(
            name, list(ordered(value for curve in curves.values() for value in curve.values)), curves, by_case
        )
        for name, curves in found.items()
    ]


def _curves(sweep: Sweep | None, members: Sequence[Series], case: str) -> dict[str, SensitivityCurve]:
    points = [comparable(series.setting) for series in members]
    varied = [name for name in points[0] if len({point[name] for point in points}) > 1]
    if not varied:
        return {}
    base = None
    if sweep is not None and sweep.one_at_a_time:
        first = comparable(next(setting for setting in sweep.settings if setting.case == case))
        base = {name: first[name] for name in varied}
    settings = [{name: point[name] for name in varied} for point in points]
    return sensitivity_curves(settings, [series.auc for series in members], base)


def comparable(setting: ComparedSetting) -> dict[str, Any]:
    """The hyperparameters as values that can be compared: a list, as JSON has it, becomes a tuple."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in setting.varied.items()}
