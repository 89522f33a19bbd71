"""How a long solve goes: a bar, the gap on its way to the gap asked for, and the time left."""

from __future__ import annotations

import math
from typing import Any

from ipe.cli.display import QUIET_SECONDS, Display
from ipe.cli.wording import time_left

_BAR = 20


class GapDisplay:
    """A callback for solvers that shows the progress they tell.

    The gap of these solvers falls by about the same factor in every second. So the bar is drawn, and the time left is
    reckoned, on the logarithm of the gap: from the first gap of a method to the target.

    Args:
        display: where it is shown. Without a terminal, only solves of more than half a minute are.
    """

    def __init__(self, display: Display) -> None:
        self._display = display
        self._first: dict[str, tuple[float, float]] = {}

    def __call__(self, progress: Any) -> None:
        """Show how far the solve is.

        Args:
            progress: the solver's method, iterations, gap (infinite while none is proven), target (the gap at which the
                solve ends) and seconds.
        """
        line = self.line(progress)
        self._display.show([line], line if progress.seconds >= QUIET_SECONDS else None)

    def line(self, progress: Any) -> str:
        """The progress in one line."""
        said = f"{progress.method}, {progress.iterations} iterations"
        if not 0.0 < progress.gap < math.inf or progress.target <= 0.0:
            return f"{said}: {time_left(None)}"
        begin, start = self._first.setdefault(progress.method, (progress.gap, progress.seconds))
        way = math.log(begin / progress.target)
        share = min(1.0, max(0.0, math.log(begin / progress.gap) / way)) if way > 0.0 else 1.0
        left = (progress.seconds - start) * (1.0 / share - 1.0) if share >= 0.05 else None
        bar = "#" * round(_BAR * share) + "." * (_BAR - round(_BAR * share))
        return f"{said} [{bar}] gap {progress.gap:.1e} of {progress.target:.1e}; {time_left(left)}"
