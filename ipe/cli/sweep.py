"""`ipe sweep`: a grid of settings by seeds, on this machine, on a cluster, or as a shard of a job array."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.base.words import one_of
from ipe.cli.display import Display, say, say_some
from ipe.cli.interrupt import stoppable
from ipe.cli.options import argument, flag, option
from ipe.cli.program import DONE, FAILED, NOT_SOLVED
from ipe.cli.seeds import seeds_option
from ipe.cli.sweep_plan import print_halving_plan, print_plan
from ipe.cli.sweep_progress import show_sweep, sweep_title
from ipe.cli.wording import plural
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.experiments import Sweep, SweepResult
    from ipe.experiments.ledger import SweepProgress


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
      ipe sweep grid.toml --out runs/grid --halving --confirm-seeds 30
      ipe sweep grid.toml --out runs/grid --sampler optuna --trials 30
      ipe sweep grid.toml --out /shared/grid --scheduler tcp://10.0.0.1:8786
      ipe sweep grid.toml --out /shared/grid --shard 3/100
    """

    sweep: str | None = argument("SWEEP", "A TOML file, or the name of a sweep that comes with ipe.", None)
    resume: str | None = option("Go on with the sweep in this folder, without its file.", None, metavar="FOLDER")
    out: str | None = option(
        "The folder of the results. If the folder holds results of this sweep, the sweep goes on from them; more seeds "
        "or settings extend them.",
        None,
        metavar="FOLDER",
        shown="runs/NAME",
    )
    plan: bool = flag(
        "Only say what there is to do, how much disk and memory it takes and how long, as measured on this machine for "
        "some seconds. Starts and writes nothing."
    )
    halving: bool = flag(
        "Choose by successive halving: all settings get few runs of few frames, the better half of each case goes on "
        "with more of both, and so on, in OUT/rung-0, OUT/rung-1, ...; the file's table [halving] says how many."
    )
    sampler: str | None = option(
        "optuna: instead of the whole grid, try the settings of each case that Optuna proposes, four at a time, by the "
        "scores of those before, in the same store. Needs the extra optuna.",
        None,
        metavar="NAME",
    )
    trials: int | None = option("With --sampler: how many settings of each case to try.", None, shown="20")
    cores: int | None = option("With --plan: also say how long it takes on so many cores of this kind.", None)
    workers: int | None = option("How many processes to run on this machine.", None, shown="one per core")
    scheduler: str | None = option(
        "The address of a running Dask scheduler, whose workers see the folder.", None, metavar="ADDRESS"
    )
    shard: str | None = option(
        "This process does the jobs I, I + N, I + 2N, ..., with I from 0 to N - 1, one after the other.",
        None,
        metavar="I/N",
    )
    seeds: str | None = option(
        "How many seeds to train, from 0 on; or which, with commas: 3,5,8.", None, metavar="SEEDS", shown="the file's"
    )
    frames: int | None = option("How many frames each run gets.", None, shown="the file's")
    batch_seeds: int | None = option(
        "The most seeds of a setting that a process trains at once.", None, shown="as many as the cache serves best"
    )
    evaluate_every: int | None = option(
        "After every so many frames of a run, play greedy episodes with it; the training is the same with and without.",
        None,
        shown="the file's [evaluation], else never",
        least=1,
    )
    evaluate_episodes: int | None = option(
        "How many greedy episodes each evaluation has, with --evaluate-every.", None, shown="10", least=1
    )
    keep_networks: bool = flag("Keep the networks of every run of a new sweep, to evaluate, watch or audit.")
    checkpoint_seconds: float | None = option("The seconds between two checkpoints of a job.", None, shown="120")
    hang_seconds: float | None = option(
        "How many seconds an environment may take for a step before its seed is given up.", None, shown="300"
    )
    confirm_seeds: int | None = option(
        "When all is done, train each case's best setting again with so many fresh seeds, in OUT/confirm; `ipe report` "
        "then compares those runs. By the runs that chose it, a setting looks better than it is.",
        None,
        shown="0",
    )


