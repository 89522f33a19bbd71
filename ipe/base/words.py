"""Wording that error messages share: the name that was meant, and a value on less than one line."""

from __future__ import annotations

import contextlib
import difflib
import json
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from ipe.errors import InputError

LONGEST = 60

Word = TypeVar("Word", bound=str)


def did_you_mean(name: str, names: Iterable[str], *, prefix: str = "", cutoff: float = 0.6) -> str:
    """The end of a sentence that refuses a name: the most similar known name, whether upper or lower case, after
    `prefix`; nothing if none is as similar as `cutoff`, from 0 to 1.

    Example:
        >>> did_you_mean("minatar/freeway", ["minatar/Freeway", "minatar/Asterix"])
        ' (did you mean minatar/Freeway?)'
        >>> did_you_mean("chess", ["minatar/Freeway"])
        ''
    """
    lowered = {known.lower(): known for known in names}
    close = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=cutoff)
    return f" (did you mean {prefix}{lowered[close[0]]}?)" if close else ""


def one_of(value: Word, known: Iterable[str], name: str) -> Word:
    """`value` if it is one of the known words, or an `InputError` that lists them, and says which may be meant.

    Example:
        >>> one_of("l3", ("l2", "l1", "linf"), "norm")
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: norm must be one of l2, l1, linf; found 'l3'
    """
    words = list(known)
    if not isinstance(value, str) or value not in words:
        close = did_you_mean(value, words) if isinstance(value, str) else ""
        raise InputError(f"{name} must be one of {', '.join(words)}; found {value!r}{close}")
    return value


def listed(words: Iterable[str]) -> str:
    """Words in their alphabetical order, as a sentence lists them.

    Example:
        >>> listed(["c", "a", "b"]), listed(["a"])
        ('a, b and c', 'a')
    """
    *others, last = sorted(words)
    return f"{', '.join(others)} and {last}" if others else last


@contextlib.contextmanager
def refusing(what: str) -> Iterator[None]:
    """Make an `InputError` of every `OSError` inside the `with` block: what could not be done, and why."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{what}: {error.strerror or error}") from None


def short(value: Any) -> str:
    """A value for an error message, as JSON and at most 60 characters long.

    Example:
        >>> short(None), short("left")
        ('null', '"left"')
    """
    try:
        text = json.dumps(value)
    except TypeError:  # JSON has no form for it: an array, say
        text = repr(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
