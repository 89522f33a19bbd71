"""Parts that figures of runs over time share: a range over runs, an axis of frames, and a legend below the panels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ipe.base.arrays import Array


def draw_range(ax: Axes, frames: ArrayLike, values: Array, look: dict[str, Any], label: str | None = None) -> None:
    """The mean over runs as a line, and the range from the least to the greatest run as a band; `values` have the shape
    (runs, grid), NaN where a run has no value."""
    seen = ~np.isnan(values).all(axis=0)
    if not seen.any():
        return
    at, some = np.asarray(frames)[seen], values[:, seen]
    low, high = np.nanmin(some, axis=0), np.nanmax(some, axis=0)
    ax.fill_between(at, low, high, color=look["color"], alpha=0.2, linewidth=0)
    ax.plot(at, np.nanmean(some, axis=0), label=label, **look)


def set_frames(ax: Axes, last: float, steps: str = "frames") -> None:
    """Label the horizontal axis with frames in thousands, from 0 to the last frame; `steps` is what they are called."""
    ax.set_xlabel(f"{steps} (thousands)")
    ax.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}")
    ax.set_xlim(0.0, last)


def legend_below(figure: Figure, axes: Iterable[Axes], caption: str) -> None:
    """Put one legend for all axes under them, where it covers no line; a name that several axes have comes once."""
    entries: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    widest = 0.55 + 0.068 * max(map(len, entries))  # inches: the line's sample and the characters
    columns = max(1, min(len(entries), int(figure.get_figwidth() / widest)))
    figure.legend(entries.values(), entries, loc="lower center", ncols=columns, title=caption, title_fontsize=8)
    height = 0.3 + 0.18 * (-(-len(entries) // columns) + caption.count("\n"))
    figure.tight_layout(rect=(0, float(height / figure.get_figheight()), 1, 1))
