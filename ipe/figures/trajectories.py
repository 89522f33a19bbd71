"""Learning drawn on the value polytope (the paper's Figure 2a), and epsilon over time (its Figure 2b)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ipe.base.arrays import Array
from ipe.figures.style import OKABE_ITO, new_figure, style
from ipe.figures.value_plane import draw_on, polytope_handles, set_axes, view_of
from ipe.mdp import FiniteMDP
from ipe.polytope import value_polytope

_ESTIMATE: dict[str, Any] = {"color": OKABE_ITO["blue"], "marker": "o", "markersize": 2.6, "linewidth": 0.5}
_VALUE: dict[str, Any] = {"color": OKABE_ITO["green"], "marker": "s", "markersize": 2.4, "linewidth": 0.5}
_START: dict[str, Any] = {
    "linestyle": "none", "marker": "o", "markersize": 9, "markerfacecolor": "none",
    "markeredgecolor": OKABE_ITO["vermillion"], "markeredgewidth": 1.4,
}  # fmt: skip


def draw_paths(mdp: FiniteMDP, paths: Mapping[str, tuple[Array, Array]]) -> Figure:
    """Estimates and behaviour values over a run, one panel per behaviour, all with the same axes.

    Args:
        mdp: exactly two of its states are not terminal.
        paths: a title for each panel, with the estimates max_a Q and the true values of the behaviour, both (steps, 2).

    Returns:
        The figure: estimates blue, behaviour values green, both starts circled red.
    """
    polytope = value_polytope(mdp)
    view = view_of(np.concatenate([polytope.vertices, *(x for pair in paths.values() for x in pair)]), margin=0.07)
    columns = 2 if len(paths) > 1 else 1
    rows = -(-len(paths) // columns)
    with style():
        figure = new_figure(3.4 * columns, 3.5 * rows + 0.8)
        axes = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for ax, title in zip(axes.flat, paths, strict=False):
            set_axes(ax, polytope, view)
            ax.set_title(title)
            ax.label_outer()
        figure.tight_layout(rect=(0, 0.8 / (3.5 * rows + 0.8), 1, 1))
        for ax, (estimates, values) in zip(axes.flat, paths.values(), strict=False):
            draw_on(ax, polytope, view, True, np.empty((0, 2)))
            ax.label_outer()
            ax.plot(*values.T, **_VALUE, zorder=4, alpha=0.8)
            ax.plot(*estimates.T, **_ESTIMATE, zorder=5, alpha=0.8)
            ax.plot(*np.stack([estimates[0], values[0]]).T, **_START, zorder=7)
        for ax in axes.flat[len(paths) :]:
            ax.remove()
        handles = [
            Line2D([], [], **_ESTIMATE, label=r"estimate $\max_a Q(s,a)$ at each step"),
            Line2D([], [], **_VALUE, label="true value of the behaviour at that step"),
            Line2D([], [], **_START, label="start of each"),
        ]
        figure.legend(handles=[*handles, *polytope_handles(polytope)], loc="lower center", ncols=2)
    return figure


def draw_epsilon(run: Mapping[str, Array], median: Mapping[str, Array], size: int) -> Figure:
    """Epsilon at each step of a run, solved and by a lookup table; and its median and quartiles over many runs.

    Args:
        run: columns step, state, epsilon and epsilon_table.
        median: columns step, lower, median and upper.
        size: the number of entries of the table.
    """
    with style():
        figure = new_figure(8.4, 2.9)
        solved, table, many = figure.subplots(1, 3, sharey=True, sharex=True)
        for ax, column in ((solved, "epsilon"), (table, "epsilon_table")):
            for state, colour, marker in ((0, OKABE_ITO["blue"], "o"), (1, OKABE_ITO["vermillion"], "s")):
                at = run["state"] == state
                look: dict[str, Any] = {"color": colour, "linestyle": "none", "marker": marker, "markersize": 2.2}
                ax.plot(run["step"][at], run[column][at], **look, label=f"used in state s{state}")
            ax.set_xlabel("step")
        solved.set(ylabel="ε", title="One run of ε-IPE, ε solved", ylim=(-0.03, 1.05))
        solved.legend(loc="upper right")
        table.set_title(f"The same by a table of {size} values")
        many.fill_between(
            median["step"], median["lower"], median["upper"], color=OKABE_ITO["sky"], alpha=0.4, linewidth=0,
            label="quartiles",
        )  # fmt: skip
        many.plot(median["step"], median["median"], color=OKABE_ITO["blue"], label="median")
        many.set(xlabel="step", title="Over many runs, ε solved")
        many.legend(loc="upper right")
        figure.tight_layout()
    return figure
