"""The study of exploration, declared: which behaviours are compared, on which tasks, with which numbers.

Every behaviour has five settings of one number of its own, and all share a grid of value step sizes. A rival is one
line of `CONTENDERS`, a task one line of `TASKS`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ipe.behaviours import BEHAVIOURS
from ipe.mdp import FiniteMDP
from ipe.zoo import deep_sea, garnet, make, river_swim, switch_stay

SETTINGS = 5
"""The number of settings that every behaviour gets."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)


class Contender(_Frozen):
    """A behaviour with the grid of one of its numbers."""

    name: str
    """The contender's name, in files and on the command line."""
    label: str
    """The contender's name in tables and figures."""
    behaviour: str
    """The behaviour's name in `ipe.behaviours.BEHAVIOURS`."""
    parameter: str
    """The number that the grid varies."""
    grid: tuple[float, ...]
    """The settings of that number."""
    options: dict[str, float] = {}
    """The behaviour's other numbers that are not its defaults."""
    update: str | None = None
    """The policy update; None: the paper's if the behaviour looks at a learned policy, otherwise none."""
    in_steps: bool = False
    """Whether the number counts steps: the grid then holds shares of the length of a run."""
    ours: bool = False
    """Whether the behaviour is derived from an evaluation policy, as the paper's and this library's are."""

    @property
    def policy_update(self) -> str:
        """The policy update, for `simulate`."""
        return self.update or ("paper" if BEHAVIOURS[self.behaviour].needs_policy else "none")

    def values(self, steps: int) -> tuple[float, ...]:
        """The settings of the number in a run of that length."""
        return tuple(value * steps for value in self.grid) if self.in_steps else self.grid


@dataclass(frozen=True)
class Task:
    """A finite MDP, and how long a run on it is."""

    name: str
    """The task's name."""
    family: str
    """The tasks of a family are alike, and a setting that is chosen without a task is chosen without its family."""
    mdp: Callable[[], FiniteMDP]
    """The function that makes the MDP."""
    steps: int
    """The number of steps of a run."""
    score: Literal["reward per step", "return per episode"] = "reward per step"
    """What is averaged over a run."""


_DECADES = (0.01, 0.1, 1.0, 10.0, 100.0)
_HALVES = (0.03, 0.1, 0.3, 1.0, 3.0)
_SHARES = (0.05, 0.1, 0.2, 0.5, 1.0)
_EPSILONS = (0.01, 0.05, 0.1, 0.2, 0.5)

UNIFORM = Contender(
    name="uniform", label="uniform", behaviour="epsilon-greedy", parameter="epsilon", grid=(1.0,)
)  # fmt: skip
"""Uniform behaviour, which every score is measured from."""


def _contender(name: str, label: str, parameter: str, grid: tuple[float, ...], **others: Any) -> Contender:
    return Contender(
        name=name, label=label, behaviour=others.pop("behaviour", name), parameter=parameter, grid=grid, **others
    )


CONTENDERS: tuple[Contender, ...] = (
    _contender("epsilon-greedy", "ε-greedy, fixed", "epsilon", _EPSILONS),
    _contender("linear", "ε-greedy, annealed", "anneal_steps", _SHARES, in_steps=True, options={"final_epsilon": 0.05}),
    _contender("boltzmann", "Boltzmann", "temperature", _HALVES),
    _contender("vdbe", "VDBE", "sigma", (0.04, 0.2, 1.0, 5.0, 25.0)),
    _contender("conservative", "conservative (CPI)", "rate", (0.001, 0.003, 0.01, 0.03, 0.1)),
    _contender("vdbe-softmax", "VDBE-softmax", "sigma", (0.04, 0.2, 1.0, 5.0, 25.0)),
    _contender("ebe", "entropy of Q (EBE)", "temperature", _HALVES),
    _contender("epsilon-bmc", "ε-BMC", "bmc_prior", (1.0, 5.0, 10.0, 25.0, 50.0)),
    _contender("ez-greedy", "εz-greedy", "epsilon", _EPSILONS),
    _contender("munchausen", "Munchausen", "munchausen_temperature", (0.01, 0.03, 0.1, 0.3, 1.0),
               behaviour="munchausen-softmax"),
    _contender("ipe", "IPE", "alpha_pi", _DECADES, ours=True),
    _contender("epsilon-ipe", "ε-IPE", "alpha_pi", _DECADES, ours=True),
    _contender("epsilon-ipe-kl", "ε-IPE, proximal", "alpha_pi", _DECADES, behaviour="epsilon-ipe",
               update="kl-proximal", ours=True),
    _contender("epsilon-ipe-scale-free", "ε-IPE, scale-free", "alpha_pi", _DECADES, behaviour="epsilon-ipe",
               update="scale-free", ours=True),
    _contender("ez-epsilon-ipe", "εz-IPE", "alpha_pi", _DECADES, ours=True),
    _contender("tau-ipe", "τ-IPE", "alpha_pi", _DECADES, ours=True),
)  # fmt: skip
"""The behaviours that are compared. What is not declared in `ipe.behaviours` cannot stand here."""

TASKS: tuple[Task, ...] = (
    Task("switch-stay", "switch-stay", switch_stay, 500),
    *(
        Task(f"garnet-{seed}", "garnets", partial(garnet, 30, 4, 3, seed=seed, gamma=0.9), 2000)
        for seed in range(10)
    ),
    *(
        Task(f"garnet-deterministic-{seed}", "deterministic garnets",
             partial(garnet, 30, 4, 1, seed=seed, gamma=0.9), 2000)
        for seed in range(10)
    ),
    Task("river-swim", "river-swim", river_swim, 5000),
    *(Task(f"deep-sea-{n}", "deep sea", partial(deep_sea, n), 500 * n) for n in (5, 7, 10, 14, 20)),
    Task("frozen-lake", "frozen lake", partial(make, "frozen-lake"), 10_000),
    # Arriving pays nothing there: an agent that never arrives would have the best reward per step.
    Task("cliff-walking", "cliff walking", partial(make, "cliff-walking"), 5000, "return per episode"),
    Task("taxi", "taxi", partial(make, "taxi"), 20_000),
)  # fmt: skip
"""The tabular tasks, with the length of a run on each."""


class TabularSettings(_Frozen):
    """The numbers of the tabular part."""

    seed: Annotated[int, Field(ge=0)] = 0
    """The seed of all runs."""
    choosing_runs: Annotated[int, Field(ge=2)] = 21
    """The number of runs of each setting that settings are chosen by; with the fresh ones, ten settings fill the 512
    lanes of a compiled program with four actions."""
    fresh_runs: Annotated[int, Field(ge=2)] = 30
    """The number of further runs of each setting, which are reported on and choose nothing."""
    value_step_sizes: tuple[float, ...] = (0.1, 0.5)
    """The step sizes of Q-learning, the same for all behaviours."""

    @property
    def runs(self) -> int:
        """The number of runs of each setting."""
        return self.choosing_runs + self.fresh_runs
