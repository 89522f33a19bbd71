r"""IPE behaviour: the learned evaluation policy itself."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, declare
from ipe.entropy import softmax
from ipe.entropy.arrays import AnyArray


def ipe(logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The learned evaluation policy itself, :math:`\mathrm{softmax}(\theta(s, \cdot))`.

    Example:
        >>> import numpy as np
        >>> ipe(np.zeros(2))
        array([0.5, 0.5])
    """
    return softmax(logits, allowed)


declare(
    Behaviour(
        "ipe",
        "with the evaluation policy",
        probabilities=lambda view, numbers: ipe(view.logits, view.allowed),
        needs_policy=True,
    )
)
