"""The plane of values of a two-state MDP: panels of it with a legend below, and the polytope drawn on one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon
from matplotlib.patheffects import withStroke

from ipe.base.arrays import Array
from ipe.figures.curves import Label, label_around, place_labels
from ipe.figures.style import new_figure
from ipe.polytope import ValuePolytope

MAX_LABELS = 16
"""More deterministic policies than these are marked, but not named."""

EDGE = "#555555"
INK = "#222222"
_FILL = ("#d9d9d9", 0.7)
_WIDTH, _HEIGHT = 3.0, 3.6  # the most inches of a panel
_RIGHT, _BOTTOM, _GAP = 0.15, 0.5, 0.25  # inches around the panels
_DIAMOND: dict[str, Any] = {
    "linestyle": "none", "marker": "D", "markersize": 4.5,
    "color": INK, "markeredgecolor": "white", "markeredgewidth": 0.6,
}  # fmt: skip


def view_of(points: Array, margin: float) -> Array:
    """The corners (low, high) of a box around all points, with a margin, and no side below 2/5 of the other."""
    low, high = points.min(axis=0), points.max(axis=0)
    longest = float((high - low).max()) or max(1.0, float(np.abs(low).max()))
    half = np.maximum((high - low) / 2, 0.2 * longest) + margin * longest
    centre = (low + high) / 2
    return np.stack([centre - half, centre + half])


def panels(polytope: ValuePolytope, view: Array, count: int, more: Sequence[Artist], top: float) -> list[Axes]:
    """A row of panels that show the view, in its shape, and below them a legend: the polytope's, and `more`.

    The page is as large as they need, which is known only once tick labels and legend have been set.
    """
    extent = view[1] - view[0]
    width, height = extent * min(_WIDTH / extent[0], _HEIGHT / extent[1])
    figure = new_figure(4.0, 4.0)
    legend = figure.legend(
        handles=[*polytope_handles(polytope), *more], loc="lower center", ncols=1 if count == 1 else 2,
        borderaxespad=0.3, handlelength=2.4, columnspacing=1.6, labelspacing=0.35,
    )  # fmt: skip
    legend_size = np.array(legend.get_window_extent().size) / figure.dpi
    axes = [figure.add_axes((0.1, 0.1, 0.8, 0.8))]
    axes += [figure.add_axes((0.1, 0.1, 0.8, 0.8), sharex=axes[0], sharey=axes[0]) for _ in range(1, count)]

    def arrange(left: float, top: float) -> None:
        row, below = left + count * (width + _GAP) - _GAP + _RIGHT, _BOTTOM + legend_size[1]
        page = np.array([max(row, legend_size[0] + 0.1), below + height + top])
        figure.set_size_inches(*page)
        for k, ax in enumerate(axes):
            corner = (page[0] - row) / 2 + left + k * (width + _GAP), below
            ax.set_position(tuple(np.array([*corner, width, height]) / np.tile(page, 2)))

    arrange(0.5, top)
    set_axes(axes[0], polytope, view)
    inner, outer = axes[0].bbox, axes[0].get_tightbbox() or axes[0].bbox
    arrange(0.06 + (inner.x0 - outer.x0) / figure.dpi, max(top, 0.06 + (outer.y1 - inner.y1) / figure.dpi))
    return axes


def set_axes(ax: Axes, polytope: ValuePolytope, view: Array) -> None:
    """Labels and limits: one unit of value is as long in both directions."""
    first, second = (plain(polytope.mdp.state_name(s)) for s in polytope.states)
    ax.set(xlabel=f"$V$({first})", ylabel=f"$V$({second})", aspect="equal", xlim=view[:, 0], ylim=view[:, 1])


def root_figure(ax: Axes) -> Figure:
    """The figure that axes belong to, be it through subfigures."""
    figure = ax.figure
    return figure if isinstance(figure, Figure) else figure.figure


def polytope_handles(polytope: ValuePolytope) -> list[Artist]:
    """The legend's entries for the polytope."""
    first, second = (plain(polytope.mdp.state_name(s)) for s in polytope.states)
    what = "value polytope: the values of all policies"
    area = Patch(facecolor=_FILL, edgecolor=EDGE, label=what)
    return [
        area if polytope.polygons else Line2D([], [], color=EDGE, linewidth=1.0, label=what),
        Line2D([], [], **_DIAMOND, label=f"deterministic policy: action in {first}, in {second}"),
    ]


