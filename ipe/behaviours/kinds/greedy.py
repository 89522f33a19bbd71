"""Greedy behaviour, and epsilon-greedy behaviour with an epsilon that is given."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, declare
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.behaviours.policies import greedy

declare(
    Behaviour(
        "greedy",
        "greedily on Q",
        probabilities=lambda view, numbers: greedy(view.preferences, view.allowed),
        deep=False,  # without exploration there is nothing to train on; evaluation uses it
    )
)

declare(
    Behaviour(
        "epsilon-greedy",
        "epsilon-greedily, with a fixed epsilon (the deep agent: with a schedule)",
        epsilon=lambda view, numbers: numbers["epsilon"],
        hyperparameters=(
            Hyperparameter("epsilon", "The probability of acting at random.", 0.1, high=1.0, scheduled=True),
        ),
    )
)

declare(
    Behaviour(
        "fixed-epsilon",
        "epsilon-greedily, with an epsilon that never changes",
        epsilon=lambda view, numbers: numbers["fixed_epsilon"],
        hyperparameters=(Hyperparameter("fixed_epsilon", "The probability of acting at random.", 0.1, high=1.0),),
    )
)
