r"""Boltzmann behaviour: probabilities in proportion to the exponential of the values."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, declare
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.entropy import softmax
from ipe.entropy.arrays import AnyArray, actions, check_range, mask, namespace, per_row
from ipe.entropy.softmax import shifted


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


TEMPERATURE = Hyperparameter("temperature", "The temperature of the softmax over Q.", 1.0, above=True)

declare(
    Behaviour(
        "boltzmann",
        "with probabilities in proportion to exp(Q / temperature)",
        probabilities=lambda view, numbers: boltzmann(view.q, numbers["temperature"], view.allowed),
        hyperparameters=(TEMPERATURE,),
    )
)
