r"""The policy of most entropy whose mean value is given: Boltzmann, with a signed inverse temperature.

`ipe.inverse.maximum_entropy_lift` does the same for all states of a finite MDP, in float64; this function runs inside
compiled programs too.
"""

from __future__ import annotations

from ipe.entropy.arrays import AnyArray, actions, detached, mask, namespace, per_row, sum_actions
from ipe.entropy.boltzmann_matching import until_all

NEVER = -1e4
"""The logit of an action that is never taken: its exponential is 0, in float64 too."""


def logits_from_mean(q: AnyArray, mean: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The logits of the policy with the most entropy among those whose expected Q is a given number.

    .. math:: \max_\pi H(\pi) \quad \text{subject to} \quad \sum_b \pi_b Q_b = \mathrm{clip}(v, \min Q, \max Q).

    Its solution is :math:`\pi = \mathrm{softmax}(\eta Q)`, and :math:`\eta` solves an equation whose left side
    increases. :math:`\eta` is negative where v is below the mean of Q. Where v is the largest value or
    more, the policy is uniform over the actions that have it; where v is the smallest value or less, over those that
    have the smallest; where all actions are equal, it is uniform.

    Args:
        q: action values, shape (..., A).
        mean: v, broadcasts to (...).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Logits, shape (..., A), of which the largest is 0; they are constants to automatic differentiation.

    Example:
        >>> import numpy as np
        >>> from ipe.entropy import softmax
        >>> softmax(logits_from_mean(np.array([0.0, 1.0, 2.0]), 1.5)).round(3)
        array([0.116, 0.268, 0.616])
        >>> softmax(logits_from_mean(np.array([0.0, 1.0, 2.0]), 7.0))
        array([0., 0., 1.])
    """
    q = detached(actions(q, "q"))
    v = detached(per_row(q, mean, "mean"))
    xp, permitted = namespace(q), mask(q, allowed)
    live = xp.any(permitted, axis=-1)
    low = xp.where(live, xp.amin(xp.where(permitted, q, xp.inf), axis=-1), 0.0)
    high = xp.where(live, xp.amax(xp.where(permitted, q, -xp.inf), axis=-1), 0.0)
    width = xp.where(high > low, high - low, 1.0)
    above = xp.where(permitted, q - low[..., None], 0.0) / width[..., None]  # 0 at the smallest
    below = xp.where(permitted, high[..., None] - q, 0.0) / width[..., None]  # 0 at the largest
    most, least = (v >= high) & (high > low), (v <= low) & (high > low)
    inside = (v > low) & (v < high)
    share, rest = (xp.where(inside, part, 0.5) / width for part in (v - low, high - v))
    eta = _solve(share, rest, above, below, permitted)
    eta = xp.where(inside, eta, 0.0)[..., None]
    logits = xp.where(eta >= 0, -eta * below, eta * above)
    logits = xp.where(most[..., None] & (below > 0), NEVER, logits)
    logits = xp.where(least[..., None] & (above > 0), NEVER, logits)
    unknown = (v != v) | xp.any(permitted & (q != q), axis=-1)
    return xp.where(unknown[..., None] & permitted, xp.nan, logits)  # a NaN stays one


def _solve(share: AnyArray, rest: AnyArray, above: AnyArray, below: AnyArray, permitted: AnyArray) -> AnyArray:
    r"""The inverse temperature on values between 0 and 1 whose mean is `share`, and `rest` is 1 less that.

    With m the mean, Newton's method on :math:`\ln \frac{m}{1-m}`: linear in :math:`\eta` for two actions, and nearly so
    far out for more. A step that leaves the bracket is replaced by its middle.
    """
    xp = namespace(above)
    info = xp.finfo(above.dtype)
    target = xp.log(xp.clip(share, info.tiny, None)) - xp.log(xp.clip(rest, info.tiny, None))

    def newton(state: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
        eta, left, right, done = state
        f, slope = _excess(eta, above, below, permitted, target)
        left, right = xp.where(f > 0, left, eta), xp.where(f > 0, eta, right)
        after = eta - f / slope
        after = xp.where((after > left) & (after < right), after, _middle(left, right))
        done = done | (xp.abs(f) <= 2.0 * info.eps * (1.0 + xp.abs(target))) | ~(f == f)
        near = xp.abs(after - eta) <= 2.0 * info.eps * (1.0 + xp.abs(eta))
        return xp.where(done, eta, after), left, right, done | near

    open_end = xp.full_like(target, xp.inf)
    eta, *_ = until_all(newton, (target, -open_end, open_end, target != target), xp)
    return eta


def _excess(
    eta: AnyArray, above: AnyArray, below: AnyArray, permitted: AnyArray, target: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """How far the log odds of the mean are above their target, and their slope; nothing cancels."""
    xp = namespace(above)
    tiny = xp.finfo(above.dtype).tiny
    exponents = xp.where(eta[..., None] >= 0, -eta[..., None] * below, eta[..., None] * above)
    weights = xp.where(permitted, xp.exp(exponents), 0.0)
    pi = weights / xp.clip(sum_actions(weights), tiny, None)[..., None]
    mean, rest = (xp.clip(sum_actions(pi * part), tiny, None) for part in (above, below))
    nearer, smaller = xp.where((mean < rest)[..., None], above, below), xp.where(mean < rest, mean, rest)
    variance = xp.clip(sum_actions(pi * (nearer - smaller[..., None]) ** 2), tiny, None)
    return xp.log(mean) - xp.log(rest) - target, xp.clip(variance / xp.clip(mean * rest, tiny, None), tiny, None)


def _middle(left: AnyArray, right: AnyArray) -> AnyArray:
    """Half way through a bracket, or twice as far out through one that is open on a side."""
    xp = namespace(left)
    closed = xp.where(xp.isinf(left) | xp.isinf(right), 0.0, 0.5 * (xp.where(xp.isinf(left), 0.0, left) + right))
    middle = xp.where(xp.isinf(right), 2.0 * xp.where(left > 1.0, left, 1.0), closed)
    return xp.where(xp.isinf(left), 2.0 * xp.where(right < -1.0, right, -1.0), middle)
