"""Running the study of updates: a sweep per part, one store each, then claims, figures and a page per part.

::

    OUT/cart-pole/                  a store for each part, as `ipe sweep` makes them
    OUT/lunar-lander/
    OUT/cart-pole-lambda/
    OUT/report/cart-pole/           report.html, figures, tables; likewise for the other parts
    OUT/report/updates.png, .pdf    every update over its step sizes, a row per environment
    OUT/claims.json

A call on the same folder goes on with a study that was stopped. Reports are written anew from the runs that are there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ipe.analysis import Claim, claims_records
from ipe.analysis.provenance import run_cost, run_versions
from ipe.base.atomic import write_files
from ipe.errors import InputError
from ipe.experiments.declared import Sweep
from ipe.experiments.engine import run_sweep
from ipe.experiments.grids import changed, read_sweep
from ipe.experiments.ledger import SweepProgress
from ipe.experiments.results import Results, load_results
from ipe.figures.report import write_report
from ipe.figures.report.write import Picture
from ipe.figures.style import figure_bytes
from ipe.studies.learning.run import StudyResult
from ipe.studies.parts import check_only
from ipe.studies.updates.drawing import draw_lambda, draw_updates
from ipe.studies.updates.judging import judge_lambda, judge_updates

LAMBDA = "cart-pole-lambda"
PARTS: dict[str, str] = {"cart-pole": "cart-pole-updates", "lunar-lander": "lunar-lander-updates", LAMBDA: LAMBDA}
"""The parts, with the shipped sweep of each."""
TITLES = {
    "cart-pole": "CartPole: every policy update",
    "lunar-lander": "LunarLander: every policy update",
    LAMBDA: "CartPole: λ of the value update's returns",
}
_CAPTION = (
    "The mean area under the learning curve, with its standard error over runs, at each policy step size; in grey the "
    "paper's update."
)


@dataclass(frozen=True)
class Report:
    """What the study has come to.

    Attributes:
        claims: the claims with their verdicts, by part.
        pages: the pages that were written.
    """

    claims: dict[str, list[Claim]]
    pages: list[Path]


def sweeps(only: Sequence[str] | None = None, runs: int | None = None, frames: int | None = None) -> dict[str, Sweep]:
    """The sweeps of the parts, with the declared or other numbers of runs and frames."""
    return {name: changed(read_sweep(PARTS[name]), seeds=runs, frames=frames) for name in check_only(PARTS, only)}


def run_updates(
    out: Path,
    *,
    only: Sequence[str] | None = None,
    runs: int | None = None,
    frames: int | None = None,
    workers: int | None = None,
    callback: Callable[[str, Sweep, SweepProgress], bool | None] | None = None,
) -> StudyResult:
    """Run the sweeps of the parts, or go on with them, and write the report.

    Args:
        out: the study's folder.
        only: the names of the parts to run. Default: all.
        runs: the number of runs per setting. Default: as declared.
        frames: the number of frames per run. Default: as declared.
        workers: the number of processes. Default: one per core.
        callback: a function that is called with the part, its sweep and its progress about once a second; if it returns
            True, the study stops with checkpoints.

    Returns:
        The outcome of the study.

    Raises:
        KeyboardInterrupt: after Ctrl-C, when the checkpoints are written.
    """
    status, notes = "done", list[str]()
    for name, sweep in sweeps(only, runs, frames).items():

        def told(progress: SweepProgress, name: str = name, sweep: Sweep = sweep) -> bool | None:
            return None if callback is None else callback(name, sweep, progress)

        result = run_sweep(sweep, out / name, workers=workers, callback=told)
        notes += result.notes
        if result.status == "stopped":
            return StudyResult(out, "stopped", [], [], notes)
        status = status if result.status == "done" else result.status
    report = report_updates(out)
    claims = [claim for part in report.claims.values() for claim in part]
    return StudyResult(out, status, claims, report.pages, notes)


def report_updates(out: Path) -> Report:
    """Judge the claims by the runs in the folder, and write the pages.

    Raises:
        InputError: there are no runs in the folder.
    """
    stores = {name: out / name for name in PARTS if (out / name / "sweep.json").is_file()}
    have = {name: load_results(store) for name, store in stores.items()}
    have = {name: results for name, results in have.items() if results.outcomes}
    if not have:
        raise InputError(f"{out}: there are no runs of this study yet")
    claims = {name: _judged(name, results) for name, results in have.items()}
    pages = [_page(out, name, results, claims[name]) for name, results in have.items()]
    every = [claim for part in claims.values() for claim in part]
    text = f"{json.dumps(claims_records(every), indent=1, ensure_ascii=False)}\n"
    write_files(out, {"claims.json": text.encode()})
    if updates := {TITLES[name].partition(":")[0]: have[name] for name in have if name != LAMBDA}:
        figure = draw_updates(updates)
        write_files(out / "report", {f"updates{suffix}": figure_bytes(figure, suffix) for suffix in (".png", ".pdf")})
    return Report(claims, pages)


def _judged(name: str, results: Results) -> list[Claim]:
    return judge_lambda(name, results) if name == LAMBDA else judge_updates(name, results)


def _page(out: Path, name: str, results: Results, claims: Sequence[Claim]) -> Path:
    if name == LAMBDA:
        caption = "The mean area under the learning curve, with its standard error over runs; lines: λ from entropy."
        picture = Picture("lambda", "λ fixed, and from entropy", caption, draw_lambda(results))
    else:
        environment = TITLES[name].partition(":")[0]
        picture = Picture("updates", "Every update over its step sizes", _CAPTION, draw_updates({environment: results}))
    files = write_report(
        results,
        out / "report" / name,
        title=TITLES[name],
        claims=claims,
        pictures=[picture],
        made_with=run_versions(out / name),
        cost=run_cost(out / name),
        overwrite=True,
    )
    return files[0]
