"""The option `--seeds`: how many, or which."""

from __future__ import annotations

from ipe.errors import InputError


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
    if not all(word.isdecimal() for word in words):
        raise InputError(f"--seeds must be how many, or which ones with commas as in 3,5,8; found {text!r}")
    return [int(word) for word in words] if many else int(words[0])
