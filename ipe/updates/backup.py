r"""One transition, taken apart once for all updates: the policy, the errors, the step size, the new logits."""

from __future__ import annotations

from typing import NamedTuple

from ipe.behaviours import greedy
from ipe.entropy import softmax
from ipe.entropy.arrays import (
    AnyArray,
    actions,
    broadcasts,
    check_range,
    count,
    like,
    mask,
    namespace,
    per_row,
    sum_actions,
)
from ipe.updates.declaration import Transition


class Backup(NamedTuple):
    """One transition, in the dtype of theta, with the policy of its next state."""

    theta: AnyArray
    """The logits of s'."""
    pi: AnyArray
    """The policy in s'."""
    reference: AnyArray
    """The value of the likeliest action of s'."""
    relative: AnyArray
    """The differences Q(s', .) - `reference`; 0 at actions that are not allowed."""
    advantage: AnyArray
    """The differences Q(s', .) - v'; 0 at actions that are not allowed."""
    gamma: AnyArray
    """The discount; 0 at a terminal transition."""
    rest: AnyArray
    """The part of the TD error without the values of s', r - Q(s, a)."""
    delta: AnyArray
    """The TD error."""
    terminal: AnyArray
    """Whether s' is terminal."""
    allowed: AnyArray | None
    """The actions that are allowed in s'; None: all of them."""


def backup(theta: AnyArray, transition: Transition) -> Backup:
    r"""The parts of :math:`\delta`, written so that nothing is lost next to a deterministic policy.

    There :math:`Q(s',b) - v'` of the likeliest action is tiny, and the difference of two rounded
    numbers. Counted from that action's value, :math:`v'` is a sum of small terms instead.
    """
    theta = actions(theta, "theta")
    allowed = transition.allowed
    permitted = mask(theta, allowed)
    xp = namespace(theta)
    check_range(transition.gamma, "gamma", 0.0, 1.0)
    q = like(theta, transition.q_next)
    broadcasts(tuple(q.shape), tuple(theta.shape), "q_next")
    q_sa, reward, gamma, terminal = (
        per_row(theta, getattr(transition, name), name) for name in ("q_sa", "reward", "gamma", "terminal")
    )
    ends = terminal != 0
    q = xp.where(permitted & ~ends[..., None], q, 0.0)
    pi = softmax(theta, allowed)
    reference = sum_actions(greedy(theta, allowed) * q)
    relative = xp.where(permitted, q - reference[..., None], 0.0)
    offset = sum_actions(pi * relative)
    discount = xp.where(ends, 0.0, gamma)
    rest = reward - q_sa
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
        allowed=allowed,
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


def settle(parts: Backup, new: AnyArray) -> AnyArray:
    """The new logits, their largest shifted to 0; the old ones where an action is not allowed or s' is terminal."""
    xp = namespace(parts.theta)
    permitted = mask(parts.theta, parts.allowed) & ~parts.terminal[..., None]
    largest = xp.amax(xp.where(permitted, new, -xp.inf), axis=-1, keepdims=True)
    return xp.where(permitted, new - xp.where(largest == -xp.inf, 0.0, largest), parts.theta)


def centred(parts: Backup, direction: AnyArray) -> AnyArray:
    """A direction in the logits less its mean over the allowed actions; 0 at others and at a terminal transition."""
    xp = namespace(parts.theta)
    permitted = mask(parts.theta, parts.allowed) & ~parts.terminal[..., None]
    n = xp.clip(count(permitted, parts.theta), 1.0, None)
    mean = sum_actions(xp.where(permitted, direction, 0.0)) / n
    return xp.where(permitted, direction - mean[..., None], 0.0)
