"""A command's arguments by tyro, and what tyro says about wrong ones in one sentence.

tyro reports errors as boxes of several lines on standard error. Options that do not exist or stand twice are found
here, by name; the rest is taken from the box.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, TypeVar, get_type_hints

import tyro
from tyro.constructors import PrimitiveConstructorSpec

from ipe.base.words import did_you_mean
from ipe.errors import InputError

T = TypeVar("T")

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_RULE = re.compile(r"[─-]+")

# What tyro says, and how it is said here. What matches none of these is passed on as it is.
_REWORDED = (
    (r"invalid choice (.*) for argument '(.*)'\. Expected one of \((.*)\)\.", r"\2 must be one of \3; found \1"),
    (r"Missing value for argument '(.*)'\. Expected .* values\.", r"\1 needs a value"),
    (r"Error parsing (\S+): (.*)", r"\1 \2"),
)


def parse(arguments: type[T], words: Sequence[str], prog: str) -> T:
    """The arguments of a command as its dataclass; prints the help and exits if that is what they ask for.

    Args:
        arguments: the dataclass. Its docstring is the help's text, examples included.
        words: what stands on the command line after the command.
        prog: the command as the user writes it, `ipe solve`.

    Raises:
        InputError: in one sentence that names the argument.
    """
    _check_options(arguments, words, prog)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            found, unknown = tyro.cli(
                arguments,
                prog=prog,
                description=inspect.cleandoc(arguments.__doc__ or ""),
                args=words,
                return_unknown_args=True,
            )
    except SystemExit as stop:
        if not stop.code:
            raise
        raise InputError(f"{_sentence(said.getvalue())}; see `{prog} --help`") from None
    if unknown:
        what = f"there is no option {unknown[0]}" if unknown[0].startswith("-") else f"{unknown[0]!r} is one too many"
        raise InputError(f"{what}; see `{prog} --help`")
    return found


def _check_options(arguments: type[Any], words: Sequence[str], prog: str) -> None:
    """That every `--option` exists and stands once: tyro would take the last of two."""
    known = ["--help", *(f"--{name}" for name in option_names(arguments))]
    seen = set()
    for word in words:
        if word == "--":
            break
        if not word.startswith("--"):
            continue
        option = word.partition("=")[0].replace("_", "-")
        if option not in known:
            hint = did_you_mean(option, known)
            raise InputError(f"there is no option {word.partition('=')[0]}{hint}; see `{prog} --help`")
        if option in seen:
            raise InputError(f"{option} is given twice")
        seen.add(option)


def option_names(arguments: type[Any], prefix: str = "") -> Iterator[str]:
    """The options of a command without their dashes; those of a part, a dataclass within, behind its name and a dot.

    Args:
        arguments: the dataclass.
        prefix: of its options. One whose type is marked with `tyro.conf.arg(prefix_name=False)` goes without.
    """
    hints = get_type_hints(arguments, include_extras=True)
    for field in dataclasses.fields(arguments):
        kind = hints[field.name]
        marks = getattr(kind, "__metadata__", ())
        kind = getattr(kind, "__origin__", kind) if marks else kind
        bare = any(getattr(mark, "prefix_name", None) is False for mark in marks)
        name = ("" if bare else prefix) + field.name.replace("_", "-")
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            yield from option_names(kind, f"{name}.")
        else:
            yield name


def _sentence(box: str) -> str:
    """The message in a box that tyro has drawn: without its frame, its title, and the help at its end."""
    title, *lines = [_COLOUR.sub("", line) for line in box.splitlines()] or [""]
    inside = [line[2:].rstrip("│ ") for line in lines if line.strip() and not line.startswith("╰")]
    if inside and _RULE.fullmatch(inside[0].strip()):
        del inside[0]  # the frame of a terminal that has only ASCII
    end = next((i for i, line in enumerate(inside) if _RULE.fullmatch(line.strip())), len(inside))
    message = inside[:end]
    if "Required" in title:
        missing = [line.strip() for line in message if re.match(r" {4}\S", line)]
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    text = " ".join(" ".join(message).split())
    for said, here in _REWORDED:
        if found := re.fullmatch(said, text):
            return found.expand(here)
    return text


def _number(words: list[str]) -> float:
    try:
        return float(words[0])
    except ValueError:
        raise ValueError(f"must be a number, found {words[0]!r}") from None


def _whole_number(words: list[str]) -> int:
    """Also as `2e6`, up to 10^18 times its digits: no size is larger, and more zeros would be zeros without end."""
    digits, _, exponent = words[0].lower().partition("e")
    if re.fullmatch(r"\+?\d{1,2}", exponent) and int(exponent) <= 18 and re.fullmatch(r"[+-]?\d+", digits):
        return int(f"{digits}{'0' * int(exponent)}")
    try:
        return int(words[0])
    except ValueError:
        raise ValueError(f"must be a whole number, found {words[0]!r}") from None


def _or_none(kind: type[Any], metavar: str, read: Callable[[list[str]], Any]) -> PrimitiveConstructorSpec[Any]:
    """An option that is a `kind` or None. For `kind | None` itself, tyro explains at length why a word is neither."""
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: value is None or isinstance(value, kind),
        str_from_instance=lambda value: [str(value)],
    )


def choice(words: Sequence[str], read: Callable[[str], Any] = str) -> Any:
    """The type of an option that is one of these words, or left out. For `Literal[...] | None`, tyro offers None.

    Args:
        words: to choose from.
        read: makes a value of the word.
    """
    return Annotated[
        Any,
        PrimitiveConstructorSpec(
            nargs=1,
            metavar="{" + ",".join(words) + "}",
            instance_from_str=lambda found: read(found[0]),
            is_instance=lambda value: True,
            str_from_instance=lambda value: [str(value)],
            choices=tuple(words),
        ),
    ]


Number = Annotated[float | None, _or_none(float, "X", _number)]
"""The type of an option that is a number, or left out."""

Text = Annotated[str | None, _or_none(str, "TEXT", lambda words: words[0])]
"""The type of an option that is a word, or left out."""

WholeNumber = Annotated[int | None, _or_none(int, "N", _whole_number)]
"""The type of an option that is a whole number, or left out."""

Flag = tyro.conf.FlagCreatePairsOff[bool]
"""The type of an option without a value: there is no `--no-json`."""
