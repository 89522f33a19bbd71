r"""Temporally extended epsilon-greedy behaviour: an exploring action is repeated.

Ez-greedy (Dabney, Ostrovski and Barreto, ICLR 2021): with probability :math:`\epsilon` an action is drawn uniformly and
taken n times in a row, n from a zeta distribution; otherwise the greedy action is taken once. `ez-epsilon-ipe` is the
same with epsilon-IPE's epsilon in place of one that is given. What the paper leaves open: a repeat ends with its
episode, and in a state in which its action is not allowed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ipe.behaviours.declaration import Behaviour, Experience, Memory, Numbers, View, declare
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.behaviours.policies import epsilon_greedy
from ipe.entropy import epsilon_from_logits, uniform
from ipe.entropy.arrays import AnyArray, check_range, like, mask, namespace, sum_actions

EXPONENT = 2.0
r"""The paper's :math:`\mu`."""
LONGEST = 10_000
"""The largest duration that can be asked for, and the paper's maximum."""

_TAILS = -np.cumsum(np.arange(1.0, LONGEST + 2.0)[::-1] ** -EXPONENT)[::-1]
"""Minus the sums of k^-EXPONENT from k = 1, 2, ... on, up to LONGEST + 1: in ascending order."""

_BELOW_ONE = 1.0 - 2.0**-24


def zeta_duration(chance: AnyArray, longest: AnyArray = float(LONGEST)) -> AnyArray:
    r"""How often an exploring action is taken in a row, by a uniform number.

    .. math:: P(n) \propto n^{-\mu},\quad n = 1, \dots, n_{\max},\quad \mu = 2.

    The zeta distribution, cut at a maximum and normalised anew (Dabney, Ostrovski and Barreto, *Temporally-extended
    epsilon-greedy exploration*, ICLR 2021, with their :math:`\mu` and :math:`n_{\max} = 10^4`). The inverse of its
    distribution function: the smallest n with :math:`P(N \le n) > \text{chance}`.

    Args:
        chance: in [0, 1), shape (...).
        longest: :math:`n_{\max}`, a whole number from 1 to 10000, broadcasts to (...).

    Returns:
        The duration as a number of the type of `chance`, shape (...).

    Example:
        >>> import numpy as np
        >>> zeta_duration(np.array([0.0, 0.7, 0.8, 0.99]), 3)     # P = 36/49, 9/49, 4/49
        array([1., 1., 2., 3.])
    """
    check_range(chance, "chance", 0.0, 1.0)
    check_range(longest, "longest", 1.0, LONGEST)
    xp = namespace(chance, longest)
    chance = xp.asarray(chance) * 1.0
    tails = like(chance, _TAILS)
    beyond = tails[xp.asarray(longest, dtype=xp.int32)]
    # P(N >= n) = (tails[n - 1] - beyond) / (tails[0] - beyond): the last n for which it is at least 1 - chance.
    found = xp.searchsorted(tails[:-1], beyond + (1.0 - chance) * (tails[0] - beyond), side="right")
    return xp.clip(like(chance, found), 1.0, like(chance, longest))


def _holding(view: View) -> tuple[AnyArray, AnyArray]:
    """Whether an action is being repeated in each state of a view, and which, as booleans over the actions."""
    xp = namespace(view.q)
    held = (xp.arange(view.q.shape[-1]) == view.memory["held"][..., None]) & mask(view.q, view.allowed)
    return (view.memory["remaining"] > 0) & xp.any(held, axis=-1), held


def _initial(view: View, numbers: Numbers) -> dict[str, AnyArray]:
    zeros = 0.0 * sum_actions(view.q)
    return {"remaining": zeros, "held": zeros}


def _updated(view: View, experience: Experience, numbers: Numbers) -> dict[str, AnyArray]:
    r"""Count down; or begin to repeat the action, if it was an exploring one.

    Given the action a, it was drawn uniformly with probability :math:`(\epsilon/n) / b(a)`, where b is epsilon-greedy.
    One number decides on that and, what is left of it, on the duration.
    """
    pi, epsilon, xp = experience.probabilities, experience.epsilon, namespace(experience.probabilities)
    assert epsilon is not None
    chosen = xp.arange(pi.shape[-1]) == experience.action[..., None]
    exploring = sum_actions(xp.where(chosen, epsilon[..., None] * uniform(pi, view.allowed), 0.0))
    share = exploring / sum_actions(xp.where(chosen, pi, 0.0))
    begins = experience.chance < share
    left = xp.where(begins, experience.chance / xp.where(begins, share, 1.0), 0.0)
    duration = zeta_duration(xp.clip(left, 0.0, _BELOW_ONE), numbers["longest"])
    holding, _ = _holding(view)
    remaining = xp.where(holding, view.memory["remaining"], xp.where(begins, duration, 0.0 * share)) - 1.0
    remaining = xp.where(experience.ended, 0.0, xp.clip(remaining, 0.0, None))
    held = xp.where(holding, view.memory["held"], like(pi, experience.action))
    return {"remaining": like(pi, remaining), "held": held}


def _extended(
    name: str, summary: str, epsilon: Callable[[View, Numbers], AnyArray], *more: Hyperparameter
) -> Behaviour:
    """Epsilon-greedy behaviour that repeats its exploring actions."""

    def probabilities(view: View, numbers: Numbers) -> AnyArray:
        holding, held = _holding(view)
        fresh = epsilon_greedy(view.preferences, epsilon(view, numbers), view.allowed)
        return namespace(fresh).where(holding[..., None], like(fresh, held), fresh)

    longest = Hyperparameter("longest", "The most steps in a row of an exploring action.", float(LONGEST), 1.0, LONGEST)
    return Behaviour(
        name,
        summary,
        probabilities=probabilities,
        epsilon=epsilon,
        hyperparameters=(*more, longest),
        needs_policy=not more,
        memory=Memory(_initial, _updated, scope="agent"),
    )


declare(
    _extended(
        "ez-greedy",
        "epsilon-greedily, and repeats an exploring action for a while",
        lambda view, numbers: numbers["epsilon"],
        Hyperparameter("epsilon", "The probability of acting at random.", 0.1, high=1.0, scheduled=True),
    )
)
declare(
    _extended(
        "ez-epsilon-ipe",
        "as epsilon-IPE, and repeats an exploring action for a while",
        lambda view, numbers: epsilon_from_logits(view.logits, view.allowed),
    )
)
