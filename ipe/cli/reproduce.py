"""`ipe reproduce STUDY`: a study of the paper, from nothing to its figures, data and verdicts.

A study is declared once, as a dataclass at the end of this file: its docstring is its help, and its base class says
whether it computes figures or trains.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from ipe.base.words import did_you_mean
from ipe.cli.display import Display, say_some
from ipe.cli.interrupt import stoppable
from ipe.cli.next_steps import next_line
from ipe.cli.options import argument, flag, option, options_in
from ipe.cli.program import DONE, FAILED
from ipe.cli.sweep_progress import show_sweep, sweep_title
from ipe.cli.verdicts import print_claims
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.experiments.ledger import SweepProgress
    from ipe.studies.learning.study import Parts


@dataclass(frozen=True)
class Study:
    """What every study has: a module that declares it, a name, and some options."""

    MODULE: ClassVar[str]
    NAME: ClassVar[str]

    only: str | None = option("Run only these parts, separated by commas.", None, metavar="PARTS", shown="all")
    runs: int | None = option("How many runs each setting gets.", None, shown="as in the paper")
    out: str | None = option("The folder that the files go to.", None, metavar="FOLDER", shown="out/STUDY")

    @property
    def folder(self) -> Path:
        """The folder that the files go to."""
        if self.out == "":
            raise InputError("--out is empty")
        return Path("out") / self.NAME if self.out is None else Path(self.out)

    @property
    def parts(self) -> list[str] | None:
        """The names of the parts to run; None for all."""
        return None if self.only is None else [name.strip() for name in self.only.split(",") if name.strip()]

    def at_least(self, least: int, *names: str) -> None:
        """Refuse numbers that are too small."""
        for name in names:
            if (value := getattr(self, name)) is not None and value < least:
                raise InputError(f"--{name.replace('_', '-')} must be at least {least}, found {value}")

    def run(self) -> int:
        """Run the study, show how it goes, and print the verdicts on its claims; returns the exit code."""
        raise NotImplementedError


@dataclass(frozen=True)
class FigureStudy(Study):
    """A study that computes its figures in a minute, all or nothing."""

    TITLE: ClassVar[str]

    seed: int = option("The seed of all random numbers: the same seed gives the same files.", 0)
    overwrite: bool = flag(
        "Replace the study's files in a folder that holds some. Without it, the folder must be empty."
    )

    def run(self) -> int:
        """Compute, draw and judge the parts, and write everything to the folder."""
        self.at_least(1, "runs")
        self.at_least(0, "seed")
        out, only = self.folder, self.parts
        from ipe.base.atomic import check_folder
        from ipe.studies.run import choose_parts, run_study

        check_folder(out, self.overwrite)
        study: Any = import_module(self.MODULE)
        parts = choose_parts(study.PARTS, only)
        names = [part.name for part in parts]
        settings = study.settings_for(**({} if self.runs is None else {"runs": self.runs}), seed=self.seed)
        start = time.perf_counter()
        with Display("ipe reproduce", keep=False) as display:

            def show(part: str, what: str, done: int, total: int) -> None:
                place = f"[{names.index(part) + 1}/{len(names)}] {part}: {what} ({done}/{total})"
                share = (names.index(part) + done / total) / len(names)
                display.show([f"{place}   {share:4.0%}, {time.perf_counter() - start:.0f} s"], place, about=part)

            claims = run_study(self.TITLE, parts, settings, out, overwrite=self.overwrite, progress=show)
        print_claims(claims)
        print(f"Wrote figures, data and claims to {out}/ ({time.perf_counter() - start:.0f} s).")
        print(next_line(f"open {out / 'report.md'}, which shows them on one page"))
        return DONE


@dataclass(frozen=True)
class TrainingStudy(Study):
    """A study that trains, for hours: sweeps, which go on where they were stopped."""

    frames: int | None = option("How many frames each run gets.", None, shown="as in the paper")
    full_grid: bool = flag(
        "Run every setting of the appendix, not only the bold ones, and choose the setting with the largest area under "
        "the curve."
    )
    halving: bool = flag(
        "With --full-grid: choose by successive halving. All settings get few runs of few frames, the better half of "
        "each behaviour goes on with more of both, and so on."
    )
    confirm_seeds: int | None = option(
        "Train the chosen settings again with so many fresh seeds, and report on those runs.", None, shown="0"
    )
    plan: bool = flag("Only say what there is to do, and how long each part takes on this machine.")
    cores: int | None = option("With --plan: also say how long it takes on so many cores of this kind.", None)
    workers: int | None = option("How many processes to run on this machine.", None, shown="one per core")

    def run(self) -> int:
        """Run the study's sweeps, or go on with them, then judge and report."""
        self.at_least(1, "runs", "frames", "confirm_seeds", "workers", "cores")
        if self.halving and not self.full_grid:
            raise InputError("--halving is for the whole grid: give --full-grid too")
        if self.cores is not None and not self.plan:
            raise InputError("--cores is for --plan; --workers says how many processes to start")
        out = self.folder
        from ipe.studies.learning.run import chosen_parts, run_learning_study

        study = import_module(self.MODULE).STUDY
        options: dict[str, Any] = {
            "runs": self.runs,
            "frames": self.frames,
            "full_grid": self.full_grid,
            "only": self.parts,
        }
        parts = chosen_parts(study, **options)
        if self.plan:
            self._print_plans(parts)
            return DONE
        said = "stopped, with checkpoints; the same command goes on"
        with stoppable(lambda _: said), Display("ipe reproduce") as display:
            result = run_learning_study(
                study,
                out,
                **options,
                halving=self.halving,
                confirm_seeds=self.confirm_seeds or 0,
                workers=self.workers,
                callback=_PartByPart(display, parts, out),
            )
        say_some("ipe reproduce", result.notes)
        if result.claims:
            print_claims(result.claims)
        for page in result.reports:
            print(f"wrote {page}")
        if result.status != "done":
            print(next_line("the same command tries again what is missing, and keeps what is done"))
            return FAILED
        print(next_line(f"open {result.reports[0]} in a browser; it needs no server"))
        return DONE

    def _print_plans(self, parts: Parts) -> None:
        """Print how long each part takes, and all of them together."""
        from ipe.cli.sweep_plan import print_halving_plan, print_plan
        from ipe.cli.wording import duration, plural

        total: dict[int, float] = {}
        for name, sweep in parts.items():
            printed = print_halving_plan if self.halving and name == "grid" else print_plan
            seconds = printed(sweep, workers=self.workers, more_cores=self.cores)
            total = {n: total.get(n, 0.0) + seconds[n] for n in seconds}
            print()
        times = " and ".join(f"{duration(seconds)} on {plural(n, 'core')}" for n, seconds in total.items())
        print(f"all {plural(len(parts), 'part')}: about {times}")
        print(next_line("the same command without --plan starts the study, or goes on with it"))


