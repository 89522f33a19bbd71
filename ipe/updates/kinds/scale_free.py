r"""The paper's update in units of the error itself, so that its step size does not depend on the rewards' scale."""

from __future__ import annotations

from typing import NamedTuple

from ipe.behaviours import Hyperparameter
from ipe.behaviours.declaration import Numbers
from ipe.entropy.arrays import AnyArray, check_range, count, like, namespace, per_row, sum_actions
from ipe.updates.backup import backup
from ipe.updates.declaration import ALPHA, TAU, EstimatedGradient, PolicyUpdate, Transition, declare
from ipe.updates.descent import descend, slope


class ScaleFreeUpdate(NamedTuple):
    """The new logits, the TD error that the old ones had, and the new mean of its square."""

    theta: AnyArray
    """The new logits of s'."""
    delta: AnyArray
    """The TD error under the old logits."""
    square: AnyArray
    """The new running mean of the squared TD error."""


def scale_free_update(
    theta: AnyArray,
    square: AnyArray,
    transition: Transition,
    alpha: AnyArray,
    memory: AnyArray = 0.01,
    *,
    tau: AnyArray = 0.0,
) -> ScaleFreeUpdate:
    r"""The paper's update with the error and the values in units of the root mean square of the error.

    .. math:: D \leftarrow D + \beta (\delta^2 - D), \qquad
              \theta_b \leftarrow \theta_b - 2 \alpha \gamma \frac{\delta}{\sqrt D}\, \pi_b \frac{Q(s',b) - v'}{\sqrt D}
              - \alpha \tau\, \pi_b (\ln \pi_b + H(\pi)),

    D first; the first error is D's first value. The gradient of `paper_update` goes with the square of the rewards;
    here rewards and values that are multiplied by any number give the same logits, and so do rewards
    :math:`r + (1-\gamma) c` with values :math:`Q + c`. There is one D for a whole run: in units of the spread of
    :math:`Q(s', \cdot)` in its own state, the policy becomes greedy before any state matters more than others
    (`benchmarks/scale_free.py` compares them). A terminal transition changes neither D nor theta.

    Args:
        theta: logits of :math:`\pi(\cdot|s')`, shape (..., A).
        square: D so far, shape (...); start it at 0.
        transition, alpha, tau: as in `paper_update`.
        memory: :math:`\beta` in [0, 1]: one over the number of errors that D remembers.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
        >>> theta, delta, square = scale_free_update(np.zeros(2), 0.0, transition, 0.125)
        >>> theta, float(delta), float(square)
        (array([-0.125,  0.125]), 0.25, 0.0625)
    """
    check_range(memory, "memory", 0.0, 1.0)
    parts = backup(theta, transition)
    xp = namespace(parts.theta)
    before = per_row(parts.theta, square, "square")
    rate = per_row(parts.theta, memory, "memory")
    new = xp.where(before > 0, before + rate * (parts.delta**2 - before), parts.delta**2)
    new = xp.where(parts.terminal | (rate == 0), before, new)
    scaled = 2.0 * parts.delta / xp.where(new > 0, new, 1.0)
    return ScaleFreeUpdate(descend(parts, scaled, alpha, tau), parts.delta, new)


def scale_free_gradient(
    theta: AnyArray, square: AnyArray, transition: Transition, *, error_memory: AnyArray = 0.01, tau: AnyArray = 0.0
) -> EstimatedGradient:
    r"""The gradient of :math:`\delta^2 / D - \tau H(\pi)` in the logits of a minibatch, D held constant.

    D is a running mean of :math:`\delta^2`, as in `scale_free_update`; a minibatch enters it by the mean over its
    transitions whose next state is not terminal. D first; the first minibatch's mean is D's first value.

    Args:
        theta: logits, shape (..., m, A), of m transitions.
        square: D so far, shape (...); start it at 0.
        transition, tau: as in `paper_update`.
        error_memory: :math:`\beta` in [0, 1]: one over the number of minibatches that D remembers.

    Returns:
        The gradient, the errors, and the new D.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=[False, True], q_next=[1.0, 0.0])
        >>> theta, delta, square = scale_free_gradient(np.zeros((2, 2)), 0.0, transition)
        >>> theta[0], float(square)
        (array([ 1., -1.]), 0.0625)
    """
    check_range(error_memory, "error_memory", 0.0, 1.0)
    parts = backup(theta, transition)
    xp = namespace(parts.theta)
    before, rate = (per_row(parts.delta, value, name) for value, name in ((square, "square"), (error_memory, "memory")))
    goes_on = ~parts.terminal
    n = count(goes_on, parts.delta)
    mean = sum_actions(xp.where(goes_on, parts.delta**2, like(parts.delta, 0.0))) / xp.clip(n, 1.0, None)
    new = xp.where(before > 0, before + rate * (mean - before), mean)
    new = xp.where(n > 0, new, before)
    scaled = 2.0 * parts.delta / xp.where(new > 0, new, 1.0)[..., None]
    return EstimatedGradient(slope(parts, scaled, tau), parts.delta, new)


def _step(
    theta: AnyArray, estimate: AnyArray | None, transition: Transition, numbers: Numbers
) -> tuple[AnyArray, AnyArray]:
    rates = (numbers["alpha_pi"], numbers["memory"])
    new, _, square = scale_free_update(theta, estimate, transition, *rates, tau=numbers.get("tau", 0.0))
    return new, square


declare(
    PolicyUpdate(
        "scale-free",
        "the paper's, in units of the root mean square of the error",
        _step,
        gradient=scale_free_gradient,
        network_numbers=(
            Hyperparameter(
                "error_memory",
                "One over the number of minibatches whose root mean square error is the unit.",
                0.01,
                high=1.0,
                above=True,
            ),
        ),
        hyperparameters=(
            ALPHA,
            TAU,
            Hyperparameter(
                "memory",
                "One over the number of errors whose root mean square is the unit.",
                0.01,
                high=1.0,
                above=True,
                step_size=True,
            ),
        ),
        estimates=True,
        shared=True,
    )
)
