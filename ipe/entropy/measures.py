r"""The entropy of a policy, and how far it is below that of the uniform one."""

from __future__ import annotations

from ipe.entropy.arrays import (
    AnyArray,
    actions,
    check_distribution,
    check_range,
    count,
    floating,
    like,
    mask,
    namespace,
    sum_actions,
)
from ipe.entropy.softmax import log_normaliser, shifted

SERIES_BELOW = 0.2
SERIES_TERMS = 8


def entropy(probabilities: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The entropy :math:`H(\pi) = -\sum_a \pi_a \ln \pi_a`, in nats.

    Accurate relative to itself even next to a deterministic policy: a probability above one half is
    taken as one minus the others, :math:`-(1-r) \ln(1-r)` by log1p.

    Args:
        probabilities: :math:`\pi`, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Shape (...).

    Example:
        >>> import numpy as np
        >>> round(float(entropy(np.array([0.5, 0.25, 0.25])) / np.log(2)), 12)
        1.5
    """
    pi, _ = distribution(probabilities, allowed)
    xp = namespace(pi)
    small = ~(pi > 0.5)
    counted = xp.where(small & (pi != 0), pi, 1.0)
    rest = sum_actions(xp.where(small, pi, 0.0))
    rest = xp.where(xp.amax(pi, axis=-1) > 0.5, xp.clip(rest, None, 0.5), 0.0)
    return -sum_actions(counted * xp.log(counted)) - (1.0 - rest) * xp.log1p(-rest)


def entropy_from_logits(logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The entropy of `softmax(logits)`, in nats.

    :math:`\ln \sum_b e^{z_b} - \sum_a \pi_a z_a` with :math:`z = \theta - \max\theta`. No term is negative,
    so nothing cancels.

    Args:
        logits: :math:`\theta`, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Shape (...).

    Example:
        >>> import numpy as np
        >>> entropy_from_logits(np.array([0.0, -700.0])) > 0
        np.True_
    """
    logits = actions(logits, "logits")
    z, powers = shifted(logits, mask(logits, allowed))
    return entropy_of(z, powers)


def entropy_deficit(probabilities: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""How far the entropy is below its maximum: :math:`D(\pi) = \ln n - H(\pi)`, n the number of allowed actions.

    Computed as :math:`\frac1n \sum_a \varphi(n \pi_a - 1)`, :math:`\varphi(t) = (1+t)\ln(1+t) - t`, which
    loses nothing next to the uniform policy.

    Args:
        probabilities: :math:`\pi`, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Shape (...).

    Example:
        >>> import numpy as np
        >>> round(float(entropy_deficit(np.array([0.5 + 1e-9, 0.5 - 1e-9]))) / 2e-18, 6)
        1.0
    """
    pi, permitted = distribution(probabilities, allowed)
    n = count(permitted, pi)[..., None]
    return mean_phi(n * pi - 1.0, permitted, n)


def entropy_deficit_from_logits(logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The deficit :math:`D = \ln n - H` of `softmax(logits)`.

    Next to the uniform policy :math:`n \pi_a - 1` is taken from expm1 of the logits, before the
    probabilities round it away.

    Args:
        logits: :math:`\theta`, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Shape (...).

    Example:
        >>> import numpy as np
        >>> float(entropy_deficit_from_logits(np.array([1e-20, 0.0])))
        1.25e-41
    """
    logits = actions(logits, "logits")
    permitted = mask(logits, allowed)
    z, powers = shifted(logits, permitted)
    return deficit_of(z, powers, permitted)


def epsilon_greedy_entropy(epsilon: AnyArray, n: AnyArray) -> AnyArray:
    r"""The entropy of epsilon-greedy with n actions, one of them greedy.

    With :math:`x = \epsilon (n-1)/n`, the probability of leaving the greedy action,

    .. math:: H(x) = -(1-x) \ln(1-x) - x \ln x + x \ln(n-1).

    Args:
        epsilon: in [0, 1], any shape.
        n: the number of actions, at least 1; broadcasts with epsilon.

    Example:
        >>> round(float(epsilon_greedy_entropy(1.0, 4)), 6)   # ln 4
        1.386294
    """
    epsilon = floating(epsilon, "epsilon", n)
    check_range(epsilon, "epsilon", 0.0, 1.0)
    check_range(n, "n", 1.0)
    n = like(epsilon, n)
    return entropy_of_leaving(epsilon * ((n - 1.0) / n), n)


def entropy_of_leaving(x: AnyArray, n: AnyArray) -> AnyArray:
    r""":math:`H(x)` of `epsilon_greedy_entropy`; 0 at x = 0 and for n = 1."""
    xp = namespace(x)
    safe = xp.where(x > 0, x, 1.0)
    kept = xp.where(x < 1, x, 0.0)
    others = xp.log(xp.clip(n - 1.0, 1.0, None))
    return x * others - x * xp.log(safe) - (1.0 - kept) * xp.log1p(-kept)


def phi(t: AnyArray) -> AnyArray:
    r""":math:`\varphi(t) = (1+t) \ln(1+t) - t` for :math:`t \ge -1`; :math:`\varphi(-1) = 1`.

    Near 0, where it is about :math:`t^2/2` and the two terms cancel, with :math:`s = t/(2+t)`:
    :math:`\varphi(t) = t s + 2 (1+t) s^3 (\frac13 + \frac{s^2}5 + \frac{s^4}7 + \dots)`.
    """
    xp = namespace(t)
    near = xp.abs(t) < SERIES_BELOW
    small = xp.where(near, t, 0.0)
    s = small / (2.0 + small)
    squared = s * s
    series = xp.zeros_like(s)
    for k in range(SERIES_TERMS, 0, -1):
        series = series * squared + 1.0 / (2 * k + 1)
    by_series = small * s + 2.0 * (1.0 + small) * s * squared * series
    safe = xp.where(near | (t <= -1), 0.0, t)
    return xp.where(near, by_series, (1.0 + safe) * xp.log1p(safe) - xp.clip(t, -1.0, None))


def distribution(probabilities: AnyArray, allowed: AnyArray | None) -> tuple[AnyArray, AnyArray]:
    """The probabilities, checked and 0 where not allowed, and the mask."""
    probabilities = actions(probabilities, "probabilities")
    permitted = mask(probabilities, allowed)
    check_distribution(probabilities, permitted, "probabilities")
    return namespace(probabilities).where(permitted, probabilities, 0.0), permitted


def entropy_of(z: AnyArray, powers: AnyArray) -> AnyArray:
    """`entropy_from_logits` after `shifted`."""
    xp = namespace(z)
    finite = xp.where(powers == 0, 0.0, z)  # 0 times -inf
    total = sum_actions(powers)
    return log_normaliser(z, powers) - sum_actions(powers * finite) / xp.where(total == 0, 1.0, total)


def deficit_of(z: AnyArray, powers: AnyArray, permitted: AnyArray) -> AnyArray:
    """`entropy_deficit_from_logits` after `shifted`."""
    xp = namespace(z)
    n = count(permitted, z)[..., None]
    safe_n = xp.clip(n, 1.0, None)
    mean = sum_actions(powers)[..., None] / safe_n
    safe_mean = xp.where(mean == 0, 1.0, mean)
    t = powers / safe_mean - 1.0
    below = xp.where(permitted, xp.expm1(z), 0.0)
    accurate = (below - sum_actions(below)[..., None] / safe_n) / safe_mean
    # Both are n pi - 1: the one keeps the digits of n pi next to t = -1, the other those of t next to 0.
    return mean_phi(xp.where((mean > 0.5) & (xp.abs(t) < 0.5), accurate, t), permitted, n)


def mean_phi(t: AnyArray, permitted: AnyArray, n: AnyArray) -> AnyArray:
    """The mean of `phi` over the permitted actions, n of them."""
    xp = namespace(t)
    return sum_actions(phi(xp.where(permitted, t, 0.0)) / xp.clip(n, 1.0, None))