def run(arguments: Arguments) -> int:
    """Run the sweep, show how it goes, and say what came out."""
    from ipe.deep.evaluating import evaluating_from
    from ipe.experiments.grids import changed, read_sweep, shipped_sweeps

    if arguments.resume is not None:
        return _resume(arguments)
    if arguments.sweep is None:
        raise InputError(f"SWEEP is missing, a TOML file, or one of {', '.join(shipped_sweeps())}")
    if any((Path(arguments.sweep) / name).exists() for name in ("sweep.json", "halving.json")):
        again = f"ipe sweep --resume {shlex.quote(arguments.sweep)}"
        raise InputError(f"{arguments.sweep} is the folder of a sweep or a run; go on with it: {again}")
    sweep = read_sweep(arguments.sweep)
    sweep = changed(
        sweep,
        seeds=None if arguments.seeds is None else seeds_option(arguments.seeds),
        frames=arguments.frames,
        evaluating=evaluating_from(arguments.evaluate_every, arguments.evaluate_episodes),
    )
    _check_sampler(arguments)
    if arguments.plan:
        printed = print_halving_plan if arguments.halving else print_plan
        printed(sweep, workers=arguments.workers, more_cores=arguments.cores, batch_seeds=arguments.batch_seeds)
        print("next: the same command without --plan starts the sweep, or goes on with it")
        return DONE
    if arguments.cores is not None:
        raise InputError("--cores is for --plan; --workers says how many processes to start")
    if arguments.confirm_seeds is not None and arguments.confirm_seeds < 1:
        raise InputError("--confirm-seeds must be 1 or more")
    if arguments.confirm_seeds is not None and arguments.shard is not None:
        raise InputError(
            "--confirm-seeds needs all runs, which no shard has; give it without --shard when they are done"
        )
    return _run_all(arguments, sweep, _folder(arguments, sweep))


def _check_sampler(arguments: Arguments) -> None:
    """Refuse options that a sampler does not go with."""
    from ipe.studies.learning.searching import SAMPLERS

    if arguments.sampler is None:
        if arguments.trials is not None:
            raise InputError("--trials is for --sampler; without it the whole grid is run")
        return
    one_of(arguments.sampler, SAMPLERS, "--sampler")
    if arguments.halving:
        raise InputError("--halving and --sampler are two ways to choose; give one of them")
    if arguments.plan:
        raise InputError(
            "--plan does not know what a sampler will propose; plan the grid without --sampler, and take the share of "
            "its settings that --trials is"
        )
    if arguments.shard is not None:
        raise InputError("--sampler waits for the runs before, which no shard has; start the command several times")


def _run_all(arguments: Arguments, sweep: Sweep, folder: Path) -> int:
    """Run a sweep, or its rungs, and then the fresh runs of the chosen settings."""
    if arguments.halving and arguments.shard is not None:
        raise InputError("--halving waits for all runs of a rung, which no shard has; start the command several times")
    code, done = (
        _run_halving(arguments, sweep, folder)
        if arguments.halving
        else (_run(arguments, sweep, folder, searches=arguments.sampler is not None), folder)
    )
    if code == DONE and arguments.confirm_seeds is not None:
        code = _run(arguments, _chosen(done, arguments.confirm_seeds), folder / "confirm")
    return code


def _resume(arguments: Arguments) -> int:
    """Go on with the sweep in a folder."""
    from ipe.experiments.halving import is_halving, open_halving
    from ipe.experiments.store import open_store

    kept = ("sweep", "out", "seeds", "frames", "batch_seeds", "evaluate_every", "evaluate_episodes")
    for name in (*kept, "confirm_seeds", "cores", "sampler", "trials"):
        if getattr(arguments, name) is not None:
            shown = "SWEEP" if name == "sweep" else f"--{name.replace('_', '-')}"
            raise InputError(f"{shown} has no effect with --resume: a sweep keeps its settings and seeds")
    if is_halving(str(arguments.resume)):
        sweep, halving = open_halving(str(arguments.resume))
        again = replace(arguments, halving=True)
        return _run_all(again, replace(sweep, halving=halving.plain()), Path(str(arguments.resume)))
    store = open_store(str(arguments.resume))
    return _run(arguments, store.sweep, store.folder)


