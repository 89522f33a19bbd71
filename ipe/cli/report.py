"""`ipe report`: the results of a sweep as one page, figures and tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from ipe.cli.parsing import Flag, Text, WholeNumber
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

    folder: Annotated[Positional[str], arg(metavar="DIR")]
    """The sweep's folder, as `ipe sweep` made it."""
    out: Annotated[Text, arg(metavar="FOLDER", help_behavior_hint="(default: DIR/report)")] = None
    """Where the files go; the folder must be empty or not exist."""
    confirm: Annotated[Text, arg(metavar="DIR", help_behavior_hint="(default: DIR/confirm, if it is there)")] = None
    """A sweep of the chosen settings with other seeds. Comparisons then rest on its runs: a setting that is reported on
    the runs it was chosen by looks better than it is."""
    title: Annotated[Text, arg(help_behavior_hint="(default: the sweep's name)")] = None
    """Of the page."""
    failed: Annotated[Literal["keep", "worst"], arg(help_behavior_hint="(default: keep)")] = "keep"
    """What a run that failed or diverged scores: keep its last mean return to the end, or the worst of all runs."""
    seed: Annotated[WholeNumber, arg(help_behavior_hint="(default: 0)")] = None
    """Of the bootstrap: the same one gives the same files."""
    overwrite: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Replace the report's files in a folder that holds some."""


def run(arguments: Arguments) -> None:
    """Write the report and say what it found first."""
    seed = 0 if arguments.seed is None else arguments.seed
    if seed < 0:
        raise InputError("--seed must be at least 0")
    for name in ("out", "confirm"):
        if getattr(arguments, name) == "":
            raise InputError(f"--{name} is empty")
    folder = Path(arguments.folder)
    out = folder / "report" if arguments.out is None else Path(arguments.out)

    from ipe.base.atomic import check_folder
    from ipe.experiments.results import load_results
    from ipe.figures.report import run_versions, write_report

    check_folder(out, arguments.overwrite)
    progress = _Progress()
    try:
        progress("reading the runs", 0, 1)
        results = load_results(folder)
        fresh = folder / "confirm" if arguments.confirm is None else Path(arguments.confirm)
        beside = arguments.confirm is None and not (fresh / "sweep.json").is_file()
        confirm = None if beside else load_results(fresh)
        files = write_report(
            results,
            out,
            title=arguments.title,
            made_with=run_versions(folder),
            confirm=confirm,
            failed=arguments.failed,
            seed=seed,
            overwrite=arguments.overwrite,
            step=progress,
        )
    finally:
        progress.close()
    for problem in results.problems[:5]:
        print(f"note: {problem}", file=sys.stderr)
    if len(results.problems) > 5:
        print(f"note: and {len(results.problems) - 5} more, which the page lists", file=sys.stderr)
    print(f"{len(results.outcomes)} runs of {len(results.sweep.settings)} settings.")
    print(f"wrote {files[0]}, and beside it {', '.join(file.name for file in files[1:])}")


class _Progress:
    """A line on a terminal's standard error that says what is being done; nothing elsewhere."""

    def __init__(self) -> None:
        self.live = sys.stderr is not None and sys.stderr.isatty()

    def __call__(self, what: str, done: int, total: int) -> None:
        if self.live:
            amount = f" ({done}/{total})" if total > 1 else ""
            print(f"\r\033[K{what}{amount}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal with an empty line."""
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
