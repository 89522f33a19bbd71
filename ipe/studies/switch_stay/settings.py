"""The Switch-Stay study, declared: what is run, with which numbers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from ipe.behaviours import BEHAVIOURS

Count = Annotated[int, Field(ge=1)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Case(_Frozen):
    """A behaviour with fixed hyperparameters, and its name in figures."""

    name: str
    label: str
    options: dict[str, float] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        """The behaviour's hyperparameters and its policy update, for `simulate`."""
        return {"update": update_of(self.name), **self.options}


class GridCase(Case):
    """A behaviour over a grid of one hyperparameter."""

    parameter: str
    axis: str
    grid: tuple[float, ...]
    logarithmic: bool = True
    addition: bool = False


def update_of(behaviour: str) -> str:
    """The paper's update for behaviours that look at the learned policy, none for the others."""
    return "paper" if BEHAVIOURS[behaviour].needs_policy else "none"


def _decades(low: int, high: int) -> tuple[float, ...]:
    """1, 2, 5 times the powers of ten from 10^low up, and 10^high."""
    return (*(m * 10.0**k for k in range(low, high) for m in (1, 2, 5)), 10.0**high)


class SwitchStaySettings(_Frozen):
    """All numbers of the study; the defaults are the paper's where it gives them."""

    seed: Annotated[int, Field(ge=0)] = 0
    """The seed of all runs."""
    runs: Count = 1000
    """The number of runs per setting in Figure 4."""
    steps: Count = 500
    """The number of steps of a run."""
    trajectory_runs: Count = 200
    """The number of runs behind the claims on Figure 2; the run that is drawn is the one of median reward."""
    extra_runs: Count = 200
    """The number of runs per setting in the parts that go beyond the paper."""
    gamma: Annotated[float, Field(ge=0, lt=1)] = 0.9
    """The discount of the MDP."""
    alpha_q: float = 0.5
    """The step size of Q-learning."""
    table_size: Count = 101
    """The number of entries of the lookup table for epsilon, whose steps the paper's Figure 2b shows."""

    trajectories: tuple[Case, ...] = (
        Case(name="epsilon-greedy", label="ε-greedy, ε = 0.1", options={"epsilon": 0.1}),
        Case(name="linear", label="ε annealed over 100 steps", options={"anneal_steps": 100.0, "final_epsilon": 0.1}),
        Case(name="ipe", label="IPE", options={"alpha_pi": 0.05}),
        Case(name="epsilon-ipe", label="ε-IPE", options={"alpha_pi": 0.05}),
    )
    """The behaviours of Figure 2."""
    sweeps: tuple[GridCase, ...] = (
        GridCase(
            name="epsilon-greedy", label="ε-greedy", parameter="epsilon", axis="ε", logarithmic=False,
            grid=(0.01, 0.05, *(k / 10 for k in range(1, 11))),
        ),
        GridCase(
            name="linear", label="annealed ε-greedy", parameter="anneal_steps", axis="annealing steps",
            logarithmic=False, grid=(1.0, 25.0, *(50.0 * k for k in range(1, 11))), options={"final_epsilon": 0.1},
        ),
        GridCase(name="ipe", label="IPE", parameter="alpha_pi", axis="policy step size", grid=_decades(-3, 0)),
        GridCase(
            name="epsilon-ipe", label="ε-IPE", parameter="alpha_pi", axis="policy step size",
            grid=_decades(-3, 0),
        ),
        GridCase(
            name="boltzmann", label="Boltzmann", parameter="temperature", axis="temperature",
            grid=_decades(-2, 2), addition=True,
        ),
        GridCase(
            name="conservative", label="conservative (CPI)", parameter="rate", axis="mixture rate",
            grid=_decades(-3, 0), addition=True,
        ),
    )  # fmt: skip
    """The behaviours of Figure 4, each over a grid of one hyperparameter."""
    update_grid: tuple[float, ...] = tuple(10.0 ** (k / 2) for k in range(-6, 7))
    """The policy step sizes of the update variants: six orders of magnitude."""
    slip: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The probability that a step leads to the other state than its action asks for, in the part `slip`."""
    slip_steps: Count = 5000
    """The number of steps of a run in the part `slip`."""
    other_steps: Count = 2000
    """The number of steps of a run on river-swim and on the Garnet MDP."""
    other_grids: dict[str, tuple[float, ...]] = {
        "alpha_pi": _decades(-3, 2),
        "anneal_steps": (1.0, 25.0, *(50.0 * k for k in range(1, 11)), 750.0, 1000.0, 1500.0, 2000.0),
    }
    """The grids of some hyperparameters on those MDPs, in place of Figure 4's. The gradient of the policy update goes
    with the square of the rewards, so that the step sizes of Switch-Stay say nothing about other MDPs."""

    @property
    def other_sweeps(self) -> tuple[GridCase, ...]:
        """The behaviours of Figure 4, over the grids for river-swim and the Garnet MDP."""
        return tuple(
            each.model_copy(update={"grid": self.other_grids.get(each.parameter, each.grid)}) for each in self.sweeps
        )
