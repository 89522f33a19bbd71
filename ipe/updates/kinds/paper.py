r"""The paper's update: gradient descent on the squared error."""

from __future__ import annotations

from ipe.entropy.arrays import AnyArray
from ipe.updates.backup import backup
from ipe.updates.declaration import Gradient, PolicyUpdate, Transition, Update, declare, without_estimate
from ipe.updates.descent import descend, slope


def paper_update(theta: AnyArray, transition: Transition, alpha: AnyArray, *, tau: AnyArray = 0.0) -> Update:
    r"""The paper's update: a step of gradient descent on :math:`\delta^2 - \tau H(\pi)` in the logits.

    .. math:: \theta_b \leftarrow \theta_b - 2 \alpha \delta \gamma \, \pi_b (Q(s',b) - v')
              - \alpha \tau \, \pi_b (\ln \pi_b + H(\pi))

    The sum of the logits does not change. Next to a deterministic policy the step is as small as the other
    actions' probabilities: leaving it takes about :math:`1/(1 - \max \pi)` updates.

    Args:
        theta: logits of :math:`\pi(\cdot|s')`, shape (..., A).
        transition: the transition, with the values at both ends.
        alpha: the step size.
        tau: weight of the entropy bonus; the paper has none.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
        >>> paper_update(np.zeros(2), transition, 2.0)
        Update(theta=array([-0.125,  0.125]), delta=np.float64(0.25))
    """
    parts = backup(theta, transition)
    return Update(descend(parts, 2.0 * parts.delta, alpha, tau), parts.delta)


def paper_gradient(theta: AnyArray, transition: Transition, *, tau: AnyArray = 0.0) -> Gradient:
    r"""The gradient of :math:`\delta^2 - \tau H(\pi)` in the logits, which `paper_update` descends.

    For a policy network, whose optimiser takes the step. 0 at a terminal transition. Args as `paper_update`.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
        >>> paper_gradient(np.zeros(2), transition)
        Gradient(theta=array([ 0.0625, -0.0625]), delta=np.float64(0.25))
    """
    parts = backup(theta, transition)
    return Gradient(slope(parts, 2.0 * parts.delta, tau), parts.delta)


declare(
    PolicyUpdate(
        "paper", "gradient descent on the squared error", without_estimate(paper_update), gradient=paper_gradient
    )
)
