"""The study of returns, declared: which MDPs, and which values of lambda and gamma."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from ipe.mdp import FiniteMDP
from ipe.zoo import chain, garnet, river_swim, switch_stay

Count = Annotated[int, Field(ge=1)]


@dataclass(frozen=True)
class Task:
    """A finite MDP to learn on."""

    name: str
    """The MDP's name in tables and figures."""
    make: Callable[[], FiniteMDP]
    """A function that makes the MDP."""
    steps: int
    """The number of steps of a run."""
    alpha_pi: float
    """The step size of the policy update. Its gradient goes with the square of the rewards, so each MDP has one: the
    best of .1, 1 and 10 for epsilon-IPE without traces."""


TASKS = (
    Task("chain", lambda: chain(10, slip=0.1), 2000, 10.0),
    Task("switch-stay", switch_stay, 500, 1.0),
    Task("river-swim", river_swim, 2000, 10.0),
    Task("garnet", lambda: garnet(30, 4, 3, seed=0), 2000, 10.0),
)
"""A walk along a chain with slips, Switch-Stay, river-swim, and a random MDP of 30 states."""

TRACES = ("watkins", "peng")
SOURCES = ("actions", "coin")
"""The two ways in which entropy sets a number: see `ipe.entropy.distrust`."""


class ReturnsSettings(BaseModel):
    """All numbers of the study."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    seed: Annotated[int, Field(ge=0)] = 0
    """The seed of all runs."""
    runs: Count = 200
    """The number of runs per setting."""
    alpha_q: float = 0.5
    """The step size of Q-learning."""
    lambdas: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
    """The fixed values of lambda."""
    gamma_shares: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
    """The fixed discounts of the learning target, as shares of the MDP's discount."""
    least_share: Annotated[float, Field(ge=0, le=1)] = 0.5
    """The least discount that entropy sets, as a share of the MDP's."""
    policy_steps: tuple[float, ...] = tuple(10.0 ** (k / 2) for k in range(-6, 5))
    """The policy step sizes of the part `closed-form`: five orders of magnitude."""
