"""A Sphinx extension for the API pages. It changes three things that autodoc does.

- The names of a room come in the order in which a page lists them, under the page's headings (the directive `api`).
- A signature shows annotations as the source has them (`Array | None`), not what Python makes of them.
- The fields of settings, results and named tuples are one list in the order of the source: name, type, range, default
  and sentence. Nothing that pydantic or `NamedTuple` adds is shown.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import importlib
import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any, ClassVar

from docutils import nodes
from pydantic import BaseModel
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

_LARGEST = 2**31 - 1  # a limit that is there for the compiled program: no reader meets it
_LONGEST_DEFAULT = 60


class Api(SphinxDirective):
    """`.. api:: ipe.zoo`, and below it the names to describe, one per line, in the order in which they are read."""

    required_arguments = 1
    has_content: ClassVar[bool] = True

    def run(self) -> list[nodes.Node]:
        """Describe each name by autodoc's directive for its kind."""
        module = importlib.import_module(self.arguments[0])
        lines: list[str] = []
        for name in self.content:
            thing = getattr(module, name)
            lines.append(f".. {_directive(thing)}:: {module.__name__}.{name}")
            if inspect.isclass(thing) and not fields_of(thing):
                lines.append("   :members:")
            elif inspect.isclass(thing) and (methods := _methods(thing)):
                lines.append(f"   :members: {', '.join(methods)}")
            lines.append("")
        return self.parse_text_to_nodes("\n".join(lines))


def _directive(thing: Any) -> str:
    if inspect.isclass(thing):
        return "autoexception" if issubclass(thing, BaseException) else "autoclass"
    return "autofunction" if callable(thing) else "autodata"


def _methods(kind: type) -> list[str]:
    """The public methods and properties that a class of this library defines, in the order of its source."""
    wanted = (types.FunctionType, property, functools.cached_property, classmethod, staticmethod)
    classes = [base for base in reversed(kind.__mro__) if base.__module__.startswith("ipe.")]
    found = [name for base in classes for name, value in vars(base).items() if isinstance(value, wanted)]
    return list(dict.fromkeys(name for name in found if not name.startswith("_")))


# Signatures


class _Written(str):
    """An annotation, or a default, that is shown as it is written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def written_signature(thing: Any) -> tuple[str, str] | None:
    """The parameters and the result of a function or a class, as its source has them; None if there is no signature.

    A class that is made by the library only, such as a result, has no parameters worth showing: its attributes follow.
    """
    if inspect.isclass(thing) and not _is_constructed_by_users(thing):
        return "", ""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    parameters = [
        each.replace(annotation=_shown(each.annotation), default=_default(each.default))
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    returned = signature.return_annotation
    result = "" if inspect.isclass(thing) or returned is inspect.Signature.empty else str(_shown(returned))
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty)), result


def _is_constructed_by_users(kind: type) -> bool:
    if issubclass(kind, (BaseModel, enum.Enum)) or (issubclass(kind, tuple) and hasattr(kind, "_fields")):
        return False
    if dataclasses.is_dataclass(kind) and "__init__" not in inspect.getsource(kind):
        fields = dataclasses.fields(kind)
        missing = (dataclasses.MISSING, dataclasses.MISSING)
        return 2 * sum((field.default, field.default_factory) != missing for field in fields) >= len(fields)
    return True


def _shown(annotation: Any) -> Any:
    if annotation is inspect.Parameter.empty:
        return annotation
    return _Written(annotation if isinstance(annotation, str) else inspect.formatannotation(annotation))


def _default(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return _Written(f"{type(value).__name__}()")
    simple = value is inspect.Parameter.empty or isinstance(value, (str, int, float, tuple, dict, type(None)))
    return value if simple and len(repr(value)) <= _LONGEST_DEFAULT else _Written("...")


# Fields


class Described(typing.NamedTuple):
    """One field of a class, as a page shows it."""

    name: str
    facts: str
    """The field's type, its range and its default."""
    sentence: str


