"""The paper's sensitivity curves from a sweep by successive halving, with what was cut off marked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ipe.analysis.halving import Rungs, areas_over, ended_in, mean_area, ranked
from ipe.analysis.panels import SensitivityPanel, comparable
from ipe.analysis.scores import standard_error
from ipe.analysis.sensitivity import Cut, SensitivityCurve, ordered
from ipe.analysis.series import Series


def halving_panels(rungs: Rungs) -> dict[str, list[SensitivityPanel]]:
    """The paper's sensitivity curves, best over all other hyperparameters, from a sweep by halving; by environment.

    Of the settings with a value, the point shows one that came furthest: of those that ended in the same rung, the one
    with the largest mean AUC. Over fewer frames than the last rung's, the point says so (`SensitivityCurve.cut`), with
    the chosen setting's AUC over the same frames: the two can be compared, and points of different frames cannot.
    """
    out: dict[str, list[SensitivityPanel]] = {}
    for environment in dict.fromkeys(group.environment for group in rungs.groups[0]):
        found: dict[str, dict[str, SensitivityCurve]] = {}
        by_case: dict[str, list[Series]] = {}
        first = next(group for group in rungs.groups[0] if group.environment == environment)
        for case in dict.fromkeys(one.setting.case for one in first.series):
            ended = ended_in(rungs, environment, case)
            by_case[case] = [series for members in ended for series in members]
            for name, curve in _curves(rungs, ended).items():
                found.setdefault(name, {})[case] = curve
        out[environment] = [
            SensitivityPanel(name, list(ordered(v for curve in curves.values() for v in curve.values)), curves, by_case)
            for name, curves in found.items()
        ]
    return out


def _curves(rungs: Rungs, ended: Sequence[Sequence[Series]]) -> dict[str, SensitivityCurve]:
    """The curves of one case, from the settings that ended in each rung."""
    members = [(rung, series) for rung, part in enumerate(ended) for series in part]
    points = [comparable(series.setting) for _, series in members]
    chosen = ranked(ended[-1])[0]
    at_frames = [
        float(areas_over(rungs.last, chosen.trained, frames).mean()) for frames in rungs.halving.frames[: len(ended)]
    ]
    out = {}
    for name in points[0]:
        values = ordered(point[name] for point in points)
        if len(values) < 2:
            continue
        groups = [[i for i, point in enumerate(points) if point[name] == value] for value in values]
        best = [max(group, key=lambda i: (members[i][0], mean_area(members[i][1]))) for group in groups]
        shown = [members[i][1] for i in best]
        cuts = [
            None
            if members[i][0] == len(ended) - 1
            else Cut(rungs.halving.frames[members[i][0]], at_frames[members[i][0]])
            for i in best
        ]
        out[name] = SensitivityCurve(
            hyperparameter=name,
            kind="best over the others",
            values=values,
            mean=np.array([mean_area(series) for series in shown]),
            error=np.array([standard_error(series.auc) for series in shown]),
            n=tuple(series.n for series in shown),
            settings=tuple(best),
            candidates=tuple(len(group) for group in groups),
            cut=tuple(cuts),
        )
    return out
