"""`ipe report`: the results of a sweep as one page, figures and tables."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ipe.cli.display import Display, say_some
from ipe.cli.inputs import check_sweep
from ipe.cli.options import argument, flag, option
from ipe.errors import InputError


@dataclass(frozen=True)
class Arguments:
    """Write the report of a sweep: report.html, which opens offline and can be mailed, the figures (PNG, PDF) and the
    tables (CSV). Learning curves with 95% intervals and single runs, epsilon and entropy, the ranking by area under
    the curve, comparisons, sensitivity curves, settings and versions, and what is wrong with the store. A sweep that
    is still running may be reported: on what it has.

    examples:
      ipe report sweeps/lunar-lander
      ipe report sweeps/lunar-lander --out out/report --confirm sweeps/lunar-lander-fresh
    """

    folder: str = argument("DIR", "The sweep's folder, as `ipe sweep` made it.")
    out: str | None = option(
        "The folder that the files go to; it must be empty or not exist.", None, metavar="FOLDER", shown="DIR/report"
    )
    confirm: str | None = option(
        "A sweep of the chosen settings with other seeds. Comparisons are then made on its runs: by the runs that "
        "chose it, a setting looks better than it is.",
        None,
        metavar="DIR",
        shown="DIR/confirm, if it is there",
    )
    title: str | None = option("The title of the page.", None, shown="the sweep's name")
    failed: Literal["keep", "worst"] = option(
        "What a run that failed or diverged scores: its last mean return to the end, or the worst return of all runs.",
        "keep",
    )
    seed: int = option("The seed of the bootstrap: the same seed gives the same files.", 0)
    overwrite: bool = flag("Replace the report's files in a folder that holds some.")


def run(arguments: Arguments) -> None:
    """Write the report and say what it found first."""
    if arguments.seed < 0:
        raise InputError("--seed must be at least 0")
    for name in ("out", "confirm"):
        if getattr(arguments, name) == "":
            raise InputError(f"--{name} is empty")
    folder = Path(arguments.folder)
    out = folder / "report" if arguments.out is None else Path(arguments.out)

    from ipe.base.atomic import check_folder
    from ipe.experiments.results import load_results
    from ipe.figures.report import run_versions, write_report

    check_sweep(arguments.folder)
    check_folder(out, arguments.overwrite)
    with Display("ipe report", keep=False) as display:

        def show(what: str, done: int, total: int) -> None:
            display.show([f"{what} ({done}/{total})" if total > 1 else what])

        show("reading the runs", 0, 1)
        results = load_results(folder)
        fresh = folder / "confirm" if arguments.confirm is None else Path(arguments.confirm)
        none = arguments.confirm is None and not (fresh / "sweep.json").is_file()
        files = write_report(
            results,
            out,
            title=arguments.title,
            made_with=run_versions(folder),
            confirm=None if none else load_results(fresh),
            failed=arguments.failed,
            seed=arguments.seed,
            overwrite=arguments.overwrite,
            step=show,
        )
    say_some("ipe report: note", results.problems, ", which the page lists", most=5)
    print(f"{len(results.outcomes)} runs of {len(results.sweep.settings)} settings.")
    print(f"wrote {files[0]}, and beside it {', '.join(file.name for file in files[1:])}")
    print("next: open the page in a browser; it needs no server")
