r"""What the name of a run's folder says: the setting, the environment and the run.

Known are RL Baselines3 Zoo's `dqn/CartPole-v1_1`, CleanRL's `CartPole-v1__dqn__1__1700000000`, Stable-Baselines3's
`DQN_1`, and what people write: `dqn/seed-3`, `dqn_s3`, `CartPole-v1/dqn/3`, `lr=0.001/seed=3`. Others are described by
a pattern: `{environment}/{setting}/width{width}/s{seed}`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from ipe.analysis.recorded.record import value_of
from ipe.errors import InputError

_ENVIRONMENT = r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*-v[0-9]+"
_CLEANRL = re.compile(r"(?P<environment>.+?)__(?P<setting>.+)__(?P<run>[0-9]+)__(?:[0-9]{9,})")
_ZOO = re.compile(rf"(?P<environment>{_ENVIRONMENT})_(?P<run>[0-9]+)")
_ONLY_ENVIRONMENT = re.compile(_ENVIRONMENT)
_RUN_WORD = r"(?:seed|run|trial|rep|repeat|s)"
_ONLY_RUN = re.compile(rf"(?:{_RUN_WORD}[-_=]?)?(?P<run>[0-9]+)", re.IGNORECASE)
_WORD_RUN = re.compile(rf"{_RUN_WORD}[-_=]?(?P<run>[0-9]+)", re.IGNORECASE)
_SAYS_RUN = re.compile(rf"(?:.+?[-_.])?{_RUN_WORD}[-_=]?[0-9]+", re.IGNORECASE)
_THEN_RUN = re.compile(rf"(?P<rest>.+?)[-_.]{_RUN_WORD}[-_=]?(?P<run>[0-9]+)", re.IGNORECASE)
_THEN_NUMBER = re.compile(r"(?P<rest>.+?)_(?P<run>[0-9]+)")
_VALUES = re.compile(r"[A-Za-z_][\w.]*=[^=,]+(?:,[A-Za-z_][\w.]*=[^=,]+)*")
_NAMESPACES = {"ALE", "MinAtar", "minatar", "dm_control", "tabular", "phys2d"}
_PLACES = {"eval", "evals", "evaluation", "evaluations", "tb", "tensorboard", "tensorboard_log", "monitor", "logs",
           "train", "training"}  # fmt: skip
"""Folders below a run's that only say what lies in them."""


@dataclass(frozen=True)
class Named:
    """What a path says. A part that it does not say is empty."""

    setting: tuple[str, ...] = ()
    """The parts of the path that name the setting."""
    environment: str = ""
    run: str = ""
    varied: dict[str, Any] = field(default_factory=dict)
    """Hyperparameters that the path says, as in `lr=0.001`."""
    folders: bool = False
    """Whether the setting is named by folders as they are: those that all settings have can then be left out."""


def read_path(parts: Sequence[str], environment: str = "") -> Named:
    """What the parts of a run's path say, below the folder that the user named.

    The run is the last part that looks like one. A part that is the environment's id, whether known from elsewhere or
    of Gymnasium's form `Name-v1`, is not a part of the setting's name.

    Example:
        >>> read_path(["dqn", "CartPole-v1_2"])
        Named(setting=('dqn',), environment='CartPole-v1', run='2', varied={}, folders=True)
        >>> read_path(["CartPole-v1__dqn__1__1700000000"])
        Named(setting=('dqn',), environment='CartPole-v1', run='1', varied={}, folders=True)
        >>> read_path(["lr=0.001", "seed_3"])
        Named(setting=(), environment='', run='3', varied={'lr': 0.001}, folders=True)
    """
    left = _run_folder(parts)
    run = ""
    setting: list[str] = []
    varied: dict[str, Any] = {}
    said = any(_SAYS_RUN.fullmatch(part) for part in left)
    for i, part in enumerate(reversed(left)):  # the run is looked for from the end
        number = _THEN_NUMBER if i == 0 and not said else _THEN_RUN
        if found := _CLEANRL.fullmatch(part) or _ZOO.fullmatch(part):
            environment = environment or found["environment"]
            run = run or found["run"]
            if named := found.groupdict().get("setting"):
                setting.append(named)
        elif part == environment or _ONLY_ENVIRONMENT.fullmatch(part):
            environment = environment or part
        elif part in _NAMESPACES and environment and "/" not in environment:
            environment = f"{part}/{environment}"
        elif _VALUES.fullmatch(part) and not (not run and _ONLY_RUN.fullmatch(part)):
            varied |= _values(part)
        elif not run and (found := (_WORD_RUN if said else _ONLY_RUN).fullmatch(part)):
            run = found["run"]
        elif not run and (found := _THEN_RUN.fullmatch(part) or number.fullmatch(part)):
            run = found["run"]
            if _VALUES.fullmatch(found["rest"]):
                varied |= _values(found["rest"])
            else:
                setting.append(found["rest"])
        else:
            setting.append(part)
    return Named(tuple(reversed(setting)), environment, run, varied, folders=True)


