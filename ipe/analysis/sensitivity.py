r"""Sensitivity curves: the score against the values of one hyperparameter.

In the paper's curves, each point is the best setting over all the other hyperparameters: what this value can reach
when everything else is tuned for it. One at a time, each point is a base setting with this one value changed: what a
user gets who tunes nothing else. The two answer different questions, and every curve says which of them it answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ipe.analysis.scores import check_scores, standard_error
from ipe.base.arrays import Array
from ipe.errors import InputError

Hyperparameters: TypeAlias = Mapping[str, Any]
"""The hyperparameters of a setting by name: numbers, words, None, tuples."""

Kind: TypeAlias = Literal["best over the others", "one at a time"]


@dataclass(frozen=True)
class Cut:
    """A point whose setting was cut off by successive halving: after how many frames, and the score over the same
    frames of the setting that was chosen in the end."""

    frames: int
    chosen: float


@dataclass(frozen=True, eq=False)
class SensitivityCurve:
    """Scores against the values of one hyperparameter.

    Attributes:
        hyperparameter: the hyperparameter's name.
        kind: what the other hyperparameters are at each point.
        values: the hyperparameter's values, ascending where they can be ordered, otherwise in the order given.
        mean: the mean score at each value.
        error: the standard error of each mean over runs; NaN for a single run.
        n: the number of runs at each value.
        settings: the index of the setting that each point shows; of several with the same mean, the first.
        candidates: how many settings each point is the best of.
        cut: for each point, where its setting was cut off by successive halving; None for one that was not. Empty if
            nothing was cut off.
    """

    hyperparameter: str
    kind: Kind
    values: tuple[Any, ...]
    mean: Array
    error: Array
    n: tuple[int, ...]
    settings: tuple[int, ...]
    candidates: tuple[int, ...]
    cut: tuple[Cut | None, ...] = ()


def varied(settings: Sequence[Hyperparameters]) -> dict[str, tuple[Any, ...]]:
    """The hyperparameters that take more than one value, with their values.

    Example:
        >>> varied([{"alpha": 0.1, "width": 128}, {"alpha": 0.01, "width": 128}])
        {'alpha': (0.01, 0.1)}
    """
    check_settings(settings)
    found = {name: ordered(setting[name] for setting in settings) for name in settings[0]}
    return {name: values for name, values in found.items() if len(values) > 1}


def sensitivity_curve(
    settings: Sequence[Hyperparameters], scores: Sequence[ArrayLike], hyperparameter: str
) -> SensitivityCurve:
    r"""The best mean score over all other hyperparameters, for each value of one: the paper's sensitivity curve.

    .. math:: S(x) = \max_{h :\, h_{\text{name}} = x} \bar p(h) ,

    with the mean :math:`\bar p(h)` over the runs of setting h. Each point was chosen by the same runs that it shows:
    the more candidates it was chosen from, the more it overstates the setting.

    Args:
        settings: the hyperparameters of each setting.
        scores: for each setting, one number per run.
        hyperparameter: the hyperparameter whose values are the points.

    Example:
        >>> settings = [{"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 1}]
        >>> curve = sensitivity_curve(settings, [[0.0, 2.0], [3.0, 5.0], [2.0, 2.0]], "a")
        >>> curve.values, curve.mean, curve.settings
        ((1, 2), array([4., 2.]), (1, 2))
    """
    check_settings(settings)
    _check_name(settings, hyperparameter)
    return _curve(settings, _runs(settings, scores), hyperparameter, range(len(settings)), "best over the others")


def one_at_a_time_curve(
    settings: Sequence[Hyperparameters], scores: Sequence[ArrayLike], base: Hyperparameters, hyperparameter: str
) -> SensitivityCurve:
    """The mean score for each value of one hyperparameter, with every other as in a base setting.

    Args:
        settings: the hyperparameters of each setting; settings that differ from the base in others are left out.
        scores: for each setting, one number per run.
        base: the setting around which the hyperparameter is varied.
        hyperparameter: the hyperparameter that varies.
    """
    check_settings(settings)
    if set(base) != set(settings[0]):
        odd = sorted(set(base) ^ set(settings[0]))
        raise InputError(f"base and settings must name the same hyperparameters; only one of them has {', '.join(odd)}")
    _check_name(settings, hyperparameter)
    runs = _runs(settings, scores)
    at = [i for i, s in enumerate(settings) if all(s[name] == base[name] for name in base if name != hyperparameter)]
    if not at:
        raise InputError(f"settings: none agrees with base in all but {hyperparameter!r}")
    curve = _curve(settings, runs, hyperparameter, at, "one at a time")
    if max(curve.candidates) > 1:
        value = curve.values[int(np.argmax(curve.candidates))]
        raise InputError(f"settings: more than one is base with {hyperparameter} = {value!r}; pool their runs first")
    return curve


def sensitivity_curves(
    settings: Sequence[Hyperparameters], scores: Sequence[ArrayLike], base: Hyperparameters | None = None
) -> dict[str, SensitivityCurve]:
    """The curve of every hyperparameter that varies: best over the others or, around a base, one at a time."""
    if base is None:
        return {name: sensitivity_curve(settings, scores, name) for name in varied(settings)}
    found = {name: one_at_a_time_curve(settings, scores, base, name) for name in varied(settings)}
    return {name: curve for name, curve in found.items() if len(curve.values) > 1}


def check_settings(settings: Sequence[Hyperparameters]) -> None:
    """At least one setting, all with the same hyperparameters, whose values can be told apart."""
    if not settings:
        raise InputError("settings is empty")
    for i, setting in enumerate(settings):
        odd = sorted(set(setting) ^ set(settings[0]))
        if odd:
            raise InputError(
                f"settings[{i}] and settings[0] differ in which hyperparameters they have: {', '.join(odd)}"
            )
        for name, value in setting.items():
            if not _comparable(value):
                raise InputError(
                    f"settings[{i}][{name!r}] = {value!r} cannot be compared: a number, word, or tuple can"
                )


def _check_name(settings: Sequence[Hyperparameters], name: str) -> None:
    if name not in settings[0]:
        raise InputError(f"hyperparameter {name!r} is not in the settings; they have {', '.join(settings[0])}")


def _comparable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return bool(value == value)  # NaN is not


def _curve(
    settings: Sequence[Hyperparameters], runs: Sequence[Array], name: str, at: Sequence[int], kind: Kind
) -> SensitivityCurve:
    values = ordered(settings[i][name] for i in at)
    groups = [[i for i in at if settings[i][name] == value] for value in values]
    means = {i: math.fsum(runs[i]) / runs[i].size for i in at}
    best = [max(group, key=means.__getitem__) for group in groups]
    return SensitivityCurve(
        hyperparameter=name,
        kind=kind,
        values=values,
        mean=np.array([means[i] for i in best]),
        error=np.array([standard_error(runs[i]) for i in best]),
        n=tuple(runs[i].size for i in best),
        settings=tuple(best),
        candidates=tuple(len(group) for group in groups),
    )


def _runs(settings: Sequence[Hyperparameters], scores: Sequence[ArrayLike]) -> list[Array]:
    if len(scores) != len(settings):
        raise InputError(f"scores must have one entry per setting, {len(settings)}; found {len(scores)}")
    return [check_scores(values, f"scores[{i}]") for i, values in enumerate(scores)]


def ordered(values: Iterable[Any]) -> tuple[Any, ...]:
    """The distinct values, ascending; in the order given where they cannot be compared, as words among numbers."""
    distinct = list(dict.fromkeys(values))
    try:
        return tuple(sorted(distinct))
    except TypeError:
        return tuple(distinct)
