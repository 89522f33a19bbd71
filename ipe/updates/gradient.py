r"""Updates that step along a gradient: the paper's, natural, Fenchel, absolute, and the entropy bonus."""

from __future__ import annotations

from typing import NamedTuple

from ipe.entropy import entropy_from_logits, log_softmax, softmax
from ipe.entropy.arrays import AnyArray, actions, check_range, namespace, per_row
from ipe.updates.backup import Backup, Update, backup, entropy_weight, is_zero, settle, step_size


class Gradient(NamedTuple):
    """The gradient of a transition's loss in the logits, and its TD error."""

    theta: AnyArray
    delta: AnyArray


class FenchelUpdate(NamedTuple):
    """The new logits, the TD error that the old ones had, and the new estimate of its mean."""

    theta: AnyArray
    delta: AnyArray
    y: AnyArray


def paper_update(
    theta: AnyArray,
    q_next: AnyArray,
    q_sa: AnyArray,
    reward: AnyArray,
    gamma: AnyArray,
    terminal: AnyArray,
    alpha: AnyArray,
    *,
    tau: AnyArray = 0.0,
    allowed: AnyArray | None = None,
) -> Update:
    r"""The paper's update: a step of gradient descent on :math:`\delta^2 - \tau H(\pi)` in the logits.

    .. math:: \theta_b \leftarrow \theta_b - 2 \alpha \delta \gamma \, \pi_b (Q(s',b) - v')
              - \alpha \tau \, \pi_b (\ln \pi_b + H(\pi))

    The sum of the logits does not change. Next to a deterministic policy the step is as small as the other
    actions' probabilities: leaving it takes about :math:`1/(1 - \max \pi)` updates.

    Args:
        theta: logits of :math:`\pi(\cdot|s')`, shape (..., A).
        q_next: :math:`Q(s', \cdot)`, broadcasts to (..., A).
        q_sa: :math:`Q(s,a)`; this and the rest broadcast to (...).
        reward: r.
        gamma: the discount, in [0, 1].
        terminal: whether s' is terminal.
        alpha: the step size.
        tau: weight of the entropy bonus; the paper has none.
        allowed: boolean, broadcasts to (..., A): the actions of s'. Default: all.

    Example:
        >>> import numpy as np
        >>> paper_update(np.zeros(2), [1.0, 0.0], q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, alpha=2.0)
        Update(theta=array([-0.125,  0.125]), delta=np.float64(0.25))
    """
    parts = backup(theta, q_next, q_sa, reward, gamma, terminal, allowed)
    return Update(_descend(parts, 2.0 * parts.delta, alpha, tau, allowed), parts.delta)


def paper_gradient(
    theta: AnyArray,
    q_next: AnyArray,
    q_sa: AnyArray,
    reward: AnyArray,
    gamma: AnyArray,
    terminal: AnyArray,
    *,
    tau: AnyArray = 0.0,
    allowed: AnyArray | None = None,
) -> Gradient:
    r"""The gradient of :math:`\delta^2 - \tau H(\pi)` in the logits, which `paper_update` descends.

    For a policy network, whose optimiser takes the step. 0 at a terminal transition. Args as `paper_update`.

    Example:
        >>> import numpy as np
        >>> paper_gradient(np.zeros(2), [1.0, 0.0], q_sa=0.0, reward=0.0, gamma=0.5, terminal=False)
        Gradient(theta=array([ 0.0625, -0.0625]), delta=np.float64(0.25))
    """
    parts = backup(theta, q_next, q_sa, reward, gamma, terminal, allowed)
    return Gradient(_slope(parts, 2.0 * parts.delta, tau, allowed), parts.delta)


def absolute_gradient(
    theta: AnyArray,
    q_next: AnyArray,
    q_sa: AnyArray,
    reward: AnyArray,
    gamma: AnyArray,
    terminal: AnyArray,
    *,
    tau: AnyArray = 0.0,
    allowed: AnyArray | None = None,
) -> Gradient:
    r"""The gradient of :math:`|\delta| - \tau H(\pi)` in the logits, which `absolute_update` descends.

    0 at a terminal transition. Args as `paper_update`.

    Example:
        >>> import numpy as np
        >>> absolute_gradient(np.zeros(2), [1.0, 0.0], q_sa=0.0, reward=0.0, gamma=0.5, terminal=False).theta
        array([ 0.125, -0.125])
    """
    parts = backup(theta, q_next, q_sa, reward, gamma, terminal, allowed)
    return Gradient(_slope(parts, namespace(parts.theta).sign(parts.delta), tau, allowed), parts.delta)


def absolute_update(
    theta: AnyArray,
    q_next: AnyArray,
    q_sa: AnyArray,
    reward: AnyArray,
    gamma: AnyArray,
    terminal: AnyArray,
    alpha: AnyArray,
    *,
    tau: AnyArray = 0.0,
    allowed: AnyArray | None = None,
) -> Update:
    r"""A step of gradient descent on :math:`|\delta| - \tau H(\pi)` in the logits.

    That is `paper_update` with :math:`\mathrm{sign}(\delta)` for :math:`2 \delta`. Args and result as `paper_update`.

    Example:
        >>> import numpy as np
        >>> absolute_update(np.zeros(2), [1.0, 0.0], q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, alpha=2.0).theta
        array([-0.25,  0.25])
    """
    parts = backup(theta, q_next, q_sa, reward, gamma, terminal, allowed)
    sign = namespace(parts.theta).sign(parts.delta)
    return Update(_descend(parts, sign, alpha, tau, allowed), parts.delta)


