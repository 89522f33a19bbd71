"""The progress of a training as text, for those who call `train` from Python: in place or by lines."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from ipe.deep.progress import Progress

IN_PLACE_SECONDS = 1.0
"""The least time between two texts in a terminal or a notebook, where each replaces the one before."""
LINE_SECONDS = 30.0
"""The least time between two lines in a file or a pipe."""


class PrintedProgress:
    """Prints how far a training of so many seeds has come, now and then, to standard error or another stream."""

    def __init__(self, seeds: int, stream: TextIO | None = None) -> None:
        self._seeds = seeds
        self._stream = sys.stderr if stream is None else stream
        self._in_place = self._stream.isatty() or "ipykernel" in sys.modules
        self._batches: dict[int, Progress] = {}
        self._started = self._printed = time.monotonic()
        self._width = 0

    def show(self, progress: Progress) -> None:
        """Take note of a batch's progress, and print it if the last text is old enough."""
        self._batches[progress.batch] = progress
        now = time.monotonic()
        if now - self._printed >= (IN_PLACE_SECONDS if self._in_place else LINE_SECONDS):
            self._printed = now
            self._print(text_of(list(self._batches.values()), self._seeds))

    def end(self) -> None:
        """Go to the next line, if a text stands in the present one."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()

    def _print(self, text: str) -> None:
        if self._in_place:
            self._stream.write(f"\r{text.ljust(self._width)}")
            self._width = len(text)
        else:
            self._stream.write(f"{text}\n")
        self._stream.flush()


def text_of(batches: list[Progress], seeds: int) -> str:
    """How far all seeds of a training have come, in words, from the progress of each batch that has begun."""
    begun = [seed for batch in batches for seed in batch.seeds]
    frames = batches[0].frames
    done = sum(seed.frame for seed in begun) / (frames * seeds)
    returns = [seed.mean_return for seed in begun if seed.mean_return is not None]
    words = [f"{done:.0%} of {seeds} x {frames} frames"]
    if returns:
        words.append(f"return {sum(returns) / len(returns):.1f} (mean of the last 20 episodes)")
    greedy = [seed.evaluated for seed in begun if seed.evaluated is not None]
    if greedy:
        words.append(f"greedy {sum(greedy) / len(greedy):.1f} (mean of the last evaluation)")
    words.append(f"{sum(batch.frames_per_second * len(batch.seeds) for batch in batches):.0f} frames per second")
    return ", ".join(words)
