"""`ipe reproduce lunar-lander` and `freeway`: sweeps, then claims and reports."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.cli.interrupt import hearing_signals
from ipe.cli.program import DONE, FAILED
from ipe.cli.sweep_plan import print_plan
from ipe.cli.sweep_progress import Display, count
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.experiments.ledger import SweepProgress
    from ipe.studies.learning.run import StudyResult
    from ipe.studies.learning.study import LearningStudy, Parts

_MOST_NOTES = 20


def run_study_here(study: LearningStudy, out: Path, only: Sequence[str] | None, arguments: Any) -> int:
    """Run a study, or go on with it, show how it goes, and print the claims.

    Args:
        study: which.
        out: its folder.
        only: some of its parts.
        arguments: of `ipe reproduce`.

    Returns:
        The exit code.
    """
    from ipe.studies.learning.run import chosen_parts, run_learning_study

    for name in ("frames", "confirm_seeds", "workers"):
        if (value := getattr(arguments, name)) is not None and value < 1:
            raise InputError(f"--{name.replace('_', '-')} must be at least 1")
    options = {"runs": arguments.runs, "frames": arguments.frames, "full_grid": arguments.full_grid, "only": only}
    parts = chosen_parts(study, **options)
    if arguments.plan:
        for sweep in parts.values():
            print_plan(sweep, workers=arguments.workers)
        return DONE
    display = _Parts(parts, out)
    with hearing_signals() as heard:
        try:
            result = run_learning_study(
                study,
                out,
                **options,
                confirm_seeds=arguments.confirm_seeds or 0,
                workers=arguments.workers,
                callback=display,
            )
        except KeyboardInterrupt:
            display.close()
            print("stopped, with checkpoints; the same command goes on", file=sys.stderr)
            return 128 + (heard() or signal.SIGINT)
        finally:
            display.close()
    return _report(result)


def _report(result: StudyResult) -> int:
    from ipe.analysis import claims_text

    for note in result.notes[:_MOST_NOTES]:
        print(note, file=sys.stderr)
    if len(result.notes) > _MOST_NOTES:
        print(f"... and {len(result.notes) - _MOST_NOTES} more", file=sys.stderr)
    if result.claims:
        print(claims_text(result.claims))
        verdicts = ("holds", "does not hold", "depends")
        counts = ", ".join(f"{sum(own.verdict == word for own in result.claims)} {word}" for word in verdicts)
        print(f"\n{len(result.claims)} claims: {counts}.")
    for page in result.reports:
        print(f"wrote {page}")
    return DONE if result.status == "done" else FAILED


class _Parts:
    """One display after the other."""

    def __init__(self, parts: Parts, out: Path) -> None:
        self._titles = {
            name: f"{own.name}: {len(own.settings)} settings by {len(own.seeds)} seeds, {count(own.frames)} frames, "
            f"in {out / name}"
            for name, own in parts.items()
        }
        self._part = ""
        self._display: Display | None = None

    def __call__(self, part: str, progress: SweepProgress) -> None:
        if part != self._part or self._display is None:
            self.close()
            self._part = part
            self._display = Display(self._titles.get(part, f"{part}: fresh runs of the chosen settings"))
        self._display(progress)

    def close(self) -> None:
        if self._display is not None:
            self._display.close()
            self._display = None