def fields_of(thing: Any) -> list[Described]:
    """The fields of a pydantic model, a dataclass or a named tuple, in the order of the source; else nothing."""
    if not inspect.isclass(thing):
        return []
    sentences: dict[str, str] = {}
    for base in reversed(thing.__mro__):
        if base.__module__.startswith("ipe."):
            found = ModuleAnalyzer.for_module(base.__module__).find_attr_docs()
            sentences |= {name: " ".join(lines) for (owner, name), lines in found.items() if owner == base.__name__}
    return [
        Described(name, facts, " ".join((said or sentences.get(name, "")).split()))
        for name, facts, said in _fields(thing)
    ]


def _fields(kind: type) -> Iterator[tuple[str, str, str]]:
    """The name and the facts of each field, and its sentence where the class itself has it."""
    if issubclass(kind, BaseModel):
        for name, field in kind.model_fields.items():
            facts = [_plain(field.annotation), _range(field.metadata)]
            if not field.is_required():
                facts.append(f"default {_default(field.get_default(call_default_factory=True))!r}")
            yield name, ", ".join(fact for fact in facts if fact), field.description or ""
    elif dataclasses.is_dataclass(kind):
        for each in dataclasses.fields(kind):
            if not each.name.startswith("_"):
                fixed = each.default is not dataclasses.MISSING
                yield each.name, f"{each.type}, default {each.default!r}" if fixed else str(each.type), ""
    elif issubclass(kind, tuple) and hasattr(kind, "_fields"):
        for name in kind._fields:
            written = kind.__annotations__.get(name, "")
            yield name, written if isinstance(written, str) else getattr(written, "__forward_arg__", str(written)), ""


def _plain(annotation: Any) -> str:
    """A type in words: without `Annotated`, a `Literal` as its values."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        inside = _range(arguments[1:])
        return _plain(arguments[0]) + (f" {inside}" if inside else "")
    if origin is typing.Literal:
        return " or ".join(repr(value) for value in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_plain(each) for each in arguments)
    if annotation is type(None):
        return "None"
    if origin is tuple:
        return f"tuple of {_plain(arguments[0])}"
    if origin is dict:
        return f"dict of {_plain(arguments[0])} to {_plain(arguments[1])}"
    return getattr(annotation, "__name__", str(annotation))


def _range(metadata: Any) -> str:
    """The limits of a number, from pydantic's constraints on it."""
    limits: dict[str, Any] = {}
    for each in metadata:
        for part in getattr(each, "metadata", [each]):
            limits |= {key: getattr(part, key) for key in ("gt", "ge", "lt", "le") if hasattr(part, key)}
    shown = {key: f"{limit:g}" if isinstance(limit, float) else str(limit) for key, limit in limits.items()}
    low = f"from {shown['ge']}" if "ge" in shown else f"above {shown['gt']}" if "gt" in shown else ""
    if "lt" in shown:
        return f"{low} to below {shown['lt']}"
    if limits.get("le", _LARGEST) < _LARGEST:
        return f"{low} to {shown['le']}"
    return f"{low} on" if "ge" in shown else low


# Sphinx's events


def _signature(app: Sphinx, what: str, name: str, thing: Any, options: Any, args: Any, result: Any) -> Any:
    found = written_signature(thing)
    return None if found is None else (found[0], found[1] or None)


def _docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Append the list of a class's fields to its docstring, unless the docstring lists them itself."""
    if what != "class" or any(line.startswith((":ivar", ":param")) for line in lines):  # napoleon has been here
        return
    given = _is_constructed_by_users(thing) or issubclass(thing, BaseModel)
    role, kind = ("param", "type") if given else ("ivar", "vartype")
    for field in fields_of(thing):
        lines += ["", f":{role} {field.name}: {field.sentence}", f":{kind} {field.name}: {field.facts}"]
    lines.append("")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, the signatures and the lists of fields."""
    app.add_directive("api", Api)
    app.connect("autodoc-process-signature", _signature)
    app.connect("autodoc-process-docstring", _docstring)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
