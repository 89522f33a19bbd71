"""The words of a command line, read into a command's dataclass; one sentence for what is wrong with them; the help.

No library does this. argparse takes the values -6,-18 for an option; tyro, which was used before, tells its errors only
as boxes that it draws on the terminal, from which every sentence had to be scraped.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import shutil
import textwrap
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_origin

from ipe.base.words import did_you_mean
from ipe.cli.options import Option, options_in, part_type
from ipe.errors import InputError

T = TypeVar("T")

_HELP = ("-h", "--help")
_INDENT = 24
"""The column of the help at which the sentences about options begin."""
_WIDEST = 100


def parse(arguments: type[T], words: Sequence[str], prog: str) -> T | None:
    """Read a command's words into its dataclass, or print its help if they ask for that.

    Args:
        arguments: the dataclass. Its `OTHER_WORDS`, if it has some, answer words that users of other programs try.
        words: what stands on the command line after the command.
        prog: the command as the user writes it, `ipe solve`.

    Returns:
        The arguments; None if the help was printed.

    Raises:
        InputError: in one sentence that names the argument.
    """
    options = list(options_in(arguments))
    try:
        found = _read(options, words, getattr(arguments, "OTHER_WORDS", {}))
    except InputError as error:
        raise InputError(f"{error}; see `{prog} --help`") from None
    if found is None:
        print("\n".join(_help(arguments, options, prog)))
        return None
    missing = [option.usage.partition(" [")[0] for option in options if option.required and option.path not in found]
    if missing:
        raise InputError(f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; see `{prog} --help`")
    return _build(arguments, found)


def _read(options: Sequence[Option], words: Sequence[str], others: Mapping[str, str]) -> dict[Any, Any] | None:
    """The value of every option that is given, by its path; None if the words ask for help."""
    by_name = {option.name: option for option in options if option.kind != "argument"}
    places = deque(option for option in options if option.kind == "argument")
    found: dict[tuple[str, ...], Any] = {}
    left = deque(words)
    dashes = True
    while left:
        word = left.popleft()
        if dashes and word in _HELP:
            return None
        if dashes and word == "--":
            dashes = False
        elif dashes and word.startswith("-") and word != "-" and not re.match(r"-[0-9.]", word):
            _read_option(word, by_name, places, found, left, others)
        elif not places:
            raise InputError(f"{word!r} is one too many")
        elif get_origin(places[0].type) is tuple:
            found[places[0].path] = (*found.get(places[0].path, ()), word)
        else:
            found[places.popleft().path] = word
    return found


def _read_option(
    word: str,
    by_name: Mapping[str, Option],
    places: Sequence[Option],
    found: dict[tuple[str, ...], Any],
    left: deque[str],
    others: Mapping[str, str],
) -> None:
    """Add the value of an option to those found; the words left lose the value if it is a word of its own."""
    written, equals, value = word.partition("=")
    name = written.replace("_", "-")
    if name not in by_name:
        instead = f": {others[name]}" if name in others else did_you_mean(name, [*by_name, "--help"])
        raise InputError(f"there is no option {written}{instead}")
    option = by_name[name]
    if option.path in found:
        raise InputError(f"{name} is given twice")
    if option.kind == "flag":
        if equals:
            raise InputError(f"{name} takes no value, found {value!r}")
        found[option.path] = True
        return
    if not equals:
        alone = option.alone
        if alone is not None and not _is_value(left, places):
            found[option.path] = alone
            return
        if not left or left[0].startswith("--"):
            raise InputError(f"{name} needs a value")
        value = left.popleft()
    try:
        found[option.path] = option.value(value)
    except ValueError as error:
        raise InputError(f"{name} {error}") from None


def _is_value(left: Sequence[str], places: Sequence[Option]) -> bool:
    """Whether the next word belongs to an option that may stand alone: it is a number, or no argument waits for it."""
    return bool(left) and not left[0].startswith("--") and (not places or left[0][:1].isdigit())


def _build(arguments: type[T], found: Mapping[tuple[str, ...], Any], path: tuple[str, ...] = ()) -> T:
    """The dataclass with the values found; what is not there has its default."""
    given = {}
    for field in dataclasses.fields(arguments):  # type: ignore[arg-type]
        inside = (*path, field.name)
        if inside in found:
            given[field.name] = found[inside]
        elif field.metadata["option"].kind == "part":
            given[field.name] = _build(part_type(field), found, inside)
    return arguments(**given)


def _help(arguments: type[Any], options: Sequence[Option], prog: str) -> Iterator[str]:
    width = max(50, min(shutil.get_terminal_size().columns, _WIDEST))
    needed = [option.usage for option in options if option.required or option.kind == "argument"]
    yield " ".join(["usage:", prog, *needed, "[OPTIONS]"])
    yield ""
    yield from text_lines(inspect.cleandoc(arguments.__doc__ or ""), width)
    for title, about in dict.fromkeys(option.section for option in sorted(options, key=lambda one: len(one.path))):
        yield from ("", f"{title}:")
        yield from textwrap.wrap(about, width, initial_indent="  ", subsequent_indent="  ")
        for option in options:
            if option.section == (title, about):
                yield from _entry(option.usage, f"{option.text} {option.default_text}".strip(), width)
        if title == "options":
            yield from _entry("-h, --help", "Show this text.", width)


def _entry(left: str, text: str, width: int) -> Iterator[str]:
    """An option and its sentence beside it, or under it if the option is long."""
    lines = textwrap.wrap(text, width - _INDENT, break_on_hyphens=False)
    if len(left) > _INDENT - 4:
        yield f"  {left}"
        left = ""
    yield f"  {left}".ljust(_INDENT) + "".join(lines[:1])
    yield from (" " * _INDENT + line for line in lines[1:])


def text_lines(text: str, width: int) -> Iterator[str]:
    """A help text, its paragraphs filled to the width; paragraphs with indented lines, as examples are, stay."""
    for i, paragraph in enumerate(text.split("\n\n")):
        yield from [""] * (i > 0)
        if "\n " in paragraph:
            yield paragraph
        else:
            yield from textwrap.wrap(paragraph, width, break_long_words=False, break_on_hyphens=False)
