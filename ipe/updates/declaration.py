r"""What a policy update is: one declaration that the tabular agent, the deep agent and the Stable-Baselines3 DQN read.

A new update is one file in `ipe/updates/kinds/`, which declares it, and its test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

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


class EstimatedGradient(NamedTuple):
    """As `Gradient`, for an update that keeps an estimate."""

    theta: AnyArray
    """The gradient in the logits of s'."""
    delta: AnyArray
    """The TD error of the transition."""
    estimate: AnyArray
    """The gradient in the estimate of (s, a); or the new estimate, if there is one for the whole run."""


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
    gradient: Callable[..., Any] | None = None
    """For a policy network, whose optimiser takes the step: a function `(theta, transition, *, tau)` that returns the
    gradient in the logits. None: the deep agent does not offer the update. One that keeps estimates is a function
    `(theta, estimate, transition, *, tau)` that returns an `EstimatedGradient`. `network_numbers` are arguments too."""
    network_numbers: tuple[Hyperparameter, ...] = ()
    """The numbers that `gradient` reads by name, besides tau: settings of the deep agent."""
    logits: Callable[[AnyArray, AnyArray, AnyArray | None], AnyArray] | None = None
    """The logits of the policy, a function of what is learned, theta, of the values Q of the same states and of the
    allowed actions. None: theta are the logits."""
    width: int | None = None
    """How many numbers a policy network learns of a state; None: one for each action."""
    hyperparameters: tuple[Hyperparameter, ...] = (ALPHA, TAU)
    """The numbers that `step` reads."""
    estimates: bool = False
    """Whether the update keeps an estimate for every (s, a), which starts at 0."""
    shared: bool = False
    """Whether there is one such estimate for the whole run instead."""

    @property
    def network_estimates(self) -> bool:
        """Whether a policy network has outputs for estimates, one for each action, after those for the policy."""
        return self.estimates and not self.shared

    @property
    def has_bonus(self) -> bool:
        """Whether the update takes an entropy bonus."""
        return any(each.name == TAU.name for each in self.hyperparameters)

    def outputs(self, n: int) -> int:
        """How many outputs a policy network has for n actions."""
        return (n if self.width is None else self.width) + (n if self.network_estimates else 0)

    def policy(self, outputs: AnyArray, q: AnyArray) -> AnyArray:
        """The logits of the policy from the outputs of a policy network, shape (..., outputs), and from Q."""
        theta = outputs[..., : q.shape[-1] if self.width is None else self.width]
        return theta if self.logits is None else self.logits(theta, q, None)


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
