"""`ipe train`: deep epsilon-IPE and DQN on an environment, for several seeds, stopped and resumed at will."""

from __future__ import annotations

import os
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
from ipe.cli.settings_options import changes, options_of, paths, read_key_values
from ipe.cli.tables import columns, number
from ipe.cli.training_progress import Display
from ipe.deep.settings import TrainingSettings, paper_settings
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.deep import TrainingResult

_POLICY = ("epsilon-ipe", "ipe")
_ONLY_WITH = {
    "epsilon": ("epsilon-greedy",),
    "temperature": ("boltzmann",),
    "policy_step_size": _POLICY,
    "policy_update": _POLICY,
    "entropy_bonus": _POLICY,
    "delta_q": _POLICY,
}
"""The behaviours that a setting has an effect with; the others have one with all."""

_WITH_RESUME = ("resume", "processes", "checkpoint_seconds", "tensorboard")


def _defaults() -> dict[str, str]:
    """The paper's value of every setting, in words where it depends on the environment or the behaviour."""
    cases = {
        "": paper_settings("Other-v0"),
        "with epsilon-greedy and boltzmann": paper_settings("Other-v0", "epsilon-greedy"),
        "LunarLander": paper_settings("LunarLander-v3"),
        "MinAtar": paper_settings("minatar/Freeway"),
    }
    usual, *others = [settings.model_dump() for settings in cases.values()]
    out = {}
    for path in (*paths(usual), "environment.options"):
        values = [_at(settings, path) for settings in (usual, *others)]
        words = [_words(values[0])]
        words += [f"{name} {_words(v)}" for name, v in list(zip(cases, values, strict=True))[2:] if v != values[0]]
        if values[1] != values[0]:
            words.insert(1, f"{_words(values[1])} {list(cases)[1]}")
            words += [f"MinAtar {_words(values[3])}"] if values[3] == values[0] else []
        out[path] = "; ".join(words) if values[0] != {} else ""
    del out["environment.id"]  # the word that is no option
    out["behaviour"] = usual["behaviour"]
    return out


def _at(values: dict[str, Any], path: str) -> Any:
    for part in path.split("."):
        values = values[part]
    return values


