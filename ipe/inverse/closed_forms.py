r"""Two cases in which the box problem falls apart into one small problem per state: the V form, and deterministic
transitions.

V form: :math:`v = \mathrm{clip}(V, \min_a q_V, \max_a q_V)` is optimal for every weighted l1, l2 and l-inf norm
at once.

Q form, deterministic transitions: with the targets :math:`t = (Q(s,a) - r(s,a)) / \gamma` of the pairs that lead to
:math:`s'`, v(s') is their weighted mean (l2), weighted median (l1, the middle of the median interval) or the
minimiser of :math:`\max_i d_i |x - t_i|` (l-inf), clipped to the box.
"""

from __future__ import annotations

import numpy as np

from ipe.base.arrays import Array, Indices
from ipe.inverse.problem import BoxProblem, BoxSolution
from ipe.mdp import FiniteMDP


def clip_values(problem: BoxProblem) -> BoxSolution:
    """The V form: the point of the box nearest to V in every norm."""
    v = problem.clip(problem.b)
    delta = problem.residuals(v)
    norm = problem.norm_of(delta)
    slack = problem.d * np.abs(delta) < (1.0 - 1e-12) * norm
    unique = problem.norm != "linf" or not bool((problem.free & slack).any())
    return BoxSolution(v, _objective(problem, norm), 0.0, 0, True, "closed form", unique)


def unconstrained(problem: BoxProblem) -> BoxSolution:
    """No residual can change (gamma = 0, every row leads to a terminal state, one action each): any point will do."""
    v = 0.5 * (problem.lo + problem.hi)
    norm = problem.norm_of(problem.residuals(v))
    return BoxSolution(v, _objective(problem, norm), 0.0, 0, True, "closed form", True)


def has_exact_successors(mdp: FiniteMDP) -> bool:
    """Whether every pair leads to one state with probability exactly one, so that the closed form is exact."""
    return mdp.is_deterministic and bool((mdp.transitions.data == 1.0).all())


def separable(problem: BoxProblem) -> BoxSolution:
    """Deterministic transitions: one small problem per next state."""
    matrix = problem.rows.matrix
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    kept = problem.d[rows] > 0
    rows, states = rows[kept], matrix.indices[kept]
    targets, weights = problem.b[rows] / problem.gamma, problem.d[rows]
    order = np.lexsort((targets, states))
    states, targets, weights = states[order], targets[order], weights[order]
    firsts = np.flatnonzero(np.r_[True, states[1:] != states[:-1]])
    solve = {"l2": _means, "l1": _medians, "linf": _minimax}[problem.norm]
    left, right = solve(targets, weights, firsts)
    v = 0.5 * (problem.lo + problem.hi)
    reached = states[firsts]
    v[reached] = 0.5 * (left + right)
    v = problem.clip(v)
    norm = problem.norm_of(problem.residuals(v))
    if problem.norm == "linf":  # every x with d |x - t| <= norm is as good
        reach = norm / (problem.gamma * weights)
        left = np.maximum.reduceat(targets - reach, firsts)
        right = np.minimum.reduceat(targets + reach, firsts)
    width = np.minimum(right, problem.hi[reached]) - np.maximum(left, problem.lo[reached])
    unique = not bool((width > 1e-12 * problem.scale / problem.gamma).any())
    return BoxSolution(v, _objective(problem, norm), 0.0, 0, True, "closed form", unique)


def _objective(problem: BoxProblem, norm: float) -> float:
    return 0.5 * norm * norm if problem.norm == "l2" else norm


def _means(targets: Array, weights: Array, firsts: Indices) -> tuple[Array, Array]:
    weights = weights / np.repeat(np.maximum.reduceat(weights, firsts), _counts(firsts, targets))
    mean = np.add.reduceat(weights * targets, firsts) / np.add.reduceat(weights, firsts)
    return mean, mean


def _medians(targets: Array, weights: Array, firsts: Indices) -> tuple[Array, Array]:
    """The median interval of each group of sorted targets; a point, unless half the weight is reached exactly."""
    counts = _counts(firsts, targets)
    weights = weights / np.repeat(np.maximum.reduceat(weights, firsts), counts)
    total = np.add.reduceat(weights, firsts)
    sums = np.cumsum(weights)
    below = sums - np.repeat(sums[firsts] - weights[firsts], counts)  # weight up to and with each target
    half = np.repeat(0.5 * total, counts)
    rounding = 1e-12 * np.repeat(total, counts) + 4 * np.finfo(float).eps * sums
    group = np.repeat(np.arange(len(firsts)), counts)
    at_least = np.flatnonzero(below >= half - rounding)
    more = np.flatnonzero(below > half + rounding)
    left = targets[at_least[np.searchsorted(group[at_least], np.arange(len(firsts)))]]
    right = targets[more[np.searchsorted(group[more], np.arange(len(firsts)))]]
    return left, right


def _minimax(targets: Array, weights: Array, firsts: Indices) -> tuple[Array, Array]:
    r"""Where :math:`\max_i d_i (x - t_i)` and :math:`\max_j d_j (t_j - x)` cross: bisection, then exactly."""
    counts = _counts(firsts, targets)
    low, high = np.minimum.reduceat(targets, firsts), np.maximum.reduceat(targets, firsts)
    for _ in range(100):
        x = np.repeat(0.5 * (low + high), counts)
        rising = np.maximum.reduceat(weights * (x - targets), firsts)
        falling = np.maximum.reduceat(weights * (targets - x), firsts)
        beyond = rising > falling
        high = np.where(beyond, 0.5 * (low + high), high)
        low = np.where(beyond, low, 0.5 * (low + high))
    x = np.repeat(0.5 * (low + high), counts)
    i = _first_largest(weights * (x - targets), firsts, counts)
    j = _first_largest(weights * (targets - x), firsts, counts)
    best = (weights[i] * targets[i] + weights[j] * targets[j]) / (weights[i] + weights[j])
    return best, best


def _first_largest(values: Array, firsts: Indices, counts: Indices) -> Indices:
    """The index of the largest value of each group."""
    tops = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, firsts), counts))
    group = np.repeat(np.arange(len(firsts)), counts)
    return tops[np.searchsorted(group[tops], np.arange(len(firsts)))]


def _counts(firsts: Indices, values: Array) -> Indices:
    return np.diff(np.append(firsts, len(values)))
