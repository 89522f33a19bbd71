"""The paper's LunarLander study: learning curves of DQN with epsilon-IPE and with epsilon-greedy behaviour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ipe.analysis import Claim
from ipe.analysis.series import Group, Series
from ipe.studies.learning.evidence import better_end, dip, larger_area, lower_variance, more_monotone
from ipe.studies.learning.study import (
    CHANGED,
    CURVES,
    LASTING,
    LASTING_SEED,
    SENSITIVITY,
    LearningStudy,
    Parts,
    bold_sweep,
    one_at_a_time,
)

_ENVIRONMENT = "LunarLander-v3"  # v2, the paper's, is withdrawn upstream

_VALUES: dict[str, dict[str, Any]] = {
    "epsilon-ipe": {
        "target_period": [1, 100, 500],
        "policy_step_size": [1e-5, 1e-4, 1e-3],
        "value_step_size": [1e-5, 1e-4, 1e-3],
        "width": [64, 128, 256],
    },
    "epsilon-greedy": {
        "target_period": [1, 100, 500],
        "epsilon.final": [0.2, 0.1, 0.01],
        "epsilon.steps": [25_000, 50_000, 100_000],
        "value_step_size": [1e-5, 1e-4, 1e-3],
        "width": [64, 128, 256],
    },
}


_CHANGES: dict[str, dict[str, Any]] = {
    "huber": {"huber": 1.0},
    "double-q": {"double_q": True},
    "target-100": {"target_period": 100},
}


def _parts(runs: int, frames: int) -> Parts:
    both, longer = ("epsilon-ipe", "epsilon-greedy"), 2 * frames
    seeds = [LASTING_SEED + i for i in range(-(-runs * 8 // 15))]
    few, changed = seeds[: -(-len(seeds) // 2)], "LunarLander, does it last with a change?"
    return {
        CURVES: bold_sweep("LunarLander", _ENVIRONMENT, both, runs, frames),
        "ipe": bold_sweep("LunarLander, acting with the policy itself", _ENVIRONMENT, ("ipe",), -(-runs // 3), frames),
        SENSITIVITY: one_at_a_time(
            "LunarLander, one hyperparameter at a time", _ENVIRONMENT, _VALUES, -(-runs // 6), max(1, frames * 2 // 5)
        ),
        LASTING: bold_sweep("LunarLander, does it last?", _ENVIRONMENT, both, seeds, longer),
        CHANGED: bold_sweep(changed, _ENVIRONMENT, both, few, longer, _CHANGES),
    }


def _judge(chosen: Mapping[str, Series], group: Group) -> list[Claim]:
    ours, greedy, ipe = (chosen.get(name) for name in ("epsilon-ipe", "epsilon-greedy", "ipe"))
    claims = []
    if ours is not None and greedy is not None:
        frame = min(greedy.trained.settings.epsilon.steps, group.frames // 4)
        claims = [
            larger_area("IPE enjoys ... a larger area under the curve", ours, greedy),
            better_end("IPE enjoys ... better asymptotic performance", ours, greedy, group.grid),
            lower_variance("variance", "IPE enjoys ... seemingly lower variance", ours, greedy, group.grid),
            more_monotone("IPE enjoys relatively monotonic improvement", ours, greedy),
            dip(
                "DQN with ε-greedy suffers from a large, consistent dip which lines up with when ε anneals to its "
                "final value",
                greedy,
                ours,
                group.grid,
                frame,
            ),
        ]
    if ours is not None and ipe is not None:
        words = "ε-IPE appeared much more consistent than behaving directly with the estimated evaluation policy"
        claims.append(lower_variance("consistency", words, ours, ipe, group.grid))
    return claims


STUDY = LearningStudy(
    name="lunar-lander",
    title="LunarLander: ε-IPE and ε-greedy behaviour of DQN",
    runs=30,
    frames=500_000,
    parts=_parts,
    grids={"epsilon-ipe": "lunar-lander-epsilon-ipe", "epsilon-greedy": "lunar-lander-dqn"},
    judge=_judge,
)
