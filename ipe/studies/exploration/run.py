"""Running the tabular part of the study, or going on with it, and writing its report.

::

    OUT/tabular/             a verified table per contender: `ipe.studies.exploration.files`
    OUT/report/report.md     the tables, figures and claims on one page
    OUT/report/claims.json   the claims as data

What is run once is not run again: the same call on a folder that holds all runs only reads them.
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
from ipe.studies.exploration.claims import judged
from ipe.studies.exploration.drawing import price_figure, profile_figure, sensitivity_figure, tabular_panels
from ipe.studies.exploration.files import Runs, read_runs, run_contender
from ipe.studies.exploration.findings import Findings, findings_of
from ipe.studies.exploration.scores import Scores, scores_of
from ipe.studies.exploration.settings import CONTENDERS, TASKS, UNIFORM, TabularSettings
from ipe.studies.exploration.tables import family_table, tuned_table, untuned_table

TABULAR = "tabular"
TITLE = "Which exploration needs no tuning?"


@dataclass(frozen=True, eq=False)
class TabularReport:
    """What the tabular part has come to.

    Attributes:
        findings: the tables' numbers.
        claims: the claims with their verdicts.
        page: the page that was written.
        missing: the names of contenders without runs.
    """

    findings: Findings
    claims: list[Claim]
    page: Path
    missing: list[str]


def run_tabular(
    out: Path,
    settings: TabularSettings,
    progress: Callable[[str, str, int, int], None] | None = None,
    only: Sequence[str] | None = None,
) -> None:
    """Run every contender on every tabular task; what is in the folder already is kept.

    Args:
        out: the study's folder.
        settings: the numbers of runs and so on.
        progress: is called with the contender, the task that begins, how many tasks are done, and how many there are.
        only: the names of the contenders to run. Default: all.
    """
    folder = out / TABULAR
    with refusing(f"out: cannot make the folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    for contender in (UNIFORM, *CONTENDERS):
        if only is not None and contender.name not in only:
            continue

        def tell(task: str, done: int, total: int, name: str = contender.name) -> None:
            if progress is not None:
                progress(name, task, done, total)

        run_contender(folder, contender, TASKS, settings, tell)


def read_tabular(out: Path) -> dict[str, Runs]:
    """The runs of every contender that is in the folder, verified, by name.

    Raises:
        InputError: if there are none, or a file is damaged.
    """
    folder = out / TABULAR
    names = [c.name for c in (UNIFORM, *CONTENDERS) if (folder / f"{c.name}.json").is_file()]
    if not names:
        raise InputError(f"{folder}: there are no results yet")
    return {name: read_runs(folder, name) for name in names}


def report_tabular(out: Path, settings: TabularSettings) -> TabularReport:
    """Judge the claims by the runs in the folder, and write the report."""
    runs = read_tabular(out)
    scores = scores_of(runs, CONTENDERS, TASKS, settings)
    findings = findings_of(scores)
    claims = judged(findings, TABULAR)
    missing = [contender.name for contender in CONTENDERS if contender.name not in runs]
    figures = {
        "price": price_figure(findings),
        "sensitivity": sensitivity_figure({"": tabular_panels(scores)}),
        "profiles": profile_figure(findings),
    }
    files = {
        f"{name}{suffix}": figure_bytes(figure, suffix)
        for name, figure in figures.items()
        for suffix in (".png", ".pdf")
    }
    files["report.md"] = _page(scores, findings, claims, missing).encode()
    files["claims.json"] = f"{json.dumps(claims_records(claims), indent=1, ensure_ascii=False)}\n".encode()
    write_files(out / "report", files)
    return TabularReport(findings, claims, out / "report" / "report.md", missing)


def _page(scores: Scores, findings: Findings, claims: Sequence[Claim], missing: Sequence[str]) -> str:
    hours = sum(scores.seconds.values()) / 3600
    runs = next(iter(scores.scores.values())).shape[-1] - scores.choosing
    lines = [
        f"# {TITLE}",
        "",
        f"{len(scores.tasks)} tabular tasks of {len(scores.families)} families, {runs} fresh runs of each setting "
        f"(chosen by {scores.choosing} others); 95% intervals; {hours:.2f} core-hours.",
        "",
        "![What not tuning costs](price.png)",
        "",
        "## One setting for all tasks",
        "",
        untuned_table(findings),
        "## The best setting for each task",
        "",
        tuned_table(findings),
        "## By family, with one setting for all tasks",
        "",
        family_table(findings),
        "![Every setting of every behaviour](sensitivity.png)",
        "",
        "![Performance profiles](profiles.png)",
        "",
        claims_markdown(claims),
    ]
    if scores.unsolved:
        lines += [f"Solved by nobody, and left out: {', '.join(scores.unsolved)}.", ""]
    if missing:
        lines += [f"Without runs: {', '.join(missing)}.", ""]
    return "\n".join(lines)
