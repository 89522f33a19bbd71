r"""Entropy-based exploration: an epsilon that is the entropy of the action values."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, declare
from ipe.behaviours.kinds.boltzmann import TEMPERATURE
from ipe.entropy import entropy_from_logits
from ipe.entropy.arrays import AnyArray, actions, check_range, count, mask, namespace, per_row


def ebe_epsilon(q: AnyArray, temperature: AnyArray = 1.0, allowed: AnyArray | None = None) -> AnyArray:
    r"""The entropy of a softmax of the values, as a part of the largest entropy there is.

    .. math:: \epsilon(s) = \frac{H(\mathrm{softmax}(Q(s, \cdot) / \tau))}{\ln n}

    Entropy-based exploration (EBE; Usama and Chang, *Learning-driven exploration for reinforcement learning*, arXiv
    1906.06890): epsilon-greedy with this epsilon. The paper has no temperature (:math:`\tau = 1`); it is a number here
    because the entropy depends on the scale of the rewards. With a single action, which the paper leaves open, epsilon
    is 0. (The paper's variant that sets epsilon to .01 below a threshold is not here.)

    Args:
        q: action values, shape (..., A).
        temperature: :math:`\tau > 0`, broadcasts to (...).
        allowed: boolean, broadcasts to (..., A): the n actions. Default: all.

    Returns:
        Epsilon in [0, 1], shape (...).

    Example:
        >>> import numpy as np
        >>> round(float(ebe_epsilon(np.array([0.0, np.log(9.0)]))), 6)   # the entropy of (0.1, 0.9) in bits
        0.468996
    """
    q = actions(q, "q")
    check_range(temperature, "temperature", 0.0, strict=True)
    temperature = per_row(q, temperature, "temperature")[..., None]
    xp = namespace(q)
    permitted = mask(q, allowed)
    most = xp.amax(xp.where(permitted, q, -xp.inf), axis=-1)[..., None]
    # Counted from the largest value and cut, before the division that a small temperature would overflow.
    gap = xp.where(permitted, q - most, 0.0)
    logits = xp.where(gap > -1000.0 * temperature, gap, -1000.0 * temperature) / temperature
    n = count(permitted, q)
    largest = xp.log(xp.where(n > 1, n, 2.0))
    return xp.clip(xp.where(n > 1, entropy_from_logits(logits, permitted) / largest, 0.0 * n), 0.0, 1.0)


declare(
    Behaviour(
        "ebe",
        "epsilon-greedily, with the entropy of the values as epsilon",
        epsilon=lambda view, numbers: ebe_epsilon(view.q, numbers["temperature"], view.allowed),
        hyperparameters=(TEMPERATURE,),
    )
)
