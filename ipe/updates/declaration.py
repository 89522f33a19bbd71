r"""What a policy update is: one declaration that the tabular agent, the deep agent and the Stable-Baselines3 DQN read.

A new update is one file in `ipe/updates/kinds/`, which declares it, and its test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from ipe.base.declarations import Table
from ipe.behaviours import Hyperparameter
from ipe.behaviours.declaration import Numbers
from ipe.entropy.arrays import AnyArray


class Transition(NamedTuple):
    """A transition (s, a, r, s') with the values at both ends; every field but the arrays of s' broadcasts to (...)."""

    q_sa: AnyArray
    """The value Q(s, a)."""
    reward: AnyArray
    """The reward r, or the discounted sum of several rewards (`n_step_target`)."""
    gamma: AnyArray
    """The discount of the values of s', in [0, 1]."""
    terminal: AnyArray
    """Whether s' is terminal."""
    q_next: AnyArray
    """The values Q(s', .), broadcasts to (..., A)."""
    allowed: AnyArray | None = None
    """The actions that are allowed in s', booleans that broadcast to (..., A). None: all of them."""


class Update(NamedTuple):
    """The new logits, and the TD error that the old ones had."""

    theta: AnyArray
    """The new logits of s'."""
    delta: AnyArray
    """The TD error under the old logits."""


class Gradient(NamedTuple):
    """The gradient of a transition's loss in the logits, and its TD error."""

    theta: AnyArray
    """The gradient in the logits of s'."""
    delta: AnyArray
    """The TD error of the transition."""


ALPHA = Hyperparameter("alpha_pi", "The step size of the policy's logits.", 0.05, step_size=True)
TAU = Hyperparameter("tau", "The weight of the entropy bonus.", 0.0, switch=True)


LogitsStep: TypeAlias = Callable[[AnyArray, AnyArray | None, Transition, Numbers], tuple[AnyArray, AnyArray | None]]
"""A function of the logits of s', the estimate of (s, a), a transition and numbers, to the new logits and estimate."""


@dataclass(frozen=True)
class PolicyUpdate:
    """A way in which one transition moves the logits of the next state's policy."""

    name: str
    """The name by which users choose the update."""
    summary: str
    """How the update steps."""
    step: LogitsStep
    """One step of a table of logits."""
    gradient: Callable[..., Gradient] | None = None
    """For a policy network, whose optimiser takes the step: a function `(theta, transition, *, tau)` that returns the
    gradient in the logits. None: the deep agent does not offer the update."""
    hyperparameters: tuple[Hyperparameter, ...] = (ALPHA, TAU)
    """The numbers that `step` reads."""
    estimates: bool = False
    """Whether the update keeps an estimate for every (s, a), which starts at 0."""
    shared: bool = False
    """Whether there is one such estimate for the whole run instead."""


def without_estimate(update: Callable[..., Update]) -> LogitsStep:
    """The step of an update `(theta, transition, alpha, *, tau)` that keeps no estimate."""

    def step(
        theta: AnyArray, estimate: AnyArray | None, transition: Transition, numbers: Numbers
    ) -> tuple[AnyArray, AnyArray | None]:
        return update(theta, transition, numbers["alpha_pi"], tau=numbers.get("tau", 0.0)).theta, estimate

    return step


UPDATES: Table[PolicyUpdate] = Table("policy update")
"""Every policy update, by its name."""


def declare(update: PolicyUpdate) -> PolicyUpdate:
    """Make a policy update known to the whole library, by its name.

    Raises:
        InputError: there is another update of that name.
    """
    return UPDATES.declare(update)
