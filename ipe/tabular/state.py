"""What a compiled run carries from step to step, and what it leaves behind."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Order = Literal["q-first", "policy-first"]
Ties = Literal["random", "first"]


class Program(NamedTuple):
    """What is fixed when the program is compiled; everything else is data."""

    behaviour: str
    update: str
    order: Order
    ties: Ties
    n_steps: int
    looks: int
    """Of the bisection among successors, see `ipe.tabular.model`."""
    start_looks: int
    record: bool


class Transition(NamedTuple):
    """What happened in one step; or in several, the oldest first."""

    state: Any
    action: Any
    reward: Any
    ended: Any


class Run(NamedTuple):
    """The state of one run. What its program does not need is None."""

    q: Any
    theta: Any
    state: Any
    total: Any
    """The sum of the rewards."""
    y: Any
    """Fenchel's second estimate, shape (S, A)."""
    average: Any
    """The conservative policy of each state when it was last visited, shape (S, A)."""
    visited: Any
    """How many steps had been done by then, shape (S,)."""
    epsilon: Any
    """VDBE's epsilon, shape (S,)."""
    window: Transition | None
    """The last n transitions, if n > 1."""


class Step(NamedTuple):
    """What is recorded of a step: the behaviour before it, the transition, the tables after it."""

    probabilities: Any
    epsilon: Any
    state: Any
    action: Any
    reward: Any
    next_state: Any
    q: Any
    theta: Any
