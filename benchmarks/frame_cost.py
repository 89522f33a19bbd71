"""The processor time of a frame of deep training, for several settings in turn: what the cost benchmarks share."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

WARM, FRAMES = 150, 60
"""Frames before the first round, and frames of a round."""


def frame_seconds(settings: Mapping[str, Any], seeds: int, rounds: int) -> dict[str, float]:
    """The processor seconds of one frame of all seeds, by the name of the settings; the best of the rounds counts.

    Set `side_by_side.SINGLE_THREAD` in the environment before: then JAX computes in the thread that calls it.
    """
    from ipe.deep.loop import Loop

    loops = {name: Loop([each] * seeds, list(range(seeds))) for name, each in settings.items()}
    for loop in loops.values():
        for _ in range(WARM):
            loop.advance()
    best = dict.fromkeys(loops, float("inf"))
    for _ in range(rounds):
        for name, loop in loops.items():
            begin = time.process_time()
            for _ in range(FRAMES):
                loop.advance()
            best[name] = min(best[name], (time.process_time() - begin) / FRAMES)
    for loop in loops.values():
        loop.close()
    return best
