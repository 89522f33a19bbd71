"""Running the study of batches, or going on with it, and writing its report.

::

    OUT/cart-pole/           what was learned from each data set: `ipe.studies.batches.cells`; likewise the other tasks
    OUT/report/report.md     tables, figure and claims on one page
    OUT/claims.json          the claims as data
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ipe.analysis import Claim, claims_markdown, claims_records
from ipe.base.atomic import write_files
from ipe.base.words import refusing
from ipe.errors import InputError
from ipe.figures.style import figure_bytes
from ipe.studies.batches.cells import Cell, file_of, read_cell, run_task
from ipe.studies.batches.drawing import LABELS, draw, table
from ipe.studies.batches.judging import judge
from ipe.studies.batches.settings import TASKS, TRAININGS, Task

TITLE = "Learning from a fixed batch"


@dataclass(frozen=True)
class Report:
    """What the study has come to.

    Attributes:
        results: what was learned, by task.
        claims: the claims with their verdicts.
        page: the page that was written.
    """

    results: dict[str, list[Cell]]
    claims: list[Claim]
    page: Path


def run_batches(
    out: Path,
    chosen: Sequence[Task],
    *,
    processes: int | None = None,
    progress: Callable[[str, str, int, int], None] | None = None,
) -> None:
    """Run the tasks; what is in the folder already is kept.

    Args:
        out: the study's folder.
        chosen: the tasks (`ipe.studies.batches.tasks`).
        processes: the number of processes. Default: one per core.
        progress: a function that is called with the task, what begins in it, how many trainings are done, and how many
            there are.

    Raises:
        InputError: the folder has results of another declaration.
        KeyboardInterrupt: after Ctrl-C; what is done is kept, and the training in progress has a checkpoint.
    """
    for task in chosen:
        folder = out / task.name
        with refusing(f"out: cannot make the folder {folder}"):
            folder.mkdir(parents=True, exist_ok=True)

        def tell(what: str, done: int, total: int, name: str = task.name) -> None:
            if progress is not None:
                progress(name, what, done, total)

        run_task(folder, task, processes, tell)


def read_batches(out: Path) -> dict[str, list[Cell]]:
    """What was learned, by task, verified.

    Raises:
        InputError: there are no results, or a file is damaged.
    """
    found: dict[str, list[Cell]] = {}
    for task in TASKS:
        files = [file_of(out / task.name, quality, training.name) for quality in task.sources for training in TRAININGS]
        if cells := [read_cell(file) for file in files if file.is_file()]:
            found[task.name] = cells
    if not found:
        raise InputError(f"{out}: there are no results of this study yet")
    return found


def report_batches(out: Path) -> Report:
    """Judge the claims by what is in the folder, and write the page."""
    results = read_batches(out)
    claims = {task: judge(task, cells) for task, cells in results.items()}
    every = [claim for part in claims.values() for claim in part]
    lines = [f"# {TITLE}", "", "![Mean return of every way of acting, by quality of the data](batches.png)", ""]
    for task, cells in results.items():
        runs = f"{cells[0].seeds} runs; mean return, and a 95% bootstrap interval over runs.{_fewer(cells)}"
        truth = "" if cells[0].best is None else f" Returns are exact; the optimum is {cells[0].best:.3f}."
        lines += [f"## {LABELS[task]}", "", runs + truth, "", table(cells), claims_markdown(claims[task])]
    figure = draw(results)
    files = {f"batches{suffix}": figure_bytes(figure, suffix) for suffix in (".png", ".pdf")}
    write_files(out / "report", {**files, "report.md": "\n".join(lines).encode()})
    text = f"{json.dumps(claims_records(every), indent=1, ensure_ascii=False)}\n"
    write_files(out, {"claims.json": text.encode()})
    return Report(results, every, out / "report" / "report.md")


def _fewer(cells: Sequence[Cell]) -> str:
    """Which runs have no return, as sentences behind another; empty if all have one."""
    lost = {
        f"{cell.quality} data, {cell.training}": cell.seeds - len(next(iter(cell.returns.values()))) for cell in cells
    }
    told = "; ".join(f"{count} of {name}" for name, count in lost.items() if count)
    return f" Runs that diverged and are left out: {told}." if told else ""
