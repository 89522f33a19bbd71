"""`ipe train`: deep epsilon-IPE and DQN on an environment, for several seeds, stopped and resumed at will."""

from __future__ import annotations

import shlex
import signal
import sys
import warnings
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from ipe.cli.interrupt import hearing_signals
from ipe.cli.parsing import Flag, Number, Text, WholeNumber
from ipe.cli.program import DONE, FAILED, NOT_SOLVED
from ipe.cli.seeds import seeds_option
from ipe.cli.settings_options import changes, paths
from ipe.cli.training_progress import Display
from ipe.cli.training_report import result_lines
from ipe.cli.training_settings import SettingsOptions, option_of, settings_from
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.deep import TrainingResult, TrainingSettings

_NOTHING = SettingsOptions()
_WITH_RESUME = ("resume", "processes", "checkpoint_seconds", "tensorboard")


@dataclass(frozen=True)
class Arguments:
    """Train DQN with a behaviour of the paper, epsilon-IPE by default, for several seeds at once.

    What is not given is the paper's: its LunarLander settings, for MinAtar its Freeway settings. Ctrl-C and SIGTERM
    stop with a checkpoint; --resume goes on, and the run comes out as if it had never been stopped.

    examples:
      ipe train LunarLander-v3 --seeds 5
      ipe train minatar/Freeway --behaviour epsilon-greedy --epsilon.final 0.01 --epsilon.steps 100000
      ipe train my_package.my_module:MyEnv-v0 --frames 2e5 --width 64 --out runs/mine
      ipe train --resume runs/mine --frames 4e5
    """

    environment: Annotated[Positional[str | None], arg(metavar="[ENV]", help_behavior_hint="")] = None
    """Where to act: a Gymnasium id, one with the module that registers it (package.module:EnvId), or
    minatar/Freeway, Asterix, Breakout, Seaquest or SpaceInvaders."""
    resume: Annotated[Text, arg(metavar="RUN", help_behavior_hint="")] = None
    """Go on with the run in this folder instead; --frames gives it more frames to do."""
    seeds: Annotated[Text, arg(metavar="SEEDS", help_behavior_hint="(default: 1)")] = None
    """How many seeds, from 0 on; or which, with commas: 3,5,8 (seed 3 alone: 3,)."""
    out: Annotated[Text, arg(metavar="FOLDER", help_behavior_hint="(default: runs/ENV-BEHAVIOUR)")] = None
    """A new folder for the run."""
    processes: Annotated[WholeNumber, arg(help_behavior_hint="(default: one per core)")] = None
    """How many train at the same time; 0: this one."""
    batch_seeds: Annotated[WholeNumber, arg(help_behavior_hint="(default: as the cache serves best)")] = None
    """Seeds per process, for vectors; images are trained one seed at a time."""
    checkpoint_seconds: Annotated[Number, arg(help_behavior_hint="(default: 300)")] = None
    """Between two checkpoints."""
    tensorboard: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Write TensorBoard's files too, into the run's folder."""
    settings: Annotated[SettingsOptions, arg(help="What is trained; by default as in the paper.")] = _NOTHING


def run(arguments: Arguments) -> int:
    """Train, show how it goes, and print what came out."""
    given = changes(arguments.settings)
    if arguments.resume is not None:
        _check_resume(arguments, given)
    elif arguments.environment is None:
        raise InputError("ENV is missing, the environment to train on, or --resume RUN; see `ipe train --help`")
    with hearing_signals() as heard, warnings.catch_warnings():
        warnings.showwarning = _say_warning
        folder, title, start = _job(arguments, given)
        display = Display(folder)
        display.begin(title, arguments.processes)
        before = _described(folder)
        try:
            result = start(display)
        except KeyboardInterrupt:
            result = None
        finally:
            display.close()
        if result is not None:
            return _report(result)
        _say(_interrupted(folder, arguments.resume is None, before))
        return 128 + (heard() or signal.SIGINT)


def _check_resume(arguments: Arguments, given: dict[str, Any]) -> None:
    if arguments.environment is not None:
        raise InputError(f"give ENV or --resume RUN, not both; found {arguments.environment!r}")
    others = [f.name for f in fields(Arguments) if f.name not in (*_WITH_RESUME, "environment", "settings")]
    wrong = [name for name in others if getattr(arguments, name) is not None]
    wrong += [path for path in paths(given) if path != "frames"]
    if wrong:
        raise InputError(f"{option_of(wrong[0])} has no effect with --resume: a run keeps its settings and seeds")


def _job(arguments: Arguments, given: dict[str, Any]) -> tuple[Path, str, Any]:
    """The folder of the run, a line about it, and a function of the callback that trains it."""
    from ipe.deep.runs import open_run
    from ipe.deep.training import default_folder, resume, train

    more: dict[str, Any] = {"processes": arguments.processes, "tensorboard": arguments.tensorboard}
    if arguments.checkpoint_seconds is not None:
        more["checkpoint_seconds"] = arguments.checkpoint_seconds
    if arguments.resume is not None:
        folder = Path(arguments.resume)
        found = open_run(folder)
        frames = given.get("frames")
        title = _title(found.settings, len(found.seeds), frames, folder)
        return folder, title, lambda callback: resume(folder, frames=frames, callback=callback, **more)
    settings = settings_from(str(arguments.environment), given)
    folder = default_folder(settings) if arguments.out is None else Path(arguments.out)
    if arguments.out == "":
        raise InputError("--out is empty")
    seeds = 1 if arguments.seeds is None else seeds_option(arguments.seeds)
    more["batch_seeds"] = arguments.batch_seeds
    title = _title(settings, seeds if isinstance(seeds, int) else len(seeds), None, folder)
    return folder, title, lambda callback: train(settings, seeds=seeds, out=folder, callback=callback, **more)


def _title(settings: TrainingSettings, seeds: int, frames: int | None, folder: Path) -> str:
    count = f"{seeds} seed{'s' * (seeds != 1)} of {frames or settings.frames} frames"
    return f"{settings.environment.id}, {settings.behaviour}: {count}, in {folder}"


def _say_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    _say(f"note: {message}")


def _say(sentence: str) -> None:
    if sys.stderr is not None:
        print(f"ipe train: {' '.join(sentence.split())}", file=sys.stderr, flush=True)


def _described(folder: Path) -> Any:
    """What the run's description says, None if there is none."""
    from ipe.deep.records import read_run

    return read_run(folder) if (folder / "run.json").exists() else None


