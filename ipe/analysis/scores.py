r"""Scores: one number per run, which is what all statistics here take.

The unit is the run, never the episode: episodes of one run share its networks and its luck, and counting them as
independent makes every interval too narrow. A score is an AUC, a final return, whatever sums up one run.

Runs that failed or diverged stay in: leaving them out reports the algorithm that did not fail. Give them a score
(`score_failed`): one that you can defend, or the worst that was seen anywhere in the comparison (`worst_seen`). A NaN
that is left is refused with its index.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ipe.analysis.columns import one_axis
from ipe.base.arrays import Array
from ipe.errors import InputError

Scores: TypeAlias = ArrayLike | Mapping[str, ArrayLike]
"""One number per run; or, for several tasks or settings (strata), a name for each with one number per run."""


def check_scores(scores: ArrayLike, name: str = "scores") -> Array:
    """One finite number per run, of at least one run."""
    values = one_axis(scores, name)
    if values.size == 0:
        raise InputError(f"{name} must have one number per run, of at least one run; found none")
    wrong = ~np.isfinite(values)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(
            f"{name}[{i}] = {values[i]:g}: a run that failed stays in the statistics, with a score; see score_failed"
        )
    return values


def check_strata(scores: Scores, name: str = "scores") -> dict[str, Array]:
    """The scores of each stratum; a single array is a single stratum."""
    if not isinstance(scores, Mapping):
        return {"": check_scores(scores, name)}
    if not scores:
        raise InputError(f"{name} is empty: it must have at least one task with one number per run")
    return {str(key): check_scores(values, f"{name}[{key!r}]") for key, values in scores.items()}


def worst_seen(*scores: Scores) -> float:
    """The smallest finite score of all runs given: a score for those that failed.

    Example:
        >>> worst_seen([3.0, np.nan], {"other": [1.0, 2.0]})
        1.0
    """
    arrays = [a for s in scores for a in (s.values() if isinstance(s, Mapping) else [s])]
    values = np.concatenate([np.empty(0), *(one_axis(a, f"scores {i}") for i, a in enumerate(arrays))])
    finite = values[np.isfinite(values)]
    if finite.size == 0:
        raise InputError("scores: no run has a finite score, so there is no worst one")
    return float(finite.min())


def score_failed(scores: ArrayLike, score: float | None = None) -> Array:
    """The scores, with those that are not finite (runs that failed or diverged) given a score.

    Args:
        scores: one number per run.
        score: what a failed run scores; by default the worst of `scores`. When settings are compared, give all of
            them the same one: `worst_seen` of all.

    Example:
        >>> score_failed([5.0, np.nan, 4.0])
        array([5., 4., 4.])
    """
    values = one_axis(scores, "scores")
    failed = ~np.isfinite(values)
    fill = worst_seen(values) if score is None and failed.any() else score
    if fill is not None and not math.isfinite(fill):
        raise InputError(f"score must be a finite number, found {fill!r}")
    return np.where(failed, 0.0 if fill is None else fill, values)


def standard_error(values: Array) -> float:
    r"""The standard error of the mean of runs, :math:`s / \sqrt{n}`; NaN for a single one."""
    return float(np.std(values, ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan
