r"""The update that imitates the closed form: the policy of most entropy that makes the error of one transition 0."""

from __future__ import annotations

from ipe.entropy import logits_from_mean, softmax
from ipe.entropy.arrays import AnyArray, namespace
from ipe.updates.backup import Backup, backup, is_zero, step_size
from ipe.updates.declaration import Gradient, PolicyUpdate, Transition, Update, declare, without_estimate
from ipe.updates.descent import entropy_bonus


def cross_entropy_update(theta: AnyArray, transition: Transition, alpha: AnyArray, *, tau: AnyArray = 0.0) -> Update:
    r"""A step of gradient descent on the cross-entropy to the lift of the transition.

    .. math:: \theta_b \leftarrow \theta_b - \alpha (\pi_b - \hat\pi_b), \qquad
              \hat\pi = \arg\max_\pi H(\pi) \ \text{subject to} \
              \sum_b \pi_b Q(s',b)
              = \mathrm{clip}\Big(\frac{Q(s,a) - r}{\gamma}, \min Q(s',\cdot), \max Q(s',\cdot)\Big).

    :math:`\hat\pi` makes :math:`\delta = 0` where the range of Q allows it (`ipe.entropy.logits_from_mean`). The step
    is never larger than alpha, and it does not vanish next to a deterministic policy. Where several transitions lead to
    s', the policy becomes the mean of their lifts, which is not the lift of their mean. With :math:`\gamma = 0` nothing
    is asked of the policy, and theta stays as it is.

    Args and result as `paper_update`.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.45, reward=0.0, gamma=0.9, terminal=False, q_next=[1.0, 0.0])
        >>> cross_entropy_update(np.array([np.log(3.0), 0.0]), transition, 1.0).theta.round(4)   # 3/4 - 1/2 less
        array([0.8486, 0.25  ])
    """
    parts = backup(theta, transition)
    return Update(parts.theta - step_size(parts, alpha)[..., None] * _slope(parts, tau), parts.delta)


def cross_entropy_gradient(theta: AnyArray, transition: Transition, *, tau: AnyArray = 0.0) -> Gradient:
    r"""The gradient of :math:`-\sum_b \hat\pi_b \ln \pi_b - \tau H(\pi)` in the logits, :math:`\hat\pi` held constant.

    0 at a terminal transition. Args as `paper_update`; :math:`\hat\pi` as in `cross_entropy_update`.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=1.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
        >>> cross_entropy_gradient(np.zeros(2), transition)     # more is promised than there is: greedy
        Gradient(theta=array([-0.5,  0.5]), delta=np.float64(-0.75))
    """
    parts = backup(theta, transition)
    return Gradient(_slope(parts, tau), parts.delta)


def _slope(parts: Backup, tau: AnyArray) -> AnyArray:
    xp = namespace(parts.theta)
    known = parts.gamma > 0
    promise = -parts.rest / xp.where(known, parts.gamma, 1.0) - parts.reference
    lifted = softmax(logits_from_mean(parts.relative, promise, parts.allowed), parts.allowed)
    gradient = parts.pi - lifted
    if not is_zero(tau):
        gradient = gradient + entropy_bonus(parts.theta, tau, allowed=parts.allowed)
    return xp.where(known[..., None], gradient, 0.0)


declare(
    PolicyUpdate(
        "cross-entropy",
        "gradient descent on the cross-entropy to the policy of most entropy that makes the error 0",
        without_estimate(cross_entropy_update),
        gradient=cross_entropy_gradient,
    )
)
