"""`ipe reproduce batches`: its tasks one after the other, each going on with what is in the folder."""

from __future__ import annotations

import time
from typing import Any

from ipe.cli.display import Display
from ipe.cli.interrupt import stoppable
from ipe.cli.next_steps import next_line
from ipe.cli.program import DONE
from ipe.cli.verdicts import print_claims
from ipe.errors import InputError


def run(study: Any) -> int:
    """Run the parts that a study's options name; returns the exit code."""
    from ipe.studies.batches import report_batches, run_batches, tasks
    from ipe.studies.batches.drawing import table

    chosen = tasks(study.parts, study.runs, study.frames)
    if study.report and study.parts:
        raise InputError("--only has no effect with --report, which reports on all that is in the folder")
    if study.plan:
        return _plan(chosen)
    if not study.report:
        start, names = time.perf_counter(), [task.name for task in chosen]
        said = "stopped; what is done is kept, and the same command goes on"
        with stoppable(lambda _: said), Display("ipe reproduce", keep=False) as display:

            def show(task: str, what: str, done: int, total: int) -> None:
                place = f"[{names.index(task) + 1}/{len(names)}] {task}: {what} ({done}/{total})"
                display.show([f"{place}   {time.perf_counter() - start:.0f} s"], place, about=task)

            run_batches(study.folder, chosen, processes=study.workers, progress=show)
    report = report_batches(study.folder)
    for task, cells in report.results.items():
        print(f"{task}\n{table(cells)}")
    print_claims(report.claims)
    print(f"wrote {report.page}")
    print(next_line(f"open {report.page}, which shows tables, figure and claims on one page"))
    return DONE


def _plan(chosen: Any) -> int:
    from ipe.studies.batches.settings import TRAININGS

    for task in chosen:
        updates = len(task.sources) * len(TRAININGS) * task.seeds * task.updates
        frames = sum(source.frames for source in task.sources.values())
        print(
            f"{task.name}: {len(task.sources)} data sets of {task.transitions} transitions, after {frames} frames of "
            f"training; {len(TRAININGS)} trainings on each, of {task.seeds} seeds and {task.updates} updates: "
            f"{updates / 1e6:.1f} million updates"
        )
    print(next_line("the same command without --plan starts the study, or goes on with it"))
    return DONE
