"""What a sweep is once its file is read: settings, seeds, and the jobs that they make; how two sweeps differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from ipe.base.files import naming
from ipe.base.nested import flatten
from ipe.base.numbers import is_whole, seed_number
from ipe.base.words import short
from ipe.deep.evaluating import Evaluating, check_reached, read_evaluating
from ipe.deep.settings import TrainingSettings, read_settings
from ipe.errors import InputError


@dataclass(frozen=True)
class Setting:
    """One point of a grid."""

    name: str
    """A name that no other setting of the sweep has: the case, then what the case's grid varies, for instance
    `epsilon-ipe width=64 value_step_size=0.001`."""
    case: str
    """The name of the case, for instance `epsilon-ipe`; empty if the sweep has no cases."""
    varied: dict[str, Any]
    """This setting's value of everything that the case's grid varies, by its path: `{"width": 64, "epsilon.final":
    0.1}`. Also where values are varied one at a time: the case's first setting is the base then."""
    settings: TrainingSettings
    """The settings to train with."""

    @property
    def behaviour(self) -> str:
        """The name of the behaviour, which decides how the setting is drawn."""
        return self.settings.behaviour

    @property
    def frames(self) -> int:
        """The number of frames of a run."""
        return self.settings.frames

    def fields(self) -> dict[str, Any]:
        """Return the settings to train with as nested dictionaries."""
        return self.settings.model_dump()

    @cached_property
    def key(self) -> str:
        """16 hexadecimal digits that stand for what is trained, in whatever sweep."""
        return _digest(self.settings.model_dump())

    @cached_property
    def stem(self) -> str:
        """16 hexadecimal digits that stand for what is trained, for however many frames."""
        return _digest({name: value for name, value in self.settings.model_dump().items() if name != "frames"})


def _digest(settings: Mapping[str, Any]) -> str:
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sweep:
    """Settings by seeds. A training run is a sweep of one setting."""

    name: str
    """The name of the sweep."""
    seeds: list[int]
    """The seeds of every setting."""
    settings: list[Setting]
    """The settings, all different; those of a case stand beside each other."""
    one_at_a_time: bool
    """Whether the values were varied one at a time around a base; otherwise in all combinations."""
    halving: Mapping[str, Any] = field(default_factory=dict)
    """The table `halving` of the sweep's file, for successive halving (`ipe.experiments.rungs`). A store does not hold
    it: each rung is a sweep of its own."""
    evaluating: Evaluating | None = None
    """When the runs are evaluated while they train; None: never. It is no part of a setting, and does not change its
    key: the training is the same with and without."""

    @classmethod
    def of_one(cls, settings: TrainingSettings, seeds: Sequence[int], evaluating: Evaluating | None = None) -> Self:
        """Return the sweep that a training run is: one setting, and its seeds."""
        check_reached(evaluating, settings.frames)
        name, one = f"{settings.environment.id} {settings.behaviour}", Setting(settings.behaviour, "", {}, settings)
        return cls(name, list(seeds), [one], one_at_a_time=False, evaluating=evaluating)

    @cached_property
    def by_key(self) -> dict[str, Setting]:
        """The settings by their keys."""
        return {setting.key: setting for setting in self.settings}

    @property
    def runs(self) -> int:
        """The number of runs: settings times seeds."""
        return len(self.settings) * len(self.seeds)

    @property
    def frames(self) -> int:
        """The frames of all runs together."""
        return sum(setting.settings.frames for setting in self.settings) * len(self.seeds)

    def plain(self) -> dict[str, Any]:
        """Return the sweep as plain data, for JSON."""
        settings = [
            {"name": each.name, "case": each.case, "varied": each.varied, "settings": each.settings.model_dump()}
            for each in self.settings
        ]
        plain = {"name": self.name, "seeds": self.seeds, "one_at_a_time": self.one_at_a_time, "settings": settings}
        return plain | ({} if self.evaluating is None else {"evaluation": self.evaluating.plain()})

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> Self:
        """Return the sweep from what `plain` gave.

        Raises:
            InputError: naming what is missing or wrong.
        """
        try:
            seeds = read_seeds(content["seeds"])
            settings = []
            for i, each in enumerate(content["settings"]):
                with naming(f"settings[{i}].settings"):
                    read = read_settings(each["settings"])
                settings.append(Setting(str(each["name"]), str(each["case"]), dict(each["varied"]), read))
            evaluating = read_evaluating(content.get("evaluation"))
            sweep = cls(str(content["name"]), seeds, settings, bool(content["one_at_a_time"]), evaluating=evaluating)
        except InputError:
            raise
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"the sweep's {error} is missing or wrong") from None
        if len(sweep.by_key) < len(settings):
            raise InputError("two of the sweep's settings are the same")
        return sweep


@dataclass(frozen=True)
class Job:
    """Some seeds of one setting, trained together by one process."""

    key: str
    """The key of the setting."""
    seeds: tuple[int, ...]
    """The seeds that are trained together."""

    @property
    def id(self) -> str:
        """The name of the job, safe as a file's."""
        return f"{self.key}-{self.seeds[0]}-{self.seeds[-1]}-{len(self.seeds)}"


