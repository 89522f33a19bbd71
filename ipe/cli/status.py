"""`ipe status`: how far a sweep or a training run is."""

from __future__ import annotations

import contextlib
import shlex
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipe.base.columns import columns
from ipe.cli.display import Display
from ipe.cli.inputs import check_sweep
from ipe.cli.options import argument, flag, number, option
from ipe.cli.outputs import json_text
from ipe.cli.wording import count, duration, plain, plural

if TYPE_CHECKING:
    from ipe.experiments.status import Status, Tally

MOST_ROWS = 30
MOST_PROBLEMS = 10
_WATCH_SECONDS = 5.0


def _seconds(word: str) -> float:
    try:
        seconds = number(word)
    except ValueError:
        seconds = float("nan")
    if not 0.1 <= seconds <= 86_400.0:
        raise ValueError(f"takes seconds from 0.1 to 86400, or nothing; found {word!r}")
    return seconds


@dataclass(frozen=True)
class Arguments:
    """Show how far a sweep or a training run is: runs done, running, waiting, failed and diverged, frames per second,
    the time left, and what is wrong. Reads only; the sweep may be running, here or elsewhere.

    A run is a setting and a seed. The environment of a failed run raised an error; the learning errors of a diverged
    run are not finite. Both stay in the statistics. The time left is reckoned with the present speed.

    examples:
      ipe status sweeps/lunar-lander-dqn
      ipe status sweeps/lunar-lander-dqn --watch
      ipe status sweeps/lunar-lander-dqn --json
    """

    sweep: str = argument("DIR", "The folder of a sweep or a training run.")
    watch: float | None = option(
        "Show it again every so many seconds (5 if none are given), until all is done or Ctrl-C.",
        None,
        metavar="SECONDS",
        read=_seconds,
        alone=_WATCH_SECONDS,
    )
    all: bool = flag("Show a row for every setting, however many there are, and every problem.")
    json: bool = flag("Print all of it for programs: one JSON object; with --watch one per line.")


def run(arguments: Arguments) -> None:
    """Print how far the sweep is, once or again and again."""
    from ipe.experiments.halving import begun_rungs
    from ipe.experiments.status import sweep_status

    check_sweep(arguments.sweep)
    watching = arguments.watch is not None
    ends = (KeyboardInterrupt,) if watching else ()  # Ctrl-C is how one stops watching
    with Display("ipe status", stream=sys.stdout) as display, contextlib.suppress(*ends):
        while True:
            status = sweep_status(begun_rungs(arguments.sweep)[-1])  # of a sweep by halving, its newest rung
            lines = status_lines(status, arguments.all)
            if arguments.json:
                _print_json(status, lines=watching)
            elif watching and display.live:
                display.show(lines)
            else:
                print("\n".join([*lines, ""] if watching else lines), flush=True)
            if arguments.watch is None or status.finished:
                break
            time.sleep(arguments.watch)
    if status.finished and not arguments.json:
        print(f"next: ipe report {shlex.quote(arguments.sweep)}")


def _print_json(status: Status, lines: bool) -> None:
    import json

    plain_status = status.plain() | {"finished": status.finished}
    print(json.dumps(plain_status, allow_nan=False) if lines else json_text(plain_status), flush=True)


def status_lines(status: Status, everything: bool = False) -> list[str]:
    """How far a sweep is: the totals, a table of the cases or settings, and the problems; of everything, or about
    thirty rows."""
    total = status.total
    lines = [f"{total.name}: {plural(total.settings, 'setting')}, {plural(total.runs, 'run')}", *_totals(status)]
    rows, left = _rows(status, everything)
    table = [["", "runs", "done", "failed", "diverged", "running", "waiting", "frames"], *map(_row, rows)]
    lines += ["", *columns(table, left=[0])]
    if left:
        lines.append(f"... and {left} settings more (--all)")
    most = len(status.problems) if everything else MOST_PROBLEMS
    if status.problems:
        lines += ["", f"problems: {len(status.problems)}", *(f"  {plain(each)}" for each in status.problems[:most])]
    if len(status.problems) > most:
        lines.append(f"  ... and {len(status.problems) - most} more (--all)")
    return lines


def _totals(status: Status) -> list[str]:
    total = status.total
    runs = f"done {total.done}, failed {total.failed}, diverged {total.diverged}"
    frames = f"{count(total.frames_done)} of {count(total.frames)} ({_percent(total)})"
    if status.finished:
        time_left = "nothing left to do"
    elif status.seconds_left is None:
        time_left = "nothing is running" if total.running == 0 else "time left not known yet"
    else:
        time_left = f"{count(status.frames_per_second)} per second now, about {duration(status.seconds_left)} left"
    return [f"  runs    {runs}, running {total.running}, waiting {total.waiting}", f"  frames  {frames}; {time_left}"]


def _rows(status: Status, everything: bool) -> tuple[list[Tally], int]:
    """The rows of the table, and how many settings are left out.

    The rows are the settings, if they are few or all are asked for; otherwise the cases, if there are several;
    otherwise the settings that something can be said about.
    """
    if everything or len(status.settings) <= MOST_ROWS:
        return status.settings, 0
    if len(status.cases) > 1:
        return status.cases[:MOST_ROWS], 0
    order = sorted(range(len(status.settings)), key=lambda i: (_dullness(status.settings[i]), i))
    return [status.settings[i] for i in sorted(order[:MOST_ROWS])], len(status.settings) - MOST_ROWS


def _dullness(tally: Tally) -> int:
    """A number by which settings that are running come first, then those that failed, then those that wait."""
    return 0 if tally.running else 1 if tally.failed + tally.diverged else 2 if tally.waiting else 3


def _row(tally: Tally) -> list[str]:
    counts = (tally.runs, tally.done, tally.failed, tally.diverged, tally.running, tally.waiting)
    return [plain(tally.name) or "-", *map(str, counts), _percent(tally)]


def _percent(tally: Tally) -> str:
    """The share of the frames that are done, rounded down: 100% is all of them."""
    return f"{int(1000 * tally.share) / 10:.1f}%"
