"""How a sweep goes, on standard error: a line that is drawn in place, or one now and then."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

from ipe.cli.tables import duration

if TYPE_CHECKING:
    from ipe.experiments.ledger import SweepProgress

QUIET_SECONDS = 30.0
"""Between two lines where there is no terminal."""


class Display:
    """A callback for `ipe.experiments.run_sweep`.

    Args:
        title: said before the first progress: what is refused has one line alone.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._live = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._said, self._last = -math.inf, (-1, -1)

    def __call__(self, progress: SweepProgress) -> None:
        """Show where it is."""
        if self._title:
            self._write(f"{self._title}\n")
            self._title = ""
        line = progress_line(progress)
        if self._live:
            # A line that wraps could not be taken back.
            self._write(f"\r\033[K{line[: shutil.get_terminal_size().columns - 1]}")
            return
        now, counts = time.monotonic(), (progress.done, progress.failed)
        over = progress.done + progress.failed == progress.jobs
        if now - self._said >= QUIET_SECONDS or (over and counts != self._last):
            self._said, self._last = now, counts
            self._write(f"{line}\n")

    def close(self) -> None:
        """Leave the last line; what follows goes below it."""
        if self._live and not self._title:
            self._write("\n")
        self._live = False

    def _write(self, text: str) -> None:
        if sys.stderr is not None:
            print(text, end="", file=sys.stderr, flush=True)


def progress_line(progress: SweepProgress) -> str:
    """A sweep's progress in one line."""
    share = progress.frames_done / progress.frames
    parts = [
        f"{progress.done} of {progress.jobs} jobs done",
        f"{count(progress.frames_done)} of {count(progress.frames)} frames ({math.floor(100 * share)}%)",
    ]
    if progress.running:
        parts.append(f"{progress.running} running")
    if progress.elsewhere:
        parts.append(f"{progress.elsewhere} at other processes")
    if progress.failed:
        parts.append(f"{progress.failed} jobs failed")
    if progress.failed_runs:
        parts.append(f"{progress.failed_runs} of {progress.runs} runs failed or diverged")
    left = progress.seconds_left
    end = "time left not known yet" if left is None else "done" if left <= 0 else f"about {duration(left)} left"
    return f"{', '.join(parts)}; {end}"


def count(number: float) -> str:
    """A large number, short.

    Example:
        >>> [count(n) for n in (950, 25_000, 3_645_000_000)]
        ['950', '25k', '3.65G']
    """
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"
