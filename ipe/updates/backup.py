r"""One transition, taken apart once for all updates: the policy, the errors, the step size, the new logits."""

from __future__ import annotations

from typing import NamedTuple

from ipe.behaviours import greedy
from ipe.entropy import softmax
from ipe.entropy.arrays import AnyArray, actions, broadcasts, check_range, like, mask, namespace, per_row, sum_actions


class Update(NamedTuple):
    """The new logits, and the TD error that the old ones had."""

    theta: AnyArray
    delta: AnyArray


class Backup(NamedTuple):
    """One transition, in the dtype of theta, with the policy of its next state."""

    theta: AnyArray
    pi: AnyArray
    reference: AnyArray
    """The value of the likeliest action, from which `relative` and `offset` count."""
    relative: AnyArray
    """Q(s', .) - reference; 0 where not allowed."""
    advantage: AnyArray
    """Q(s', .) - v'; 0 where not allowed."""
    gamma: AnyArray
    """0 at a terminal transition."""
    rest: AnyArray
    """r - Q(s, a)."""
    delta: AnyArray
    terminal: AnyArray


def backup(
    theta: AnyArray,
    q_next: AnyArray,
    q_sa: AnyArray,
    reward: AnyArray,
    gamma: AnyArray,
    terminal: AnyArray,
    allowed: AnyArray | None,
) -> Backup:
    r"""The parts of :math:`\delta`, written so that nothing is lost next to a deterministic policy.

    There :math:`Q(s',b) - v'` of the likeliest action is tiny, and the difference of two rounded
    numbers. Counted from that action's own value, :math:`v'` is a sum of small terms instead.
    """
    theta = actions(theta, "theta")
    permitted = mask(theta, allowed)
    xp = namespace(theta)
    check_range(gamma, "gamma", 0.0, 1.0)
    q = like(theta, q_next)
    broadcasts(tuple(q.shape), tuple(theta.shape), "q_next")
    scalars = {"q_sa": q_sa, "reward": reward, "gamma": gamma, "terminal": terminal}
    for name, value in scalars.items():
        scalars[name] = per_row(theta, value, name)
    ends = scalars["terminal"] != 0
    q = xp.where(permitted & ~ends[..., None], q, 0.0)
    pi = softmax(theta, allowed)
    reference = sum_actions(greedy(theta, allowed) * q)
    relative = xp.where(permitted, q - reference[..., None], 0.0)
    offset = sum_actions(pi * relative)
    discount = xp.where(ends, 0.0, scalars["gamma"])
    rest = scalars["reward"] - scalars["q_sa"]
    return Backup(
        theta=theta,
        pi=pi,
        reference=reference,
        relative=relative,
        advantage=xp.where(permitted, relative - offset[..., None], 0.0),
        gamma=discount,
        rest=rest,
        delta=rest + discount * (reference + offset),
        terminal=ends,
    )


def step_size(parts: Backup, alpha: AnyArray) -> AnyArray:
    """The step size, checked, one per transition."""
    check_range(alpha, "alpha", 0.0)
    return per_row(parts.theta, alpha, "alpha")


def entropy_weight(parts: Backup, tau: AnyArray) -> AnyArray:
    """The weight of the entropy, checked, one per transition."""
    check_range(tau, "tau", 0.0)
    return per_row(parts.theta, tau, "tau")


def is_zero(value: AnyArray) -> bool:
    """Whether a hyperparameter is a plain 0, whose term can be left out of the program."""
    return isinstance(value, (int, float)) and value == 0


def settle(parts: Backup, new: AnyArray, allowed: AnyArray | None) -> AnyArray:
    """The new logits, the largest at 0; the old ones at a terminal transition and where not allowed."""
    xp = namespace(parts.theta)
    permitted = mask(parts.theta, allowed) & ~parts.terminal[..., None]
    largest = xp.amax(xp.where(permitted, new, -xp.inf), axis=-1, keepdims=True)
    return xp.where(permitted, new - xp.where(largest == -xp.inf, 0.0, largest), parts.theta)