def read_seeds(value: Any) -> list[int]:
    """Read seeds, given as how many there are, or which.

    Example:
        >>> read_seeds(3), read_seeds([5, 8])
        ([0, 1, 2], [5, 8])
    """
    if is_whole(value):
        if not 1 <= value <= 10**6:
            raise InputError(f"seeds must be from 1 to a million, found {value}")
        return list(range(value))
    if not isinstance(value, list | tuple):
        raise InputError(f"seeds must be how many, or a list of which, found {value!r}")
    if not value:
        raise InputError("seeds is an empty list")
    seen: set[int] = set()
    for i, seed in enumerate(value):
        seed_number(seed, f"seeds[{i}]")
        if seed in seen:
            raise InputError(f"seeds[{i}] = {seed} is there twice")
        seen.add(seed)
    return list(value)


def check_contains(sweep: Sweep, stored: Sweep) -> None:
    """Refuse a sweep that lacks a setting or a seed of a stored one, or that is evaluated otherwise; it may have more,
    and other names. The error names the setting, its first field that differs and both values; or the seed."""
    if sweep.evaluating != stored.evaluating:
        there, here = stored.evaluating or "none", sweep.evaluating or "none"
        raise InputError(f"its evaluation while training is {there} there, and {here} in this sweep")
    keys = {setting.key for setting in sweep.settings}
    for setting in stored.settings:
        if setting.key not in keys:
            raise InputError(f"{_missing(setting, sweep.settings)}; a sweep can be given more settings, not other ones")
    if missing := [seed for seed in stored.seeds if seed not in set(sweep.seeds)]:
        listed = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        which = f"seed {listed} is" if len(missing) == 1 else f"seeds {listed} are"
        raise InputError(f"its {which} not in this sweep, which can be given more seeds, not fewer")


def merged_jobs(existing: Sequence[Job], jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs that are there, and new ones for the seeds that they do not cover.

    Example:
        >>> [job.seeds for job in merged_jobs([Job("k", (0, 1))], [Job("k", (0, 1, 2)), Job("k", (3, 4))])]
        [(0, 1), (2,), (3, 4)]
    """
    covered = {(job.key, seed) for job in existing for seed in job.seeds}
    left = ((job.key, tuple(seed for seed in job.seeds if (job.key, seed) not in covered)) for job in jobs)
    return [*existing, *(Job(key, seeds) for key, seeds in left if seeds)]


def seed_by_seed(sweep: Sweep, jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs in the order in which they are done: the first seeds of every setting, then the next ones.

    Wherever a sweep is stopped, its settings have about equal numbers of runs.

    Example:
        >>> from dataclasses import replace
        >>> from ipe.deep.settings import paper_settings
        >>> sweep = Sweep.of_one(paper_settings("LunarLander-v3"), range(4))
        >>> other = Setting("other", "", {}, paper_settings("LunarLander-v3", width=64))
        >>> sweep = replace(sweep, settings=[*sweep.settings, other])
        >>> jobs = [Job(setting.key, seeds) for setting in sweep.settings for seeds in ((0, 1), (2, 3))]
        >>> [(sweep.by_key[job.key].name, job.seeds) for job in seed_by_seed(sweep, jobs)]
        [('epsilon-ipe', (0, 1)), ('other', (0, 1)), ('epsilon-ipe', (2, 3)), ('other', (2, 3))]
    """
    turn = {seed: i for i, seed in enumerate(sweep.seeds)}
    place = {setting.key: i for i, setting in enumerate(sweep.settings)}
    return sorted(jobs, key=lambda job: (turn[job.seeds[0]], place[job.key]))


def check_jobs(sweep: Sweep, jobs: Sequence[Job]) -> None:
    """Refuse jobs that do not hold every seed of every setting once; the error names the setting and the seed."""
    names, seeds = {setting.key: setting.name for setting in sweep.settings}, set(sweep.seeds)
    covered: set[tuple[str, int]] = set()
    for job in jobs:
        if job.key not in names:
            raise InputError(f"the job {job.id} is of a setting that is not in the sweep")
        for seed in job.seeds:
            where = f"setting {names[job.key]!r}, seed {seed}"
            if seed not in seeds:
                raise InputError(f"{where}: there is a job for it, and it is not in the sweep")
            if (job.key, seed) in covered:
                raise InputError(f"{where}: it is in two jobs")
            covered.add((job.key, seed))
    for key, name in names.items():
        if left := [seed for seed in sweep.seeds if (key, seed) not in covered]:
            raise InputError(f"setting {name!r}, seed {left[0]}: it is in no job")


def _missing(wanted: Setting, settings: Sequence[Setting]) -> str:
    """Name the setting that is missing, and how the one most like it differs."""
    mine = flatten(wanted.settings.model_dump())
    same_name = [setting for setting in settings if setting.name == wanted.name]
    found = [(_differences(mine, flatten(other.settings.model_dump())), other) for other in same_name or settings]
    unlike, nearest = min(found, key=lambda pair: len(pair[0]))
    path, before, now = unlike[0]
    more = f" (and {len(unlike) - 1} more fields differ)" if len(unlike) > 1 else ""
    values = f"{path} is {short(before)} there and {short(now)}"
    if nearest.name == wanted.name:
        return f"in its setting {wanted.name!r}, {values} in this sweep{more}"
    return f"its setting {wanted.name!r} is not in this sweep; the nearest is {nearest.name!r}: {values} here{more}"


def _differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """Return the fields in which two settings differ, by path, with both values; None for a missing one."""
    pairs = [(path, one.get(path), other.get(path)) for path in {**one, **other}]
    return [(path, a, b) for path, a, b in pairs if a != b or type(a) is not type(b)]
