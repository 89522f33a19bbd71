r"""Epsilon-IPE: epsilon-greedy behaviour that is as random as the learned evaluation policy."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, View, declare
from ipe.entropy import epsilon_from_logits
from ipe.entropy.arrays import AnyArray

EPSILON_IPE = declare(
    Behaviour(
        "epsilon-ipe",
        "epsilon-greedily, with the epsilon whose entropy is that of the evaluation policy",
        epsilon=lambda view, numbers: epsilon_from_logits(view.logits, view.allowed),
        needs_policy=True,
    )
)


def epsilon_ipe(q: AnyArray, logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The paper's epsilon-IPE: epsilon-greedy on Q, as random as the evaluation policy is.

    Epsilon is matched as if one action were greedy (`ipe.entropy.epsilon_from_logits`); at a tie the
    greedy actions share its probability, so there the behaviour has more entropy than the policy. For a
    policy given as probabilities: `epsilon_greedy(q, epsilon_from_probabilities(pi))`.

    Args:
        q: action values, shape (..., A).
        logits: :math:`\theta` of the evaluation policy, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Probabilities, shape (..., A).

    Example:
        >>> import numpy as np
        >>> epsilon_ipe(np.array([3.0, 1.0]), np.log(np.array([0.1, 0.9])))
        array([0.9, 0.1])
    """
    return EPSILON_IPE.act(View(q, logits, allowed), {}).probabilities
