"""The paper's Freeway study (MinAtar): learning curves of DQN with epsilon-IPE and with epsilon-greedy behaviour."""

from __future__ import annotations

from collections.abc import Mapping

from ipe.analysis import Claim
from ipe.analysis.series import Group, Series
from ipe.studies.learning.evidence import better_end, same_area
from ipe.studies.learning.study import CURVES, LearningStudy, Parts, bold_sweep


def _parts(runs: int, frames: int) -> Parts:
    return {CURVES: bold_sweep("Freeway", "minatar/Freeway", ("epsilon-ipe", "epsilon-greedy"), runs, frames)}


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
