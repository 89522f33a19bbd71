"""What the numbers of a group of runs are: which returns, against what, and how their curves are made of them."""

from __future__ import annotations

from dataclasses import dataclass

from ipe.analysis.curves import WINDOW


@dataclass(frozen=True)
class Measure:
    """What is measured.

    Attributes:
        name: which returns these are, as in "training returns".
        curve: what the curve of a run is at a step, as the label of an axis says it.
        record: what the curve is made of, one of them: "episode", "evaluation", "record".
        steps: what steps are called: "frames", "steps".
        run: what tells runs of a setting apart: "seed", "run".
        sources: the files that the returns come from, in words; nothing for a sweep of ipe.
    """

    name: str
    curve: str
    record: str = "episode"
    steps: str = "frames"
    run: str = "seed"
    sources: tuple[str, ...] = ()


TRAINING = Measure("training returns", f"return, mean of the last {WINDOW} episodes")
"""What a sweep of ipe measures: the returns of the episodes of the training itself."""
