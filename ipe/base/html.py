"""Results as HTML, which notebooks show in place of the text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def preformatted(text: str) -> str:
    """A text as it would look in a terminal.

    Example:
        >>> preformatted("a < b")
        '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(text)}</pre>"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with a title above it.

    Example:
        >>> table("seeds", ["seed"], [["0"]])
        '<p>seeds</p><table><tr><th>seed</th></tr><tr><td>0</td></tr></table>'
    """
    cells = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    body = "".join(f"<tr>{line}</tr>" for line in [cells, *lines])
    return f"<p>{escape(title)}</p><table>{body}</table>"
