r"""Targets: the temporal-difference error of a transition, and several steps in the place of one."""

from __future__ import annotations

from typing import NamedTuple

from ipe.entropy.arrays import AnyArray, actions, broadcasts, check_range, like, mask, namespace, per_row, sum_actions
from ipe.updates.backup import backup
from ipe.updates.declaration import Transition


def td_error(theta: AnyArray, transition: Transition) -> AnyArray:
    r"""The expected TD error :math:`\delta = r + \gamma (1 - \text{terminal}) \sum_b \pi_b Q(s',b) - Q(s,a)`.

    Args:
        theta: logits of :math:`\pi(\cdot|s')`, shape (..., A).
        transition: the transition, with the values at both ends.

    Example:
        >>> import numpy as np
        >>> transition = Transition(q_sa=0.5, reward=1.0, gamma=0.9, terminal=False, q_next=[1.0, 3.0])
        >>> round(float(td_error(np.zeros(2), transition)), 9)
        2.3
    """
    return backup(theta, transition).delta


class NStepTarget(NamedTuple):
    """The reward, gamma and terminal of a `Transition` over n steps."""

    reward: AnyArray
    """The discounted sum of the rewards."""
    gamma: AnyArray
    """The discount of the value after the last reward."""
    terminal: AnyArray
    """Whether the episode ended within the n steps."""


def n_step_target(rewards: AnyArray, gamma: AnyArray, terminals: AnyArray | None = None) -> NStepTarget:
    r"""The uncorrected n-step target :math:`\sum_{k<n} \gamma^k r_k + \gamma^n v'`, in the form that the updates take.

    With s' the state after n steps: `Transition(q_sa, *n_step_target(rewards, gamma), q_next)`.
    The actions between are the behaviour's, not the policy's; nothing corrects for that.

    Args:
        rewards: :math:`r_0, \dots, r_{n-1}`, shape (..., n).
        gamma: the discount of one step, broadcasts to (...).
        terminals: boolean, shape (..., n): whether step k ended the episode. Rewards after that do not count.

    Returns:
        The discounted rewards, :math:`\gamma^n`, and whether the episode ended; each of shape (...).

    Example:
        >>> import numpy as np
        >>> n_step_target(np.array([1.0, 2.0, 4.0]), 0.5)
        NStepTarget(reward=np.float64(3.0), gamma=np.float64(0.125), terminal=np.False_)
        >>> n_step_target(np.array([1.0, 2.0, 4.0]), 0.5, [False, True, False]).reward
        np.float64(2.0)
    """
    rewards = actions(rewards, "rewards")
    check_range(gamma, "gamma", 0.0, 1.0)
    gamma = per_row(rewards, gamma, "gamma")
    ended = like(rewards, False if terminals is None else terminals)
    broadcasts(tuple(ended.shape), tuple(rewards.shape), "terminals")
    xp = namespace(rewards)
    ended = ended + xp.zeros_like(rewards)
    target, discount = xp.zeros_like(rewards[..., 0]), xp.ones_like(rewards[..., 0])
    for k in reversed(range(rewards.shape[-1])):
        later = xp.where(ended[..., k] != 0, 0.0, target)
        target = rewards[..., k] + gamma * later
        discount = discount * gamma
    return NStepTarget(target, discount, sum_actions(ended) != 0)


def tree_backup(
    q: AnyArray, taken: AnyArray, reward: AnyArray, gamma: AnyArray, following: AnyArray, goes_on: AnyArray = True
) -> AnyArray:
    r"""Action values in which what was taken has the return of what followed, in place of its value.

    .. math:: \tilde Q(s_k, b) = \begin{cases} r_k + \gamma\, U_{k+1} & b = a_k \\ Q(s_k, b) & b \ne a_k \end{cases}
              \qquad U_k = \sum_b \pi(b|s_k)\, \tilde Q(s_k, b), \qquad U_n = \sum_b \pi(b|s_n)\, Q(s_n, b).

    From :math:`k = n-1` down to 1, these are the n-step tree backup (Precup, Sutton and Singh, 2000):
    :math:`r_0 + \gamma U_1 - Q(s_0, a_0)` is the n-step return's error, corrected for the behaviour's other actions
    without its probabilities. It is the sum :math:`\sum_{k<n} \gamma^k \prod_{i=1}^k \pi(a_i|s_i)\, \delta_k` of
    one-step errors, and its mean is 0 where Q is the policy's own. As `q_next` of a `Transition` at :math:`s_1` the
    result serves every update.

    Args:
        q: :math:`Q(s_k, \cdot)`, shape (..., A).
        taken: the action :math:`a_k` as booleans over the actions, shape (..., A).
        reward: :math:`r_k`, broadcasts to (...).
        gamma: the discount of the next state's value; 0 where the step terminated its episode.
        following: :math:`U_{k+1}`.
        goes_on: whether there is such a step; elsewhere q is returned.

    Returns:
        :math:`\tilde Q(s_k, \cdot)`, shape (..., A).

    Example:
        >>> import numpy as np
        >>> tree_backup(np.array([1.0, 5.0]), np.array([True, False]), reward=2.0, gamma=0.5, following=3.0)
        array([3.5, 5. ])
    """
    q = actions(q, "q")
    check_range(gamma, "gamma", 0.0, 1.0)
    reward, gamma, following, goes_on = (
        per_row(q, value, name)
        for value, name in ((reward, "reward"), (gamma, "gamma"), (following, "following"), (goes_on, "goes_on"))
    )
    there = mask(q, taken, "taken") & (goes_on != 0)[..., None]
    return namespace(q).where(there, (reward + gamma * following)[..., None], q)
