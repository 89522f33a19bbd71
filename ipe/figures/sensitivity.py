"""Sensitivity curves: a mean with its standard error over the values of a hyperparameter, panel by panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ipe.base.arrays import Array
from ipe.base.looks import LOOKS, Look, slots_for
from ipe.figures.style import new_figure, style


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a panel.

    Attributes:
        label: the line's name.
        x: where its points stand.
        mean: the mean at each point.
        error: the standard error of each mean.
        behaviour: the behaviour that the line is about, which decides its look; or the number of a look.
        cut: for each point that was cut off by halving, what the chosen setting scored over the same frames; NaN for
            the other points. Such points are hollow, with a thin line to that score, and no line joins them. None: no
            point was cut off.
    """

    label: str
    x: Array
    mean: Array
    error: Array
    behaviour: str | int | None = None
    cut: Array | None = None


@dataclass(frozen=True, eq=False)
class Panel:
    """A hyperparameter's curves for each quantity shown: one column of the figure."""

    title: str
    axis: str
    logarithmic: bool
    curves: Sequence[Sequence[Curve]]


def draw_sensitivity(panels: Sequence[Panel], quantities: Sequence[str], floors: Sequence[float | None]) -> Figure:
    """A column per panel and a row per quantity; the panels of a row share their axis, so that they can be compared.

    Args:
        panels: the panels, each with one list of curves per quantity.
        quantities: the labels of the rows.
        floors: for each row, the least value that its axis shows, or None.
    """
    with style():
        rows, columns = len(quantities), len(panels)
        figure = new_figure(1.95 * columns + 0.6, 2.0 * rows + 0.5)
        axes = figure.subplots(rows, columns, sharey="row", sharex="col", squeeze=False)
        for j, panel in enumerate(panels):
            for i, curves in enumerate(panel.curves):
                ax = axes[i, j]
                slots = slots_for([curve.behaviour for curve in curves])
                for curve, look in zip(curves, (LOOKS[slot] for slot in slots), strict=True):
                    _draw_curve(ax, curve, look)
                if panel.logarithmic:
                    ax.set_xscale("log")
                ax.grid(alpha=0.25, linewidth=0.5)
                if j == 0:
                    ax.set_ylabel(quantities[i])
            axes[0, j].set_title(panel.title)
            axes[-1, j].set_xlabel(panel.axis)
        for i, floor in enumerate(floors):
            if floor is not None:
                axes[i, 0].set_ylim(bottom=floor)  # once all curves are there: it fixes the other end too
        handles, labels = axes[0, 0].get_legend_handles_labels()
        below = 0.0
        if len(handles) > 1:
            figure.legend(handles, labels, loc="lower center", ncols=min(len(handles), 5))
            below = 0.3 / figure.get_figheight()
        figure.tight_layout(rect=(0, below, 1, 1))
    return figure


def _draw_curve(ax: Axes, curve: Curve, look: Look) -> None:
    whole = np.ones(curve.x.size, np.bool_) if curve.cut is None else np.isnan(curve.cut)
    common: dict[str, Any] = {"capsize": 1.5, "color": look.colour, "marker": look.marker, "markersize": 3.2}
    ax.errorbar(
        curve.x[whole], curve.mean[whole], yerr=curve.error[whole], label=curve.label, linestyle=look.line, **common
    )
    if curve.cut is not None and not whole.all():
        off = ~whole
        ax.vlines(curve.x[off], curve.mean[off], curve.cut[off], color=look.colour, linewidth=0.6, linestyle=":")
        ax.errorbar(
            curve.x[off], curve.mean[off], yerr=curve.error[off], linestyle="none", markerfacecolor="white", **common
        )
