r"""Selection: the best setting of a sweep by its mean AUC, how sure that is, and the whole ranking.

The functions take one number per run (see `ipe.analysis.scores`). On the runs that chose it, the best setting looks
better than it is, the more so the more settings there were. Report its mean on fresh runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ipe.analysis.bootstrap import RESAMPLES, Seed, apply_statistic, check_generator, resampled, statistic_of
from ipe.analysis.columns import check_count
from ipe.analysis.scores import check_scores, standard_error
from ipe.base.arrays import Array
from ipe.errors import InputError


@dataclass(frozen=True)
class RankedSetting:
    """One row of the ranking.

    Attributes:
        rank: 1 plus the number of settings with a larger mean: equal means share a rank.
        setting: the setting's name.
        n: the number of its runs.
        mean: the mean score of its runs.
        standard_error: the standard error of the mean; NaN for a single run.
        probability_best: how often the setting has the largest mean when runs are drawn again; NaN if some setting has
            only one run, about which the bootstrap can say nothing.
    """

    rank: int
    setting: str
    n: int
    mean: float
    standard_error: float
    probability_best: float


@dataclass(frozen=True)
class Selection:
    """The best setting of a sweep and the ranking of all.

    Attributes:
        best: the setting with the largest mean; of several with the same, the one given first.
        ties: all settings with that mean, if more than one.
        probability: the chance that `best` is the best setting (`RankedSetting.probability_best`).
        ranking: every setting, best first.
    """

    best: str
    ties: tuple[str, ...]
    probability: float
    ranking: tuple[RankedSetting, ...]

    def records(self) -> list[dict[str, Any]]:
        """The ranking as plain dictionaries: rows of a table."""
        return [asdict(row) for row in self.ranking]


def select_best(scores: Mapping[str, ArrayLike], *, seed: Seed, resamples: int = RESAMPLES) -> Selection:
    r"""The setting with the largest mean score, the chance that it is the best, and the ranking.

    The chance that setting k is best is estimated by the bootstrap: runs are drawn again within every setting, and

    .. math:: \hat P(k) = \frac1B \sum_{b = 1}^{B} \frac{1[k \in M_b]}{|M_b|} , \quad
        M_b = \arg\max_j \bar x_j^{(b)} .

    Args:
        scores: a name for each setting, with one number per run.
        seed: a seed or a generator.
        resamples: B.

    Example:
        >>> choice = select_best({"small": [1.0, 2.0, 3.0], "large": [8.0, 9.0, 7.0]}, seed=0)
        >>> choice.best, choice.probability, choice.ties
        ('large', 1.0, ())
    """
    if not scores:
        raise InputError("scores is empty: there is no setting to choose from")
    names = [str(name) for name in scores]
    for name in scores:
        if names.count(str(name)) > 1:
            raise InputError(f"scores: the name of more than one setting is {str(name)!r}")
    runs = {str(name): check_scores(values, f"scores[{name!r}]") for name, values in scores.items()}
    means = {name: math.fsum(x) / x.size for name, x in runs.items()}  # exact sums: the order of runs makes no tie
    chances = _chances(list(runs.values()), check_count(resamples, "resamples"), check_generator(seed))
    ordered = sorted(means.values(), reverse=True)
    rows = [
        RankedSetting(ordered.index(means[name]) + 1, name, x.size, means[name], standard_error(x), float(chance))
        for (name, x), chance in zip(runs.items(), chances, strict=True)
    ]
    rows.sort(key=lambda row: row.rank)  # stable: equal ranks stay in the order given
    ties = tuple(row.setting for row in rows if row.rank == 1)
    return Selection(rows[0].setting, ties if len(ties) > 1 else (), rows[0].probability_best, tuple(rows))


def _chances(runs: list[Array], resamples: int, rng: np.random.Generator) -> Array:
    if min(x.size for x in runs) < 2:
        return np.full(len(runs), np.nan)
    mean = statistic_of("mean")
    means = np.stack([np.concatenate([apply_statistic(mean, b) for b in resampled([x], resamples, rng)]) for x in runs])
    first = means == means.max(axis=0)
    return np.asarray((first / first.sum(axis=0)).mean(axis=1))
