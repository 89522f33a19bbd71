r"""Softmax policies with masks."""

from __future__ import annotations

from ipe.entropy.arrays import AnyArray, actions, count, mask, namespace, sum_actions


def softmax(logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The policy :math:`\pi_a = e^{\theta_a} / \sum_{b \in \mathcal{A}} e^{\theta_b}`.

    Args:
        logits: :math:`\theta`, shape (..., A); :math:`-\infty` is a probability of 0.
        allowed: boolean, broadcasts to (..., A): the actions :math:`\mathcal{A}`. Default: all.

    Returns:
        Probabilities, shape (..., A).

    Example:
        >>> import numpy as np
        >>> softmax(np.array([0.0, np.log(3.0), 9.0]), allowed=[True, True, False])
        array([0.25, 0.75, 0.  ])
    """
    logits = actions(logits, "logits")
    _, powers = shifted(logits, mask(logits, allowed))
    return normalised(powers)


def log_softmax(logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The logarithms :math:`\ln \pi_a = \theta_a - \ln \sum_{b \in \mathcal{A}} e^{\theta_b}` of `softmax`.

    The logarithm of a probability near one keeps its relative accuracy: it is the log1p of the sum of the others.

    Args:
        logits: :math:`\theta`, shape (..., A).
        allowed: boolean, broadcasts to (..., A): the actions :math:`\mathcal{A}`. Default: all.

    Returns:
        Logarithms, shape (..., A); :math:`-\infty` where not allowed.

    Example:
        >>> import numpy as np
        >>> log_softmax(np.array([0.0, -40.0]))
        array([-4.24835426e-18, -4.00000000e+01])
    """
    logits = actions(logits, "logits")
    permitted = mask(logits, allowed)
    z, powers = shifted(logits, permitted)
    xp = namespace(logits)
    return xp.where(permitted, z - log_normaliser(z, powers)[..., None], -xp.inf)


def uniform(reference: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The policy :math:`1 / |\mathcal{A}|` on the allowed actions, in the shape of `reference`.

    Example:
        >>> import numpy as np
        >>> uniform(np.zeros((2, 2)), allowed=[[True, True], [False, True]])
        array([[0.5, 0.5],
               [0. , 1. ]])
    """
    reference = actions(reference, "reference")
    permitted = mask(reference, allowed)
    xp = namespace(reference)
    share = 1.0 / xp.clip(count(permitted, reference), 1.0, None)
    return xp.where(permitted, share[..., None], xp.zeros_like(reference))


def shifted(logits: AnyArray, permitted: AnyArray) -> tuple[AnyArray, AnyArray]:
    r""":math:`z = \theta - \max \theta \le 0` and :math:`e^z`, both 0 where not permitted."""
    xp = namespace(logits)
    largest = xp.amax(xp.where(permitted, logits, -xp.inf), axis=-1, keepdims=True)
    largest = xp.where(largest == -xp.inf, 0.0, largest)  # no action has a chance: not inf - inf
    z = xp.where(permitted, logits, largest) - largest
    return z, xp.where(permitted, xp.exp(z), 0.0)


def normalised(powers: AnyArray) -> AnyArray:
    """The powers divided by their sum; a row of zeros stays one."""
    total = sum_actions(powers)[..., None]
    return powers / namespace(powers).where(total == 0, 1.0, total)


def log_normaliser(z: AnyArray, powers: AnyArray) -> AnyArray:
    r""":math:`\ln \sum e^z` for :math:`z` from `shifted`.

    The largest powers are 1 each. They are summed apart from the rest, so that log1p keeps the small
    contribution of the others.
    """
    xp = namespace(z)
    top = xp.where(z == 0, powers, 0.0)
    largest = sum_actions(top)
    largest = xp.where(largest == 0, 1.0, largest)
    return xp.log(largest) + xp.log1p(sum_actions(powers - top) / largest)
