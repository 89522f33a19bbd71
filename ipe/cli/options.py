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
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from ipe.base.words import did_you_mean


class Option(NamedTuple):
    """A field of a command, declared by `argument`, `option`, `flag` or `part`, and completed by `options_in`."""

    kind: Literal["argument", "option", "flag", "part"]
    text: str
    """The sentence that explains it; for a part, the sentence above its options."""
    metavar: str = ""
    """What the help calls the value. Default: by the field's type."""
    shown: str | None = None
    """What the help says about the default. Default: the default itself, nothing for None."""
    least: int | None = None
    """The least number that it may be."""
    choices: tuple[str, ...] = ()
    """The words that it may be. Default: those of the field's type, if that is a Literal."""
    read: Callable[[str], Any] | None = None
    """Makes the value of the word; the text of its ValueError follows the option's name in the refusal."""
    alone: Any = None
    """The value if no word follows the option. Default: a word must follow."""
    prefix: str | None = None
    """What stands before the field's name, `epsilon.` say. Default: the prefix of the part that the field is in."""

    path: tuple[str, ...] = ()
    """The names of the fields that lead to it: more than one inside a part."""
    name: str = ""
    """The option as the user writes it: `--rtol`."""
    type: Any = str
    default: Any = dataclasses.MISSING
    section: tuple[str, str] = ("options", "")
    """The heading in the help, and the sentence below the heading."""

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is dataclasses.MISSING

    @property
    def usage(self) -> str:
        """The option as the help and the refusals show it: `--rtol X`."""
        if self.kind == "flag":
            return self.name
        if self.kind == "argument":
            many = f"{self.metavar} [{self.metavar} ...]" if get_origin(self.type) is tuple else self.metavar
            return many if self.required else f"[{many}]"
        usual = f"{{{','.join(self.choices)}}}" if self.choices else {int: "N", float: "X"}.get(self.type, "TEXT")
        value = self.metavar or usual
        return f"{self.name} {value if self.alone is None else f'[{value}]'}"

    @property
    def default_text(self) -> str:
        """What the help says about the default, in brackets; empty if there is nothing to say."""
        if self.required:
            return "(required)" if self.kind == "option" else ""
        shown = self.default if self.shown is None else self.shown
        if self.kind == "flag" or shown in (None, "", ()):
            return ""
        return f"(default: {shown:g})" if isinstance(shown, float) else f"(default: {shown})"

    def value(self, word: str) -> Any:
        """The value that a word stands for; a ValueError says what is wrong with the word."""
        if not word:
            raise ValueError("is empty")
        if self.choices and word not in self.choices:
            close = did_you_mean(word, self.choices)
            raise ValueError(f"must be one of {', '.join(map(repr, self.choices))}; found {word!r}{close}")
        by_type: dict[Any, Callable[[str], Any]] = {int: whole_number, float: number}
        found = (self.read or by_type.get(self.type, str))(word)
        if self.least is not None and found < self.least:
            raise ValueError(f"must be at least {self.least}, found {found}")
        return found


def argument(metavar: str, text: str, default: Any = dataclasses.MISSING) -> Any:
    """A field that is given by its place among the words; a field of type tuple takes all the words that are left."""
    return _field(default, Option("argument", text, metavar, section=("arguments", "")))


def option(text: str, default: Any = dataclasses.MISSING, **more: Any) -> Any:
    """A field that is given as `--name VALUE` or `--name=VALUE`. Without a default, it must be given. `more` are
    metavar, shown, least, choices, read, alone and prefix of `Option`."""
    return _field(default, Option("option", text, **more))


def flag(text: str) -> Any:
    """A field that is True if `--name` is given, and False otherwise."""
    return _field(False, Option("flag", text))


def part(options: type[Any], text: str, prefix: str = "") -> Any:
    """A field that is a dataclass of more options, which have a section of their own in the help."""
    return dataclasses.field(default_factory=options, metadata={"option": Option("part", text, prefix=prefix)})


def _field(default: Any, declared: Option) -> Any:
    return dataclasses.field(default=default, metadata={"option": declared})


def options_in(
    arguments: type[Any], prefix: str = "", path: tuple[str, ...] = (), section: tuple[str, str] | None = None
) -> Iterator[Option]:
    """The arguments and options that a dataclass declares, those of its parts included."""
    hints = get_type_hints(arguments)
    for field in dataclasses.fields(arguments):
        declared: Option = field.metadata["option"]
        inside = (*path, field.name)
        if declared.kind == "part":
            yield from options_in(
                part_type(field), declared.prefix or "", inside, (f"{field.name} options", declared.text)
            )
            continue
        kind = hints[field.name]
        if get_origin(kind) in (Union, types.UnionType):  # X | None
            kind = next(each for each in get_args(kind) if each is not types.NoneType)
        name = f"{prefix if declared.prefix is None else declared.prefix}{field.name}".replace("_", "-")
        yield declared._replace(
            path=inside,
            name=name if declared.kind == "argument" else f"--{name}",
            type=kind,
            choices=declared.choices or (get_args(kind) if get_origin(kind) is Literal else ()),
            default=field.default,
            section=section or declared.section,
        )


def part_type(field: dataclasses.Field[Any]) -> type[Any]:
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
