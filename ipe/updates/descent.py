r"""What the updates along a gradient have in common: the gradient in the logits, and that of the entropy bonus."""

from __future__ import annotations

from ipe.entropy import entropy_from_logits, log_softmax, softmax
from ipe.entropy.arrays import AnyArray, actions, check_range, namespace, per_row
from ipe.updates.backup import Backup, is_zero, step_size


def descend(parts: Backup, error: AnyArray, alpha: AnyArray, tau: AnyArray) -> AnyArray:
    """The logits after a step of size alpha down `slope`."""
    return parts.theta - step_size(parts, alpha)[..., None] * slope(parts, error, tau)


def slope(parts: Backup, error: AnyArray, tau: AnyArray) -> AnyArray:
    """The gradient of a loss in the logits, from its gradient `error` in delta; 0 at a terminal transition."""
    gradient = (error * parts.gamma)[..., None] * parts.pi * parts.advantage
    if not is_zero(tau):
        gradient = gradient + entropy_bonus(parts.theta, tau, allowed=parts.allowed)
    return namespace(parts.theta).where(parts.terminal[..., None], 0.0, gradient)


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
    return tau[..., None] * softmax(theta, allowed) * log_ratio(theta, allowed)


def log_ratio(theta: AnyArray, allowed: AnyArray | None) -> AnyArray:
    r""":math:`\ln \pi_b + H(\pi)`, and 0 for an action of probability 0."""
    xp = namespace(theta)
    logs = log_softmax(theta, allowed)
    possible = logs > -xp.inf
    return xp.where(possible, xp.where(possible, logs, 0.0) + entropy_from_logits(theta, allowed)[..., None], 0.0)
