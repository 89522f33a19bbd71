"""`ipe report`: the results of a sweep, or of anyone's runs, as one page, figures and tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from ipe.cli.display import Display, say_some
from ipe.cli.inputs import check_sweep, key_values
from ipe.cli.options import argument, flag, option, part
from ipe.cli.wording import plural
from ipe.errors import InputError


@dataclass(frozen=True)
class Reading:
    """How the files of other programs are read."""

    source: Literal["auto", "monitor", "evaluations", "tensorboard", "csv"] = option(
        "The files to read. `auto`: monitor.csv, else TensorBoard's files, else .csv; and evaluations.npz beside them.",
        "auto",
    )
    tag: str | None = option("The tag of the returns in TensorBoard's files.", None, metavar="TAG", shown="those known")
    columns: str | None = option(
        "The columns of a .csv file that have names of their own: step, return, run, setting, environment, as in "
        "step=t,return=G,setting=algo.",
        None,
        metavar="OURS=YOURS,...",
    )
    layout: str | None = option(
        "What the path of a run below PATH says, as in {environment}/{setting}/lr{lr}/s{seed}; any other name in "
        "braces is a hyperparameter.",
        None,
        metavar="PATTERN",
        shown="what the names look like",
    )
    environment: str | None = option("The environment, where neither files nor paths say it.", None, metavar="NAME")
    window: int | None = option(
        "How many records the curve is the mean of.", None, least=1, shown="20 episodes; means as they are recorded"
    )
    steps: int | None = option(
        "Compare over so many steps; a run that ends before keeps its last value.",
        None,
        least=1,
        shown="as many as all runs have",
    )


@dataclass(frozen=True)
class Arguments:
    """Write a report: report.html, which opens offline and can be mailed, the figures (PNG, PDF), the tables (CSV) and
    a paragraph on methods. Learning curves with 95% intervals and single runs, the ranking by area under the curve with
    confidence and tolerance intervals, comparisons with corrected p-values, sensitivity curves, settings and versions,
    and what is wrong with the files. PATH is a sweep of ipe, which may still be running; or a folder of runs by
    Stable-Baselines3 (monitor.csv, evaluations.npz), CleanRL or anyone who writes TensorBoard's files, or a .csv file.

    examples:
      ipe report sweeps/lunar-lander
      ipe report sweeps/lunar-lander --out out/report --confirm sweeps/lunar-lander-fresh
      ipe report logs/ --out page
      ipe report cleanrl/runs sb3/logs --out page --title "Two libraries"
      ipe report results.csv --columns step=t,return=G,setting=algo
    """

    paths: tuple[str, ...] = argument(
        "PATH", "A sweep's folder, as `ipe sweep` made it; or folders and files of other programs, which are compared."
    )
    out: str | None = option(
        "The folder that the files go to; it must be empty or not exist.",
        None,
        metavar="FOLDER",
        shown="PATH/report for a sweep, else report",
    )
    confirm: str | None = option(
        "A sweep of the chosen settings with other seeds. Comparisons are then made on its runs: by the runs that "
        "chose it, a setting looks better than it is.",
        None,
        metavar="DIR",
        shown="PATH/confirm, if it is there",
    )
    title: str | None = option("The title of the page.", None, shown="the sweep's name, or the paths")
    failed: Literal["keep", "worst"] = option(
        "What a run that failed, diverged or ended early scores: its last mean return to the end, or the worst return "
        "of all runs.",
        "keep",
    )
    seed: int = option("The seed of the bootstrap: the same seed gives the same files.", 0, least=0)
    overwrite: bool = flag("Replace the report's files in a folder that holds some.")
    reading: Reading = part(Reading, "For runs of other programs only.")  # noqa: RUF009


def run(arguments: Arguments) -> None:
    """Write the report and say what it found first."""
    from ipe.analysis.recorded.finding import is_store
    from ipe.base.atomic import check_folder

    if arguments.out is not None:  # before a large folder is searched
        check_folder(Path(arguments.out), arguments.overwrite)
    first = Path(arguments.paths[0])
    if len(arguments.paths) == 1 and (is_store(first) or not _has_files(first)):
        _refuse_others(arguments)
        _of_sweep(arguments, first)
    else:
        _of_others(arguments)


def _has_files(path: Path) -> bool:
    """Whether there are files of other programs at a path: then it is no sweep, whatever else it is."""
    from ipe.analysis.recorded.finding import find_files

    if not path.exists():
        return False
    found = find_files(path)
    return bool(found.monitors or found.evaluations or found.events or (found.tables and not found.stores))


def _refuse_others(arguments: Arguments) -> None:
    for name, value in vars(arguments.reading).items():
        if value not in (None, "auto"):
            raise InputError(f"--{name} is for runs of other programs; {arguments.paths[0]} is none")


def _of_sweep(arguments: Arguments, folder: Path) -> None:
    """Write the report of a sweep of ipe."""
    out = folder / "report" if arguments.out is None else Path(arguments.out)

    from ipe.analysis.halving import read_rungs, selections
    from ipe.analysis.halving_panels import halving_panels
    from ipe.analysis.provenance import run_cost, run_versions
    from ipe.base.atomic import check_folder
    from ipe.experiments.halving import begun_rungs, is_halving, open_halving
    from ipe.experiments.results import load_results
    from ipe.figures.report import write_report

    check_sweep(str(folder))
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
    _say_written(files)
    for chosen in more.get("selected", ()):
        words = "not known" if math.isnan(chosen.probability) else f"{chosen.probability:.2f}"
        print(f"chosen: {chosen.chosen}; the probability that it is the best: {words}")
    print("next: open the page in a browser; it needs no server")


def _of_others(arguments: Arguments) -> None:
    """Write the report of runs that other programs recorded."""
    if arguments.confirm is not None:
        raise InputError(
            "--confirm is for a sweep of ipe; runs of other programs say nothing of what was chosen by which"
        )
    out, others = Path("report" if arguments.out is None else arguments.out), arguments.reading

    from ipe.analysis.recorded import read_recorded
    from ipe.base.atomic import check_folder
    from ipe.figures.report import write_recorded_report

    check_folder(out, arguments.overwrite)
    given = {} if others.columns is None else key_values(others.columns)
    with Display("ipe report", keep=False) as display:

        def show(what: str, done: int, total: int) -> None:
            display.show([f"{what} ({done}/{total})" if total > 1 else what])

        show("reading the runs", 0, 1)
        recorded = read_recorded(
            *arguments.paths,
            source=others.source,
            tag=others.tag,
            columns={ours: str(theirs) for ours, theirs in given.items()},
            layout=others.layout,
            environment=others.environment,
        )
        files = write_recorded_report(
            recorded,
            out,
            title=arguments.title or ", ".join(arguments.paths),
            window=others.window,
            steps=others.steps,
            failed=arguments.failed,
            seed=arguments.seed,
            overwrite=arguments.overwrite,
            step=show,
        )
    say_some("ipe report: note", recorded.problems, ", which the page lists", most=5)
    for environment, kind in dict.fromkeys((run.environment, run.kind) for run in recorded.runs):
        runs = [run for run in recorded.runs if (run.environment, run.kind) == (environment, kind)]
        settings = dict.fromkeys(run.setting for run in runs)
        print(f"{environment}, {kind}: {plural(len(runs), 'run')} of {', '.join(settings)}.")
    _say_written(files)
    print("next: open the page in a browser; it needs no server")


def _say_written(files: list[Path]) -> None:
    print(f"wrote {files[0]}, and beside it {', '.join(file.name for file in files[1:])}")
