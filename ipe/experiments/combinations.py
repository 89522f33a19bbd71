"""From a case of a sweep, its base and its lists of values, to the settings of the case."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ipe.base.nested import at_path, flatten, merged, nested
from ipe.deep.setting_groups import WHOLE
from ipe.deep.settings import TrainingSettings, no_effect, paper_settings
from ipe.errors import InputError
from ipe.experiments.declared import Setting

DEEPEST = 12
"""The most keys and indices that lead to a value in a sweep's file."""


@dataclass(frozen=True)
class Case:
    """A base and a grid."""

    name: str
    """The name of the case; empty if the sweep has no cases."""
    where: str
    """The table of the file in which the fields stand, for error messages."""
    fields: dict[str, Any]
    """The fields of the base, nested as `TrainingSettings` is."""
    grid: dict[str, list[Any]]
    """The values to take, by dotted path."""
    places: dict[str, str]
    """The table in which each path of the grid stands."""
    homes: dict[str, str] = field(default_factory=dict)
    """The table in which each path of the fields stands."""

    def with_fields(self, name: str, where: str, fields: dict[str, Any], single: bool) -> Case:
        """Return the case with other fields of the base, which stand in the table `where`; if values are varied one at
        a time, the case's grid may list them too."""
        tables = nested(fields)
        if isinstance(environment := tables.get("environment"), str):
            tables["environment"] = {"id": environment}
        for path, value in flatten(tables).items():
            if path in self.grid and not single:
                raise InputError(f"{where}.{path} has no effect: {self.places[path]}.{path} lists the values to take")
            if isinstance(value, float) and not math.isfinite(value):
                raise InputError(f"{where}.{path} must be finite, found {value}")
        homes = self.homes | {path: where for path, _ in flatten(tables).items()}
        return replace(self, name=name, where=where, fields=merged(self.fields, tables), homes=homes)

    def with_grid(self, where: str, grid: Mapping[str, Any]) -> Case:
        """Return the case with more lists of values; a list that was there is replaced."""
        lists = dict(_lists(grid, where))
        return replace(self, grid=self.grid | lists, places=self.places | dict.fromkeys(lists, where))


def check_plain(value: Any, path: str = "") -> None:
    """Refuse what no setting can be made of, by its path: keys of several lines, integers beyond 64 bits, tables within
    tables."""
    if path.count(".") + path.count("[") > DEEPEST:
        raise InputError(f"{path[:60]}...: it is nested too deeply")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str) or not key.isprintable():
                raise InputError(f"{path or 'the file'}: a key must be a text on one line, found {key!r}")
            check_plain(inner, f"{path}.{key}" if path else key)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            check_plain(inner, f"{path}[{i}]")
    elif isinstance(value, int) and abs(value) >= 2**63:
        raise InputError(f"{path} holds a number of {value.bit_length()} bits; integers have at most 63 and a sign")


def settings_of(case: Case, single: bool) -> list[Setting]:
    """Return the settings of a case: every combination; or, one at a time, the base, and each value with all others at
    the base's."""
    if not single:
        every = itertools.product(*case.grid.values())
        return [_setting(case, dict(zip(case.grid, values, strict=True)), list(case.grid)) for values in every]
    _settings_of_fields(case)
    for path, values in case.grid.items():
        for value in values:  # a wrong path or value is refused by its name, before the base is asked for its value
            _trained(case, {path: value})
    first = _setting(case, {}, [])
    out = [first]
    for path, values in case.grid.items():
        made = [_setting(case, {path: value}, [path]) for value in values]
        out += [setting for setting in made if setting.settings != first.settings]
    return out


def _setting(case: Case, values: dict[str, Any], named: list[str]) -> Setting:
    settings = _trained(case, values)
    for path in case.grid:
        _check_effect(case, path, settings)
    dump = settings.model_dump(context=WHOLE)
    varied = {path: _value(dump, path) for path in case.grid}
    return Setting(_name(case, {path: varied[path] for path in named}), case.name, varied, settings)


def _value(dump: dict[str, Any], path: str) -> Any:
    """Return the value of a setting; None for an option that is left to the environment."""
    try:
        return at_path(dump, path)
    except KeyError:
        return None


def _name(case: Case, values: Mapping[str, Any]) -> str:
    words = [case.name] * bool(case.name) + [f"{path}={_word(value)}" for path, value in values.items()]
    return " ".join(words) or "base"


def _trained(case: Case, values: dict[str, Any]) -> TrainingSettings:
    """Return the settings of a combination; an error says which table or which value of the grid is to blame."""
    try:
        return _settings(case, values)
    except InputError as error:
        together = str(error)
    if values:
        _settings_of_fields(case)
    for path, value in values.items():
        try:
            _settings(case, {path: value})
        except InputError as error:
            where, said = f"{case.places[path]}.{path}", str(error).removeprefix(f"{path}: ")
            index = f"[{case.grid[path].index(value)}]" if said != str(error) else ""
            raise InputError(f"{where}{index}: {said}") from None
    if values:
        raise InputError(f"the setting {_name(case, values)}: {together}")
    return _settings_of_fields(case)


def _settings_of_fields(case: Case) -> TrainingSettings:
    """Return the settings of the base alone; an error says which table is to blame."""
    try:
        return _settings(case, {})
    except InputError as error:
        said = str(error)
    named = [path for path in case.homes if re.search(rf"(^|setting ){re.escape(path)}\b", said)]
    where = case.homes[max(named, key=len)] if named else case.where
    raise InputError(f"{where}.{said}" if named and said.startswith(named[0]) else f"{where}: {said}")


def _settings(case: Case, values: dict[str, Any]) -> TrainingSettings:
    fields = case.fields
    for path, value in values.items():
        fields = merged(fields, nested({path: value}))
    environment = fields.get("environment", {})
    if not isinstance(environment, Mapping):
        raise InputError(f"environment: must be the name of an environment or a table, found {environment!r}")
    env_id = environment.get("id")
    if env_id is None:
        raise InputError('the environment is missing: environment = "LunarLander-v3", say')
    if not isinstance(env_id, str) or not env_id:
        raise InputError(f"environment.id: must be the name of an environment, found {env_id!r}")
    return paper_settings(env_id, **fields)


def _check_effect(case: Case, path: str, settings: TrainingSettings) -> None:
    """Refuse a list of values that makes no difference: the same runs would be trained again and again."""
    if why := no_effect(path, settings.behaviour, settings.optimiser.kind, settings.policy_update):
        raise InputError(f"{case.places[path]}.{path} has no effect {why}: list it in the grid of such a case")


def _lists(grid: Mapping[str, Any], where: str, prefix: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Yield the lists of a grid by dotted path, each checked for values that no setting can have."""
    for name, value in grid.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _lists(value, where, f"{path}.")
            continue
        if not isinstance(value, list):
            raise InputError(f"{where}.{path} must be a list of values, found {value!r}")
        if not value:
            raise InputError(f"{where}.{path} is an empty list")
        seen = set()
        for i, item in enumerate(value):
            if isinstance(item, float) and not math.isfinite(item):
                raise InputError(f"{where}.{path}[{i}] must be finite, found {item}")
            mark = (type(item), item if isinstance(item, int | float | str) else repr(item))
            if mark in seen:
                raise InputError(f"{where}.{path}[{i}] = {item!r} is there twice")
            seen.add(mark)
        yield "environment.id" if path == "environment" else path, value


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool | None) else str(value)
