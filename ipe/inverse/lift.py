r"""From v to a policy: the one of maximum entropy.

With more than two actions many policies share one :math:`v(s) = \sum_a \pi(a|s) Q(s,a)`. The one with the most
entropy is a Boltzmann policy whose temperature is solved for, not tuned:

.. math:: \pi(a|s) \propto e^{\eta_s Q(s,a)}, \qquad \eta_s \text{ such that } \sum_a \pi(a|s) Q(s,a) = v(s).

:math:`\eta_s` is signed: negative where the values promise less than the average action gives. At the ends of the
box it is infinite, and the policy is uniform over the arg max (arg min).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.base.arrays import Array, Mask, numeric, refuse_where
from ipe.errors import InputError
from ipe.planning.operators import average
from ipe.planning.policies import share

MAX_STEPS = 200
BLOCK = 1 << 16
"""States that are solved for at a time: so many fit the caches, and no copy of all action values is needed."""


def maximum_entropy_lift(q: Any, v: Any, allowed: Any) -> tuple[Array, Array]:
    r"""The policy of maximum entropy with :math:`\sum_a \pi(a|s) Q(s,a) = v(s)`, and its inverse temperatures.

    Args:
        q: action values, shape (S, A); what stands at actions that are not allowed is ignored.
        v: the mean that the policy must have in each state, shape (S,). A v beyond the range of its row counts as the
            end of that range.
        allowed: the actions of each state, shape (S, A). A row without actions stays 0.

    Returns:
        The policy, shape (S, A), and :math:`\eta`, shape (S,): 0 where all actions are equal, plus or minus
        infinity at the ends of the range.

    Example:
        >>> import numpy as np
        >>> q = np.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
        >>> pi, eta = maximum_entropy_lift(q, np.array([1.5, 0.5]), np.ones((2, 3), dtype=bool))
        >>> pi.round(3)
        array([[0.116, 0.268, 0.616],
               [0.616, 0.268, 0.116]])
        >>> eta.round(3)
        array([ 0.834, -0.834])
    """
    q, v, allowed = _checked(q, v, allowed)
    live = allowed.any(axis=1)
    lo = np.where(live, np.where(allowed, q, np.inf).min(axis=1), 0.0)
    hi = np.where(live, np.where(allowed, q, -np.inf).max(axis=1), 0.0)
    with np.errstate(over="ignore"):
        wide = np.isinf(hi - lo)
    if wide.any():
        s = int(np.argmax(wide))
        raise InputError(f"q[{s}] has values from {lo[s]:g} to {hi[s]:g}: their difference is too large")
    eta = np.where(v >= hi, np.inf, np.where(v <= lo, -np.inf, 0.0))
    eta[lo >= hi] = 0.0
    pi = share(allowed)
    ends = np.isinf(eta)
    pi[ends] = share(allowed[ends] & (q[ends] == np.where(eta > 0, hi, lo)[ends, None]))
    inside = np.flatnonzero(~ends & (lo < hi))
    for first in range(0, inside.size, BLOCK):
        rows = inside[first : first + BLOCK]
        pi[rows], eta[rows] = _solve(q[rows], v[rows], allowed[rows], lo[rows], hi[rows])
    return pi, eta


def _checked(q: Any, v: Any, allowed: Any) -> tuple[Array, Array, Mask]:
    q, v, mask = numeric(q, "q"), numeric(v, "v"), np.asarray(allowed)
    if q.ndim != 2:
        raise InputError(f"q must have shape (states, actions); found {q.shape}")
    if mask.dtype != bool or mask.shape != q.shape:
        raise InputError(f"allowed must be boolean with shape {q.shape}; found {mask.dtype}, {mask.shape}")
    if v.shape != q.shape[:1]:
        raise InputError(f"v must have shape ({len(q)},), one value per state; found {v.shape}")
    for array, name, wrong in ((q, "q", ~np.isfinite(q) & mask), (v, "v", np.isnan(v) & mask.any(axis=1))):
        refuse_where(wrong, array, name, "not a finite number")
    return q, v, mask


def _solve(q: Array, v: Array, allowed: Mask, lo: Array, hi: Array) -> tuple[Array, Array]:
    r"""Newton's method, safeguarded by a bracket, for all rows at once.

    With Q scaled to [0, 1] and m the mean of the scaled values, it solves
    :math:`\ln \frac{m}{1-m} = \ln \frac{u}{1-u}`: linear in eta for two actions, and nearly so far out for more.
    """
    width = hi - lo
    above = np.where(allowed, q - lo[:, None], 0.0) / width[:, None]  # 0 at the arg min
    below = np.where(allowed, hi[:, None] - q, 0.0) / width[:, None]  # 0 at the arg max
    tiny = np.finfo(float).tiny  # nearer to an end than this, relative to the width, is as good as there
    target = np.log(np.maximum((v - lo) / width, tiny)) - np.log(np.maximum((hi - v) / width, tiny))
    eta = target.copy()
    left, right = np.full_like(eta, -np.inf), np.full_like(eta, np.inf)
    pi = np.empty_like(q)
    rows = np.arange(len(eta))
    for _ in range(MAX_STEPS):
        pi[rows], error, slope = _logit_error(eta[rows], above[rows], below[rows], allowed[rows], target[rows])
        high = error > 0
        right[rows[high]] = eta[rows[high]]
        left[rows[~high]] = eta[rows[~high]]
        step = error / slope
        proposal = eta[rows] - step
        done = (np.abs(error) <= 1e-15 * (1.0 + np.abs(target[rows]))) | (proposal == eta[rows])
        rows, proposal = rows[~done], proposal[~done]
        if not rows.size:
            break
        outside = ~((proposal > left[rows]) & (proposal < right[rows]))
        middle = _middle(left[rows[outside]], right[rows[outside]])
        stuck = middle == eta[rows[outside]]
        proposal[outside] = middle
        eta[rows] = proposal
        rows = np.delete(rows, np.flatnonzero(outside)[stuck])
    return pi, eta / width


def _middle(left: Array, right: Array) -> Array:
    """Half way through a bracket, twice as far out through one that is open on one side."""
    with np.errstate(invalid="ignore"):
        middle = 0.5 * (left + right)
    middle = np.where(np.isinf(right), 2.0 * np.maximum(left, 1.0), middle)
    return np.where(np.isinf(left), 2.0 * np.minimum(right, -1.0), middle)


def _logit_error(eta: Array, above: Array, below: Array, allowed: Mask, target: Array) -> tuple[Array, Array, Array]:
    r"""The policy at eta, :math:`\ln \frac{m}{1-m}` less its target, and its slope.

    Exponents are taken from the end that eta points to, so that the large ones are small numbers;
    m and 1 - m are separate sums, so that neither is lost next to the other.
    """
    weights = np.exp(np.where(eta[:, None] >= 0, -eta[:, None] * below, eta[:, None] * above)) * allowed
    pi = weights / weights.sum(axis=1, keepdims=True)
    tiny = np.finfo(float).tiny
    mean, rest = np.maximum(average(pi, above), tiny), np.maximum(average(pi, below), tiny)
    nearer = np.where((mean < rest)[:, None], above, below)
    variance = average(pi, nearer * nearer) - np.minimum(mean, rest) ** 2
    slope = np.maximum(variance, tiny) / (mean * rest)
    return pi, np.log(mean / rest) - target, slope
