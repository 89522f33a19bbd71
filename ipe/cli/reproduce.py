"""`ipe reproduce`: a study of the paper, from nothing to its figures, data and verdicts."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from ipe.cli.parsing import Flag, WholeNumber
from ipe.errors import InputError

STUDIES = {"switch-stay": ("ipe.studies.switch_stay", "The Switch-Stay study")}
LEARNING = {"lunar-lander": "ipe.studies.lunar_lander", "freeway": "ipe.studies.freeway"}
"""Those that train: sweeps, which go on where they were stopped."""
_FOR_LEARNING = ("frames", "full_grid", "confirm_seeds", "plan", "workers")
_FOR_OTHERS = ("seed", "overwrite")


@dataclass(frozen=True)
class Arguments:
    """Run a study of the paper: its figures (PNG, PDF), their data (Parquet), and a verdict on every claim.

    Studies: switch-stay (Figures 2a, 2b, 3 and 4, and what goes beyond them; a minute), lunar-lander and freeway
    (learning curves, sensitivity; hours: Ctrl-C stops with checkpoints, the same command goes on).

    examples:
      ipe reproduce switch-stay
      ipe reproduce switch-stay --only figure-3 --out out/figure-3
      ipe reproduce switch-stay --runs 100 --seed 1 --out out/quick
      ipe reproduce lunar-lander --plan
      ipe reproduce lunar-lander --runs 5 --frames 100000 --only curves --out out/lander
    """

    study: Annotated[Positional[str], arg(metavar="STUDY")]
    """Which study."""
    only: Annotated[str | None, arg(metavar="PARTS", help_behavior_hint="(default: all)")] = None
    """Some of its parts, separated by commas. switch-stay: figure-2a, figure-2b, figure-3, figure-4, updates, slip,
    exact, river-swim, garnet. lunar-lander: curves, ipe, sensitivity. freeway: curves."""
    runs: Annotated[WholeNumber, arg(help_behavior_hint="(default: the paper's)")] = None
    """Runs per setting: 1000 in Figure 4 of switch-stay, whose other parts use at most as many; 30 of lunar-lander's
    and freeway's curves (a third of that for ipe, a sixth for sensitivity)."""
    out: Annotated[str | None, arg(metavar="FOLDER", help_behavior_hint="(default: out/STUDY)")] = None
    """Where the files go. switch-stay: the folder must be empty or not exist. The others go on with what is in it."""
    seed: Annotated[WholeNumber, arg(help_behavior_hint="(default: 0)")] = None
    """switch-stay: the seed; the same one gives the same files."""
    overwrite: Annotated[Flag, arg(help_behavior_hint="")] = False
    """switch-stay: replace the study's files in a folder that holds some."""
    frames: Annotated[WholeNumber, arg(help_behavior_hint="(default: the paper's)")] = None
    """lunar-lander and freeway: frames per run, 500 000 and 2 000 000 in the paper (two fifths of it for
    sensitivity)."""
    full_grid: Annotated[Flag, arg(help_behavior_hint="")] = False
    """lunar-lander and freeway: every setting of the appendix, not only the bold ones; the best is chosen by its area
    under the curve."""
    confirm_seeds: Annotated[WholeNumber, arg(help_behavior_hint="(default: 0)")] = None
    """lunar-lander and freeway: so many fresh runs of the chosen settings, for the report to rest on."""
    plan: Annotated[Flag, arg(help_behavior_hint="")] = False
    """lunar-lander and freeway: only say what there is to do, and how long it takes here."""
    workers: Annotated[WholeNumber, arg(help_behavior_hint="(default: one per core)")] = None
    """lunar-lander and freeway: processes on this machine."""


def run(arguments: Arguments) -> int | None:
    """Run the study with a progress display, and print the table of claims."""
    if arguments.study not in STUDIES and arguments.study not in LEARNING:
        raise InputError(f"there is no study {arguments.study!r}; the studies are {', '.join([*STUDIES, *LEARNING])}")
    learning = arguments.study in LEARNING
    for name in _FOR_OTHERS if learning else _FOR_LEARNING:
        if getattr(arguments, name) not in (None, False):
            raise InputError(f"--{name.replace('_', '-')} is not for {arguments.study}; see `ipe reproduce --help`")
    if arguments.runs is not None and arguments.runs < 1:
        raise InputError("--runs must be at least 1")
    out = Path(arguments.out) if arguments.out is not None else Path("out") / arguments.study
    only = None if arguments.only is None else [name.strip() for name in arguments.only.split(",") if name.strip()]
    if learning:
        from ipe.cli.learning_study import run_study_here

        return run_study_here(import_module(LEARNING[arguments.study]).STUDY, out, only, arguments)
    _run_parts(arguments, out, only)
    return None


def _run_parts(arguments: Arguments, out: Path, only: list[str] | None) -> None:
    module, title = STUDIES[arguments.study]
    changes = {name: getattr(arguments, name) for name in ("runs", "seed") if getattr(arguments, name) is not None}
    if changes.get("seed", 0) < 0:
        raise InputError("--seed must be at least 0")

    from ipe.base.atomic import check_folder
    from ipe.studies.run import choose_parts, run_study

    check_folder(out, arguments.overwrite)
    study: Any = import_module(module)
    parts = choose_parts(study.PARTS, only)
    settings = study.settings_for(**changes)
    start = time.perf_counter()
    progress = _Progress(len(parts))
    try:
        claims = run_study(title, parts, settings, out, overwrite=arguments.overwrite, progress=progress)
    finally:
        progress.close()
    from ipe.analysis import claims_text

    print(claims_text(claims))
    counts = ", ".join(f"{sum(c.verdict == v for c in claims)} {v}" for v in ("holds", "does not hold", "depends"))
    print(f"\n{len(claims)} claims: {counts}.")
    print(
        f"Wrote figures, data and claims to {out}/ ({time.perf_counter() - start:.0f} s); "
        "report.md shows them on one page."
    )


class _Progress:
    """A line on standard error that says what is being done; one line per part where that is not a terminal."""

    def __init__(self, parts: int) -> None:
        self.parts, self.seen, self.start = parts, 0, time.perf_counter()
        self.part = ""
        self.live = sys.stderr.isatty()

    def __call__(self, part: str, what: str, done: int, total: int) -> None:
        if part != self.part:
            self.part, self.seen = part, self.seen + 1
            if not self.live:
                print(f"[{self.seen}/{self.parts}] {part}", file=sys.stderr, flush=True)
        if self.live:
            spent = time.perf_counter() - self.start
            share = (self.seen - 1 + done / total) / self.parts
            text = f"[{self.seen}/{self.parts}] {part}: {what} ({done}/{total})   {share:4.0%}, {spent:.0f} s"
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the terminal with an empty line."""
        if self.live:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
