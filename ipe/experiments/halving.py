r"""Successive halving on disk: a folder with a store for each rung, and the description of all of them.

::

    OUT/halving.json         the sweep and its rungs
    OUT/rung-0/              a store of all settings, with few runs of few frames
    OUT/rung-1/              a store of the better ones: more runs, more frames
    OUT/confirm/             fresh runs of the chosen settings, with `--confirm-seeds`

The runs of a rung are begun from the checkpoints that the rung before has kept: a run depends on its settings and its
seed alone, so that the longer run's records are, to the byte, those of a run that never stopped. Without those
checkpoints, as in a published folder, the runs are trained from their first frame, to the same bytes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ipe.base.atomic import write_bytes
from ipe.base.sealed import encode, read_sealed, sealed_bytes
from ipe.base.words import refusing
from ipe.deep.settings import no_effect, read_settings
from ipe.errors import InputError
from ipe.experiments.declared import Setting, Sweep
from ipe.experiments.rungs import Halving, check_halving, read_halving

FORMAT, SCHEMA = "ipe.halving", 1
NAME = "halving.json"


def is_halving(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a sweep by successive halving."""
    return (Path(folder) / NAME).is_file()


def rung_folder(folder: str | os.PathLike[str], rung: int) -> Path:
    """Return the folder of the store of a rung."""
    return Path(folder) / f"rung-{rung}"


def begun_rungs(folder: str | os.PathLike[str]) -> list[Path]:
    """Return the folders of the rungs that have begun; of a folder with another sweep, the folder itself."""
    if not is_halving(folder):
        return [Path(folder)]
    rungs = open_halving(folder)[1].rungs
    return [place for i in range(rungs) if ((place := rung_folder(folder, i)) / "sweep.json").is_file()]


def case_of(setting: Setting) -> tuple[str, str]:
    """Return the case and the environment of a setting: settings are compared with those of the same."""
    return setting.case, setting.settings.environment.model_dump_json()


def rungs_of(sweep: Sweep) -> Halving:
    """Return the rungs of a sweep: those that its file declares, or the default ones.

    Raises:
        InputError: if the sweep cannot be halved, or its rungs are not possible.

    Example:
        >>> from ipe.experiments.grids import read_sweep
        >>> rungs_of(read_sweep("freeway-dqn")).sizes(54)
        [54, 27, 14, 7, 4]
    """
    if any("frames" in setting.varied for setting in sweep.settings):
        raise InputError("frames are what the grid varies; halving compares settings of equal frames")
    if sweep.one_at_a_time:
        raise InputError("one_at_a_time: halving looks for the best of all combinations")
    sizes = Counter(map(case_of, sweep.settings))
    frames = {setting.settings.frames for setting in sweep.settings}
    if len(frames) > 1:
        raise InputError(
            f"halving compares settings of equal frames, and these have from {min(frames)} to {max(frames)}"
        )
    if max(sizes.values()) < 2:
        raise InputError("each case has one setting: there is nothing to choose by halving")
    least = max(map(_schedule, sweep.settings))
    halving = read_halving(sweep.halving, max(sizes.values()), len(sweep.seeds), frames.pop(), least)
    for each in sorted({setting.settings.environments for setting in sweep.settings}):
        if wrong := [length for length in halving.frames if length % each]:
            raise InputError(f"halving.frames: {wrong[0]} must be a multiple of environments = {each}")
    return halving


def _schedule(setting: Setting) -> int:
    """Return the frames until epsilon has its final value; 0 for a behaviour without a schedule."""
    settings = setting.settings
    if no_effect("epsilon.steps", settings.behaviour, settings.optimiser.kind):
        return 0
    return settings.warm_up + settings.epsilon.steps


def rung_sweep(sweep: Sweep, halving: Halving, rung: int, stems: Sequence[str] | None = None) -> Sweep:
    """Return the sweep of a rung, counted from 0, for the settings that have come so far, given by their stems, or for
    all."""
    frames, wanted = halving.frames[rung], None if stems is None else set(stems)
    settings = [
        replace(one, settings=read_settings(one.settings.model_dump() | {"frames": frames}))
        for one in sweep.settings
        if wanted is None or one.stem in wanted
    ]
    name, seeds = f"{sweep.name}, rung {rung}", sweep.seeds[: halving.runs[rung]]
    return Sweep(name, seeds, settings, one_at_a_time=False, evaluating=sweep.evaluating)


def make_halving(folder: str | os.PathLike[str], sweep: Sweep, halving: Halving) -> None:
    """Make the folder of a sweep by halving; or check that the one that is there is of this sweep, with the same
    settings, seeds and rungs."""
    path = Path(folder)
    content = {"format": FORMAT, "schema": SCHEMA, "sweep": sweep.plain(), "halving": halving.plain()}
    if is_halving(path):
        stored, rungs = open_halving(path)
        if rungs != halving:
            raise InputError(f"{path} was made with other rungs: {_words(rungs)}; these are {_words(halving)}")
        if encode(sweep.plain(), "sweep") != encode(stored.plain(), "sweep"):
            raise InputError(f"{path} was made for another sweep, {stored.name!r}; settings and seeds must be the same")
        return
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise InputError(f"{path} exists, is not empty and holds no sweep by halving; choose another folder")
    with refusing(f"cannot make the folder {path}"):
        path.mkdir(parents=True, exist_ok=True)
    write_bytes(path / NAME, sealed_bytes(content, "halving"))


def open_halving(folder: str | os.PathLike[str]) -> tuple[Sweep, Halving]:
    """Return the sweep and the rungs that a folder was made for; a folder without them is refused."""
    path = Path(folder) / NAME
    content = read_sealed(path, FORMAT, SCHEMA)
    try:
        sweep, plain = Sweep.from_plain(content["sweep"]), content["halving"]
        halving = Halving(tuple(plain["frames"]), tuple(plain["runs"]), float(plain["factor"]))
        check_halving(halving, len(sweep.seeds), sweep.settings[0].settings.frames)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{path}: {error!r} is missing or wrong") from None
    return sweep, halving


def _words(halving: Halving) -> str:
    pairs = zip(halving.runs, halving.frames, strict=True)
    return f"{', '.join(f'{runs} runs of {frames}' for runs, frames in pairs)}, factor {halving.factor:g}"
