"""Values to an error relative to the rewards: the values of one policy, the greatest and the least values.

An absolute tolerance would be too fine for float64 where rewards are large, and coarse where they are small.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ipe.base.arrays import Array
from ipe.mdp import FiniteMDP
from ipe.planning.evaluation import PolicyValues, policy_values
from ipe.planning.optimal import OptimalValues, optimal_values

RTOL = 1e-11


def exact_values(mdp: FiniteMDP, policy: Any) -> PolicyValues:
    r"""The values of a policy, to :math:`10^{-11} \max |r|` or as near as float64 comes."""
    return policy_values(mdp, policy, tol=RTOL * _largest_reward(mdp))


def greatest_values(mdp: FiniteMDP) -> OptimalValues:
    r"""The optimal values, to :math:`10^{-11} \max |r| / (1-\gamma)^2`."""
    return optimal_values(mdp, tol=RTOL * _largest_reward(mdp) / (1.0 - mdp.gamma) ** 2)


def value_range(mdp: FiniteMDP) -> tuple[Array, Array]:
    r"""Bounds on the values of every policy: :math:`\min_\pi V^\pi` and :math:`\max_\pi V^\pi`, rounding included.

    The least values are the optimal ones of the negated rewards.
    """
    negated = FiniteMDP(mdp.transitions, -mdp.rewards, mdp.gamma, allowed=mdp.allowed, terminal=mdp.terminal)
    high, low = greatest_values(mdp), greatest_values(negated)
    live = ~mdp.terminal
    return -low.v - low.error_bound * live, high.v + high.error_bound * live


def _largest_reward(mdp: FiniteMDP) -> float:
    return float(np.abs(mdp.rewards).max()) or 1.0
