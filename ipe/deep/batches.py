"""Batches of seeds: how many seeds a process trains at once."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ipe.deep.settings import TrainingSettings

MOST = 16
"""The most seeds that a process trains at once."""
_AT_ONCE = ((64, MOST), (128, 8), (256, 4))
"""How many seeds a process trains at once by default, for networks of up to a width. Measured, microseconds per
frame and seed with 5, 10 and 15 seeds: 63, 48 and 43 for CartPole at width 64 (epsilon-greedy); 194, 181 and 187 for
LunarLander at width 128 (epsilon-IPE)."""
_OTHER_SUMS = 4096


def seeds_per_batch(settings: TrainingSettings, image: bool) -> int:
    """Return how many seeds a process trains at once by default: as many as its cache serves best."""
    if image:
        return 1
    return next((seeds for width, seeds in _AT_ONCE if settings.width <= width), 2)


def most_seeds(settings: TrainingSettings, image: bool, actions: int) -> int:
    """Return how many seeds a process can train at once with the same bytes as any smaller number of them.

    XLA adds up the actions' numbers in another way from 4096 of them on: all batches must lie on one side of that.
    """
    if image:
        return 1
    numbers = max(settings.batch, settings.environments) * actions
    return 1 if 2 * numbers >= _OTHER_SUMS else min(MOST, (_OTHER_SUMS - 1) // numbers)


def split_seeds(seeds: Sequence[int], most: int, processes: int) -> list[list[int]]:
    """Split seeds into batches of at most `most`, enough of them for all processes, of two or more where possible.

    Example:
        >>> split_seeds(range(5), most=8, processes=2)
        [[0, 1, 2], [3, 4]]
    """
    wanted = min(processes, max(1, len(seeds) // min(most, 2)))
    batches = max(math.ceil(len(seeds) / most), wanted)
    return [[int(seed) for seed in part] for part in np.array_split(np.array(seeds, dtype=np.int64), batches)]
