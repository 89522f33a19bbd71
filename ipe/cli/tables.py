"""Numbers in columns, and lengths of time in words."""

from __future__ import annotations

import math
from collections.abc import Sequence


def columns(rows: Sequence[Sequence[str]], left: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines, every column as wide as its widest cell.

    Args:
        rows: all of the same length.
        left: the columns that begin at the left; the others end at the right.

    Example:
        >>> columns([["seed", "status"], ["0", "done"]], left=[1])
        ['seed  status', '   0  done']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        lines.append("  ".join(cells).rstrip())
    return lines


def number(value: float | None, digits: int = 2) -> str:
    """A number with so many decimals; a dash for one that is not there.

    Example:
        >>> number(-12.345), number(None), number(float("nan"))
        ('-12.35', '-', '-')
    """
    return "-" if value is None or math.isnan(value) else f"{value:.{digits}f}"


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