@dataclass(frozen=True)
class DeclaredStudy(Study):
    """A study of this library, whose sweeps go on where they were stopped. `COMMAND` is the module whose function `run`
    runs it."""

    COMMAND: ClassVar[str]

    frames: int | None = option("How many frames each deep run gets.", None, shown="as declared")
    report: bool = flag("Run nothing: write the report from what is in the folder.")
    plan: bool = flag("Only say what there is to do, and how long the deep parts take on this machine.")
    workers: int | None = option("How many processes the deep parts run on this machine.", None, shown="one per core")

    def run(self) -> int:
        """Run the parts, or go on with them, then judge and report."""
        self.at_least(2, "runs")
        self.at_least(1, "frames", "workers")
        code: int = import_module(self.COMMAND).run(self)
        return code


class _PartByPart:
    """A callback for `run_learning_study` that shows the progress of each part under a title of its own."""

    def __init__(self, display: Display, parts: Parts, out: Path) -> None:
        self._display, self._part = display, ""
        self._titles = {name: f"{sweep_title(sweep)}, in {out / name}" for name, sweep in parts.items()}

    def __call__(self, part: str, progress: SweepProgress) -> None:
        if part != self._part:
            self._part = part
            fresh = f"{part}: fresh runs of the chosen settings" if part == "confirm" else part
            self._display.begin(self._titles.get(part, fresh))
        show_sweep(self._display, progress)


