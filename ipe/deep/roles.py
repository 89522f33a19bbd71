"""What a setting does besides having a value: metadata of its field, read by all who would else repeat it.

The fields of `ipe.deep.settings` are the one place where a setting is declared: type and range, default, docstring (the
sentence that the command line's help and the documentation show), and its `Role`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo


@dataclass(frozen=True)
class Role:
    """Where a setting has an effect."""

    compiled: bool = False
    """Whether the compiled program is made for the setting's value: runs that differ in it cannot share a batch."""
    traced: bool = False
    """Whether the compiled program is called with the setting, one number for each seed."""
    switch: bool = False
    """Whether 0 leaves the setting's formula out of the compiled program."""
    only_with: Literal["", "policy", "network", "schedule", "adam", "priority", "traces"] = ""
    """What the setting has an effect with: behaviours that learn an evaluation policy, those that have a policy network
    for whatever, behaviours with a scheduled number, Adam, prioritised replay, mixed returns; by default everything."""
    names: Callable[[], tuple[str, ...]] | None = None
    """The names that the setting may have, if they come from a table that may grow."""
    late: bool = False
    """Whether earlier versions did not have the setting. Its default is then left out of plain data, by which runs are
    named and found again."""


COMPILED = Role(compiled=True)
TRACED = Role(traced=True)
SWITCH = Role(traced=True, switch=True)
LATE = Role(compiled=True, late=True)


@dataclass(frozen=True)
class Leaf:
    """A setting that has no settings within it."""

    path: str
    """The setting's name, with those of the parts that it is in and dots between."""
    role: Role
    """Where the setting has an effect."""
    field: FieldInfo = field(repr=False)
    """The setting's type, default and sentence."""

    @property
    def name(self) -> str:
        """The path with underscores for dots."""
        return self.path.replace(".", "_")

    def value(self, settings: Any) -> Any:
        """The setting's value in some settings."""
        for part in self.path.split("."):
            settings = getattr(settings, part)
        return settings


def role_of(about: FieldInfo) -> Role:
    """The role of a field; one that has none is read by the training loop alone."""
    return next((each for each in about.metadata if isinstance(each, Role)), Role())


def leaves(model: type[BaseModel], path: str = "", only_with: Any = "") -> Iterator[Leaf]:
    """All settings of a model and of its parts, in the order of their declaration; a part has its path, with a dot at
    its end, and what it has an effect with."""
    for name, about in model.model_fields.items():
        role = role_of(about)
        kind: Any = about.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from leaves(kind, f"{path}{name}.", role.only_with)
        else:
            yield Leaf(f"{path}{name}", replace(role, only_with=role.only_with or only_with), about)
