"""Figures of the value polytope of a two-state MDP, and of the value map on it (the paper's Figure 3)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ipe.base.arrays import Array, Mask
from ipe.errors import InputError
from ipe.figures.style import check_figure_path, line_styles, save_figure, style
from ipe.figures.value_plane import EDGE, INK, draw_on, panels, root_figure, view_of
from ipe.mdp import FiniteMDP
from ipe.polytope import value_map, value_polytope
from ipe.polytope.polytope import check_points

_POLICIES = {"Evaluation policy": "ipe", "Greedy policy": "greedy"}
"""The behaviours whose colours the panels with these titles have."""

# Told apart by their sizes too, not by colour alone.
_INSIDE: dict[str, Any] = {"color": INK, "markersize": 3.6}
_OUTSIDE: dict[str, Any] = {"markersize": 1.8}
_DOTS: dict[str, Any] = {"linestyle": "none", "marker": "o", "markeredgewidth": 0}


def draw_polytope(
    mdp: FiniteMDP,
    path: str | os.PathLike[str] | None = None,
    *,
    ax: Axes | None = None,
    include: Any = None,
    labels: bool = True,
    states: Sequence[int] | None = None,
    policy: Any = None,
) -> Figure:
    r"""Draw the value polytope: all :math:`(V^\pi(s_0), V^\pi(s_1))`, and the deterministic policies by name.

    Args:
        mdp: the MDP; exactly two of its states are not terminal, or two states are chosen.
        path: the file to write: `.svg`, `.png` or `.pdf`.
        ax: axes to draw into, instead of a figure of its own with a legend; `ax.legend()` adds one.
        include: points, shape (..., 2), that the axes must show too and that labels keep clear of.
        labels: whether the deterministic policies are named, each by its action in the first and in the
            second state; only if there are at most 16.
        states: two states of an MDP that may have more; the picture says that the others follow a fixed policy.
        policy: the policy of the other states, shape (S, A). Default: uniform.

    Returns:
        The figure.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> figure = draw_polytope(switch_stay())
        >>> [text.get_text() for text in figure.axes[0].texts]
        ['stay, stay', 'stay, switch', 'switch, stay', 'switch, switch']
    """
    polytope = value_polytope(mdp, states, policy)
    more = np.empty((0, 2)) if include is None else check_points(include, "include").reshape(-1, 2)
    if path is not None:
        check_figure_path(path)
    view = view_of(np.concatenate([polytope.vertices, more]), margin=0.15)
    with style():
        if ax is None:
            (ax,) = panels(polytope, view, 1, [], top=0.1 if states is None else 0.5)
        draw_on(ax, polytope, view, labels, more)
        if states is not None:
            followed = "the uniform policy" if policy is None else "a fixed policy"
            chosen = " and ".join(mdp.state_name(int(s)) for s in states)
            ax.set_title(f"all policies in {chosen};\nthe other states follow {followed}", fontsize="small")
    figure = root_figure(ax)
    if path is not None:
        save_figure(figure, path)
    return figure


def draw_value_map(
    mdp: FiniteMDP,
    points: Any,
    images: Any = None,
    path: str | os.PathLike[str] | None = None,
    *,
    labels: bool = True,
) -> Figure:
    r"""Draw where acting on values leads: an arrow from each :math:`V` to the value :math:`V^\pi` of its policy.

    Args:
        mdp: the MDP; exactly two of its states are not terminal.
        points: value functions :math:`V` of those two states, shape (n, 2).
        images: the images :math:`V^\pi`, one panel each: a mapping from titles to arrays of shape (n, 2), or
            one such array. Default, as in the paper: the evaluation policy beside the greedy policy.
        path: the file to write: `.svg`, `.png` or `.pdf`.
        labels: whether the deterministic policies are named, as in `draw_polytope`.

    Returns:
        The figure: panels with the same axes, and a legend below them.

    Example:
        >>> from ipe.polytope import paper_grid
        >>> from ipe.zoo import switch_stay
        >>> figure = draw_value_map(switch_stay(), paper_grid())
        >>> [ax.get_title() for ax in figure.axes]
        ['Evaluation policy', 'Greedy policy']
    """
    polytope = value_polytope(mdp)
    v = _table(points, "points")
    if path is not None:
        check_figure_path(path)
    if images is None:
        images = {"Evaluation policy": value_map(mdp, v), "Greedy policy": value_map(mdp, v, policy="greedy")}
    titled = _check_images(images, v)
    view = view_of(np.concatenate([polytope.vertices, v, *titled.values()]), margin=0.04)
    inside = polytope.contains(v)
    with style():
        axes = panels(polytope, view, len(titled), _handles(inside), top=0.3 if any(titled) else 0.1)
        colours = [look["color"] for look in line_styles([_POLICIES.get(title) for title in titled])]
        for ax, (title, image), colour in zip(axes, titled.items(), colours, strict=True):
            draw_on(ax, polytope, view, labels, v)
            _draw_arrows(ax, v[~inside], image[~inside], {**_OUTSIDE, "color": colour})
            _draw_arrows(ax, v[inside], image[inside], _INSIDE)
            ax.set_title(title)
        for ax in axes[1:]:
            ax.set_ylabel("")
            ax.tick_params(labelleft=False)
    figure = root_figure(axes[0])
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_arrows(ax: Axes, v: Array, image: Array, look: Mapping[str, Any]) -> None:
    """Faint shafts and solid heads: where arrows end must be seen among the many that only pass."""
    ax.plot(*v.T, **_DOTS, **look, zorder=5)
    moved = np.abs(image - v).max(axis=1) > 1e-6 * np.ptp(ax.get_xlim())
    if not moved.any():
        return
    v, image = v[moved], image[moved]
    ax.add_collection(
        LineCollection(list(np.stack([v, image], axis=1)), colors=look["color"], linewidths=0.6, alpha=0.35, zorder=2)
    )
    direction = (image - v) / np.hypot(*(image - v).T)[:, None]
    ax.quiver(
        *image.T, *direction.T, pivot="tip", angles="uv", units="inches", scale_units="inches", scale=20, minlength=0,
        width=0.01, headwidth=3.5, headlength=5, headaxislength=5, color=look["color"], zorder=4,
    )  # fmt: skip


def _handles(inside: Mask) -> list[Artist]:
    arrow: dict[str, Any] = {"linestyle": "none", "marker": r"$\longrightarrow$", "markersize": 14}
    arrow |= {"color": EDGE, "markeredgewidth": 0.2}
    what = r"from $V$ to $V^\pi$, its policy's value (none: $V^\pi = V$)"
    handles: list[Artist] = [Line2D([], [], **arrow, label=what)]
    if inside.any():
        handles.append(Line2D([], [], **_DOTS, **_INSIDE, label="$V$ inside the polytope, in black"))
    if not inside.all():
        handles.append(
            Line2D([], [], **_DOTS, **_OUTSIDE, color=EDGE, label="$V$ outside the polytope, in its policy's colour")
        )
    return handles


def _check_images(images: Any, v: Array) -> dict[str, Array]:
    """Titles and images, each with a row for every point."""
    titled = {}
    for title, image in (images if isinstance(images, Mapping) else {"": images}).items():
        name = f"images[{title!r}]" if title else "images"
        table = _table(image, name)
        if table.shape != v.shape:
            raise InputError(f"{name} must have a row for each of the {len(v)} points; found {len(table)}")
        titled[str(title)] = table
    if not titled:
        raise InputError("images is empty: nothing to draw")
    return titled


def _table(points: Any, name: str) -> Array:
    table = check_points(points, name)
    if table.ndim != 2:
        raise InputError(f"{name} must have shape (n, 2); found {table.shape}")
    return table