def fenchel_update(
    theta: AnyArray,
    y: AnyArray,
    q_next: AnyArray,
    q_sa: AnyArray,
    reward: AnyArray,
    gamma: AnyArray,
    terminal: AnyArray,
    alpha: AnyArray,
    beta: AnyArray = 0.1,
    *,
    tau: AnyArray = 0.0,
    allowed: AnyArray | None = None,
) -> FenchelUpdate:
    r"""The paper's update with an estimate :math:`y(s,a)` of the mean error in place of :math:`\delta`.

    The bound that the paper samples is the mean of :math:`\delta^2`; where transitions are random that is more
    than the square of the mean, which is the Bellman error. By Fenchel duality the square of the mean is
    :math:`\max_y 2 y\, \mathbb{E}[\delta] - y^2`, and a sample gives both gradients without bias:

    .. math:: y \leftarrow y + \beta (\delta - y), \qquad
              \theta_b \leftarrow \theta_b - 2 \alpha y \gamma \, \pi_b (Q(s',b) - v'),

    y first. A terminal transition updates y, with :math:`\delta = r - Q(s,a)`, and not theta.

    Args:
        theta: logits of :math:`\pi(\cdot|s')`, shape (..., A).
        y: the estimate :math:`y(s,a)`, shape (...); start it at 0.
        q_next, q_sa, reward, gamma, terminal, alpha, tau, allowed: as in `paper_update`.
        beta: the step size of y, in [0, 1].

    Example:
        >>> import numpy as np
        >>> fenchel_update(np.zeros(2), 0.0, [1.0, 0.0], q_sa=0.0, reward=0.0, gamma=0.5, terminal=True, alpha=2.0)
        FenchelUpdate(theta=array([0., 0.]), delta=np.float64(0.0), y=np.float64(0.0))
    """
    parts = backup(theta, q_next, q_sa, reward, gamma, terminal, allowed)
    check_range(beta, "beta", 0.0, 1.0)
    estimate = per_row(parts.theta, y, "y")
    estimate = estimate + per_row(parts.theta, beta, "beta") * (parts.delta - estimate)
    return FenchelUpdate(_descend(parts, 2.0 * estimate, alpha, tau, allowed), parts.delta, estimate)


def natural_update(
    theta: AnyArray,
    q_next: AnyArray,
    q_sa: AnyArray,
    reward: AnyArray,
    gamma: AnyArray,
    terminal: AnyArray,
    alpha: AnyArray,
    *,
    tau: AnyArray = 0.0,
    allowed: AnyArray | None = None,
) -> Update:
    r"""A step along the natural gradient of :math:`\delta^2 - \tau H(\pi)`.

    .. math:: \theta_b \leftarrow \theta_b - 2 \alpha \delta \gamma \, (Q(s',b) - v')
              - \alpha \tau \, (\ln \pi_b + H(\pi))

    The gradient times the inverse of the Fisher matrix :math:`\mathrm{diag}(\pi) - \pi \pi^T`. The factor
    :math:`\pi_b` is gone, and with it the slowness next to a deterministic policy. The logits are then
    shifted so that the largest is 0, without which they would drift upwards; the policy does not notice.

    Args and result as `paper_update`.

    Example:
        >>> import numpy as np
        >>> natural_update(np.zeros(2), [1.0, 0.0], q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, alpha=2.0).theta
        array([-0.5,  0. ])
    """
    parts = backup(theta, q_next, q_sa, reward, gamma, terminal, allowed)
    alpha = step_size(parts, alpha)
    new = parts.theta - (2.0 * alpha * parts.delta * parts.gamma)[..., None] * parts.advantage
    if not is_zero(tau):
        weight = alpha * entropy_weight(parts, tau)
        new = new - weight[..., None] * _log_ratio(parts.theta, allowed)
    return Update(settle(parts, new, allowed), parts.delta)


def entropy_bonus(theta: AnyArray, tau: AnyArray, *, allowed: AnyArray | None = None) -> AnyArray:
    r"""The gradient of :math:`-\tau H(\pi)` in the logits: :math:`\tau \, \pi_b (\ln \pi_b + H(\pi))`.

    Times the step size, this is what the updates subtract more when they are given a tau.

    Args:
        theta: logits, shape (..., A).
        tau: the weight, >= 0, broadcasts to (...).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Example:
        >>> import numpy as np
        >>> entropy_bonus(np.zeros(3), 0.1)   # the uniform policy has all there is
        array([0., 0., 0.])
    """
    theta = actions(theta, "theta")
    check_range(tau, "tau", 0.0)
    tau = per_row(theta, tau, "tau")
    return tau[..., None] * softmax(theta, allowed) * _log_ratio(theta, allowed)


def _descend(parts: Backup, error: AnyArray, alpha: AnyArray, tau: AnyArray, allowed: AnyArray | None) -> AnyArray:
    return parts.theta - step_size(parts, alpha)[..., None] * _slope(parts, error, tau, allowed)


def _slope(parts: Backup, error: AnyArray, tau: AnyArray, allowed: AnyArray | None) -> AnyArray:
    """The gradient in the logits where that of the loss in delta is `error`."""
    slope = (error * parts.gamma)[..., None] * parts.pi * parts.advantage
    if not is_zero(tau):
        slope = slope + entropy_bonus(parts.theta, tau, allowed=allowed)
    return namespace(parts.theta).where(parts.terminal[..., None], 0.0, slope)


def _log_ratio(theta: AnyArray, allowed: AnyArray | None) -> AnyArray:
    r""":math:`\ln \pi_b + H(\pi)`, 0 for an action that has no chance."""
    xp = namespace(theta)
    logs = log_softmax(theta, allowed)
    possible = logs > -xp.inf
    return xp.where(possible, xp.where(possible, logs, 0.0) + entropy_from_logits(theta, allowed)[..., None], 0.0)
