r"""Munchausen Q-learning: a reward plus the agent's own log-probability, and a soft value of the next state."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, Numbers, Outcome, Target, View, declare
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.behaviours.kinds.boltzmann import boltzmann
from ipe.entropy import log_softmax
from ipe.entropy.arrays import AnyArray, check_range, like, mask, namespace, per_row, sum_actions
from ipe.entropy.softmax import log_normaliser, shifted

_NUMBERS = (
    Hyperparameter(
        "munchausen_weight", "The weight of the log-probability that is added to the reward.", 0.9, high=1.0
    ),
    Hyperparameter("munchausen_temperature", "The temperature of the softmax policy of Q.", 0.03, above=True),
    Hyperparameter("munchausen_clip", "The most that the log-probability, times the temperature, counts for.", 1.0),
)


def munchausen_target(
    outcome: Outcome, weight: AnyArray = 0.9, temperature: AnyArray = 0.03, clip: AnyArray = 1.0
) -> Target:
    r"""The target of Munchausen Q-learning, as what it adds to the reward and its value of the next state.

    .. math::
        r + \alpha \big[\tau \ln \pi(a|s)\big]_{l_0}^0
        + \gamma \sum_b \pi(b|s') \big(Q(s',b) - \tau \ln \pi(b|s')\big), \qquad \pi = \mathrm{softmax}(Q / \tau).

    Munchausen-DQN (Vieillard, Pietquin and Geist, arXiv 2007.14430), with the paper's numbers. The sum is
    :math:`\tau \ln \sum_b e^{Q(s',b)/\tau}`. The paper acts epsilon-greedily on Q, with an epsilon that is annealed,
    and so does the behaviour `munchausen`; `munchausen-softmax` acts with :math:`\pi`, which needs no epsilon. In the
    deep agent Q is the target network's at both ends, as in the paper; a target of n steps gets the first step's term
    alone. On finite MDPs, which the paper leaves open, Q is the table.

    Args:
        outcome: the transition, with the values at both ends.
        weight: :math:`\alpha` in [0, 1].
        temperature: :math:`\tau > 0`.
        clip: :math:`-l_0 \ge 0`.

    Returns:
        The bonus and the value, shape (...).

    Example:
        >>> import numpy as np
        >>> here, there = View(np.log([0.25, 0.75])), View(np.zeros(2))
        >>> bonus, value = munchausen_target(Outcome(here, np.array([True, False]), there), 0.5, 1.0)
        >>> round(float(bonus), 4), round(float(value), 4)      # ln(1/4) is cut to -1; ln 2
        (-0.5, 0.6931)
    """
    check_range(weight, "weight", 0.0, 1.0)
    check_range(temperature, "temperature", 0.0, strict=True)
    check_range(clip, "clip", 0.0)
    q, following = outcome.here.q, outcome.following
    xp = namespace(q)
    weight, clip, tau = (
        per_row(q, value, name) for value, name in ((weight, "weight"), (clip, "clip"), (temperature, "temperature"))
    )
    logs = log_softmax(_relative(outcome.here, tau), outcome.here.allowed)
    log = tau * sum_actions(xp.where(outcome.action, logs, 0.0))
    z, powers = shifted(_relative(following, tau), permitted := mask(following.q, following.allowed))
    most = xp.amax(xp.where(permitted, following.q, -xp.inf), axis=-1)
    value = xp.where(xp.any(permitted, axis=-1), most + tau * log_normaliser(z, powers), 0.0)
    return Target(weight * xp.where(log < -clip, -clip, log), value)


def _relative(view: View, tau: AnyArray) -> AnyArray:
    """Q / tau, counted from the largest value, which leaves the policy as it is."""
    xp, permitted = namespace(view.q), mask(view.q, view.allowed)
    gap, _ = shifted(like(view.q, view.q), permitted)
    return xp.where(permitted, gap / tau[..., None], 0.0)


def _target(outcome: Outcome, numbers: Numbers) -> Target:
    return munchausen_target(outcome, *(numbers[each.name] for each in _NUMBERS))


declare(
    Behaviour(
        "munchausen",
        "epsilon-greedily, and learns Munchausen's soft values (the deep agent: with a schedule, as M-DQN)",
        epsilon=lambda view, numbers: numbers["epsilon"],
        hyperparameters=(
            *_NUMBERS,
            Hyperparameter("epsilon", "The probability of acting at random.", 0.1, high=1.0, scheduled=True),
        ),
        target=_target,
    )
)
declare(
    Behaviour(
        "munchausen-softmax",
        "with the softmax policy of Munchausen's soft values, which it learns",
        probabilities=lambda view, numbers: boltzmann(view.q, numbers["munchausen_temperature"], view.allowed),
        hyperparameters=_NUMBERS,
        target=_target,
    )
)
