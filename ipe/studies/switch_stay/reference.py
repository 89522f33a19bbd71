"""Reference numbers for Figure 4: 5000 runs of 500 steps by an independent implementation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ipe.analysis import Claim, verdict
from ipe.base.arrays import Array


class Reference(NamedTuple):
    """Mean and standard deviation over runs of the average reward and of the final RMSE."""

    reward: float
    reward_sd: float
    rmse: float
    rmse_sd: float


REFERENCE: dict[str, dict[float, Reference]] = {
    "epsilon-greedy": {
        0.05: Reference(1.388, 0.389, 3.78, 4.43),
        0.1: Reference(1.354, 0.399, 3.54, 4.47),
        0.3: Reference(1.218, 0.171, 0.089, 0.75),
        1.0: Reference(0.499, 0.049, 0.040, 0.03),
    },
    "linear": {
        50: Reference(1.564, 0.265, 0.967, 2.81),
        100: Reference(1.578, 0.144, 0.244, 1.47),
        200: Reference(1.452, 0.053, 0.002, 0.13),
        500: Reference(0.994, 0.061, 0.0001, 0.0002),
    },
    "ipe": {
        0.01: Reference(1.450, 0.139, 0.004, 0.11),
        0.05: Reference(1.573, 0.312, 0.986, 2.24),
        0.2: Reference(1.454, 0.440, 4.43, 3.96),
        1.0: Reference(1.203, 0.406, 8.91, 3.01),
    },
    "epsilon-ipe": {
        0.01: Reference(1.469, 0.121, 0.002, 0.11),
        0.05: Reference(1.670, 0.215, 0.485, 1.51),
        0.2: Reference(1.683, 0.339, 2.69, 3.24),
        1.0: Reference(1.740, 0.390, 7.67, 2.92),
    },
}
"""By behaviour and by the value of its hyperparameter."""

SLACK = 0.14
"""Standard deviations by which a mean of 1000 runs may differ from the reference: four of its standard errors."""
LEAST = 0.005
"""The difference that rounding of the reference's last digit can make."""


def off_by(mean: float, reference: float, sd: float, runs: int) -> float:
    """The distance of a mean from its reference, as a share of the distance that this number of runs allows."""
    return abs(mean - reference) / max(SLACK * sd * max(1.0, float(np.sqrt(1000 / runs))), LEAST)


def judge_reference(grids: Mapping[str, tuple[Array, Array, Array]], runs: int, steps: int) -> list[Claim]:
    """The claim that the means agree with the reference; no claim if the study has another number of steps."""
    if steps != 500:
        return []
    worst: dict[str, float] = {}
    for name, rows in REFERENCE.items():
        grid, reward, rmse = grids[name]
        for value, row in rows.items():
            at = int(np.argmin(np.abs(grid - value)))
            worst[f"{name}/{value:g}/reward"] = off_by(float(reward[at]), row.reward, row.reward_sd, runs)
            worst[f"{name}/{value:g}/rmse"] = off_by(float(rmse[at]), row.rmse, row.rmse_sd, runs)
    largest = max(worst, key=lambda key: worst[key])
    within = sum(share <= 1 for share in worst.values())
    return [
        Claim(
            "agrees-with-the-reference", "figure-4",
            "Mean reward and mean RMSE agree with those of an independent implementation (5000 runs).",
            verdict(within == len(worst)),
            f"{within} of {len(worst)} means are within max(.14 sd, .005) (for 1000 runs); the largest difference, "
            f"{largest}, is {worst[largest]:.2f} of that.",
            worst,
            addition=True,
        )
    ]  # fmt: skip
