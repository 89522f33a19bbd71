r"""Tau-IPE: Boltzmann behaviour that is as random as the learned evaluation policy."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, declare
from ipe.entropy import boltzmann_from_logits
from ipe.entropy.arrays import AnyArray


def tau_ipe(q: AnyArray, logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""Tau-IPE: Boltzmann on Q, at the temperature at which it is as random as the evaluation policy is.

    .. math:: b = \mathrm{softmax}(\eta Q(s, \cdot)),\ \eta \ge 0,\quad H(b) = H(\mathrm{softmax}(\theta(s, \cdot))).

    Epsilon-IPE spreads the evaluation policy's entropy evenly over all actions; tau-IPE spreads it by value, so that
    an action that is nearly as good as the best one is tried more often than a bad one. It has no temperature to
    choose and does not change when rewards are multiplied. With two actions it is epsilon-IPE. Where the entropy is
    below that of the actions that tie at the top, it is greedy, with ties at
    random (`ipe.entropy.boltzmann_from_logits`).

    Args:
        q: action values, shape (..., A).
        logits: :math:`\theta` of the evaluation policy, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Probabilities, shape (..., A).

    Example:
        >>> import numpy as np
        >>> np.round(tau_ipe(np.array([1.0, 0.5, 0.0]), np.array([0.0, 2.0, 1.0])), 2)
        array([0.67, 0.24, 0.09])
    """
    return boltzmann_from_logits(q, logits, allowed)


declare(
    Behaviour(
        "tau-ipe",
        "with Boltzmann probabilities, at the temperature whose entropy is that of the evaluation policy",
        probabilities=lambda view, numbers: tau_ipe(view.q, view.logits, view.allowed),
        needs_policy=True,
    )
)
