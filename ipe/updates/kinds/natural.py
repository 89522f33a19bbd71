r"""The natural gradient of the squared error."""

from __future__ import annotations

from ipe.entropy.arrays import AnyArray
from ipe.updates.backup import backup, centred, entropy_weight, is_zero, settle, step_size
from ipe.updates.declaration import Gradient, PolicyUpdate, Transition, Update, declare, without_estimate
from ipe.updates.descent import log_ratio


def natural_update(theta: AnyArray, transition: Transition, alpha: AnyArray, *, tau: AnyArray = 0.0) -> Update:
    r"""A step along the natural gradient of :math:`\delta^2 - \tau H(\pi)`.

    .. math:: \theta_b \leftarrow \theta_b - 2 \alpha \delta \gamma \, (Q(s',b) - v')
              - \alpha \tau \, (\ln \pi_b + H(\pi))

    The gradient times the inverse of the Fisher matrix :math:`\mathrm{diag}(\pi) - \pi \pi^T`. The factor
    :math:`\pi_b` is gone, and with it the slowness next to a deterministic policy. The logits are then
    shifted so that the largest is 0, without which they would drift upwards; the policy does not notice.

    Args and result as `paper_update`.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
        >>> natural_update(np.zeros(2), transition, 2.0).theta
        array([-0.5,  0. ])
    """
    parts = backup(theta, transition)
    alpha = step_size(parts, alpha)
    new = parts.theta - (2.0 * alpha * parts.delta * parts.gamma)[..., None] * parts.advantage
    if not is_zero(tau):
        weight = alpha * entropy_weight(parts, tau)
        new = new - weight[..., None] * log_ratio(parts.theta, parts.allowed)
    return Update(settle(parts, new), parts.delta)


def natural_gradient(theta: AnyArray, transition: Transition, *, tau: AnyArray = 0.0) -> Gradient:
    r"""The direction that a policy network takes in its logits: the natural gradient of `natural_update`, centred.

    .. math:: d = F^+ \nabla_\theta \big(\delta^2 - \tau H(\pi)\big), \qquad F = \mathrm{diag}(\pi) - \pi \pi^T,
              \qquad d_b = 2 \delta \gamma \, \big(Q(s',b) - \overline{Q}(s')\big)
              + \tau \, \big(\ln \pi_b - \overline{\ln \pi}\big),

    where :math:`F^+` is the pseudo-inverse and a bar is the mean over the actions. It moves the policy as
    `natural_update` does, and the sum of the logits does not change, so that a network's logits do not drift. It is the
    gradient of the surrogate loss :math:`\sum_b d_b \theta_b` with d held constant. 0 at a terminal transition.

    Args as `paper_update`.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
        >>> natural_gradient(np.zeros(2), transition)
        Gradient(theta=array([ 0.125, -0.125]), delta=np.float64(0.25))
    """
    parts = backup(theta, transition)
    direction = (2.0 * parts.delta * parts.gamma)[..., None] * parts.advantage
    if not is_zero(tau):
        direction = direction + entropy_weight(parts, tau)[..., None] * log_ratio(parts.theta, parts.allowed)
    return Gradient(centred(parts, direction), parts.delta)


declare(
    PolicyUpdate(
        "natural",
        "natural gradient descent on the squared error",
        without_estimate(natural_update),
        gradient=natural_gradient,
    )
)
