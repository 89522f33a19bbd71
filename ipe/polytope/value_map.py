"""The value map: where a value function leads when it is acted on (the paper's Figure 3)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ipe.base.arrays import Array
from ipe.base.words import one_of
from ipe.inverse.lift import maximum_entropy_lift
from ipe.mdp import FiniteMDP
from ipe.polytope.boundary import action_values, lines_of, meet, two_states
from ipe.polytope.polytope import check_points


def value_map(mdp: FiniteMDP, points: Any, policy: Literal["ipe", "greedy"] = "ipe") -> Array:
    r"""Where acting on values leads: the true values :math:`V^\pi` of the policy that each point stands for.

    Args:
        mdp: exactly two of its states are not terminal.
        points: value functions :math:`V` of those two states, shape (..., 2).
        policy: "ipe", the evaluation policy of :math:`V`, which maps achievable values to themselves; or
            "greedy", uniform over :math:`\arg\max_a q_V(s,a)`.

    Returns:
        The images, shape (..., 2).

    Example:
        >>> from ipe.zoo import switch_stay
        >>> value_map(switch_stay(), [[0.0, 0.0], [12.0, 18.0]]).round(3)
        array([[ 0.,  0.],
               [12., 18.]])
    """
    states = two_states(mdp)
    given = check_points(points, "points")
    one_of(policy, ("ipe", "greedy"), "policy")
    flat = given.reshape(-1, 2)
    # The lift clips v to the range of q. Beyond it: uniform over the arg max, which is greedy.
    v = flat if policy == "ipe" else np.full_like(flat, np.inf)
    mixed = []
    for i, q in enumerate(action_values(mdp, states, flat)):
        pi, _ = maximum_entropy_lift(q, v[:, i], np.ones(q.shape, dtype=bool))
        mixed.append(lines_of(mdp, states, i, pi))
    return meet(*mixed).reshape(given.shape)


def paper_grid() -> Array:
    r"""The 195 value functions of the paper's Figure 3, shape (195, 2).

    All pairs of :math:`V(0) \in \{-6, -4, \dots, 18\}` and :math:`V(1) \in \{-6, -4, \dots, 22\}`.
    """
    grid = np.meshgrid(np.arange(-6.0, 19.0, 2.0), np.arange(-6.0, 23.0, 2.0), indexing="ij")
    return np.stack(grid, axis=-1).reshape(-1, 2)