def _words(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


if TYPE_CHECKING:
    Settings = Any
else:
    Settings = options_of(TrainingSettings, _defaults())


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
    settings: Annotated[Settings, arg(help="What is trained; by default as in the paper.")] = Settings()


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
        try:
            result = start(display)
        except KeyboardInterrupt:
            display.close()
            return _interrupted(folder, display, heard() or signal.SIGINT)
        finally:
            display.close()
    return _report(result)


def _check_resume(arguments: Arguments, given: dict[str, Any]) -> None:
    if arguments.environment is not None:
        raise InputError(f"give ENV or --resume RUN, not both; found {arguments.environment!r}")
    others = [f.name for f in fields(Arguments) if f.name not in (*_WITH_RESUME, "environment", "settings")]
    wrong = [name for name in others if getattr(arguments, name) is not None]
    wrong += [path for path in paths(given) if path != "frames"]
    if wrong:
        raise InputError(f"{_option(wrong[0])} has no effect with --resume: a run keeps its settings and seeds")


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
    settings = _settings(str(arguments.environment), given)
    folder = default_folder(settings) if arguments.out is None else Path(arguments.out)
    if arguments.out == "":
        raise InputError("--out is empty")
    seeds = _seeds(arguments.seeds)
    more["batch_seeds"] = arguments.batch_seeds
    title = _title(settings, seeds if isinstance(seeds, int) else len(seeds), None, folder)
    return folder, title, lambda callback: train(settings, seeds=seeds, out=folder, callback=callback, **more)


def _title(settings: TrainingSettings, seeds: int, frames: int | None, folder: Path) -> str:
    count = f"{seeds} seed{'s' * (seeds != 1)} of {frames or settings.frames} frames"
    return f"{settings.environment.id}, {settings.behaviour}: {count}, in {folder}"


def _settings(environment: str, given: dict[str, Any]) -> TrainingSettings:
    """The paper's, with what was given instead; refused if some of that would have no effect."""
    values = dict(given)
    behaviour = values.pop("behaviour", "epsilon-ipe")
    for path in paths(values):
        behaviours = _ONLY_WITH.get(path.partition(".")[0], (behaviour,))
        if behaviour not in behaviours:
            others = " and ".join(behaviours)
            raise InputError(f"{_option(path)} has no effect with the behaviour {behaviour}; it is for {others}")
    own = values.get("environment", {})
    if "options" in own:
        values["environment"] = {**own, "options": read_key_values(own["options"], "--environment.options")}
    settings = paper_settings(environment, behaviour, **values)
    if "momentum" in values.get("optimiser", {}) and settings.optimiser.kind == "rmsprop":
        raise InputError("--optimiser.momentum has no effect with rmsprop; it is for --optimiser.kind adam")
    if "channels" in values and not _shows_images(settings):
        raise InputError(f"--channels has no effect with {environment}, which shows vectors; it is for images")
    return settings


def _shows_images(settings: TrainingSettings) -> bool:
    from ipe.deep.environments import make_environment

    environment = make_environment(settings.environment, 0)
    environment.close()
    return environment.spec.image


def _option(path: str) -> str:
    name = path.removeprefix("environment.") if path == "environment.frame_limit" else path
    return f"--{name.replace('_', '-')}"


def _seeds(text: str | None) -> int | list[int]:
    if text is None:
        return 1
    words = [word.strip() for word in text.split(",")]
    many = len(words) > 1
    if many and not words[-1]:
        del words[-1]
    if not all(word.isdecimal() for word in words):
        raise InputError(f"--seeds must be how many, or which ones with commas as in 3,5,8; found {text!r}")
    return [int(word) for word in words] if many else int(words[0])


def _say_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    _say(f"note: {message}")


def _say(sentence: str) -> None:
    if sys.stderr is not None:
        print(f"ipe train: {' '.join(sentence.split())}", file=sys.stderr, flush=True)


def _interrupted(folder: Path, display: Display, number_of_signal: int) -> int:
    """Say where the run stands, and return the exit code."""
    from ipe.deep.runs import open_run

    again = _again(folder)
    if not (folder / "run.json").exists():
        _say("interrupted before training began")
    elif open_run(folder).content.get("status") == "running":  # a second Ctrl-C: nothing was collected
        _say(f"interrupted at once; go on from the last checkpoint with: {again}")
    else:
        frames = [progress.frame for progress in display.latest.values()] or [0]
        at = f"frame {frames[0]}" if len(set(frames)) == 1 else f"frames {min(frames)} to {max(frames)}"
        _say(f"stopped at {at}; go on with: {again}")
    return 128 + number_of_signal


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


def result_lines(result: TrainingResult) -> list[str]:
    """A table with a row per seed, and where the run is."""
    import numpy as np

    from ipe.analysis import aucs
    from ipe.deep.runs import open_run

    seeds = [outcome.seed for outcome in result.outcomes]
    frames = open_run(result.folder).settings.frames
    areas = aucs(result.episodes, frames, seeds)
    seed_of, returns = (np.asarray(result.episodes[name]) for name in ("seed", "return"))
    rows = [["seed", "status", "episodes", "return (last 20)", "best (20)", "AUC"]]
    for outcome, area in zip(result.outcomes, areas, strict=True):
        own = returns[seed_of == outcome.seed]
        last, best = (None, None) if own.size == 0 else (float(own[-20:].mean()), best_trailing(own))
        cells = [number(last), number(best), number(float(area))]
        rows.append([str(outcome.seed), outcome.status, str(own.size), *cells])
    return [
        *columns(rows, left=[1]),
        "",
        f"wrote {result.folder}{os.sep}: run.json, episodes.parquet, progress.parquet",
    ]


def best_trailing(returns: Any, window: int = 20) -> float:
    """The best mean of `window` returns in a row; of all of them if there are fewer.

    Example:
        >>> best_trailing([5.0, 1.0, 2.0, 3.0], window=2)
        3.0
    """
    import numpy as np

    values = np.asarray(returns, dtype=np.float64)
    sums = np.convolve(values, np.ones(min(window, values.size)), mode="valid")
    return float(sums.max() / min(window, values.size))
