r"""The natural gradient of the squared error."""

from __future__ import annotations

from ipe.entropy.arrays import AnyArray
from ipe.updates.backup import backup, entropy_weight, is_zero, settle, step_size
from ipe.updates.declaration import PolicyUpdate, Transition, Update, declare, without_estimate
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


declare(PolicyUpdate("natural", "natural gradient descent on the squared error", without_estimate(natural_update)))