def _interrupted(folder: Path, new: bool, before: Any) -> str:
    """Where the run stands, and how to go on.

    Args:
        folder: of the run.
        new: whether it was to be a new one.
        before: its description before training.
    """
    now = _described(folder)
    if new and now == before:
        return "interrupted before training began"
    if now == before or now["status"] == "running":  # a second Ctrl-C: nothing was collected
        return f"interrupted at once; go on from the last checkpoint with: {_again(folder)}"
    frames = {outcome["frame"] for outcome in now["outcomes"] if outcome["status"] not in ("failed", "diverged")} or {0}
    at = f"frame {min(frames)}" if len(frames) == 1 else f"frames {min(frames)} to {max(frames)}"
    return f"stopped at {at}; go on with: {_again(folder)}"


def _again(folder: Path) -> str:
    return f"ipe train --resume {shlex.quote(str(folder))}"


def _report(result: TrainingResult) -> int:
    """Print the table, say what went wrong, and return the exit code."""
    print("\n".join(result_lines(result)))
    for note in result.notes:
        _say(note)
    wrong = [outcome for outcome in result.outcomes if outcome.status in ("failed", "diverged")]
    for outcome in wrong:
        _say(f"seed {outcome.seed} {outcome.status} at frame {outcome.frame}: {outcome.reason}")
    if result.status != "done":
        _say(f"not all processes came to their end; go on with: {_again(result.folder)}")
        return FAILED
    return DONE if len(wrong) < len(result.outcomes) else NOT_SOLVED
