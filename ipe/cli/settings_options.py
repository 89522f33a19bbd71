r"""Options from a pydantic model: every field by its path, with its description as the help.

A field of the model is an option; a field of a part is an option with a dot, `--epsilon.final`. Every option may be
left out. `changes` gives the options that were given, as nested mappings, which `ipe.deep.paper_settings` takes.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ipe.base.files import naming
from ipe.base.words import did_you_mean
from ipe.cli.inputs import key_values
from ipe.cli.options import flag, option, part
from ipe.deep.roles import role_of


def options_of(
    model: type[BaseModel],
    defaults: Mapping[str, str],
    bare: Sequence[str] = (),
    path: str = "",
    more: Mapping[str, FieldInfo] = MappingProxyType({}),
) -> type[Any]:
    """Make a dataclass with an optional field for every field of a model, and such a dataclass for every part of it.

    Args:
        model: the model.
        defaults: what the help says about a field's default, by its path. A field without an entry is no option.
        bare: the paths of fields whose option is their name alone, without the name of their part.
        path: the path of the model within a larger one, with a dot at its end.
        more: fields that the model takes besides its declared ones.
    """
    taken = {**model.model_fields, **more}
    help_texts = {name: plain(field.description or "") for name, field in taken.items()}
    fields: list[tuple[str, Any, Any]] = []
    for name, field in taken.items():
        names = role_of(field).names
        kind: Any = field.annotation
        whole = f"{path}{name}"
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            made = options_of(kind, defaults, bare, f"{whole}.")
            fields.append((name, made, part(made, plain(inspect.cleandoc(kind.__doc__ or "")), f"{whole}.")))
        elif whole in defaults and kind is bool and field.default is False:
            fields.append((name, bool, flag(help_texts[name])))
        elif whole in defaults:
            prefix = "" if whole in bare else None
            declared = option(help_texts[name], None, shown=defaults[whole], prefix=prefix, **_reading(kind, names))
            fields.append((name, _plain_type(kind), declared))
    made = dataclasses.make_dataclass(model.__name__, fields, frozen=True)
    made.__doc__ = model.__doc__
    return made


def _plain_type(kind: Any) -> Any:
    """The type without `| None` and without what pydantic adds to it."""
    if get_origin(kind) in (Union, types.UnionType):  # X | None
        kind = next(each for each in get_args(kind) if each is not types.NoneType)
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return str if get_origin(kind) is dict else kind


def _reading(kind: Any, names: Callable[[], tuple[str, ...]] | None) -> dict[str, Any]:
    """How the option for a field of this type is read, where the type alone does not say it."""
    if names is not None:
        return {"metavar": f"{{{','.join(names())}}}", "read": partial(_named, names())}
    if kind is bool:
        return {"choices": ("true", "false"), "read": lambda word: word == "true"}
    return {"metavar": "KEY=VALUE,..."} if get_origin(kind) is dict else {}


def _named(names: tuple[str, ...], word: str) -> str:
    """A name of a table, or one of the user's own with its module."""
    if word not in names and ":" not in word:
        known, close = ", ".join(map(repr, names)), did_you_mean(word, names)
        raise ValueError(f"must be one of {known}, or package.module:name; found {word!r}{close}")
    return word


def changes(options: Any) -> dict[str, Any]:
    """The options that were given, from an instance of what `options_of` made."""
    given: dict[str, Any] = {}
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if dataclasses.is_dataclass(value):
            given |= {field.name: inner} if (inner := changes(value)) else {}
        elif value is not field.default:  # None, or False for a flag
            given[field.name] = value
    return given


def read_key_values(text: str, option: str) -> dict[str, Any]:
    """`key=value,key=value`: whole numbers, numbers, true or false, and words.

    Example:
        >>> read_key_values("sticky_action_prob=0.1,minimal_actions=true", "--environment.options")
        {'sticky_action_prob': 0.1, 'minimal_actions': True}
    """
    with naming(option):
        return key_values(text)


_TEX = (
    (r"\\leftarrow", "<-"),
    (r"\\sqrt\{(.*?)\}", r"sqrt(\1)"),
    (r"\\varepsilon", "epsilon"),
    (r"\\cdot", "."),
    (r"\\,\s*", " "),
    (r"\\([a-zA-Z]+)", r"\1"),
)


def plain(text: str) -> str:
    r"""A docstring for a terminal: formulas without TeX, words without marks, on one line.

    Example:
        >>> plain(r"Of :math:`\theta - \alpha\, g / (\sqrt{v} + \varepsilon)`; see `train`.")
        'Of theta - alpha g / (sqrt(v) + epsilon); see train.'
    """

    def formula(found: re.Match[str]) -> str:
        inside = found[1]
        for tex, word in _TEX:
            inside = re.sub(tex, word, inside)
        return inside

    return " ".join(re.sub(r":math:`(.*?)`", formula, text, flags=re.S).replace("`", "").split())
