"""The option `--seeds`: how many seeds, or which seeds."""

from __future__ import annotations

from ipe.errors import InputError

_DIGITS = 19
"""The number of digits of 2^63 - 1, the largest seed."""


def seeds_option(text: str) -> int | list[int]:
    """How many seeds, from 0 on; or which ones, with commas.

    Example:
        >>> seeds_option("3"), seeds_option("3,5"), seeds_option("3,")
        (3, [3, 5], [3])
    """
    words = [word.strip() for word in text.split(",")]
    many = len(words) > 1
    if many and not words[-1]:
        del words[-1]
    numbers = whole_numbers(words, "how many, or which ones with commas as in 3,5,8", text)
    return numbers if many else numbers[0]


def trained_seeds(text: str) -> list[int]:
    """Seeds that a run has trained, with commas between them.

    Example:
        >>> trained_seeds("0, 3")
        [0, 3]
    """
    words = [word.strip() for word in text.split(",")]
    return whole_numbers(words, "trained seeds with commas between them, as in 0,3", text)


def whole_numbers(words: list[str], expected: str, text: str) -> list[int]:
    """The words of `--seeds` as numbers; words that are no seeds are refused."""
    if not all(word.isascii() and word.isdecimal() and len(word) <= _DIGITS for word in words):
        raise InputError(f"--seeds must be {expected}; found {text if len(text) < 100 else text[:100] + '...'!r}")
    return [int(word) for word in words]