@dataclass(frozen=True)
class Overview:
    """Run a study of the paper: its figures (PNG, PDF), their data (Parquet), and a verdict on every claim.

    examples:
      ipe reproduce --help
      ipe reproduce switch-stay
      ipe reproduce lunar-lander --plan
      ipe reproduce freeway --help
    """

    study: str = argument("STUDY", "Which study; `ipe reproduce STUDY --help` explains its parts and options.")

    def run(self) -> int:
        """Refuse the name of a study that does not exist."""
        hint = did_you_mean(self.study, STUDIES)
        raise InputError(f"there is no study {self.study!r}{hint}; the studies are {', '.join(STUDIES)}")


def run(study: Study | Overview) -> int:
    """Run a study."""
    return study.run()


def choose(words: Sequence[str]) -> tuple[str, type[Any], list[str]]:
    """Find the study that some words name, wherever it stands among the options.

    Returns:
        The study's name, its dataclass, and the other words; `Overview` and all words if they name no study.
    """
    with_value = {o.name for study in STUDIES.values() for o in options_in(study) if o.kind == "option"}
    for i, word in enumerate(words):
        if word in STUDIES and (i == 0 or words[i - 1] not in with_value):
            return word, STUDIES[word], [*words[:i], *words[i + 1 :]]
    named = [word for word in words[:1] if not word.startswith("-")]  # no study, whatever options follow
    return "", Overview, named or list(words)


class SwitchStay(FigureStudy):
    """The Switch-Stay MDP: Figures 2a, 2b, 3 and 4 of the paper, and what goes beyond them; a minute.

    Parts: figure-2a, figure-2b, figure-3, figure-4, updates, slip, exact, river-swim, garnet. The paper has 1000 runs
    in Figure 4; with --runs, no part uses more runs than that.

    examples:
      ipe reproduce switch-stay
      ipe reproduce switch-stay --only figure-3 --out out/figure-3
      ipe reproduce switch-stay --runs 100 --seed 1 --out out/quick
    """

    NAME, MODULE, TITLE = "switch-stay", "ipe.studies.switch_stay", "The Switch-Stay study"


class ReturnsStudy(FigureStudy):
    """Lambda and gamma of returns from the evaluation policy's entropy, and its closed form; three minutes.

    Parts: lambda (Watkins's and Peng's traces), gamma (the discount of the learning target), closed-form (the lift and
    the cross-entropy update in the place of a step size). Each is run on Switch-Stay, Garnet MDPs and others. The paper
    names lambda and gamma in its last sentences, and has none of the three.

    examples:
      ipe reproduce returns
      ipe reproduce returns --only lambda --runs 20 --out out/lambda
    """

    NAME, MODULE, TITLE = "returns", "ipe.studies.returns", "The study of returns"


class LunarLander(TrainingStudy):
    """LunarLander: learning curves of DQN with epsilon-IPE and epsilon-greedy, and sensitivity; hours.

    Parts: curves (30 runs of 500 000 frames per behaviour, as in the paper), ipe (a third of the runs), sensitivity (a
    sixth of the runs, two fifths of the frames), lasting (16 runs of 1 000 000 frames: when do they collapse?),
    lasting-changes (8 such runs with a Huber loss, double Q or target period 100). Ctrl-C stops with checkpoints, and
    the same command goes on with what is in the folder.

    examples:
      ipe reproduce lunar-lander --plan --cores 64
      ipe reproduce lunar-lander --only grid --full-grid --halving --confirm-seeds 30
      ipe reproduce lunar-lander --runs 5 --frames 100000 --only curves --out out/lander
    """

    NAME, MODULE = "lunar-lander", "ipe.studies.lunar_lander"


