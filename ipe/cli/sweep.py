"""`ipe sweep`: a grid of settings by seeds, on this machine, on a cluster, or as a shard of a job array."""

from __future__ import annotations

import re
import shlex
import signal
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from ipe.cli.interrupt import hearing_signals
from ipe.cli.parsing import Flag, Number, Text, WholeNumber
from ipe.cli.program import DONE, FAILED, NOT_SOLVED
from ipe.cli.seeds import seeds_option
from ipe.cli.sweep_plan import print_plan
from ipe.cli.sweep_progress import Display, count
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.experiments import Sweep, SweepResult

_MOST_NOTES = 20


@dataclass(frozen=True)
class Arguments:
    """Run a sweep that a file declares: a base, a grid of lists, named cases, seeds.

    The grids of the paper's appendix come with ipe: lunar-lander-dqn, lunar-lander-epsilon-ipe, freeway-dqn and
    freeway-epsilon-ipe. Ctrl-C and SIGTERM stop with checkpoints; the same command goes on, and does not do again what
    is done. Several processes and machines may work on one folder at the same time.

    examples:
      ipe sweep lunar-lander-dqn --plan --cores 64
      ipe sweep grid.toml --out runs/grid
      ipe sweep grid.toml --out runs/grid --seeds 5 --frames 2e5
      ipe sweep grid.toml --out runs/grid --confirm-seeds 30
      ipe sweep grid.toml --out /shared/grid --scheduler tcp://10.0.0.1:8786
      ipe sweep grid.toml --out /shared/grid --shard 3/100
    """

    sweep: Annotated[Positional[str | None], arg(metavar="[SWEEP]", help_behavior_hint="")] = None
    """A TOML file; or the name of one that comes with ipe."""
    out: Annotated[Text, arg(metavar="FOLDER", help_behavior_hint="(default: runs/NAME)")] = None
    """The folder of the results; if it holds this sweep, it is gone on with. More seeds or settings extend it."""
    plan: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Only say what there is to do, and what it takes: measured on this machine for some seconds. Starts and writes
    nothing."""
    cores: Annotated[WholeNumber, arg(help_behavior_hint="")] = None
    """With --plan: the time on so many cores of this kind too."""
    workers: Annotated[WholeNumber, arg(help_behavior_hint="(default: one per core)")] = None
    """Processes on this machine."""
    scheduler: Annotated[Text, arg(metavar="ADDRESS", help_behavior_hint="")] = None
    """Of a running Dask scheduler, whose workers see the folder."""
    shard: Annotated[Text, arg(metavar="I/N", help_behavior_hint="")] = None
    """No Dask: this process does the jobs I, I + N, I + 2N, ..., with I from 0 to N - 1, one after the other."""
    seeds: Annotated[Text, arg(metavar="SEEDS", help_behavior_hint="(default: the file's)")] = None
    """How many seeds, from 0 on; or which, with commas: 3,5,8."""
    frames: Annotated[WholeNumber, arg(help_behavior_hint="(default: the file's)")] = None
    """Of every run."""
    batch_seeds: Annotated[WholeNumber, arg(help_behavior_hint="(default: as the cache serves best)")] = None
    """Most seeds of a setting that a process trains at once."""
    checkpoint_seconds: Annotated[Number, arg(help_behavior_hint="(default: 120)")] = None
    """Between two checkpoints of a job."""
    hang_seconds: Annotated[Number, arg(help_behavior_hint="(default: 300)")] = None
    """How long an environment may take for a step, before its seed is given up."""

    confirm_seeds: Annotated[WholeNumber, arg(help_behavior_hint="(default: 0)")] = None
    """When all is done: so many fresh runs of each case's best setting, in OUT/confirm, which `ipe report` then rests
    on. By the runs that chose it, a setting looks better than it is."""


def run(arguments: Arguments) -> int:
    """Run the sweep, show how it goes, and say what came out."""
    from ipe.experiments.grids import changed, read_sweep, shipped_sweeps

    if arguments.sweep is None:
        raise InputError(f"SWEEP is missing, a TOML file, or one of {', '.join(shipped_sweeps())}")
    sweep = read_sweep(arguments.sweep)
    sweep = changed(
        sweep, seeds=None if arguments.seeds is None else seeds_option(arguments.seeds), frames=arguments.frames
    )
    if arguments.plan:
        print_plan(sweep, workers=arguments.workers, more_cores=arguments.cores, batch_seeds=arguments.batch_seeds)
        return DONE
    if arguments.cores is not None:
        raise InputError("--cores is for --plan; --workers says how many processes to start")
    if arguments.confirm_seeds is not None and arguments.confirm_seeds < 1:
        raise InputError("--confirm-seeds must be 1 or more")
    if arguments.confirm_seeds is not None and arguments.shard is not None:
        raise InputError(
            "--confirm-seeds needs all runs, which no shard has; give it without --shard when they are done"
        )
    folder = _folder(arguments, sweep)
    code = _run(arguments, sweep, folder)
    if code == DONE and arguments.confirm_seeds is not None:
        code = _run(arguments, _chosen(folder, arguments.confirm_seeds), folder / "confirm")
    return code


def _chosen(folder: Path, seeds: int) -> Sweep:
    from ipe.experiments.results import load_results
    from ipe.studies.learning.confirming import confirming_sweep

    return confirming_sweep(load_results(folder, progress=False), seeds)


def _run(arguments: Arguments, sweep: Sweep, folder: Path) -> int:
    from ipe.experiments.engine import run_sweep

    more: dict[str, Any] = {
        name: value
        for name in ("workers", "scheduler", "batch_seeds", "checkpoint_seconds", "hang_seconds")
        if (value := getattr(arguments, name)) is not None
    }
    more["shard"] = _shard(arguments.shard)
    runs = f"{len(sweep.settings)} settings by {len(sweep.seeds)} seeds, {count(sweep.frames)} frames"
    display = Display(f"{sweep.name}: {runs}, in {folder}")
    with hearing_signals() as heard, warnings.catch_warnings():
        warnings.showwarning = _say_warning
        try:
            result = run_sweep(sweep, folder, callback=display, **more)
        except KeyboardInterrupt as interrupt:
            display.close()
            how = (
                f"{interrupt}; go on with"
                if interrupt.args
                else "stopped at once; go on from the last checkpoints with"
            )
            _say(f"{how}: {_again(arguments)}")
            return 128 + (heard() or signal.SIGINT)
        finally:
            display.close()
    return _report(result, arguments)


def _report(result: SweepResult, arguments: Arguments) -> int:
    ends = result.seeds
    runs = f"{ends['done']} runs done, {ends['failed']} failed, {ends['diverged']} diverged"
    print(f"{result.done} of {result.jobs} jobs done: {runs}; in {result.folder}")
    for note in result.notes[:_MOST_NOTES]:
        _say(note)
    if len(result.notes) > _MOST_NOTES:
        _say(f"... and {len(result.notes) - _MOST_NOTES} more; `ipe status {result.folder}` has them all")
    if result.status != "done":
        missing = result.jobs - result.done
        _say(f"{missing} job{'s' * (missing != 1)} could not be done; try again with: {_again(arguments)}")
        return FAILED
    return DONE if ends["done"] else NOT_SOLVED


def _folder(arguments: Arguments, sweep: Sweep) -> Path:
    if arguments.out == "":
        raise InputError("--out is empty")
    if arguments.out is not None:
        return Path(arguments.out)
    name = "".join(c if c.isalnum() or c in "-._" else "-" for c in sweep.name).strip(".")
    return Path("runs") / (name or "sweep")


def _shard(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if found is None or not int(found[1]) < int(found[2]):
        raise InputError(f"--shard must be I/N with I from 0 to N - 1, as in 3/100; found {text!r}")
    return int(found[1]), int(found[2])


def _again(arguments: Arguments) -> str:
    """The same command, as a shell takes it."""
    words = ["ipe", "sweep", str(arguments.sweep)]
    for name in ("out", "workers", "scheduler", "shard", "seeds", "frames"):
        if (value := getattr(arguments, name)) is not None:
            words += [f"--{name}", str(value)]
    for name in ("batch_seeds", "checkpoint_seconds", "hang_seconds", "confirm_seeds"):
        if (value := getattr(arguments, name)) is not None:
            words += [f"--{name.replace('_', '-')}", f"{value:g}"]
    return shlex.join(words)


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"note: {message}")


def _say(sentence: str) -> None:
    if sys.stderr is not None:
        print(f"ipe sweep: {' '.join(sentence.split())}", file=sys.stderr, flush=True)
