r"""Sweeps declared in TOML: a base, a grid of lists, named cases.

::

    name = "widths"
    seeds = 30                                # or which: [3, 5, 8]

    [base]                                    # fields of TrainingSettings; the rest is the paper's
    environment = "LunarLander-v3"            # or a table with id, frame_limit and options

    [grid]                                    # every combination, in each case
    width = [64, 128, 256]

    [cases.epsilon-greedy]                    # other fields of the base for this case
    behaviour = "epsilon-greedy"
    grid = { "epsilon.final" = [0.2, 0.01] }  # and a grid of its own, beside the common one

    [cases.epsilon-ipe]
    behaviour = "epsilon-ipe"

With `one_at_a_time = true` a case has its base, and each listed value of each hyperparameter with all others at the
base's, instead of every combination. A table `halving` declares the rungs of `ipe sweep --halving`
(`ipe.experiments.rungs`). A table `evaluation` has every run evaluated greedily while it trains: `every` so many
frames, with so many `episodes`.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from ipe.base.files import naming
from ipe.base.numbers import true_or_false
from ipe.base.words import did_you_mean
from ipe.deep.evaluating import Evaluating, check_reached, read_evaluating
from ipe.deep.settings import read_settings
from ipe.errors import InputError
from ipe.experiments.combinations import Case, check_plain, settings_of
from ipe.experiments.declared import Job, Setting, Sweep, read_seeds
from ipe.experiments.halving import rungs_of

__all__ = ["Job", "Setting", "Sweep", "changed", "jobs", "make_sweep", "read_sweep", "shipped_sweeps"]

_KEYS = ("name", "seeds", "one_at_a_time", "base", "grid", "cases", "halving", "evaluation")
MOST_SETTINGS = 100_000


def read_sweep(path: str | os.PathLike[str]) -> Sweep:
    """Read the sweep in a TOML file; or the shipped one of that name (`shipped_sweeps`), if there is no such file.

    Args:
        path: the file. The file's name is the sweep's, if the file gives none.

    Raises:
        InputError: one sentence with the file, the path of the field, and the nearest valid name.
    """
    if "\0" in str(path):
        raise InputError(f"{str(path)!r} is the name of no file: it has a null character")
    file = Path(path)
    if not file.exists() and str(path) in (known := shipped_sweeps()):
        file = known[str(path)]
    try:
        content = tomllib.loads(file.read_bytes().decode())
    except FileNotFoundError:
        names, close = ", ".join(shipped_sweeps()), did_you_mean(str(path), shipped_sweeps())
        raise InputError(
            f"there is no file {path}, and no sweep of that name{close}; those that have one: {names}"
        ) from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; a sweep is declared in a TOML file") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply") from None
    except ValueError:  # Python reads no integer of more than 4300 digits
        raise InputError(f"{path}: {_long_number(file)}") from None
    with naming(path):
        return make_sweep({"name": file.stem} | content)


def shipped_sweeps() -> dict[str, Path]:
    """Return the files that come with `ipe`, by name: the grids of the paper's appendix."""
    folder = Path(__file__).parent / "sweeps"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def make_sweep(content: dict[str, Any]) -> Sweep:
    """Make a sweep from the content of a TOML file.

    Args:
        content: name, seeds, one_at_a_time, base, grid, cases, halving, evaluation, as this module's docstring shows.

    Raises:
        InputError: one sentence with the path of the first wrong field.

    Example:
        >>> base = {"environment": "LunarLander-v3", "behaviour": "epsilon-greedy"}
        >>> grid = {"width": [64, 256], "epsilon": {"final": [0.1, 0.01]}}
        >>> sweep = make_sweep({"name": "small", "seeds": 5, "base": base, "grid": grid})
        >>> len(sweep.settings), sweep.runs, sweep.settings[0].name
        (4, 20, 'width=64 epsilon.final=0.1')
        >>> sweep.settings[0].settings.target_period  # what is not given is the paper's
        500
    """
    check_plain(content)
    _check_keys(content)
    name = content.get("name", "")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InputError(f"name must be a text on one line, found {name!r}")
    single = content.get("one_at_a_time", False)
    true_or_false(single, "one_at_a_time")
    seeds = read_seeds(content.get("seeds", 1))
    cases = _cases(content)
    count = sum(math.prod(len(values) for values in case.grid.values()) for case in cases) if not single else 0
    if count > MOST_SETTINGS:
        raise InputError(f"the grid has {count} settings; at most {MOST_SETTINGS} are possible")
    settings = [setting for case in cases for setting in settings_of(case, single)]
    _check_different(settings)
    evaluating = read_evaluating(content.get("evaluation"))
    check_reached(evaluating, max(setting.settings.frames for setting in settings))
    sweep = Sweep(name, seeds, settings, single, dict(content.get("halving", {})), evaluating)
    if sweep.halving:
        rungs_of(sweep)
    return sweep


