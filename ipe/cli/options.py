"""How a command declares its arguments: as the fields of a frozen dataclass, whose docstring is the text of its help.

    @dataclass(frozen=True)
    class Arguments:
        mdp: str = argument("MDP", "The MDP.")
        rtol: float | None = option("The relative gap to reach.", None, shown="1e-8")
        json: bool = flag("Print JSON.")

A field's type says how its word is read: as a number, a whole number, one of some words, or as it is.
"""

from __future__ import annotations

import dataclasses
import re
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints


class Declared(NamedTuple):
    """What a field's declaration says about it: see `argument`, `option`, `flag` and `part`."""

    kind: Literal["argument", "option", "flag", "part"]
    text: str
    metavar: str = ""
    shown: str | None = None
    choices: tuple[str, ...] = ()
    read: Callable[[str], Any] | None = None
    alone: Any = None
    prefix: str | None = None


def argument(metavar: str, text: str, default: Any = dataclasses.MISSING) -> Any:
    """A field that is given by its place among the words; a field of type tuple takes all the words that are left.

    Args:
        metavar: what the help calls it.
        text: the sentence that explains it.
        default: its value if it is left out. Without one, it must be given.
    """
    return _field(default, Declared("argument", text, metavar))


def option(
    text: str,
    default: Any = dataclasses.MISSING,
    *,
    metavar: str = "",
    shown: str | None = None,
    choices: Sequence[str] = (),
    read: Callable[[str], Any] | None = None,
    alone: Any = None,
    prefix: str | None = None,
) -> Any:
    """A field that is given as `--name VALUE` or `--name=VALUE`.

    Args:
        text: the sentence that explains it.
        default: its value if it is left out. Without one, it must be given.
        metavar: what the help calls the value. Default: by the field's type.
        shown: what the help says about the default. Default: the default itself, nothing for None.
        choices: the words that it may be. Default: those of the field's type, if that is a Literal.
        read: makes the value of the word; the text of its ValueError follows the option's name in the refusal.
        alone: the value if no word follows the option. Default: a word must follow.
        prefix: what stands before the field's name, instead of the prefix of the part that the field is in.
    """
    return _field(default, Declared("option", text, metavar, shown, tuple(choices), read, alone, prefix))


def flag(text: str) -> Any:
    """A field that is True if `--name` is given, and False otherwise."""
    return _field(False, Declared("flag", text))


def part(options: type[Any], text: str, prefix: str = "") -> Any:
    """A field that is a dataclass of more options, with a section of its own in the help.

    Args:
        options: the dataclass.
        text: the sentence above its options.
        prefix: what stands before the names of its options, `epsilon.` say.
    """
    return dataclasses.field(default_factory=options, metadata={"declared": Declared("part", text, prefix=prefix)})


def _field(default: Any, declared: Declared) -> Any:
    return dataclasses.field(default=default, metadata={"declared": declared})


class Option(NamedTuple):
    """A field's declaration together with what the dataclass around it adds.

    Attributes:
        path: the names of the fields that lead to it, more than one inside a part.
        name: as the user writes it: `--rtol`.
        declared: the declaration.
        type: the field's type, without `| None`.
        default: the field's default, `dataclasses.MISSING` if it must be given.
        section: the heading in the help, and the sentence under that heading.
    """

    path: tuple[str, ...]
    name: str
    declared: Declared
    type: Any
    default: Any
    section: tuple[str, str]

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is dataclasses.MISSING

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may be; none if it may be any word."""
        return self.declared.choices or (get_args(self.type) if get_origin(self.type) is Literal else ())

    @property
    def usage(self) -> str:
        """The option as the help and the refusals write it: `--rtol X`."""
        kind, metavar = self.declared.kind, self.declared.metavar
        if kind == "flag":
            return self.name
        if kind == "argument":
            more = f"{metavar} [{metavar} ...]" if get_origin(self.type) is tuple else metavar
            return more if self.required else f"[{more}]"
        usual = f"{{{','.join(self.choices)}}}" if self.choices else {int: "N", float: "X"}.get(self.type, "TEXT")
        value = metavar or usual
        return f"{self.name} {value if self.declared.alone is None else f'[{value}]'}"

    @property
    def default_text(self) -> str:
        """What the help says about the default, in brackets; empty if there is nothing to say."""
        if self.declared.kind == "flag" or (self.declared.shown is None and self.default in (None, "")):
            return ""
        if self.required:
            return "(required)" if self.declared.kind == "option" else ""
        shown = self.default if self.declared.shown is None else self.declared.shown
        return f"(default: {shown:g})" if isinstance(shown, float) else f"(default: {shown})" if shown != "" else ""

    def read(self, word: str) -> Any:
        """The value that a word stands for; a ValueError says what is wrong with it."""
        if self.choices and word not in self.choices:
            raise ValueError(f"must be one of {', '.join(map(repr, self.choices))}; found {word!r}")
        by_type: dict[Any, Callable[[str], Any]] = {int: whole_number, float: number}
        read = self.declared.read or by_type.get(self.type, str)
        return read(word)


def options_in(
    arguments: type[Any], prefix: str = "", path: tuple[str, ...] = (), section: tuple[str, str] | None = None
) -> Iterator[Option]:
    """The arguments and options that a dataclass declares, those of its parts included."""
    hints = get_type_hints(arguments)
    for field in dataclasses.fields(arguments):
        declared: Declared = field.metadata["declared"]
        inside = (*path, field.name)
        if declared.kind == "part":
            heading = (f"{field.name} options", declared.text)
            yield from options_in(inner(field), declared.prefix or "", inside, heading)
            continue
        kind = hints[field.name]
        if get_origin(kind) in (Union, types.UnionType):  # X | None
            kind = next(each for each in get_args(kind) if each is not types.NoneType)
        before = prefix if declared.prefix is None else declared.prefix
        name = f"{before}{field.name}".replace("_", "-")
        if declared.kind == "argument":
            yield Option(inside, name, declared, kind, field.default, ("arguments", ""))
        else:
            yield Option(inside, f"--{name}", declared, kind, field.default, section or ("options", ""))


def inner(field: dataclasses.Field[Any]) -> type[Any]:
    """The dataclass of a field that `part` declared."""
    made: Any = field.default_factory
    return made  # type: ignore[no-any-return]


def option_names(arguments: type[Any]) -> list[str]:
    """The names of a command's arguments and options, without their dashes."""
    return [option.name.removeprefix("--") for option in options_in(arguments)]


def number(word: str) -> float:
    """A word as a number; a ValueError if it is none.

    Example:
        >>> number("2.5e-3")
        0.0025
    """
    try:
        return float(word.encode("ascii"))  # float() itself takes the digits of every script
    except ValueError:
        raise ValueError(f"must be a number, found {word!r}") from None


def whole_number(word: str) -> int:
    """A word as a whole number; a ValueError if it is none.

    Exponents are read up to 10^18: no size is larger, and more zeros would be zeros without end.

    Example:
        >>> whole_number("2e6")
        2000000
    """
    found = re.fullmatch(r"([+-]?[0-9][0-9_]*)(?:e\+?([0-9]{1,2}))?", word.strip(), re.IGNORECASE)
    try:
        if found is not None and int(found[2] or 0) <= 18:
            return int(f"{int(found[1])}{'0' * int(found[2] or 0)}")
    except ValueError:  # thousands of digits, or a _ at the end
        pass
    raise ValueError(f"must be a whole number, found {word!r}")
