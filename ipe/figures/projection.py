"""The picture of two states of any MDP: which values they have together under some policy, and which under none."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon

from ipe.figures.style import check_figure_path, new_figure, save_figure, style
from ipe.figures.value_plane import EDGE, INK, plain, root_figure, view_of
from ipe.mdp import FiniteMDP
from ipe.polytope import polytope_projection

_ACHIEVED = "#c9d8ea"
_UNDECIDED: dict[str, Any] = {"facecolor": "#e8e8e8", "edgecolor": EDGE, "hatch": "//////", "linewidth": 0.0}
_SIDE = 4.0
"""The inches of the panel's sides."""


def draw_projection(
    mdp: FiniteMDP,
    states: Sequence[int],
    path: str | os.PathLike[str] | None = None,
    *,
    ax: Axes | None = None,
    policies: int = 200,
    seed: int = 0,
) -> Figure:
    r"""Draw which :math:`(V^\pi(s_0), V^\pi(s_1))` two states of any MDP can have, all states following any policy.

    Filled is what a known policy achieves. Outside of the outline no policy's values lie. What is hatched between them
    is not decided (`ipe.polytope.projection` says why).

    Args:
        mdp: the MDP.
        states: the two states, neither of them terminal.
        path: the file to write: `.svg`, `.png` or `.pdf`.
        ax: axes to draw into, instead of a figure of its own; `ax.legend()` adds a legend.
        policies: how many policies of the other states are tried.
        seed: of the random ones among them.

    Returns:
        The figure.

    Example:
        >>> from ipe.zoo import river_swim
        >>> figure = draw_projection(river_swim(4), (0, 3), policies=10)
        >>> figure.axes[0].get_title()
        'all policies in all states, seen in s0 and s3'
    """
    if path is not None:
        check_figure_path(path)
    projection = polytope_projection(mdp, states, policies=policies, seed=seed)
    first, second = (plain(mdp.state_name(s)) for s in projection.states)
    share = projection.undecided()
    view = view_of(np.stack(projection.box), margin=0.06)
    with style():
        if ax is None:
            figure = new_figure(_SIDE, _SIDE + 0.6)
            ax = figure.add_axes((0.16, 0.25, 0.8, 0.8 * _SIDE / (_SIDE + 0.6) - 0.02))
            handles = [
                Patch(facecolor=_ACHIEVED, label="achieved: the policy is known"),
                Patch(**_UNDECIDED, label=f"not decided: {share:.0%}"),
                Line2D([], [], color=INK, linewidth=1.0, label="outline: no policy's values lie outside of it"),
            ]
            figure.legend(handles=handles, loc="lower center", borderaxespad=0.3, labelspacing=0.35)
        ax.set(xlabel=f"$V$({first})", ylabel=f"$V$({second})", aspect="equal", xlim=view[:, 0], ylim=view[:, 1])
        ax.set_title(f"all policies in all states, seen in {first} and {second}", fontsize="small")
        for polygon in projection.outer:
            ax.add_patch(Polygon(polygon, **_UNDECIDED, zorder=1))
            ax.add_patch(Polygon(polygon, facecolor="none", edgecolor=INK, linewidth=1.0, zorder=4))
        # Edges of the same colour close the hairlines that antialiasing leaves between pieces, and show those without
        # an area.
        parts = [polygon for piece in projection.pieces for polygon in piece.polygons]
        ax.add_collection(PolyCollection(parts, facecolors=_ACHIEVED, edgecolors=_ACHIEVED, linewidths=0.6, zorder=2))
        thin = [segment for piece in projection.pieces if not piece.polygons for segment in piece.segments]
        ax.add_collection(LineCollection(thin, colors=_ACHIEVED, linewidths=1.2, zorder=2))
    figure = root_figure(ax)
    if path is not None:
        save_figure(figure, path)
    return figure