class Freeway(TrainingStudy):
    """Freeway of MinAtar: learning curves of DQN with epsilon-IPE and epsilon-greedy, and sensitivity; hours.

    Parts: curves (30 runs of 2 000 000 frames per behaviour, as in the paper), sensitivity (a sixth of the runs, a
    quarter of the frames). Ctrl-C stops with checkpoints, and the same command goes on with what is in the folder. Also
    in a copy of a published folder, which has no checkpoints: the runs that are missing are trained.

    examples:
      ipe reproduce freeway --plan
      ipe reproduce freeway --runs 5 --frames 200000 --out out/freeway
    """

    NAME, MODULE = "freeway", "ipe.studies.freeway"


class Exploration(DeclaredStudy):
    """Which exploration needs no tuning? Every known rule, five settings each, on many tasks; an hour, then hours.

    Parts: tabular (30 finite MDPs, within an hour of one core), classic-control, deep-sea, lunar-lander, minatar. Every
    behaviour is scored with one setting for all tasks and with the best setting for each: the difference is the price
    of not tuning. The deep parts that are named together choose one setting for all their tasks together: with another
    part, other settings may be chosen, and what is missing is run. The same command goes on with what is in the folder;
    --report only reads it, and without --only takes the parts that have all the runs they need. With --runs, no setting
    gets more runs than that to be chosen by, and no more to be reported on.

    examples:
      ipe reproduce exploration --only tabular
      ipe reproduce exploration --only classic-control --plan
      ipe reproduce exploration --report --out results/exploration
    """

    NAME, MODULE, COMMAND = "exploration", "ipe.studies.exploration", "ipe.cli.exploration"


class Updates(DeclaredStudy):
    """Every policy update of the deep agent over its step sizes, and lambda of its returns from entropy; hours.

    Parts: cart-pole (13 updates, five step sizes, 30 runs of 50 000 frames), lunar-lander (10 runs of 200 000 frames),
    cart-pole-lambda (fixed values of lambda, and lambda from the evaluation policy's entropy). Ctrl-C stops with
    checkpoints, and the same command goes on with what is in the folder; --report only reads it.

    examples:
      ipe reproduce updates --plan
      ipe reproduce updates --only cart-pole
      ipe reproduce updates --report --out results/updates
    """

    NAME, MODULE, COMMAND = "updates", "ipe.studies.updates", "ipe.cli.updates"


@dataclass(frozen=True)
class Batches(DeclaredStudy):
    """Learning from a fixed batch: data of three qualities by ways of acting, on three environments; an hour or two.

    Parts: cart-pole, lunar-lander, frozen-lake (whose returns are computed exactly). On each, ten runs learn from data
    of random, medium and expert quality; they act greedily, as IPE, epsilon-IPE and tau-IPE, beside conservative
    Q-learning and cloning. The first and the last take some minutes each. The same command goes on with what is in the
    folder; --report only reads it.

    examples:
      ipe reproduce batches --only frozen-lake
      ipe reproduce batches --report --out results/batches
    """

    NAME, MODULE, COMMAND = "batches", "ipe.studies.batches", "ipe.cli.batches"

    frames: int | None = option("How many updates each run on a data set gets.", None, shown="as declared")
    plan: bool = flag("Only say what there is to do.")


STUDIES: dict[str, type[Study]] = {
    study.NAME: study for study in (SwitchStay, ReturnsStudy, LunarLander, Freeway, Exploration, Updates, Batches)
}
Overview.__doc__ = f"{Overview.__doc__}\n    studies:\n" + "\n".join(
    f"      {name.ljust(12)}  {(study.__doc__ or '').partition(chr(10))[0]}" for name, study in STUDIES.items()
)
