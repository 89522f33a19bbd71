"""Sensitivity curves: a mean with its standard error over the values of a hyperparameter, panel by panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from ipe.base.arrays import Array
from ipe.base.looks import LOOKS, slots_for
from ipe.figures.style import new_figure, style


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a panel: x, mean and standard error, and the behaviour that it is about, which decides its look."""

    label: str
    x: Array
    mean: Array
    error: Array
    behaviour: str | None = None


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
                    ax.errorbar(
                        curve.x, curve.mean, yerr=curve.error, label=curve.label, capsize=1.5, color=look.colour,
                        marker=look.marker, markersize=3.2, linestyle=look.line,
                    )  # fmt: skip
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
