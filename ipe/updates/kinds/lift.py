r"""Lift-IPE: what is learned of a state is one number, the value that the transitions into it promise.

The policy is no softmax of learned logits: it is the policy of most entropy whose value is the promise.
"""

from __future__ import annotations

from typing import NamedTuple

from ipe.behaviours.declaration import Numbers
from ipe.entropy import logits_from_mean
from ipe.entropy.arrays import AnyArray, actions, check_range, count, like, mask, namespace, per_row
from ipe.updates.backup import Backup, backup
from ipe.updates.declaration import ALPHA, Gradient, PolicyUpdate, Transition, declare


class LiftUpdate(NamedTuple):
    """The new promise, and the TD error that the old one had."""

    promise: AnyArray
    """The new promise of s'."""
    delta: AnyArray
    """The TD error of the policy that is the lift of the old promise."""


def lift_update(promise: AnyArray, transition: Transition, alpha: AnyArray) -> LiftUpdate:
    r"""The promise of s', moved towards what one transition says of it.

    .. math:: u(s') \leftarrow u(s') + \alpha \Big(\frac{Q(s,a) - r}{\gamma} - u(s')\Big), \qquad
              \pi(\cdot|s') = \arg\max_\pi H(\pi) \ \text{subject to} \
              \sum_b \pi_b Q(s',b) = \mathrm{clip}\big(u(s'), \min Q(s',\cdot), \max Q(s',\cdot)\big).

    A policy enters the error :math:`\delta` by its value alone, so one number for each state is all there is to learn:
    the mean of what is asked of it, which minimises :math:`E[\delta^2]`. Learning it is linear, and no softmax
    saturates. The policy is `ipe.entropy.logits_from_mean` of u and of the present Q. A terminal transition, and
    :math:`\gamma = 0`, leave u as it is.

    Args:
        promise: :math:`u(s')`, shape (...).
        transition: the transition, with the values at both ends.
        alpha: the step size; in [0, 1] u is a running mean.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=1.0, reward=0.5, gamma=0.5, terminal=False, q_next=[3.0, 0.0])
        >>> lift_update(0.0, transition, 0.25)
        LiftUpdate(promise=np.float64(0.25), delta=np.float64(-0.5))
    """
    check_range(alpha, "alpha", 0.0)
    u, parts = _parts(promise, transition)
    gap = _gap(u, parts)
    step = per_row(parts.theta, alpha, "alpha")
    return LiftUpdate(u - step * gap, _delta(u, parts))


def lift_gradient(theta: AnyArray, transition: Transition, *, tau: AnyArray = 0.0) -> Gradient:
    r"""The gradient of :math:`\frac12 \big(u - (Q(s,a) - r)/\gamma\big)^2` in the only output u of a network.

    0 at a terminal transition. tau, the weight of an entropy bonus, is not looked at: there are no logits.

    Args:
        theta: :math:`u(s')`, shape (..., 1).
        transition: as in `lift_update`.
        tau: nothing.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=1.0, reward=0.5, gamma=0.5, terminal=False, q_next=[3.0, 0.0])
        >>> lift_gradient(np.array([2.0]), transition)
        Gradient(theta=array([1.]), delta=np.float64(0.5))
    """
    u, parts = _parts(actions(theta, "theta")[..., 0], transition)
    return Gradient(_gap(u, parts)[..., None], _delta(u, parts))


def lift_logits(theta: AnyArray, q: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The logits of the policy of most entropy whose value is the promise, clipped to the range of Q.

    Args:
        theta: the promises, shape (..., 1); or tables of them, shape (..., A), in which all allowed actions have the
            promise of their state.
        q: action values, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Example:
        >>> import numpy as np
        >>> np.exp(lift_logits(np.array([0.75]), np.array([1.0, 0.0]))).round(3)     # three times as likely
        array([1.   , 0.333])
    """
    if theta.shape[-1] == 1:
        return logits_from_mean(q, theta[..., 0], allowed)
    return logits_from_mean(q, _promise(theta, allowed), allowed)


def _promise(theta: AnyArray, allowed: AnyArray | None) -> AnyArray:
    """The promise of which a row of a table is made."""
    xp, permitted = namespace(theta), mask(theta, allowed)
    most = xp.amax(xp.where(permitted, theta, -xp.inf), axis=-1)
    return xp.where(count(permitted, theta) > 0, most, 0.0)


def _parts(promise: AnyArray, transition: Transition) -> tuple[AnyArray, Backup]:
    parts = backup(0.0 * actions(transition.q_next, "q_next"), transition)
    return per_row(parts.theta, promise, "promise"), parts


def _gap(u: AnyArray, parts: Backup) -> AnyArray:
    """How far the promise is above what the transition says of it; 0 where it says nothing."""
    xp, known = namespace(parts.theta), parts.gamma > 0
    return xp.where(known, u + parts.rest / xp.where(known, parts.gamma, 1.0), 0.0)


def _delta(u: AnyArray, parts: Backup) -> AnyArray:
    """The TD error of the lift of the promise."""
    xp, permitted = namespace(parts.theta), mask(parts.theta, parts.allowed)
    q = parts.relative + parts.reference[..., None]
    low = xp.amin(xp.where(permitted, q, xp.inf), axis=-1)
    high = xp.amax(xp.where(permitted, q, -xp.inf), axis=-1)
    value = xp.where(u < low, low, xp.where(u > high, high, u))
    return parts.rest + xp.where(parts.gamma > 0, parts.gamma * xp.where(low <= high, value, 0.0), 0.0)


def _step(
    theta: AnyArray, estimate: AnyArray | None, transition: Transition, numbers: Numbers
) -> tuple[AnyArray, AnyArray | None]:
    new = lift_update(_promise(theta, transition.allowed), transition, numbers["alpha_pi"]).promise
    return like(theta, new)[..., None] + 0.0 * theta, estimate


declare(
    PolicyUpdate(
        "lift",
        "a running mean of the value that is asked of s', of which the policy is the lift",
        _step,
        gradient=lift_gradient,
        hyperparameters=(ALPHA,),
        logits=lift_logits,
        width=1,
    )
)
