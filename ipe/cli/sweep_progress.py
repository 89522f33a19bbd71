"""How a sweep goes, in one line."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ipe.cli.wording import count, plural, time_left

if TYPE_CHECKING:
    from ipe.cli.display import Display
    from ipe.experiments import Sweep
    from ipe.experiments.ledger import SweepProgress


def show_sweep(display: Display, progress: SweepProgress) -> None:
    """Show the progress of a sweep; the line that says that all jobs are over is shown at once."""
    line = progress_line(progress)
    display.show([line], line, at_once=progress.done + progress.failed == progress.jobs)


def shown_in_turn(display: Display, out: Path) -> Callable[[str, Sweep, SweepProgress], None]:
    """A callback for sweeps that run one after the other, each in a folder of `out`: called with the folder's name, the
    sweep and its progress, it shows the progress under a title of the sweep's own."""
    begun: list[str] = []

    def show(folder: str, sweep: Sweep, progress: SweepProgress) -> None:
        if folder not in begun:
            begun.append(folder)
            display.begin(f"{sweep_title(sweep)}, in {out / folder}")
        show_sweep(display, progress)

    return show


def sweep_title(sweep: Sweep) -> str:
    """A sweep and its size in one line."""
    size = f"{plural(len(sweep.settings), 'setting')} by {plural(len(sweep.seeds), 'seed')}"
    return f"{sweep.name}: {size}, {count(sweep.frames)} frames"


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
    return f"{', '.join(parts)}; {time_left(progress.seconds_left)}"
