"""The sensitivity curves of a sweep: a panel per hyperparameter, a curve per case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ipe.analysis import SensitivityCurve, sensitivity_curves
from ipe.experiments.declared import Setting, Sweep
from ipe.figures.report.series import Group, Series


@dataclass(frozen=True, eq=False)
class SensitivityPanel:
    """One hyperparameter.

    Attributes:
        hyperparameter: its path in the settings.
        values: all values that any case takes, ascending where they can be ordered.
        curves: by case; `SensitivityCurve.settings` are indices into `series` of that case.
        series: the runs that the curves point to, by case.
    """

    hyperparameter: str
    values: list[Any]
    curves: dict[str, SensitivityCurve]
    series: dict[str, list[Series]]


def sensitivity_panels(sweep: Sweep, group: Group) -> list[SensitivityPanel]:
    """The panels of one environment: best over the others, or one at a time, as the sweep was made.

    Args:
        sweep: says how its values were varied.
        group: the runs.
    """
    found: dict[str, dict[str, SensitivityCurve]] = {}
    series: dict[str, list[Series]] = {}
    for case in dict.fromkeys(own.setting.case for own in group.series):
        own = series[case] = [one for one in group.series if one.setting.case == case]
        for name, curve in _curves(sweep, own, case).items():
            found.setdefault(name, {})[case] = curve
    return [
        SensitivityPanel(name, _union([curve.values for curve in curves.values()]), curves, series)
        for name, curves in found.items()
    ]


def _curves(sweep: Sweep, series: Sequence[Series], case: str) -> dict[str, SensitivityCurve]:
    points = [_plain(own.setting) for own in series]
    constant = [name for name in points[0] if len({point[name] for point in points}) == 1]
    points = [{name: value for name, value in point.items() if name not in constant} for point in points]
    if not points[0]:
        return {}
    base = None
    if sweep.one_at_a_time:
        first = _plain(next(setting for setting in sweep.settings if setting.case == case))
        base = {name: first[name] for name in points[0]}
    return sensitivity_curves(points, [own.auc for own in series], base)


def _plain(setting: Setting) -> dict[str, Any]:
    """The hyperparameters as values that can be compared; lists, as JSON has them, as tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in setting.varied.items()}


def _union(several: Sequence[Sequence[Any]]) -> list[Any]:
    every = list(dict.fromkeys(value for values in several for value in values))
    try:
        return sorted(every)
    except TypeError:  # words among numbers
        return every
