"""`ipe reproduce updates`: its sweeps one after the other, each going on with what is in the folder."""

from __future__ import annotations

from typing import Any

from ipe.cli.display import Display, say_some
from ipe.cli.interrupt import stoppable
from ipe.cli.next_steps import next_line
from ipe.cli.program import DONE, FAILED
from ipe.cli.sweep_progress import shown_in_turn
from ipe.cli.verdicts import print_claims
from ipe.errors import InputError


def run(study: Any) -> int:
    """Run the parts that a study's options name; returns the exit code."""
    from ipe.studies.updates import report_updates, run_updates, sweeps

    parts = sweeps(study.parts, study.runs, study.frames)
    if study.report and study.parts:
        raise InputError("--only has no effect with --report, which reports on all that is in the folder")
    if study.plan:
        return _plan(study, parts)
    if study.report:
        report = report_updates(study.folder)
        _tell([claim for part in report.claims.values() for claim in part], report.pages)
        return DONE
    said = "stopped, with checkpoints; the same command goes on"
    with stoppable(lambda _: said), Display("ipe reproduce") as display:
        result = run_updates(
            study.folder,
            only=study.parts,
            runs=study.runs,
            frames=study.frames,
            workers=study.workers,
            callback=shown_in_turn(display, study.folder),
        )
    say_some("ipe reproduce", result.notes)
    if result.status != "done":
        print(next_line("the same command tries again what is missing, and keeps what is done"))
        return FAILED
    _tell(result.claims, result.reports)
    return DONE


def _plan(study: Any, parts: dict[str, Any]) -> int:
    from ipe.cli.sweep_plan import print_plan

    for sweep in parts.values():
        print_plan(sweep, workers=study.workers)
        print()
    print(next_line("the same command without --plan starts the study, or goes on with it"))
    return DONE


def _tell(claims: Any, pages: Any) -> None:
    """Print the verdicts, and where the pages are."""
    print_claims(claims)
    for page in pages:
        print(f"wrote {page}")
    print(next_line(f"open {pages[0]} in a browser; it needs no server"))