def _values(part: str) -> dict[str, Any]:
    """The hyperparameters in `lr=0.001,width=64`."""
    return {name: value_of(value) for name, _, value in (pair.partition("=") for pair in part.split(","))}


def _run_folder(parts: Sequence[str]) -> list[str]:
    """The parts of a path without folders inside a run's that only say what lies in them: `dqn/seed_0/tb/DQN_1` is the
    run `dqn/seed_0`."""
    left = list(parts)
    says = [i for i, part in enumerate(left) if _SAYS_RUN.fullmatch(part)]
    inside = [i for i, part in enumerate(left) if part.lower() in _PLACES and says and i > says[-1]]
    left = left[: inside[0]] if inside else left
    while len(left) > 1 and left[-1].lower() in _PLACES:
        left.pop()
    return left


def pattern_of(layout: str) -> re.Pattern[str]:
    """A user's pattern for paths as a regular expression.

    Args:
        layout: a path in which `{setting}`, `{environment}` and `{seed}` (or `{run}`) stand for these, any other
            `{name}` for a hyperparameter, and `*` for anything; none of them goes beyond a slash, but `**` does.

    Raises:
        InputError: if a name stands twice or is none, or there is nothing to tell runs apart.

    Example:
        >>> pattern_of("{setting}/w{width}_s{seed}").fullmatch("dqn/w64_s3").groupdict()
        {'setting': 'dqn', 'width': '64', 'seed': '3'}
    """
    out, names = "", set[str]()
    for text, name, star in re.findall(r"([^{}*]+)|\{([^{}]*)\}|(\*{1,2})", layout):
        if text:
            out += re.escape(text)
        elif star:
            out += ".*" if star == "**" else "[^/]*"
        else:
            if not name.isidentifier():
                raise InputError(f"layout: {{{name}}} in {layout!r} is no name")
            if name in names:
                raise InputError(f"layout: {{{name}}} stands twice in {layout!r}")
            names.add(name)
            out += f"(?P<{name}>[^/]+?)"
    if layout.count("{") != layout.count("}") or layout.count("{") != len(names):
        raise InputError(f"layout: a brace is missing in {layout!r}")
    if not names:
        raise InputError(f"layout: {layout!r} names nothing; write {{setting}}, {{environment}} or {{seed}} into it")
    return re.compile(out)


def match_path(parts: Sequence[str], pattern: re.Pattern[str], layout: str) -> Named:
    """What a path says by a user's pattern; a path that does not fit is refused with both."""
    path = str(PurePosixPath(*parts))
    found = pattern.fullmatch(path)
    if found is None:
        raise InputError(f"layout: {path!r} does not fit {layout!r}")
    values = found.groupdict()
    setting, environment = values.pop("setting", ""), values.pop("environment", "")
    run = values.pop("seed", "") or values.pop("run", "")
    return Named(
        (setting,) if setting else (), environment, run, {name: value_of(value) for name, value in values.items()}
    )
