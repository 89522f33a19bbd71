"""MDPs of two states, whose value functions can be drawn: the paper's, and those of Dadashi et al."""

from __future__ import annotations

import numpy as np

from ipe.base.numbers import finite_number, is_whole
from ipe.errors import InputError
from ipe.mdp import FiniteMDP

# Per example: gamma, then r and P with the row i * |A| + j for (s_i, a_j), as the paper prints them.
_DADASHI: dict[int, tuple[float, list[float], list[list[float]]]] = {
    1: (0.9, [0.06, 0.38, -0.13, 0.64], [[0.01, 0.99], [0.92, 0.08], [0.08, 0.92], [0.70, 0.30]]),
    2: (0.9, [0.88, -0.02, -0.98, 0.42], [[0.96, 0.04], [0.19, 0.81], [0.43, 0.57], [0.72, 0.28]]),
    3: (
        0.9,
        [-0.93, -0.49, 0.63, 0.78, 0.14, 0.41],
        [[0.52, 0.48], [0.50, 0.50], [0.99, 0.01], [0.85, 0.15], [0.11, 0.89], [0.10, 0.90]],
    ),
    4: (0.9, [-0.45, -0.10, 0.50, 0.50], [[0.70, 0.30], [0.99, 0.01], [0.20, 0.80], [0.99, 0.01]]),
    5: (
        0.8,
        [-0.10, -1.00, 0.10, 0.40, 1.50, 0.10],
        [[0.90, 0.10], [0.20, 0.80], [0.70, 0.30], [0.05, 0.95], [0.25, 0.75], [0.30, 0.70]],
    ),
}


def switch_stay(gamma: float = 0.9, slip: float = 0.0) -> FiniteMDP:
    r"""The paper's two-state MDP (its Figure 1): stay where you are, or switch to the other state.

    Staying pays 1 in :math:`s_0` and 2 in :math:`s_1`; switching pays -1 from :math:`s_0` and 0 from
    :math:`s_1`. Episodes start in :math:`s_0`. With probability `slip` the next state is the other one;
    the rewards do not change.

    Example:
        >>> switch_stay()
        FiniteMDP(2 states, 2 actions, gamma=0.9, deterministic)
    """
    slip = finite_number(slip, "slip", 0, 1)
    stay = np.array([[1 - slip, slip], [slip, 1 - slip]])
    return FiniteMDP(
        np.stack([stay, stay[::-1]], axis=1),
        [[1.0, -1.0], [2.0, 0.0]],
        gamma,
        start=0,
        state_names=("s0", "s1"),
        action_names=("stay", "switch"),
    )


def dadashi(example: int, gamma: float | None = None) -> FiniteMDP:
    r"""A two-state MDP of Dadashi, Taïga, Le Roux, Schuurmans and Bellemare, *The Value Function Polytope
    in Reinforcement Learning* (2019), from the details of its figures in the appendix.

    =======  ==========================================  =======  ==============
    example  where the paper uses it                     actions  :math:`\gamma`
    =======  ==========================================  =======  ==============
    1        Figure 2 (a)                                2        0.9
    2        Figure 2 (b)                                2        0.9
    3        Figure 2 (c)                                3        0.9
    4        Figures 2 (d), 3 to 6 (right), Section 5    2        0.9
    5        Figures 3 to 6 (left)                       3        0.8
    =======  ==========================================  =======  ==============

    The paper's notation is :math:`\hat r[i |\mathcal A| + j] = r(s_i, a_j)` and
    :math:`\hat P[i |\mathcal A| + j][k] = P(s_k | s_i, a_j)`. It names no start state; there is none here.

    Args:
        example: 1 to 5.
        gamma: another discount than the paper's.

    Example:
        >>> dadashi(3)
        FiniteMDP(2 states, 3 actions, gamma=0.9, stochastic)
    """
    if not is_whole(example) or example not in _DADASHI:
        raise InputError(f"example must be one of {', '.join(map(str, _DADASHI))}, found {example!r}")
    paper_gamma, r_hat, p_hat = _DADASHI[int(example)]
    return FiniteMDP(np.reshape(p_hat, (2, -1, 2)), np.reshape(r_hat, (2, -1)), paper_gamma if gamma is None else gamma)
