r"""How much an algorithm leans on tuning: hyperparameter sensitivity and effective hyperparameter dimensionality.

The measures of Adkins, Bowling and White, "A Method for Evaluating Hyperparameter Sensitivity in Reinforcement
Learning" (NeurIPS 2024). With the mean score :math:`\hat p(e, h)` of setting h in environment e, normalised as
:math:`\Gamma(e, h)` so that environments can be averaged, they compare tuning for each environment with one setting
for all of them. Both speak of the environments and the grid that were run, and of no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ipe.analysis.columns import check_share
from ipe.analysis.sensitivity import Setting, check_settings, varied
from ipe.base.arrays import Array, numeric
from ipe.errors import InputError


@dataclass(frozen=True)
class HyperparameterSensitivity:
    """What tuning for each environment gains over one setting for all.

    Attributes:
        sensitivity: `tuned` less `fixed`; 0 if one setting is best everywhere.
        tuned: the mean over environments of the best score in each.
        fixed: the best, over settings, of the mean score over environments.
        best: the setting that attains `fixed`; of several, the first.
        ties: all that attain it, if more than one.
        best_per_environment: the setting that is best in each environment; of several, the first.
    """

    sensitivity: float
    tuned: float
    fixed: float
    best: int
    ties: tuple[int, ...]
    best_per_environment: tuple[int, ...]


@dataclass(frozen=True)
class EffectiveDimensionality:
    """How many hyperparameters must be tuned for each environment.

    Attributes:
        dimensionality: the smallest number of them that reaches `target`.
        target: the threshold times the score with all of them tuned.
        score: by the number tuned, 0 to all, the best score over which ones.
        tuned: by that number, the ones that attain it; of several sets, the first.
        fixed: the setting (its index) whose values the others keep.
    """

    dimensionality: int
    target: float
    score: tuple[float, ...]
    tuned: tuple[tuple[str, ...], ...]
    fixed: int


def normalised_scores(scores: ArrayLike, pool: ArrayLike | None = None) -> Array:
    r"""Scores between the 5th and the 95th percentile of their environment, so that environments can be averaged.

    .. math:: \Gamma(e, h) = \frac{\hat p(e, h) - p_5(e)}{p_{95}(e) - p_5(e)} ,

    with the percentiles of all mean scores seen in environment e. When algorithms are compared, all must be normalised
    by the same: give those of all algorithms as the pool.

    Args:
        scores: mean over runs, shape (environments, settings).
        pool: shape (environments, anything); by default `scores`.

    Example:
        >>> normalised_scores([[0.0, 10.0, 20.0]]).round(3)
        array([[-0.056,  0.5  ,  1.056]])
    """
    values = _scores(scores, "scores")
    seen = values if pool is None else _scores(pool, "pool")
    if len(seen) != len(values):
        raise InputError(f"pool must have a row per environment, {len(values)}; found {len(seen)}")
    low, high = np.percentile(seen, [5.0, 95.0], axis=1)
    flat = high <= low
    if flat.any():
        e = int(np.argmax(flat))
        raise InputError(f"scores of environment {e} are (nearly) all {low[e]:g}: they cannot be normalised")
    return np.asarray((values - low[:, None]) / (high - low)[:, None])


def hyperparameter_sensitivity(gamma: ArrayLike) -> HyperparameterSensitivity:
    r"""The sensitivity of an algorithm's score to tuning for each environment.

    .. math:: \Phi = \frac{1}{|E|} \sum_e \max_h \Gamma(e, h) - \max_h \frac{1}{|E|} \sum_e \Gamma(e, h) \ge 0 .

    Args:
        gamma: normalised scores, shape (environments, settings).

    Example:
        >>> found = hyperparameter_sensitivity([[1.0, 0.0, 0.75], [0.0, 1.0, 0.5]])
        >>> found.tuned, found.fixed, found.sensitivity, found.best
        (1.0, 0.625, 0.375, 2)
    """
    values = _scores(gamma, "gamma")
    across = values.mean(axis=0)
    tuned, fixed = float(values.max(axis=1).mean()), float(across.max())
    ties = tuple(int(h) for h in np.flatnonzero(across == fixed))
    return HyperparameterSensitivity(
        sensitivity=max(tuned - fixed, 0.0),  # rounding alone can bring it below
        tuned=tuned,
        fixed=fixed,
        best=ties[0],
        ties=ties if len(ties) > 1 else (),
        best_per_environment=tuple(int(h) for h in values.argmax(axis=1)),
    )


def effective_dimensionality(
    gamma: ArrayLike, settings: Sequence[Setting], threshold: float = 0.95
) -> EffectiveDimensionality:
    r"""How many hyperparameters must be tuned for each environment to keep nearly all that tuning gives.

    With :math:`h^* = \arg\max_h \sum_e \Gamma(e, h)`, the best setting for all environments, and a set T of
    hyperparameters that are tuned while all others keep their value in :math:`h^*`,

    .. math:: d = \min_T |T| \quad \text{subject to} \quad
        \frac{1}{|E|} \sum_e \max_{h :\, h_i = h^*_i\, (i \notin T)} \Gamma(e, h)
        \;\ge\; 0.95 \cdot \frac{1}{|E|} \sum_e \max_h \Gamma(e, h) .

    Every set of the hyperparameters that vary is tried.

    Args:
        gamma: normalised scores, shape (environments, settings).
        settings: the hyperparameters of each setting.
        threshold: the share to keep.

    Example:
        Only "a" matters to which setting is best where:

        >>> settings = [{"a": a, "b": b} for a in (1, 2) for b in (1, 2)]
        >>> effective_dimensionality([[1.0, 0.99, 0.2, 0.1], [0.1, 0.2, 0.99, 1.0]], settings).dimensionality
        1
    """
    values, share = _scores(gamma, "gamma"), check_share(threshold, "threshold")
    check_settings(settings)
    if len(settings) != values.shape[1]:
        raise InputError(f"settings must have one entry per column of gamma, {values.shape[1]}; found {len(settings)}")
    whole = hyperparameter_sensitivity(values)
    if whole.tuned <= 0.0:
        raise InputError(
            f"gamma: the tuned score is {whole.tuned:g}; a share of it means nothing unless it is positive"
        )
    names = tuple(varied(settings))
    same = {name: np.array([s[name] == settings[whole.best][name] for s in settings]) for name in names}
    best = [_best_set(values, same, names, size) for size in range(len(names) + 1)]
    target = share * whole.tuned
    reached = next(size for size, (score, _) in enumerate(best) if score >= target)
    return EffectiveDimensionality(
        reached, target, tuple(score for score, _ in best), tuple(chosen for _, chosen in best), whole.best
    )


def _best_set(values: Array, same: dict[str, Any], names: tuple[str, ...], size: int) -> tuple[float, tuple[str, ...]]:
    """The set of that many hyperparameters whose tuning gives the most, and its score."""

    def score(tuned: tuple[str, ...]) -> float:
        open_to = np.ones(values.shape[1], dtype=bool)
        for name in names:
            if name not in tuned:
                open_to &= same[name]
        return float(values[:, open_to].max(axis=1).mean())

    chosen = max(combinations(names, size), key=score)
    return score(chosen), chosen


def _scores(scores: ArrayLike, name: str) -> Array:
    values = numeric(scores, name)
    if values.ndim != 2 or values.size == 0:
        raise InputError(f"{name} must have shape (environments, settings); found {values.shape}")
    wrong = ~np.isfinite(values)
    if wrong.any():
        e, h = np.argwhere(wrong)[0]
        raise InputError(f"{name}[{e}, {h}] = {values[e, h]:g}: a setting that failed stays in, with a score")
    return values
