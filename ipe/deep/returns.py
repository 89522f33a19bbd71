r"""Several steps in the place of one: where they lie in the replay, and what the updates make of them.

The step that a minibatch's transition takes from s is its step 0, and leads to :math:`s_1`. Step k is there if all
steps before it went on, and if it has been taken yet; it leads from :math:`s_k` to :math:`s_{k+1}`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ipe.deep.frame import ACTION, END, REWARD
from ipe.deep.replay import CONTINUES, TERMINATED
from ipe.entropy import softmax
from ipe.updates import tree_backup


class Later(NamedTuple):
    """One of the steps after step 0. The first two axes of every array are the seeds and the batch."""

    alive: Any
    """Whether the step is there."""
    action: Any
    """The action that was taken."""
    reward: Any
    """The reward of the step."""
    end: Any
    """How the step ended."""


class Return(NamedTuple):
    """The discounted rewards of some steps, and where they end."""

    reward: Any
    """The discounted sum of the rewards."""
    discount: Any
    """The discount of the value after the last of the steps, whether they terminated or not."""
    terminal: Any
    """Whether the last of the steps terminated its episode."""
    length: Any
    """How many steps there are."""


def later_steps(rows: Any, first: Any, current: Any, slots: int, end: Any, n: int) -> list[Later]:
    """The steps 1 to n - 1.

    Args:
        rows: a function from slots, (seeds, batch), to the steps that lie there.
        first: the slots of the steps 0.
        current: the slots of the current observations, (seeds, 1): no step has been taken from them yet, and what lies
            there is a lap old.
        slots: how many slots there are.
        end: how the steps 0 ended.
        n: how many steps are wanted, with step 0.
    """
    steps: list[Later] = []
    alive, last = jnp.ones_like(first, bool), end
    for k in range(1, n):
        step = rows(first + k)
        alive = alive & (last == CONTINUES) & ((first + k) % slots != current)
        last = jnp.where(alive, step[..., END], last)
        steps.append(Later(alive, step[..., ACTION].astype(jnp.int32), step[..., REWARD], step[..., END]))
    return steps


def summed(reward: Any, end: Any, gamma: Any, later: list[Later]) -> Return:
    """The discounted rewards of step 0 and the steps after it."""
    total, discount, last = reward, jnp.broadcast_to(gamma, reward.shape), end
    length = jnp.ones(reward.shape, jnp.int32)
    for step in later:
        total = total + jnp.where(step.alive, discount * step.reward, 0.0)
        discount = jnp.where(step.alive, discount * gamma, discount)
        last = jnp.where(step.alive, step.end, last)
        length = length + step.alive
    return Return(total, discount, last == TERMINATED, length)


def mixed(best: Any, decay: Any, gamma: Any, later: list[Later]) -> Any:
    r"""The value :math:`U_1` of :math:`s_1` by the returns of all lengths from it, mixed by lambda.

    .. math:: U_k = (1 - \lambda_k) V(s_k) + \lambda_k (r_k + \gamma U_{k+1}), \qquad U_n = V(s_n),

    and :math:`U_k = V(s_k)` where step k is not there. The last step's own value is 0 if it terminated its episode.

    Args:
        best: :math:`V(s_k)` for k = 1 to n, shape (n, seeds, batch).
        decay: :math:`\lambda_k` for k = 1 to n - 1, shape (n - 1, seeds, batch); 0 cuts the return before step k.
        gamma: the discount, (seeds, 1).
        later: the steps 1 to n - 1.
    """
    value = best[-1]
    for k in reversed(range(len(later))):
        step = later[k]
        longer = step.reward + jnp.where(step.end == TERMINATED, 0.0, gamma) * value
        value = best[k] + jnp.where(step.alive, decay[k] * (longer - best[k]), 0.0)
    return value


def corrected(q: Any, theta: Any, gamma: Any, later: list[Later]) -> Any:
    r"""The values of :math:`s_1` in which the action of step 1 has the return of the tree backup.

    Args:
        q: :math:`Q(s_k, \cdot)` for k = 1 to n, shape (n, seeds, batch, A).
        theta: the logits of the policy in :math:`s_2` to :math:`s_n`, shape (n - 1, seeds, batch, A).
        gamma: the discount, (seeds, 1).
        later: the steps 1 to n - 1.
    """
    replaced = q[-1]
    for k in reversed(range(len(later))):
        following = (softmax(theta[k]) * replaced).sum(-1)
        step = later[k]
        discount = jnp.where(step.end == TERMINATED, 0.0, gamma)
        taken = jax.nn.one_hot(step.action, q.shape[-1], dtype=bool)
        replaced = tree_backup(q[k], taken, step.reward, discount, following, step.alive)
    return replaced
