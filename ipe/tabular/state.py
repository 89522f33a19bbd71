"""What a compiled run carries from step to step, and what it leaves behind."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from ipe.behaviours import Behaviour
from ipe.tabular.returns import Returns
from ipe.updates import PolicyUpdate

Order = Literal["q-first", "policy-first"]
Ties = Literal["random", "first"]


class Algorithm(NamedTuple):
    """Which variant of Algorithm 1 is compiled; everything else is data."""

    behaviour: Behaviour
    """How the agent acts."""
    update: PolicyUpdate | None
    """How the policy is updated; None: the policy stays as it starts."""
    order: Order
    """Whether Q or the policy is updated first."""
    ties: Ties
    """Whether greedy actions share their probability, or the first of them has it all."""
    n_steps: int
    """How many steps the target of the policy update spans."""
    looks: int
    """How many looks the bisection among successors takes, see `ipe.tabular.model`."""
    start_looks: int
    """How many looks the bisection among start states takes."""
    record: bool
    """Whether every step is recorded."""
    returns: Returns = Returns()
    """How far the returns of Q-learning reach."""


class Move(NamedTuple):
    """What happened in one step; or in several, the oldest first."""

    state: Any
    """The state that was left."""
    action: Any
    """The action that was taken."""
    reward: Any
    """The reward that was received."""
    ended: Any
    """Whether the next state is terminal."""


class Run(NamedTuple):
    """The state of one run. What its algorithm does not need is None or empty."""

    q: Any
    """The action values, shape (S, A)."""
    theta: Any
    """The logits of the policy, shape (S, A)."""
    state: Any
    """The current state."""
    total: Any
    """The sum of the rewards."""
    episodes: Any
    """How many episodes have ended."""
    estimates: Any
    """The estimates that the policy update keeps, shape (S, A), or one for the whole run; None if it keeps none."""
    memory: dict[str, Any]
    """The tables that the behaviour keeps, their first axis the states; or the one memory of the whole agent."""
    window: Move | None
    """The last n moves, if the policy update's target spans n > 1 steps."""
    traces: Any = None
    """The eligibility traces, shape (S, A); None if Q-learning has none."""


class Step(NamedTuple):
    """What is recorded of a step."""

    probabilities: Any
    """The behaviour's probabilities in every state before the step, shape (S, A)."""
    epsilon: Any
    """The behaviour's epsilon in every state before the step, shape (S,); None if it has none."""
    state: Any
    """The state that was left."""
    action: Any
    """The action that was taken."""
    reward: Any
    """The reward that was received."""
    next_state: Any
    """The state that the action led to."""
    q: Any
    """The action values after the step."""
    theta: Any
    """The logits of the policy after the step."""
