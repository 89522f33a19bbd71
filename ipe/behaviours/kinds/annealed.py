"""Epsilon-greedy behaviours whose epsilon falls from step to step, as a schedule says."""

from __future__ import annotations

from collections.abc import Callable

from ipe.behaviours.declaration import Behaviour, declare
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.behaviours.schedules import exponential_schedule, linear_schedule
from ipe.entropy.arrays import AnyArray


def _annealed(name: str, summary: str, schedule: Callable[..., AnyArray], *, positive: bool) -> Behaviour:
    """The behaviour of a schedule, whose two ends may have to be positive."""
    return Behaviour(
        name,
        summary,
        epsilon=lambda view, numbers: schedule(
            view.step, numbers["initial_epsilon"], numbers["final_epsilon"], numbers["anneal_steps"]
        ),
        hyperparameters=(
            Hyperparameter("anneal_steps", "How many steps epsilon takes to its final value.", 100.0, above=True),
            Hyperparameter("initial_epsilon", "The epsilon of step 0.", 1.0, high=1.0, above=positive),
            Hyperparameter("final_epsilon", "The epsilon at the schedule's end.", 0.1, high=1.0, above=positive),
        ),
        deep=False,  # the deep agent has the same schedules as settings of epsilon-greedy
    )


declare(_annealed("linear", "epsilon-greedily, with epsilon on a straight line", linear_schedule, positive=False))
declare(
    _annealed(
        "exponential",
        "epsilon-greedily, with epsilon by a constant factor per step",
        exponential_schedule,
        positive=True,
    )
)
