"""Cells in columns, as lines of text."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def columns(rows: Sequence[Sequence[str]], left: Collection[int] = ()) -> list[str]:
    """Rows of cells as lines, every column as wide as its widest cell. The cells of the columns `left` begin at the
    left; those of the others end at the right.

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
