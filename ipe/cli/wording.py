"""Words for numbers, lengths of time and the time left: the same in every command."""

from __future__ import annotations

import math


def decimal(value: float | None, digits: int = 2) -> str:
    """A number with so many decimals; a dash for a number that is not there.

    Example:
        >>> decimal(-12.345), decimal(None), decimal(float("nan"))
        ('-12.35', '-', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def count(number: float) -> str:
    """A large number in three digits.

    Example:
        >>> [count(n) for n in (950, 25_000, 3_645_000_000)]
        ['950', '25k', '3.65G']
    """
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"


def duration(seconds: float) -> str:
    """A length of time as one would say it.

    Example:
        >>> [duration(s) for s in (0.4, 89, 3000, 9000, 400_000)]
        ['1 s', '89 s', '50 min', '2.5 h', '4.6 days']
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 5400:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} days"


def time_left(seconds: float | None) -> str:
    """How long the work will still take, in words.

    Example:
        >>> [time_left(s) for s in (None, 0.0, 600.0)]
        ['time left not known yet', 'done', 'about 10 min left']
    """
    if seconds is None:
        return "time left not known yet"
    return "done" if seconds <= 0 else f"about {duration(seconds)} left"


def plural(number: int, noun: str) -> str:
    """A number of things.

    Example:
        >>> plural(1, "seed"), plural(3, "seed")
        ('1 seed', '3 seeds')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def plain(text: str) -> str:
    """A text on one line, without characters that a terminal takes for a command: environments may say anything."""
    return "".join(c if c.isprintable() else "?" for c in " ".join(text.split()))
