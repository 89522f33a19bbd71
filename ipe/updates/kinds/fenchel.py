r"""The paper's update with a second estimate of the mean error."""

from __future__ import annotations

from typing import NamedTuple

from ipe.behaviours import Hyperparameter
from ipe.behaviours.declaration import Numbers
from ipe.entropy.arrays import AnyArray, check_range, per_row
from ipe.updates.backup import backup
from ipe.updates.declaration import ALPHA, TAU, EstimatedGradient, PolicyUpdate, Transition, declare
from ipe.updates.descent import descend, slope


class FenchelUpdate(NamedTuple):
    """The new logits, the TD error that the old ones had, and the new estimate of its mean."""

    theta: AnyArray
    """The new logits of s'."""
    delta: AnyArray
    """The TD error under the old logits."""
    y: AnyArray
    """The new estimate of the mean TD error of (s, a)."""


def fenchel_update(
    theta: AnyArray,
    y: AnyArray,
    transition: Transition,
    alpha: AnyArray,
    beta: AnyArray = 0.1,
    *,
    tau: AnyArray = 0.0,
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
        transition, alpha, tau: as in `paper_update`.
        beta: the step size of y, in [0, 1].

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=True, q_next=[1.0, 0.0])
        >>> fenchel_update(np.zeros(2), 0.0, transition, 2.0)
        FenchelUpdate(theta=array([0., 0.]), delta=np.float64(0.0), y=np.float64(0.0))
    """
    parts = backup(theta, transition)
    check_range(beta, "beta", 0.0, 1.0)
    estimate = per_row(parts.theta, y, "y")
    estimate = estimate + per_row(parts.theta, beta, "beta") * (parts.delta - estimate)
    return FenchelUpdate(descend(parts, 2.0 * estimate, alpha, tau), parts.delta, estimate)


def fenchel_gradient(theta: AnyArray, y: AnyArray, transition: Transition, *, tau: AnyArray = 0.0) -> EstimatedGradient:
    r"""The gradients of the saddle :math:`2 y \delta - y^2`, for a policy network that learns y too.

    The network has the outputs :math:`\theta(s', \cdot)` and :math:`y(s, \cdot)`, one for each action. It descends

    .. math:: 2\, y\, \delta(\theta) - \tau H(\pi) + (y(s,a) - \delta)^2,

    where y is a constant in the first term, and :math:`\delta` is one in the last: y(s, a) is learned by regression on
    :math:`\delta`. In place of the step size :math:`\beta` of `fenchel_update` there is the optimiser's, and y is the
    network's before the step. A terminal transition has a gradient in y, and none in theta.

    Args:
        theta, transition, tau: as in `paper_update`.
        y: the estimate :math:`y(s,a)`, shape (...).

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
        >>> fenchel_gradient(np.zeros(2), 1.0, transition)
        EstimatedGradient(theta=array([ 0.25, -0.25]), delta=np.float64(0.25), estimate=np.float64(1.5))
    """
    parts = backup(theta, transition)
    estimate = per_row(parts.theta, y, "y")
    return EstimatedGradient(slope(parts, 2.0 * estimate, tau), parts.delta, 2.0 * (estimate - parts.delta))


def _step(
    theta: AnyArray, estimate: AnyArray | None, transition: Transition, numbers: Numbers
) -> tuple[AnyArray, AnyArray]:
    rates = (numbers["alpha_pi"], numbers["beta"])
    new, _, y = fenchel_update(theta, estimate, transition, *rates, tau=numbers.get("tau", 0.0))
    return new, y


declare(
    PolicyUpdate(
        "fenchel",
        "the paper's, with a second estimate of the mean error",
        _step,
        gradient=fenchel_gradient,
        hyperparameters=(
            ALPHA,
            TAU,
            Hyperparameter("beta", "The step size of the estimate of the mean error.", 0.1, high=1.0, step_size=True),
        ),
        estimates=True,
    )
)
