r"""The update that solves its step instead of following a gradient."""

from __future__ import annotations

from ipe.behaviours import Hyperparameter
from ipe.entropy import softmax
from ipe.entropy.arrays import AnyArray, check_range, mask, namespace, sum_actions
from ipe.updates.backup import Backup, backup, centred, entropy_weight, settle, step_size
from ipe.updates.declaration import Gradient, PolicyUpdate, Transition, Update, declare, without_estimate

ITERATIONS = 28
"""Enough for policies to within 1e-13 (float64) at step sizes from 1e-4 to 1e4 and logits up to 1e3."""


def kl_proximal_update(theta: AnyArray, transition: Transition, alpha: AnyArray, *, tau: AnyArray = 0.0) -> Update:
    r"""The policy that minimises the squared error, its entropy and its distance from the old one together.

    .. math::
        \min_{\pi^+} \; \delta(\pi^+)^2 - \tau H(\pi^+) + \frac{1}{\alpha} \mathrm{KL}(\pi^+ \,\|\, \pi),
        \qquad \delta(\pi^+) = r + \gamma \sum_b \pi^+_b Q(s',b) - Q(s,a)

    It is convex, and its solution has one unknown:

    .. math::
        \pi^+_b \propto \exp\frac{\ln \pi_b - \kappa \, Q(s',b)}{1 + \alpha\tau}, \qquad
        \kappa = 2 \alpha \gamma \, \delta(\pi^+).

    The right side falls as :math:`\kappa` grows, so the root is unique and lies between 0 and the right side at
    :math:`\kappa = 0`, whatever its sign. It is found by a fixed number of Newton steps kept inside a bracket that
    shrinks in ratio. The error falls for every alpha > 0, so results are nearly flat from alpha = 0.01 to
    1000. The logits are shifted so that the largest is 0.

    Args and result as `paper_update`. delta is the error of the old policy.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.45, reward=0.0, gamma=0.9, terminal=False, q_next=[1.0, 0.0])
        >>> theta, _ = kl_proximal_update(np.array([10.0, 0.0]), transition, 1e6)
        >>> np.round(softmax(theta), 4)     # one update, from the corner to where delta is 0
        array([0.5, 0.5])
    """
    parts = backup(theta, transition)
    return Update(settle(parts, _minimiser(parts, step_size(parts, alpha), tau)), parts.delta)


def kl_proximal_gradient(
    theta: AnyArray, transition: Transition, *, kl_step: AnyArray = 1.0, tau: AnyArray = 0.0
) -> Gradient:
    r"""The direction in which a policy network moves its logits towards those of `kl_proximal_update`.

    .. math:: d = \frac{\theta - \theta^+}{\alpha} - \text{its mean over the actions}

    with :math:`\theta^+` the logits of the policy that minimises
    :math:`\delta^2 - \tau H(\pi^+) + \mathrm{KL}(\pi^+ \| \pi) / \alpha`. It is the gradient of the surrogate
    loss :math:`\frac{1}{2\alpha} \|\theta - \theta^+\|^2`, in which :math:`\theta^+` is a constant, shifted to the
    mean of :math:`\theta`. For :math:`\alpha \to 0` it is `natural_gradient`. 0 at a terminal transition.

    Args:
        theta, transition, tau: as in `paper_update`.
        kl_step: :math:`\alpha > 0`, the step size of the target; that of the network is its optimiser's.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.45, reward=0.0, gamma=0.9, terminal=False, q_next=[1.0, 0.0])
        >>> direction, _ = kl_proximal_gradient(np.array([10.0, 0.0]), transition, kl_step=1e6)
        >>> np.round(1e6 * direction, 3)    # ten less between the two logits: the policy where delta is 0
        array([ 5., -5.])
    """
    parts = backup(theta, transition)
    check_range(kl_step, "kl_step", 0.0, strict=True)
    alpha = step_size(parts, kl_step)
    moved = parts.theta - _minimiser(parts, alpha, tau)
    return Gradient(centred(parts, moved / alpha[..., None]), parts.delta)


