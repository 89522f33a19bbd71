r"""Many comparisons at once: a test over tasks, Holm's correction, and ranks with intervals.

The functions take one number per run and task (see `ipe.analysis.scores`), and every task weighs the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm, rankdata

from ipe.analysis.bootstrap import Interval, Seed, check_generator, interval_of, resample_counts
from ipe.analysis.columns import check_count, check_share, finite_numbers
from ipe.analysis.comparison import paired_tasks
from ipe.analysis.scores import Scores, check_scores, check_strata
from ipe.base.arrays import Array
from ipe.errors import InputError

_EXACT = 100
"""With at most so many runs in all, `rank_test` counts all ways to divide them."""


def improvement_test(x: Scores, y: Scores) -> float:
    r"""The p-value of "runs of x score neither higher nor lower than those of y", over tasks (van Elteren's test).

    The statistic is the probability of improvement, the mean over the tasks e of :math:`U_e / (n_e m_e)` with Mann and
    Whitney's :math:`U_e` (`probability_of_improvement`). If x and y have the same distribution in every task, its mean
    is 1/2 and its variance

    .. math:: \frac{1}{|E|^2} \sum_e \frac{1}{12\, n_e m_e}
        \Big( N_e + 1 - \sum_k \frac{t_k^3 - t_k}{N_e (N_e - 1)} \Big), \quad N_e = n_e + m_e,

    where :math:`t_k` are the sizes of the groups of equal scores. The p-value is two-sided, by the normal
    approximation. For one task it is the Mann-Whitney test's (without continuity correction).

    Args:
        x: one number per run, or a mapping of tasks.
        y: the same tasks.

    Returns:
        The p-value; 1 if all scores of every task are equal.

    Example:
        >>> round(improvement_test([1.0, 2.0, 3.0, 4.0], [3.5, 5.0, 6.0, 7.0]), 4)
        0.0433
    """
    pairs = paired_tasks(x, y)
    difference, variance = 0.0, 0.0
    for first, second in pairs:
        n, m = first.size, second.size
        ranks = rankdata(np.concatenate([first, second]))
        u = ranks[:n].sum() - n * (n + 1) / 2
        _, sizes = np.unique(ranks, return_counts=True)
        ties = float((sizes.astype(np.float64) ** 3 - sizes).sum()) / ((n + m) * (n + m - 1))
        difference += (u / (n * m) - 0.5) / len(pairs)
        variance += (n + m + 1 - ties) / (12 * n * m) / len(pairs) ** 2
    if variance <= 0.0:
        return 1.0
    return float(2.0 * norm.sf(abs(difference) / math.sqrt(variance)))


def rank_test(x: ArrayLike, y: ArrayLike) -> float:
    r"""The p-value of "runs of x score neither higher nor lower than those of y", exact for few runs.

    The statistic is the sum :math:`R` of the ranks of x among all :math:`N = n + m` scores, equal scores sharing the
    mean of their ranks. If x and y have the same distribution, every choice of n of the N ranks is equally likely, and

    .. math:: p = P\left( \left| R - \tfrac{n (N + 1)}{2} \right| \ge \left| r - \tfrac{n (N + 1)}{2} \right| \right)

    is counted over all of them, with and without ties (Mann and Whitney 1947). With three runs each no p-value is below
    0.1, whatever the scores: the normal approximation (`improvement_test`) would say 0.05. From 100 runs in all on, the
    normal approximation is used.

    Args:
        x: one number per run.
        y: one number per run.

    Returns:
        The two-sided p-value.

    Example:
        >>> rank_test([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])
        0.1
    """
    first, second = check_scores(x, "x"), check_scores(y, "y")
    n, total = first.size, first.size + second.size
    if total > _EXACT:
        return improvement_test(first, second)
    # Twice the ranks are whole numbers. `ways[k, s]`: how many sets of k runs have ranks that sum to s / 2.
    ranks = np.rint(2.0 * rankdata(np.concatenate([first, second]))).astype(np.intp)
    ways = np.zeros((n + 1, int(ranks.sum()) + 1))
    ways[0, 0] = 1.0
    for rank in ranks:
        ways[1:, rank:] += ways[:-1, : ways.shape[1] - rank].copy()
    middle = n * (total + 1)
    away = np.abs(np.arange(ways.shape[1]) - middle)
    extreme = ways[n, away >= abs(int(ranks[:n].sum()) - middle)].sum()
    return float(min(1.0, extreme / ways[n].sum()))


def holm(p_values: ArrayLike) -> Array:
    r"""P-values of a family of comparisons, corrected so that one wrong rejection in the whole family is as rare.

    With the p-values sorted, :math:`\tilde p_{(i)} = \max_{j \le i} \min(1, (m - j + 1)\, p_{(j)})`: reject where the
    corrected value is below the level (Holm, *A simple sequentially rejective multiple test procedure*, 1979). It needs
    no assumption on how the comparisons depend on each other.

    Args:
        p_values: one for each comparison.

    Returns:
        The corrected p-values, in the order given.

    Example:
        >>> holm([0.01, 0.04, 0.03])
        array([0.03, 0.06, 0.06])
    """
    p = finite_numbers(p_values, "p_values")
    wrong = (p < 0.0) | (p > 1.0)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(f"p_values[{i}] = {p[i]:g} is not a probability")
    order = np.argsort(p, kind="stable")
    stepped = np.minimum(1.0, p[order] * np.arange(p.size, 0, -1))
    out = np.empty_like(p)
    out[order] = np.maximum.accumulate(stepped)
    return out


def mean_ranks(
    scores: Mapping[str, Scores], *, seed: Seed, level: float = 0.95, resamples: int = 2000
) -> dict[str, Interval]:
    r"""The mean rank of each algorithm over tasks, with a bootstrap interval.

    In every task the algorithms are ranked by the mean score of their runs, 1 for the best; equal means share the mean
    of their ranks. Runs are drawn again within each algorithm and task.

    Args:
        scores: for each algorithm one number per run, or a mapping of tasks; the same tasks for all.
        seed: a seed or a generator.
        level: the level of the intervals.
        resamples: how often the runs are drawn again.

    Example:
        >>> mean_ranks({"a": [3.0, 4.0], "b": [1.0, 2.0]}, seed=0)["a"].estimate
        1.0
    """
    if not scores:
        raise InputError("scores is empty: there is no algorithm to rank")
    strata = {str(name): check_strata(values, f"scores[{name!r}]") for name, values in scores.items()}
    tasks = list(next(iter(strata.values())))
    for name, values in strata.items():
        if set(values) != set(tasks):
            odd = ", ".join(sorted(set(values) ^ set(tasks)))
            raise InputError(f"scores: all algorithms must have the same tasks; {name} differs in {odd}")
    share, count, rng = check_share(level, "level"), check_count(resamples, "resamples"), check_generator(seed)
    estimate, drawn = np.zeros(len(strata)), np.zeros((count, len(strata)))
    for task in tasks:
        runs = [values[task] for values in strata.values()]
        estimate += _ranks(np.array([[x.mean() for x in runs]]))[0]
        drawn += _ranks(np.stack([_means(x, count, rng) for x in runs], axis=1))
    estimate, drawn = estimate / len(tasks), drawn / len(tasks)
    return {name: interval_of(float(estimate[i]), drawn[:, i], share) for i, name in enumerate(strata)}


def _ranks(means: Array) -> Array:
    """The ranks within each row, 1 for the largest."""
    return np.asarray(rankdata(-means, axis=-1))


def _means(values: Array, resamples: int, rng: np.random.Generator) -> Array:
    blocks = resample_counts((values.size,), resamples, rng)
    return np.concatenate([counts @ values / values.size for (counts,) in blocks])
