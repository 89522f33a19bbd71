"""`ipe report`: the results of a sweep as one page, figures and tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ipe.cli.display import Display, say_some
from ipe.cli.inputs import check_sweep
from ipe.cli.options import argument, flag, option
from ipe.cli.wording import plural


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
    seed: int = option("The seed of the bootstrap: the same seed gives the same files.", 0, least=0)
    overwrite: bool = flag("Replace the report's files in a folder that holds some.")


def run(arguments: Arguments) -> None:
    """Write the report and say what it found first."""
    folder = Path(arguments.folder)
    out = folder / "report" if arguments.out is None else Path(arguments.out)

    from ipe.analysis.halving import read_rungs, selections
    from ipe.analysis.halving_panels import halving_panels
    from ipe.analysis.provenance import run_cost, run_versions
    from ipe.base.atomic import check_folder
    from ipe.experiments.halving import begun_rungs, is_halving, open_halving
    from ipe.experiments.results import load_results
    from ipe.figures.report import write_report

    check_sweep(arguments.folder)
    check_folder(out, arguments.overwrite)
    with Display("ipe report", keep=False) as display:

        def show(what: str, done: int, total: int) -> None:
            display.show([f"{what} ({done}/{total})" if total > 1 else what])

        show("reading the runs", 0, 1)
        title, more = arguments.title, dict[str, Any]()
        if is_halving(folder):
            rungs = read_rungs(folder)
            results = rungs.last
            title = open_halving(folder)[0].name if title is None else title
            more = {"panels": halving_panels(rungs), "selected": selections(rungs, seed=arguments.seed)}
        else:
            results = load_results(folder)
        stores = begun_rungs(folder)
        fresh = folder / "confirm" if arguments.confirm is None else Path(arguments.confirm)
        none = arguments.confirm is None and not (fresh / "sweep.json").is_file()
        files = write_report(
            results,
            out,
            title=title,
            made_with=run_versions(*stores),
            cost=run_cost(*stores, *(() if none else (fresh,))),
            confirm=None if none else load_results(fresh),
            failed=arguments.failed,
            seed=arguments.seed,
            overwrite=arguments.overwrite,
            step=show,
            **more,
        )
    say_some("ipe report: note", results.problems, ", which the page lists", most=5)
    print(f"{plural(len(results.outcomes), 'run')} of {plural(len(results.sweep.settings), 'setting')}.")
    print(f"wrote {files[0]}, and beside it {', '.join(file.name for file in files[1:])}")
    for chosen in more.get("selected", ()):
        words = "not known" if math.isnan(chosen.probability) else f"{chosen.probability:.2f}"
        print(f"chosen: {chosen.chosen}; the probability that it is the best: {words}")
    print("next: open the page in a browser; it needs no server")
