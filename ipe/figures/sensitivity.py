"""Sensitivity curves: a mean with its standard error over the values of a hyperparameter, panel by panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from ipe.base.arrays import Array
from ipe.figures.style import CYCLE, new_figure, style


@dataclass(frozen=True, eq=False)
class Curve:
    """One line of a panel: x, mean and standard error."""

    label: str
    x: Array
    mean: Array
    error: Array


@dataclass(frozen=True, eq=False)
class Panel:
    """A hyperparameter's curves for each quantity shown: one column of the figure."""

    title: str
    axis: str
    logarithmic: bool
    curves: Sequence[Sequence[Curve]]


def draw_sensitivity(panels: Sequence[Panel], quantities: Sequence[str], floors: Sequence[float | None]) -> Figure:
    """A column per panel and a row per quantity; a row shares its axis, so that what is compared can be.

    Args:
        panels: each with one list of curves per quantity.
        quantities: the labels of the rows.
        floors: the least value that a row's axis shows, or None.
    """
    with style():
        rows, columns = len(quantities), len(panels)
        figure = new_figure(1.95 * columns + 0.6, 2.0 * rows + 0.5)
        axes = figure.subplots(rows, columns, sharey="row", sharex="col", squeeze=False)
        for j, panel in enumerate(panels):
            for i, curves in enumerate(panel.curves):
                ax = axes[i, j]
                for k, curve in enumerate(curves):
                    look = {"color": CYCLE[k % len(CYCLE)], "marker": "osD^vP"[k % 6], "markersize": 3.2}
                    ax.errorbar(curve.x, curve.mean, yerr=curve.error, label=curve.label, capsize=1.5, **look)
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
