"""`ipe train`: deep epsilon-IPE and DQN on an environment, for several seeds, stopped and resumed at will."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, make_dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ipe.base.nested import flatten
from ipe.behaviours import find_behaviour
from ipe.cli.display import Display, say
from ipe.cli.interrupt import stoppable
from ipe.cli.next_steps import next_line
from ipe.cli.options import argument, flag, option, part
from ipe.cli.program import DONE, FAILED, NOT_SOLVED
from ipe.cli.seeds import seeds_option
from ipe.cli.settings_options import changes
from ipe.cli.training_progress import TrainingProgress
from ipe.cli.training_report import result_lines
from ipe.cli.training_settings import (
    SettingsOptions,
    option_of,
    origin_in_words,
    settings_from,
    settings_options,
)
from ipe.cli.wording import plural
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.deep import TrainingResult, TrainingSettings

_WITH_RESUME = ("resume", "processes", "checkpoint_seconds", "tensorboard")
_ABOUT_SETTINGS = "What is trained. The defaults here are the paper's; --settings says more."


@dataclass(frozen=True)
class Arguments:
    """Train DQN with a behaviour of the paper, epsilon-IPE by default, for several seeds at once.

    CartPole-v1, Acrobot-v1 and MountainCar-v0 have settings of their own. Elsewhere every setting that is not given is
    the paper's: that of its LunarLander experiments, for MinAtar that of its Freeway experiments. Ctrl-C and SIGTERM
    stop the training with a checkpoint; --resume goes on, and the run comes out as if it had never been stopped.

    examples:
      ipe train CartPole-v1 --seeds 2
      ipe train LunarLander-v3 --seeds 5
      ipe train minatar/Freeway --behaviour epsilon-greedy --epsilon.final 0.01 --epsilon.steps 100000
      ipe train LunarLander-v3 --evaluate-every 10000
      ipe train CartPole-v1 --frames 2e4 --keep-transitions --out runs/medium
      ipe train CartPole-v1 --data runs/medium --frames 2e4 --out runs/batch
      ipe train my_package.my_module:MyEnv-v0 --frames 2e5 --width 64 --out runs/mine
      ipe train CartPole-v1 --behaviour my_package.my_module:my_behaviour --its-number 0.3
      ipe train --resume runs/mine --frames 4e5
    """

    OTHER_WORDS: ClassVar[dict[str, str]] = {
        "--lr": "the step sizes are --value-step-size and --policy-step-size",
        "--learning-rate": "the step sizes are --value-step-size and --policy-step-size",
        "--gpu": "training runs on the processor's cores, of which --processes says how many",
        "--device": "training runs on the processor's cores, of which --processes says how many",
        "--seed": "--seeds says how many seeds, or which: --seeds 3, is seed 3 alone",
        "--n-envs": "--environments says in how many copies of its environment an agent acts",
        "--num-envs": "--environments says in how many copies of its environment an agent acts",
        "--env": "the environment stands without a name, as in ipe train CartPole-v1",
        "--steps": "the length of a run is --frames",
        "--total-timesteps": "the length of a run is --frames",
        "--eval-freq": "greedy episodes while training are --evaluate-every and --evaluate-episodes",
        "--eval-episodes": "greedy episodes while training are --evaluate-every and --evaluate-episodes",
    }

    environment: str | None = argument(
        "ENV",
        "The environment: a Gymnasium id, an id with the module that registers it (package.module:EnvId), or "
        "minatar/Freeway, Asterix, Breakout, Seaquest or SpaceInvaders.",
        None,
    )
    resume: str | None = option(
        "Go on with the run in this folder, instead of a new one; --frames gives it more frames to do.",
        None,
        metavar="RUN",
    )
    seeds: str | None = option(
        "How many seeds to train, from 0 on; or which, with commas: 3,5,8 (seed 3 alone: 3,).",
        None,
        metavar="SEEDS",
        shown="1",
    )
    out: str | None = option("A new folder for the run.", None, metavar="FOLDER", shown="runs/ENV-BEHAVIOUR")
    processes: int | None = option(
        "How many processes train at the same time; 0 trains in this process.", None, shown="one per core"
    )
    batch_seeds: int | None = option(
        "How many seeds a process trains at once, if observations are vectors; images are trained one seed at a time.",
        None,
        shown="as many as the cache serves best",
    )
    checkpoint_seconds: float | None = option("The seconds between two checkpoints.", None, shown="300")
    evaluate_every: int | None = option(
        "After every so many frames, play greedy episodes with each seed in environments of their own, and keep the "
        "best networks beside the last; the training is the same with and without.",
        None,
        shown="never",
        least=1,
    )
    evaluate_episodes: int | None = option(
        "How many greedy episodes each evaluation has, with --evaluate-every.", None, shown="10", least=1
    )
    data: str | None = option(
        "Learn from this data set alone, without acting: the folder of a run with --keep-transitions, an .npz file of "
        "transitions (as for ipe audit --transitions), or minari:NAME. Every frame is then an update of both networks.",
        None,
        metavar="DATASET",
        shown="act, and learn from that",
    )
    data_seed: int | None = option(
        "Which seed's transitions to learn from, if DATASET is a run.", None, shown="those of all its seeds", least=0
    )
    keep_transitions: bool = flag("Keep every transition in the run's folder, for --data of another run.")
    tensorboard: bool = flag("Write TensorBoard's files too, into the run's folder.")
    settings: Literal["tuned", "paper"] | None = option(
        "Whose settings to start from: tuned, those that were found for the environment, which CartPole-v1, "
        "Acrobot-v1 and MountainCar-v0 have; or the paper's.",
        None,
        shown="tuned where there are any",
    )
    plan: bool = flag(
        "Only say what there is to do: frames, disk, memory, and the time it takes, as measured on this machine for "
        "some seconds. Starts and writes nothing."
    )
    training: SettingsOptions = part(SettingsOptions, _ABOUT_SETTINGS)  # noqa: RUF009


def choose(words: Sequence[str]) -> tuple[str, type[Arguments], list[str]]:
    """The arguments of the command, with an option for each number of a behaviour of the user's that is named.

    Args:
        words: the words after `ipe train`.

    Returns:
        No further name of the command, its dataclass, and the words.
    """
    pairs = [(*word.partition("="), after) for word, after in pairwise([*words, ""])]
    named = [value if equals else after for name, equals, value, after in pairs if name == "--behaviour"]
    users = [name for name in named if ":" in name]
    if not users:
        return "", Arguments, list(words)
    find_behaviour(users[0])
    options = settings_options()
    made = make_dataclass(
        "Arguments", [("training", options, part(options, _ABOUT_SETTINGS))], bases=(Arguments,), frozen=True
    )
    made.__doc__ = Arguments.__doc__
    return "", made, list(words)


def run(arguments: Arguments) -> int:
    """Train, show how it goes, and print what came out."""
    given = changes(arguments.training)
    if arguments.resume is not None:
        _check_resume(arguments, given)
    elif arguments.environment is None:
        raise InputError("ENV is missing, the environment to train on, or --resume RUN; see `ipe train --help`")
    elif _holds_a_run(Path(arguments.environment)):
        raise InputError(f"{arguments.environment} holds a run; go on with it: {_again(Path(arguments.environment))}")
    _check_data(arguments, given)
    if arguments.plan and arguments.resume is None:
        return _plan(arguments, given)
    with Display("ipe train") as display:
        folder, title, start = _job(arguments, given, display.note)
        display.begin(title)
        with stoppable(lambda interrupt: _interrupted(folder, interrupt)):
            result = start(TrainingProgress(display, folder, arguments.processes))
    return _report(result)


def _plan(arguments: Arguments, given: dict[str, Any]) -> int:
    """Say what the training would take, and start nothing."""
    from ipe.cli.sweep_plan import print_plan
    from ipe.experiments.training import training_jobs

    settings = settings_from(str(arguments.environment), given, arguments.settings)
    sweep, jobs = training_jobs(
        settings, _seeds(arguments), processes=arguments.processes, batch_seeds=arguments.batch_seeds
    )
    processes = 1 if arguments.processes == 0 else arguments.processes
    print_plan(sweep, jobs=jobs, workers=processes)
    print(next_line("the same command without --plan trains"))
    return DONE


def _check_data(arguments: Arguments, given: dict[str, Any]) -> None:
    """Refuse what does not go with a data set."""
    if arguments.data is None:
        if arguments.data_seed is not None:
            raise InputError("--data-seed chooses among the seeds of --data, which is not given")
        return
    if arguments.plan:
        raise InputError("--plan says what acting and learning take, and does not go with --data")
    if arguments.keep_transitions:
        raise InputError("--keep-transitions has no effect with --data: the agent does not act")
    for name in ("replay", "warm_up", "update_every"):
        if name in given:
            raise InputError(
                f"{option_of(name)} has no effect with --data: every frame learns from all of the data set"
            )


def _seeds(arguments: Arguments) -> int | list[int]:
    return 1 if arguments.seeds is None else seeds_option(arguments.seeds)


def _check_resume(arguments: Arguments, given: dict[str, Any]) -> None:
    if arguments.environment is not None:
        raise InputError(f"give ENV or --resume RUN, not both; found {arguments.environment!r}")
    others = [f.name for f in fields(Arguments) if f.name not in (*_WITH_RESUME, "environment", "training")]
    wrong = [name for name in others if getattr(arguments, name) not in (None, False)]
    wrong += [path for path in flatten(given) if path != "frames"]
    if wrong:
        raise InputError(f"{option_of(wrong[0])} has no effect with --resume: a run keeps its settings and seeds")


def _job(
    arguments: Arguments, given: dict[str, Any], note: Callable[[str], object]
) -> tuple[Path, str, Callable[[Any], TrainingResult]]:
    """The folder of the run, a line about the run, and a function of the callback that trains it."""
    from ipe.experiments.training import default_folder, open_run, resume, train

    more: dict[str, Any] = {"processes": arguments.processes, "tensorboard": arguments.tensorboard, "progress": False}
    if arguments.checkpoint_seconds is not None:
        more["checkpoint_seconds"] = arguments.checkpoint_seconds
    if arguments.resume is not None:
        folder = Path(arguments.resume)
        found = open_run(folder)
        frames = given.get("frames")
        title = _title(found.sweep.settings[0].settings, len(found.sweep.seeds), frames, folder)
        return folder, title, lambda callback: resume(folder, frames=frames, callback=callback, say=note, **more)
    settings = settings_from(str(arguments.environment), given, arguments.settings)
    if arguments.out == "":
        raise InputError("--out is empty")
    folder = default_folder(settings) if arguments.out is None else Path(arguments.out)
    if _holds_a_run(folder):
        raise InputError(f"{folder} holds a run; go on with it: {_again(folder)}; or choose another folder with --out")
    seeds = _seeds(arguments)
    more |= {"batch_seeds": arguments.batch_seeds, "say": note}
    more |= {"evaluate_every": arguments.evaluate_every, "evaluate_episodes": arguments.evaluate_episodes}
    more |= {"data": arguments.data, "data_seed": arguments.data_seed, "keep_transitions": arguments.keep_transitions}
    origin = f", {origin_in_words(str(arguments.environment), arguments.settings)}"
    if changed := [option_of(path) for path in flatten(given) if path not in ("behaviour", "frames")]:
        origin += f" but for {', '.join(changed)}"
    title = _title(settings, seeds if isinstance(seeds, int) else len(seeds), None, folder, origin)
    return folder, title, lambda callback: train(settings, seeds=seeds, out=folder, callback=callback, **more)


def _holds_a_run(folder: Path) -> bool:
    return any((folder / name).exists() for name in ("run.json", "sweep.json"))


def _title(settings: TrainingSettings, seeds: int, frames: int | None, folder: Path, origin: str = "") -> str:
    length = f"{plural(seeds, 'seed')} of {frames or settings.frames} frames"
    return f"{settings.environment.id}, {settings.behaviour}{origin}: {length}, in {folder}"


def _interrupted(folder: Path, interrupt: KeyboardInterrupt) -> str:
    """Where the run stands, and how to go on. The interrupt has a message if the checkpoints are written."""
    from ipe.experiments.training import open_run, unfinished_frames

    if not (folder / "sweep.json").exists():
        return "interrupted before training began"
    if not interrupt.args:  # a second Ctrl-C does not wait
        return f"interrupted at once; go on from the last checkpoint with: {_again(folder)}"
    frames = sorted(set(unfinished_frames(open_run(folder)))) or [0]
    at = f"frame {frames[0]}" if len(frames) == 1 else f"frames {frames[0]} to {frames[-1]}"
    return f"stopped at {at}; go on with: {_again(folder)}"


def _again(folder: Path) -> str:
    return f"ipe train --resume {shlex.quote(str(folder))}"


def _report(result: TrainingResult) -> int:
    """Print the table, say what went wrong and what to do next, and return the exit code."""
    print("\n".join(result_lines(result)))
    for note in result.notes:
        say("ipe train", note)
    wrong = [outcome for outcome in result.outcomes if outcome.status in ("failed", "diverged")]
    for outcome in wrong:
        say("ipe train", f"seed {outcome.seed} {outcome.status} at frame {outcome.frame}: {outcome.reason}")
    if result.status != "done":
        say("ipe train", f"not all processes came to their end; go on with: {_again(result.folder)}")
        return FAILED
    return DONE if len(wrong) < len(result.outcomes) else NOT_SOLVED
