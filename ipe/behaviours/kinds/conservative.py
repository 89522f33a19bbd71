r"""Conservative behaviour: a moving average of greedy policies."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, Experience, Memory, Numbers, View, declare
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.behaviours.policies import greedy
from ipe.entropy import softmax, uniform
from ipe.entropy.arrays import AnyArray, actions, broadcasts, check_range, like, namespace, per_row


def conservative_update(average: AnyArray, q: AnyArray, rate: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The conservative policy, a moving average of greedy ones.

    .. math:: \pi \leftarrow (1-c)\,\pi + c\,\mathrm{greedy}(Q)

    The idea of conservative policy iteration (Kakade and Langford, 2002). The policy is itself the
    behaviour; start it with `ipe.entropy.uniform`.

    The deep agent distils the average into its policy network (after Vieillard, Pietquin and Geist, *Deep conservative
    policy iteration*, arXiv 1906.09784): on the states s of each minibatch the network descends the cross-entropy to
    :math:`(1-c)\,\pi^- + c\,\mathrm{greedy}(Q^-)`, where :math:`\pi^-` and :math:`Q^-` are the networks as they were
    when the target network was last copied. So a copy is a step of the average. Unlike theirs, this agent's Q is that
    of Q-learning, not that of the average, and c is a constant.

    Args:
        average: the policy so far, shape (..., A).
        q: action values, shape (..., A).
        rate: c in [0, 1], broadcasts to (...).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        The new policy, shape (..., A).

    Example:
        >>> import numpy as np
        >>> conservative_update(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 0.2)
        array([0.4, 0.6])
    """
    average = actions(average, "average")
    check_range(rate, "rate", 0.0, 1.0)
    rate = per_row(average, rate, "rate")[..., None]
    q = like(average, q)
    broadcasts(tuple(q.shape), tuple(average.shape), "q")
    return (1.0 - rate) * average + rate * greedy(q, allowed)


def _probabilities(view: View, numbers: Numbers) -> AnyArray:
    # Q(s, .) has not changed since the last visit, so all the steps since then mix in the same greedy policy.
    rate = 1.0 - (1.0 - numbers["rate"]) ** (view.step - view.memory["visited"])
    return conservative_update(view.memory["average"], view.preferences, rate, view.allowed)


def _initial(view: View, numbers: Numbers) -> dict[str, AnyArray]:
    xp = namespace(view.q)
    return {"average": uniform(view.q, view.allowed), "visited": xp.zeros(view.q.shape[0], dtype=xp.int32)}


def _updated(view: View, experience: Experience, numbers: Numbers) -> dict[str, AnyArray]:
    mixed = conservative_update(experience.probabilities, view.preferences, numbers["rate"], view.allowed)
    return {"average": mixed, "visited": view.step + 1}


def _distils(view: View, numbers: Numbers) -> AnyArray:
    return conservative_update(softmax(view.logits, view.allowed), view.preferences, numbers["rate"], view.allowed)


declare(
    Behaviour(
        "conservative",
        "with a moving average of greedy policies (CPI)",
        probabilities=_probabilities,
        hyperparameters=(
            Hyperparameter("rate", "The weight of the newest greedy policy in the average.", 0.1, high=1.0),
        ),
        memory=Memory(_initial, _updated),
        distils=_distils,
    )
)
