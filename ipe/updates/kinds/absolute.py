r"""Gradient descent on the absolute error."""

from __future__ import annotations

from ipe.entropy.arrays import AnyArray, namespace
from ipe.updates.backup import backup
from ipe.updates.declaration import Gradient, PolicyUpdate, Transition, Update, declare, without_estimate
from ipe.updates.descent import descend, slope


def absolute_update(theta: AnyArray, transition: Transition, alpha: AnyArray, *, tau: AnyArray = 0.0) -> Update:
    r"""A step of gradient descent on :math:`|\delta| - \tau H(\pi)` in the logits.

    That is `paper_update` with :math:`\mathrm{sign}(\delta)` for :math:`2 \delta`. Args and result as `paper_update`.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
        >>> absolute_update(np.zeros(2), transition, 2.0).theta
        array([-0.25,  0.25])
    """
    parts = backup(theta, transition)
    return Update(descend(parts, namespace(parts.theta).sign(parts.delta), alpha, tau), parts.delta)


def absolute_gradient(theta: AnyArray, transition: Transition, *, tau: AnyArray = 0.0) -> Gradient:
    r"""The gradient of :math:`|\delta| - \tau H(\pi)` in the logits, which `absolute_update` descends.

    0 at a terminal transition. Args as `paper_update`.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
        >>> absolute_gradient(np.zeros(2), transition).theta
        array([ 0.125, -0.125])
    """
    parts = backup(theta, transition)
    return Gradient(slope(parts, namespace(parts.theta).sign(parts.delta), tau), parts.delta)


declare(
    PolicyUpdate(
        "absolute",
        "gradient descent on the absolute error",
        without_estimate(absolute_update),
        gradient=absolute_gradient,
    )
)
