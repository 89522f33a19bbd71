"""The one style of all figures, and how they are written: the same figure gives the same bytes."""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from ipe.base.atomic import write_atomic
from ipe.base.looks import LOOKS, slots_for
from ipe.errors import InputError

OKABE_ITO: dict[str, str] = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "yellow": "#F0E442",
    "black": "#000000",
}
"""The palette of Okabe and Ito (2008), told apart with every common kind of colour blindness."""

CYCLE: tuple[str, ...] = tuple(look.colour for look in LOOKS[:6])
"""The colours of lines that are not about behaviours, in order."""

_STYLE_FILE = Path(__file__).with_name("ipe.mplstyle")

# What a file would otherwise hold of the time and the machine it was made on.
_METADATA: dict[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None},
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Matplotlib's defaults with this package's style, whatever the user has set; restored at the end."""
    with matplotlib.style.context(["default", str(_STYLE_FILE)]):
        yield


def line_styles(behaviours: Sequence[str | int | None]) -> list[dict[str, Any]]:
    """Colour and line style for each line of a figure, as arguments of `Axes.plot`; `slots_for` says which."""
    return [{"color": LOOKS[slot].colour, "linestyle": LOOKS[slot].line} for slot in slots_for(behaviours)]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, unknown to pyplot."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    return figure


def check_figure_path(path: str | os.PathLike[str]) -> str:
    """The suffix of a figure's path, if it is one that can be written."""
    suffix = Path(path).suffix.lower()
    if suffix not in _METADATA:
        found = f"found {suffix}" if suffix else "found none"
        raise InputError(f"{path}: the suffix of a figure must be .svg, .png or .pdf; {found}")
    return suffix


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """A figure as the content of an SVG, PNG or PDF file: the same figure gives the same bytes."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format=suffix[1:], metadata=_METADATA[suffix])
    return buffer.getvalue()


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as SVG, PNG or PDF, whichever the suffix says.

    The same figure gives the same bytes (no date, no random ids), and the file appears whole or not at all.
    """
    content = figure_bytes(figure, check_figure_path(path))
    write_atomic(path, lambda file: file.write(content))
