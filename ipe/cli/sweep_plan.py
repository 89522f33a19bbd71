"""How long a sweep will take, as a table on standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ipe.base.columns import columns
from ipe.cli.display import Display
from ipe.cli.wording import count, duration, plural
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.experiments import Sweep


def print_plan(
    sweep: Sweep, *, workers: int | None = None, more_cores: int | None = None, batch_seeds: int | None = None
) -> None:
    """Print what there is to do, and how long it takes; starts and writes nothing.

    Args:
        sweep: the sweep.
        workers: how many processes run on this machine. Default: one per core.
        more_cores: a number of cores to estimate the time for too.
        batch_seeds: the most seeds in a job.
    """
    from ipe.base.cores import available_cores
    from ipe.experiments.grids import jobs
    from ipe.experiments.planning import plan_sweep

    here = workers or available_cores()
    numbers = [here] if more_cores is None else [here, more_cores]
    if min(numbers) < 1:
        raise InputError(f"--cores must be 1 or more, found {min(numbers)}")
    with Display("ipe sweep", keep=False) as display:
        display.begin("measuring this machine, for some seconds")
        if not display.live:
            display.note("measuring this machine, for some seconds")
        plan = plan_sweep(sweep, jobs(sweep, batch_seeds), numbers)
    rows = [
        ["settings", f"{plan.settings}"],
        ["runs", f"{plan.runs} ({len(sweep.seeds)} seeds each), in {plan.jobs} jobs"],
        ["frames", f"{count(plan.frames)}"],
        ["disk", f"about {_bytes(plan.result_bytes)} of results; checkpoints up to {_bytes(plan.work_bytes[here])}"],
    ]
    for n in dict.fromkeys(numbers):
        where = "here, " if n == here else ""
        rows.append(["time", f"about {duration(plan.seconds[n])} {where}on {plural(n, 'core')}"])
    print(sweep.name)
    print("\n".join(columns(rows, left=[0, 1])))
    some = "" if plan.measured == plan.shapes else f" of {plan.shapes}, the others taken to be like the nearest"
    print(f"measured for some seconds on this machine: {plural(plan.measured, 'program')}{some}")


def _bytes(number: float) -> str:
    return f"{count(number)}B" if number >= 1000 else "1kB"