def jobs(sweep: Sweep, batch_seeds: int | None = None) -> list[Job]:
    """Return the jobs of a sweep, in the order of the settings: for each its seeds in batches, whatever machine will
    run them. A batch has at most `batch_seeds`, by default as many as a process's cache serves best.

    Raises:
        InputError: for an environment that cannot be trained on, and for a number of seeds that is not possible.
    """
    from ipe.deep.batches import MOST, most_seeds, seeds_per_batch, split_seeds
    from ipe.deep.environments import make_environment
    from ipe.deep.programs import unused_sizes

    specs: dict[str, Any] = {}
    out: list[Job] = []
    for setting in sweep.settings:
        settings = setting.settings
        known = settings.environment.model_dump_json()
        if known not in specs:
            environment = make_environment(settings.environment, sweep.seeds[0])
            environment.close()
            specs[known] = environment.spec
        spec = specs[known]
        for name, why in unused_sizes(settings, spec).items():
            if name in setting.varied:
                raise InputError(f"the grid's {name} has no effect with {settings.environment.id}, {why}")
        limit = most_seeds(settings, spec.image, spec.actions)
        if batch_seeds is not None and not 1 <= batch_seeds <= MOST:
            raise InputError(f"batch_seeds must lie between 1 and {MOST}, found {batch_seeds}")
        most = min(limit, batch_seeds or seeds_per_batch(settings, spec.image))
        out += [Job(setting.key, tuple(batch)) for batch in split_seeds(sweep.seeds, most, 1)]
    return out


def changed(
    sweep: Sweep,
    *,
    seeds: int | list[int] | None = None,
    frames: int | None = None,
    evaluating: Evaluating | None = None,
) -> Sweep:
    """Return a sweep with other seeds, another number of frames, or another evaluation while training.

    Args:
        sweep: the sweep.
        seeds: how many seeds, or which. Default: the same.
        frames: the frames of every run. Default: the same.
        evaluating: when the runs are evaluated while they train. Default: the same.

    Raises:
        InputError: naming what is wrong with them, or if the grid varies the frames.
    """
    settings = sweep.settings
    if frames is not None:
        if any("frames" in setting.varied for setting in settings):
            raise InputError("frames are what the grid varies; they cannot be given for all settings")
        settings = [
            replace(one, settings=read_settings(one.settings.model_dump() | {"frames": frames})) for one in settings
        ]
        _check_different(settings)
    evaluating = sweep.evaluating if evaluating is None else evaluating
    check_reached(evaluating, max(setting.settings.frames for setting in settings))
    chosen = sweep.seeds if seeds is None else read_seeds(seeds)
    return replace(sweep, settings=settings, seeds=chosen, evaluating=evaluating)


def _long_number(file: Path) -> str:
    """Say on which line of a file, under which key, the first number of more than a thousand digits stands."""
    for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1):
        if found := re.search(r"[0-9_]{1000,}", line):
            key = line[: found.start()].rpartition("=")[0].strip()[-80:] or "it"
            return f"line {number}: {key} holds a number of {len(found[0])} digits; integers have at most 19"
    return "it holds a number of too many digits; integers have at most 19"


def _check_keys(content: dict[str, Any]) -> None:
    for key in content:
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS) or f" (there are {', '.join(_KEYS)})"
            raise InputError(f"there is no key {key} in a sweep's file{hint}")
    for key in ("base", "grid", "cases", "halving"):
        if not isinstance(content.get(key, {}), dict):
            raise InputError(f"{key} must be a table, found {content[key]!r}")


def _cases(content: dict[str, Any]) -> list[Case]:
    base, grid = content.get("base", {}), content.get("grid", {})
    common = Case("", "base", {}, {}, {}).with_fields("", "base", base, True).with_grid("grid", grid)
    if "cases" not in content:
        return [common]
    if not content["cases"]:
        raise InputError("cases is an empty table")
    cases = []
    for name, fields in content["cases"].items():
        if not name.strip():
            raise InputError(f"cases: a case's name must not be empty, found {name!r}")
        where = f"cases.{name}"
        if not isinstance(fields, dict):
            raise InputError(f"{where} must be a table, found {fields!r}")
        others = dict(fields)
        inner = others.pop("grid", {})
        if not isinstance(inner, dict):
            raise InputError(f"{where}.grid must be a table, found {inner!r}")
        case = common.with_fields(name, where, others, content.get("one_at_a_time") is True)
        cases.append(case.with_grid(f"{where}.grid", inner))
    return cases


def _check_different(settings: list[Setting]) -> None:
    seen: dict[str, Setting] = {}
    for setting in settings:
        if (before := seen.setdefault(setting.key, setting)) is not setting:
            raise InputError(f"the settings {before.name!r} and {setting.name!r} are the same")