def _minimiser(parts: Backup, alpha: AnyArray, tau: AnyArray) -> AnyArray:
    """Logits of the policy that solves the proximal problem."""
    scale = 1.0 + alpha * entropy_weight(parts, tau)
    return _tilted(parts, _solve(parts, 2.0 * alpha * parts.gamma, scale), scale)


def _tilted(parts: Backup, kappa: AnyArray, scale: AnyArray) -> AnyArray:
    return (parts.theta - kappa[..., None] * parts.relative) / scale[..., None]


def _solve(parts: Backup, slope: AnyArray, scale: AnyArray) -> AnyArray:
    r"""The root of :math:`\kappa = c\,(b + \gamma\,m(\kappa))`, m the mean of `relative` under the tilted policy.

    Newton's step where it stays inside the bracket and the last one halved the excess, else the
    geometric mean of the bracket's ends; the best point seen is the answer, since rounding ends the halving.
    """
    xp = namespace(parts.theta)
    constant = parts.rest + parts.gamma * parts.reference
    steepness = slope * parts.gamma / scale

    def moments(kappa: AnyArray) -> tuple[AnyArray, AnyArray]:
        pi = softmax(_tilted(parts, kappa, scale), parts.allowed)
        mean = sum_actions(pi * parts.relative)
        return slope * (constant + parts.gamma * mean), sum_actions(pi * (parts.relative - mean[..., None]) ** 2)

    first, _ = moments(xp.zeros_like(slope))
    sign = xp.where(first < 0, -xp.ones_like(first), xp.ones_like(first))
    low, high = _bracket(parts, first, sign, slope, steepness, constant)
    size = best = low
    last = least = xp.full_like(size, xp.inf)
    hair = 8.0 * xp.finfo(parts.theta.dtype).eps  # where the policy hardly moves, the root is an end of the bracket
    for _ in range(ITERATIONS):
        right, variance = moments(sign * size)
        excess = size - sign * right
        low, high = xp.where(excess <= 0, size, low), xp.where(excess >= 0, size, high)
        best, least = xp.where(xp.abs(excess) < least, size, best), xp.minimum(least, xp.abs(excess))
        newton = size - excess / (1.0 + steepness * variance)
        inside = (newton >= low * (1.0 - hair)) & (newton <= high * (1.0 + hair))
        newton = xp.minimum(xp.maximum(newton, low), high)
        middle = xp.sqrt(low) * xp.sqrt(high)
        size = xp.where(inside & (xp.abs(excess) <= 0.5 * last), newton, middle)
        last = xp.abs(excess)
    return xp.where(first == 0, 0.0, sign * best)


def _bracket(
    parts: Backup,
    first: AnyArray,
    sign: AnyArray,
    slope: AnyArray,
    steepness: AnyArray,
    constant: AnyArray,
) -> tuple[AnyArray, AnyArray]:
    """Bounds on the size of kappa, both positive.

    Above, the right side at 0. Below, twice: the mean falls no faster than the largest variance that its
    range allows, a quarter of the squared width; and no further than to the end of its range.
    """
    xp = namespace(parts.theta)
    permitted = mask(parts.theta, parts.allowed)
    least = xp.amin(xp.where(permitted, parts.relative, xp.inf), axis=-1)
    most = xp.amax(xp.where(permitted, parts.relative, -xp.inf), axis=-1)
    least, most = xp.where(least <= most, least, 0.0), xp.where(least <= most, most, 0.0)
    high = xp.where(first == 0, 1.0, xp.abs(first))
    by_width = high / (1.0 + steepness * (most - least) ** 2 / 4.0)
    by_end = sign * slope * (constant + parts.gamma * xp.where(sign > 0, least, most))
    return xp.minimum(xp.maximum(by_width, by_end), high), high


declare(
    PolicyUpdate(
        "kl-proximal",
        "the exact minimiser of the squared error and a KL penalty",
        without_estimate(kl_proximal_update),
        gradient=kl_proximal_gradient,
        network_numbers=(
            Hyperparameter(
                "kl_step",
                "The step size of the policy that the network moves towards: the KL penalty has one over it as its "
                "weight.",
                1.0,
                above=True,
            ),
        ),
    )
)
