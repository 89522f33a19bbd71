"""Learning curves: return against frames, mean and band over runs, single runs behind them, epsilon below."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from ipe.analysis.curves import WINDOW, mean_and_standard_error
from ipe.base.arrays import Array, numeric
from ipe.base.looks import BEHAVIOURS
from ipe.errors import InputError
from ipe.figures.lines import draw_range, legend_below, set_frames
from ipe.figures.style import line_styles, new_figure, style

_NOTE_WIDTH = 90
"""The characters of a note that fit into one line of the figure."""
_LINE = 0.17
"""The height of a line below the panels, in inches."""


def learning_curves(
    groups: Mapping[str, ArrayLike],
    grid: ArrayLike,
    *,
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    band: str = "standard error",
    runs: bool = True,
    epsilon: Mapping[str, ArrayLike] | None = None,
    behaviours: Mapping[str, str | int] | None = None,
    window: int = WINDOW,
    title: str | None = None,
    note: str = "",
    steps: str = "frames",
    label: str | None = None,
) -> Figure:
    """The mean of each group's curves with a band, its runs as thin lines, and optionally epsilon in a second panel.

    Args:
        groups: the curves of each group by its name, shape (runs, grid), NaN where a run has no value
            (`analysis.curves`).
        grid: the frames of the curves, ascending.
        bands: the lower and the upper end of each group's band, shape (grid,) each; by default the mean plus and minus
            one standard error over runs, as in the paper. A group without an entry has no band.
        band: what the bands are, for the legend.
        runs: whether single runs are drawn.
        epsilon: the epsilon of each group that has one, shape (runs, grid) (`analysis.recorded_curves`); the figure
            shows the mean over runs and their range.
        behaviours: the behaviour of each group, which decides its colour and line style, or the number of a look. By
            default a group that is called like a behaviour is one.
        window: how many episodes the curves average, for the label of the axis.
        title: the title above the figure.
        note: a sentence for the reader of the figure, above the legend: in which settings the groups differ, say.
        steps: what the frames are called.
        label: what the curves are, for the label of the axis. Default: the mean return of the last `window` episodes.

    Returns:
        The figure. Its legend says how many runs each group has.
    """
    frames = _frames(grid)
    data = {name: _checked(name, values, frames) for name, values in groups.items()}
    if not data:
        raise InputError("groups is empty: there is nothing to draw")
    ends = _standard_errors(data) if bands is None else _given(bands, data, frames)
    exploration = {name: _checked(f"epsilon of {name}", values, frames) for name, values in (epsilon or {}).items()}
    _refuse_unknown("epsilon", exploration, data)
    known = {name: name for name in data if name in BEHAVIOURS} if behaviours is None else behaviours
    looks = dict(zip(data, line_styles([known.get(name) for name in data]), strict=True))
    lines = [_caption(band if ends else None, runs), *textwrap.wrap(note, _NOTE_WIDTH)]
    with style():
        # A long note, or a legend of many rows, makes the figure higher; the panels stay as high as they are.
        more = _LINE * (max(0, len(lines) - 2) + max(0, -(-len(data) // 2) - 1))
        figure = new_figure(5.6, (5.4 if exploration else 3.9) + more)
        ratios = [2.4, 1.0] if exploration else [1.0]
        axes = figure.subplots(len(ratios), 1, sharex=True, squeeze=False, height_ratios=ratios)[:, 0]
        for name, values in data.items():
            _draw_returns(axes[0], name, frames, values, ends.get(name), looks[name], runs)
        axes[0].autoscale_view()
        axes[0].set_ylabel(f"return (mean of the last {window} episodes)" if label is None else label)
        if exploration:
            for name, values in exploration.items():
                draw_range(axes[1], frames, values, looks[name])
            axes[1].set(ylabel="ε (mean, range)", ylim=(-0.03, 1.03))
        set_frames(axes[-1], float(frames[-1]), steps)
        if title:
            axes[0].set_title(title)
        legend_below(figure, axes[:1], "\n".join(lines))
    return figure


def _draw_returns(
    ax: Axes,
    name: str,
    frames: Array,
    values: Array,
    ends: tuple[Array, Array] | None,
    look: dict[str, Any],
    runs: bool,
) -> None:
    if runs:
        lines = [np.column_stack([frames, row])[~np.isnan(row)] for row in values]
        thin = LineCollection(lines, colors=look["color"], linewidths=0.4, alpha=0.3, zorder=1)
        ax.add_collection(thin)
    if ends is not None:
        ax.fill_between(frames, *ends, color=look["color"], alpha=0.25, linewidth=0, zorder=2)
    mean = mean_and_standard_error(values).mean
    ax.plot(frames, mean, **look, zorder=3, label=f"{name} (n = {len(values)})")


def _caption(band: str | None, runs: bool) -> str:
    bar = f"± {band}" if band == "standard error" else band
    return ", ".join(part for part in ("mean over runs", bar, "single runs thin" if runs else None) if part)


def _standard_errors(data: Mapping[str, Array]) -> dict[str, tuple[Array, Array]]:
    summaries = {name: mean_and_standard_error(values) for name, values in data.items()}
    return {name: (s.mean - s.error, s.mean + s.error) for name, s in summaries.items()}


def _given(
    bands: Mapping[str, tuple[ArrayLike, ArrayLike]], data: Mapping[str, Array], frames: Array
) -> dict[str, tuple[Array, Array]]:
    _refuse_unknown("bands", bands, data)
    out = {}
    for name, (lower, upper) in bands.items():
        ends = numeric(lower, f"bands of {name}"), numeric(upper, f"bands of {name}")
        for end in ends:
            if end.shape != frames.shape:
                raise InputError(f"bands of {name} must have shape {frames.shape}, as the grid; found {end.shape}")
        out[name] = ends
    return out


def _refuse_unknown(what: str, given: Mapping[str, Any], groups: Mapping[str, Any]) -> None:
    for name in given:
        if name not in groups:
            raise InputError(f"{what}: there is no group {name!r}; the groups are {', '.join(groups)}")


def _frames(grid: ArrayLike) -> Array:
    frames = numeric(grid, "grid")
    if frames.ndim != 1 or frames.size == 0:
        raise InputError(f"grid must be a list of frames; found shape {frames.shape}")
    wrong = ~(np.diff(frames) > 0)
    if wrong.any() or not np.isfinite(frames).all():
        i = int(np.argmax(wrong)) + 1 if wrong.any() else 0
        raise InputError(f"grid must be finite and ascend: not so at grid[{i}] = {frames[i]:g}")
    return frames


def _checked(name: str, values: ArrayLike, frames: Array) -> Array:
    rows = numeric(values, name)
    if rows.ndim != 2 or rows.shape[1] != frames.size or len(rows) == 0:
        raise InputError(f"{name}: curves must have shape (runs, {frames.size}), as the grid; found {rows.shape}")
    return rows