def draw_on(ax: Axes, polytope: ValuePolytope, view: Array, labels: bool, avoid: Array) -> None:
    """The polytope on axes that show exactly `view`; labels keep clear of its boundary and of the points `avoid`.

    The fill is translucent and lies above what has a zorder below 2.5, the boundary at 3, the marks at 6.
    """
    set_axes(ax, polytope, view)
    fill, mark = (handle.get_label() for handle in polytope_handles(polytope))
    for k, polygon in enumerate(polytope.polygons):
        ax.add_patch(Polygon(polygon, facecolor=_FILL, edgecolor="none", zorder=2.5, label=None if k else fill))
    ax.add_collection(LineCollection(list(polytope.segments), colors=EDGE, linewidths=1.0, capstyle="round", zorder=3))
    ax.plot(*polytope.vertices.T, **_DIAMOND, zorder=6, label=mark)
    if labels and len(polytope.vertices) <= MAX_LABELS:
        _write_names(ax, polytope, _policy_names(polytope), avoid)


def _policy_names(polytope: ValuePolytope) -> dict[tuple[float, float], str]:
    """The deterministic policies by their values; those that a figure cannot tell apart share an entry."""
    names: dict[tuple[float, float], str] = {}
    spread, size = np.ptp(polytope.vertices, axis=0).max(), np.abs(polytope.vertices).max()
    same = max(1e-6 * spread, 1e-12 * size)
    for actions, value in zip(polytope.deterministic_policies, polytope.vertices, strict=True):
        name = ", ".join(plain(polytope.mdp.action_name(int(a))) for a in actions)
        twin = next((at for at in names if np.abs(value - at).max() <= same), None)
        if twin is None:
            names[float(value[0]), float(value[1])] = name
        else:
            names[twin] += "\n" + name
    return names


def _write_names(ax: Axes, polytope: ValuePolytope, names: dict[tuple[float, float], str], avoid: Array) -> None:
    """Each name beside its mark: rather outside the polytope, within the axes, off its boundary and the points."""
    ax.apply_aspect()
    dpi = root_figure(ax).dpi
    to_pixels = ax.transData.transform
    notes = [
        ax.annotate(
            name, at, (0, 0), textcoords="offset points", ha="center", va="center", fontsize=7.5, color=INK,
            path_effects=[withStroke(linewidth=2.2, foreground="white")], zorder=7,
        )
        for at, name in names.items()
    ]  # fmt: skip
    anchors = to_pixels(np.array(list(names))) / dpi
    labels: list[Label] = []
    for note, anchor in zip(notes, anchors, strict=True):
        box = note.get_window_extent()
        label = label_around(note.get_text(), (box.width / dpi, box.height / dpi), anchor, gap=0.08)
        covering = polytope.contains(ax.transData.inverted().transform(label.places * dpi))
        dislike = label.dislike + 0.6 * covering + 1.5 * _near_others(label, anchors, anchor)
        labels.append(replace(label, dislike=dislike))

    x0, y0, x1, y1 = np.array(ax.bbox.extents) / dpi + [0.06, 0.03, 0.12, 0.05]  # no spine at the right and the top
    x, y = (x0 + x1) / 2, (y0 + y1) / 2
    around = np.array([[x0 - 1, y, 1, 9], [x1 + 1, y, 1, 9], [x, y0 - 1, 9, 1], [x, y1 + 1, 9, 1]])
    marks = np.column_stack([anchors, np.full((len(anchors), 2), 0.04)])
    start, end = np.moveaxis(polytope.segments, 1, 0)
    boundary = (start + np.linspace(0, 1, 40)[:, None, None] * (end - start)).reshape(-1, 2)
    strokes = to_pixels(np.concatenate([boundary, avoid])) / dpi
    for note, anchor, label, centre in zip(
        notes, anchors, labels, place_labels(labels, around, marks, strokes), strict=True
    ):
        # In points, so that it stays there when the axes change; and held by the side that faces the mark, since
        # the width of a text differs a little from one format to another.
        x, y = centre - anchor
        side = 0 if abs(x) < label.width / 4 else int(np.sign(x))
        note.set_horizontalalignment("left" if side > 0 else "right" if side < 0 else "center")
        note.set_position((72 * (x - side * label.width / 2), 72 * y))


def _near_others(label: Label, anchors: Array, anchor: Array) -> Array:
    """For each place of a label, how close it is to another mark: from 0 (far) to 1 (it touches one)."""
    others = anchors[np.abs(anchors - anchor).max(axis=1) > 0.1]  # marks at one place share their labels' places
    half = np.array([label.width, label.height]) / 2
    outside = np.maximum(np.abs(label.places[:, None] - others) - half, 0.0)
    distance = np.hypot(outside[..., 0], outside[..., 1])
    return np.asarray(np.clip(1.0 - distance / 0.2, 0.0, 1.0).max(axis=1, initial=0.0))


def plain(name: str) -> str:
    """A name as it is: a dollar sign in it does not start mathematics."""
    return name.replace("$", r"\$")
