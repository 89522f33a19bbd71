r"""Behaviours: probabilities from values and a policy."""

from __future__ import annotations

from ipe.entropy import epsilon_from_logits, softmax, uniform
from ipe.entropy.arrays import AnyArray, actions, check_range, mask, namespace, per_row
from ipe.entropy.softmax import shifted


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


def boltzmann(q: AnyArray, temperature: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""Probabilities in proportion to :math:`\exp(Q(s,a) / \tau)`.

    Args:
        q: action values, shape (..., A).
        temperature: :math:`\tau > 0`, broadcasts to (...).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Probabilities, shape (..., A).

    Example:
        >>> import numpy as np
        >>> boltzmann(np.array([0.0, np.log(9.0)]), 1.0)
        array([0.1, 0.9])
    """
    q = actions(q, "q")
    check_range(temperature, "temperature", 0.0, strict=True)
    temperature = per_row(q, temperature, "temperature")[..., None]
    gap, _ = shifted(q, mask(q, allowed))
    # Shifted and cut before the division, which a small temperature would overflow; exp(-1000) is 0 already.
    return softmax(namespace(q).maximum(gap, -1000.0 * temperature) / temperature, allowed)


def ipe(logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The learned evaluation policy itself, :math:`\mathrm{softmax}(\theta(s, \cdot))`.

    Example:
        >>> import numpy as np
        >>> ipe(np.zeros(2))
        array([0.5, 0.5])
    """
    return softmax(logits, allowed)


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
    return epsilon_greedy(q, epsilon_from_logits(logits, allowed), allowed)
