"""What a sweep is once its file is read: settings, seeds, and the jobs that they make."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from ipe.base.numbers import is_whole, seed_number
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

    @cached_property
    def key(self) -> str:
        """16 hexadecimal digits that stand for what is trained, in whatever sweep."""
        text = json.dumps(self.settings.model_dump(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Sweep:
    """Settings by seeds. A training run is a sweep of one setting."""

    name: str
    seeds: list[int]
    """The seeds of every setting."""
    settings: list[Setting]
    """The settings, all different; those of a case stand beside each other."""
    one_at_a_time: bool
    """Whether the values were varied one at a time around a base; otherwise in all combinations."""

    @classmethod
    def of_one(cls, settings: TrainingSettings, seeds: Sequence[int]) -> Self:
        """Return the sweep that a training run is: one setting, and its seeds."""
        name = f"{settings.environment.id} {settings.behaviour}"
        return cls(name, list(seeds), [Setting(settings.behaviour, "", {}, settings)], one_at_a_time=False)

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
        return {"name": self.name, "seeds": self.seeds, "one_at_a_time": self.one_at_a_time, "settings": settings}

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
                try:
                    read = read_settings(each["settings"])
                except InputError as error:
                    raise InputError(f"settings[{i}].settings: {error}") from None
                settings.append(Setting(str(each["name"]), str(each["case"]), dict(each["varied"]), read))
            sweep = cls(str(content["name"]), seeds, settings, bool(content["one_at_a_time"]))
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
