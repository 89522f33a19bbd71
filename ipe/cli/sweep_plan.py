"""What a sweep or a training will take, as a table on standard output."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ipe.base.columns import columns
from ipe.cli.display import Display
from ipe.cli.wording import count, duration, plural
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.experiments import Job, Sweep


def print_plan(
    sweep: Sweep,
    *,
    jobs: Sequence[Job] | None = None,
    workers: int | None = None,
    more_cores: int | None = None,
    batch_seeds: int | None = None,
) -> dict[int, float]:
    """Print what there is to do, and how long it takes; starts and writes nothing.

    Args:
        sweep: the sweep.
        jobs: its jobs. Default: for every setting its seeds in batches.
        workers: how many processes run on this machine. Default: one per core.
        more_cores: a number of cores to estimate the time for too.
        batch_seeds: the most seeds in a job.

    Returns:
        The seconds that the sweep takes, by the number of cores; this machine's first.
    """
    from ipe.base.memory import available_memory
    from ipe.experiments.grids import jobs as jobs_of
    from ipe.experiments.planning import plan_sweep

    numbers = _cores(workers, more_cores)
    here = numbers[0]
    with _measuring():
        plan = plan_sweep(sweep, jobs_of(sweep, batch_seeds) if jobs is None else jobs, numbers)
    rows = [
        ["settings", f"{plan.settings}"],
        ["runs", f"{plan.runs} ({plural(len(sweep.seeds), 'seed')} each), in {plural(plan.jobs, 'job')}"],
        ["frames", f"{count(plan.frames)}"],
        ["disk", f"about {_bytes(plan.result_bytes)} of results; checkpoints up to {_bytes(plan.work_bytes[here])}"],
    ]
    rows.append(["memory", _memory(plan.memory_bytes[here], min(here, plan.jobs), available_memory())])
    for n in numbers:
        where = "here, " if n == here else ""
        rows.append(["time", f"about {duration(plan.seconds[n])} {where}on {plural(n, 'core')}"])
    print(sweep.name)
    print("\n".join(columns(rows, left=[0, 1])))
    some = "" if plan.measured == plan.shapes else f" of {plan.shapes}, the others taken to be like the nearest"
    print(f"measured for some seconds on this machine: {plural(plan.measured, 'program')}{some}")
    return {n: plan.seconds[n] for n in numbers}


def print_halving_plan(
    sweep: Sweep, *, workers: int | None = None, more_cores: int | None = None, batch_seeds: int | None = None
) -> dict[int, float]:
    """Print the rungs of a sweep by halving: settings, runs, frames, and how long each takes; arguments as for
    `print_plan`.

    Returns:
        The seconds that all rungs take, by the number of cores; this machine's first.
    """
    from ipe.experiments.halving_plan import plan_halving

    numbers = _cores(workers, more_cores)
    with _measuring():
        plans = plan_halving(sweep, numbers, batch_seeds)
    head = [
        "rung",
        "settings",
        "runs each",
        "frames each",
        "frames to train",
        *(f"on {plural(n, 'core')}" for n in numbers),
    ]
    rows = [head]
    for i, plan in enumerate(plans):
        counts = [str(i), str(plan.settings), str(plan.runs), count(plan.run_frames), count(plan.frames)]
        rows.append([*counts, *(duration(plan.seconds[n]) for n in numbers)])
    total = [sum(plan.seconds[n] for plan in plans) for n in numbers]
    rows.append(["all", "", "", "", count(sum(plan.frames for plan in plans)), *map(duration, total)])
    print(f"{sweep.name}, by halving")
    print("\n".join(columns(rows, left=[0])))
    results, kept = (sum(plan.result_bytes for plan in plans), max(plan.checkpoint_bytes for plan in plans))
    print(f"disk: about {_bytes(results)} of results; checkpoints up to {_bytes(kept)}")
    print(f"the whole grid would be {count(sweep.frames)} frames")
    return dict(zip(numbers, total, strict=True))


def _cores(workers: int | None, more: int | None) -> list[int]:
    """The numbers of cores to plan for: this machine's, and another."""
    from ipe.base.cores import available_cores

    here = workers or available_cores()
    numbers = [here] if more is None else [here, more]
    if min(numbers) < 1:
        raise InputError(f"--cores must be 1 or more, found {min(numbers)}")
    return list(dict.fromkeys(numbers))


@contextlib.contextmanager
def _measuring() -> Iterator[None]:
    with Display("ipe sweep", keep=False) as display:
        display.begin("measuring this machine, for some seconds")
        if not display.live:
            display.note("measuring this machine, for some seconds")
        yield


def _memory(taken: int, processes: int, available: int | None) -> str:
    """What the processes take together, beside what there is."""
    text = f"about {_bytes(taken)} in {processes} process{'es' * (processes > 1)}"
    if available is None:
        return text
    return f"{text}, of {_bytes(available)} available here" + (": TOO LITTLE" if taken > available else "")


def _bytes(number: float) -> str:
    return f"{count(number)}B" if number >= 1000 else "1kB"
