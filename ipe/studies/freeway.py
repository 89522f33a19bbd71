"""The paper's Freeway study (MinAtar): DQN with epsilon-IPE and with epsilon-greedy behaviour, and its sensitivity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipe.analysis import Claim
from ipe.analysis.series import Group, Series
from ipe.studies.learning.evidence import better_end, same_area
from ipe.studies.learning.study import CURVES, SENSITIVITY, LearningStudy, Parts, bold_sweep, one_at_a_time

_ENVIRONMENT = "minatar/Freeway"

_VALUES: dict[str, dict[str, Any]] = {
    "epsilon-ipe": {
        "target_period": [1, 100],
        "policy_step_size": [1e-5, 1e-4, 1e-3],
        "value_step_size": [1e-5, 1e-4, 1e-3],
    },
    "epsilon-greedy": {
        "target_period": [1, 100],
        "epsilon.final": [0.2, 0.1, 0.01],
        "epsilon.steps": [100_000, 200_000, 400_000],
        "value_step_size": [1e-5, 1e-4, 1e-3],
    },
}


def _parts(runs: int, frames: int) -> Parts:
    return {
        CURVES: bold_sweep("Freeway", _ENVIRONMENT, ("epsilon-ipe", "epsilon-greedy"), runs, frames),
        SENSITIVITY: one_at_a_time(
            "Freeway, one hyperparameter at a time", _ENVIRONMENT, _VALUES, -(-runs // 6), max(1, frames // 4)
        ),
    }


def _judge(chosen: Mapping[str, Series], group: Group) -> list[Claim]:
    ours, greedy = chosen.get("epsilon-ipe"), chosen.get("epsilon-greedy")
    if ours is None or greedy is None:
        return []
    return [
        same_area("The areas under the curve were not significantly different in this domain", ours, greedy),
        better_end("ε-IPE seemed to achieve a better asymptotic performance", ours, greedy, group.grid),
    ]


STUDY = LearningStudy(
    name="freeway",
    title="Freeway (MinAtar): ε-IPE and ε-greedy behaviour of DQN",
    runs=30,
    frames=2_000_000,
    parts=_parts,
    grids={"epsilon-ipe": "freeway-epsilon-ipe", "epsilon-greedy": "freeway-dqn"},
    judge=_judge,
)
