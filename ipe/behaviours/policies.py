r"""The two behaviours that others are made of: greedy and epsilon-greedy on action values."""

from __future__ import annotations

from ipe.entropy import uniform
from ipe.entropy.arrays import AnyArray, actions, check_range, mask, namespace, per_row


def greedy(q: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""All probability on :math:`\arg\max_a Q(s,a)`, shared equally at a tie.

    Args:
        q: action values, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Probabilities, shape (..., A).

    Example:
        >>> import numpy as np
        >>> greedy(np.array([[1.0, 3.0, 2.0], [4.0, 4.0, 0.0]]))
        array([[0. , 1. , 0. ],
               [0.5, 0.5, 0. ]])
    """
    q = actions(q, "q")
    permitted = mask(q, allowed)
    xp = namespace(q)
    best = xp.amax(xp.where(permitted, q, -xp.inf), axis=-1, keepdims=True)
    winners = permitted & (q == best)
    # A NaN among the allowed values makes `best` one, and every probability.
    return xp.where(best == best, uniform(q, winners), xp.where(permitted, best, 0.0))


def epsilon_greedy(q: AnyArray, epsilon: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""Greedy with probability :math:`1 - \epsilon`, else uniform over the allowed actions.

    Args:
        q: action values, shape (..., A).
        epsilon: in [0, 1], broadcasts to (...).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Probabilities, shape (..., A).

    Example:
        >>> import numpy as np
        >>> epsilon_greedy(np.array([1.0, 3.0]), 0.1)
        array([0.05, 0.95])
    """
    q = actions(q, "q")
    check_range(epsilon, "epsilon", 0.0, 1.0)
    epsilon = per_row(q, epsilon, "epsilon")[..., None]
    return (1.0 - epsilon) * greedy(q, allowed) + epsilon * uniform(q, allowed)