def _chosen(folder: Path, seeds: int) -> Sweep:
    from ipe.experiments.results import load_results
    from ipe.studies.learning.confirming import confirming_sweep

    return confirming_sweep(load_results(folder, progress=False), seeds)


def _engine(arguments: Arguments) -> dict[str, Any]:
    """The options of the engine."""
    more: dict[str, Any] = {
        name: value
        for name in ("workers", "scheduler", "batch_seeds", "checkpoint_seconds", "hang_seconds")
        if (value := getattr(arguments, name)) is not None
    }
    return more | {"keep_networks": arguments.keep_networks}


def _run_halving(arguments: Arguments, sweep: Sweep, folder: Path) -> tuple[int, Path]:
    """Run the rungs of a sweep; returns the exit code, and the folder of the last rung that was begun."""
    from ipe.studies.learning.halving import run_halving

    with Display("ipe sweep") as display, stoppable(lambda interrupt: _stopped(interrupt, arguments)):
        begun: list[int] = []

        def show(rung: int, part: Sweep, progress: SweepProgress) -> None:
            if rung not in begun:
                begun.append(rung)
                display.begin(f"{sweep_title(part)}, in {folder}")
            show_sweep(display, progress)

        result = run_halving(sweep, folder, callback=show, **_engine(arguments))
    return _report(result, arguments, folder), result.folder


def _run(arguments: Arguments, sweep: Sweep, folder: Path, *, searches: bool = False) -> int:
    from ipe.experiments.engine import run_sweep
    from ipe.studies.learning.searching import TRIALS, run_search

    more = _engine(arguments) | {"shard": _shard(arguments.shard)}
    with Display("ipe sweep") as display, stoppable(lambda interrupt: _stopped(interrupt, arguments)):
        of = f"{arguments.trials or TRIALS} settings of each case at most, of " if searches else ""
        display.begin(f"{of}{sweep_title(sweep)}, in {folder}")
        runner = partial(run_search, trials=arguments.trials) if searches else run_sweep
        result = runner(sweep, folder, callback=lambda progress: show_sweep(display, progress), **more)
    return _report(result, arguments, result.folder)


def _stopped(interrupt: KeyboardInterrupt, arguments: Arguments) -> str:
    how = f"{interrupt}; go on with" if interrupt.args else "stopped at once; go on from the last checkpoints with"
    return f"{how}: {_again(arguments)}"


def _report(result: SweepResult, arguments: Arguments, folder: Path) -> int:
    ends = result.seeds
    runs = f"{ends['done']} runs done, {ends['failed']} failed, {ends['diverged']} diverged"
    print(f"{result.done} of {result.jobs} jobs done: {runs}; in {result.folder}")
    say_some("ipe sweep", result.notes, f"; `ipe status {result.folder}` has them all")
    if result.status != "done":
        say(
            "ipe sweep",
            f"{plural(result.jobs - result.done, 'job')} could not be done; try again with: {_again(arguments)}",
        )
        return FAILED
    if arguments.shard is None:
        print(f"next: ipe report {shlex.quote(str(folder))}")
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
    words = ["ipe", "sweep", *([arguments.sweep] if arguments.sweep is not None else [])]
    for field in fields(arguments):
        value = getattr(arguments, field.name)
        if isinstance(field.default, bool) and field.name != "plan":
            words += [f"--{field.name.replace('_', '-')}"] * value
        elif field.name not in ("sweep", "plan", "cores") and value is not None:
            words += [f"--{field.name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value)]
    return shlex.join(words)
