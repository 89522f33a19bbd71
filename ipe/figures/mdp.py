"""A small MDP as a diagram, after the paper's Figure 1."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle
from matplotlib.path import Path
from matplotlib.textpath import TextPath

from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.figures.curves import Label, at, label_along, label_around, place_labels, trim, unit
from ipe.figures.mdp_layout import Layout, inside_state, layout
from ipe.figures.style import CYCLE, check_figure_path, new_figure, save_figure, style
from ipe.mdp import FiniteMDP

MAX_STATES = 12
MAX_ARROWS = 100

_POINTS = 56.0  # per unit of the layout
_STATE_SIZE, _LABEL_SIZE, _SMALL_SIZE = 10.0, 8.5, 7.5  # points
_DOT = 0.055
_GAP = 0.05
_MARGIN = 0.1
_INK, _GREY = "#222222", "#6b6b6b"


@dataclass(frozen=True)
class _Stroke:
    curve: Array
    colour: str
    head: bool


@dataclass(frozen=True)
class _Text:
    text: str
    centre: Array
    size: float
    colour: str


def draw_mdp(mdp: FiniteMDP, path: str | os.PathLike[str] | None = None, *, ax: Axes | None = None) -> Figure:
    """Draw the states, actions, probabilities and rewards of a small MDP.

    States are circles, terminal ones doubled squares; an arrow out of nowhere marks the start. An action
    with one outcome is an arrow labelled with its name and reward (`stay, +1`). One with several leads to
    a dot with that label, and from there an arrow with its probability to each next state; where the
    reward depends on the next state it stands at these arrows. Actions that are not allowed are not drawn.

    Args:
        mdp: at most 12 states and 100 transitions (s, a, s').
        path: where to write it: `.svg`, `.png` or `.pdf`. The same MDP gives the same bytes.
        ax: axes to draw into, instead of a figure of its own.

    Returns:
        The figure.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> figure = draw_mdp(switch_stay())
        >>> [text.get_text() for text in figure.axes[0].texts][:4]
        ['s0', 's1', 'stay, +1', 'switch, −1']
    """
    if mdp.n_states > MAX_STATES:
        raise InputError(f"a drawing holds at most {MAX_STATES} states; this MDP has {mdp.n_states}")
    if mdp.transitions.nnz > MAX_ARROWS:
        raise InputError(f"a drawing holds at most {MAX_ARROWS} transitions; this MDP has {mdp.transitions.nnz}")
    if path is not None:
        check_figure_path(path)
    with style():
        figure = _draw(mdp, ax)
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw(mdp: FiniteMDP, ax: Axes | None) -> Figure:
    names = [mdp.state_name(s) for s in range(mdp.n_states)]
    half = max(0.3, 0.5 * max(_size(name, _STATE_SIZE)[0] for name in names) + 0.08)
    widest = max((_size(_pair_text(mdp, s, a), _LABEL_SIZE)[0] for s, a in np.argwhere(mdp.allowed)), default=0.0)
    plan = layout(mdp, half, widest)
    strokes = _strokes(mdp, plan)
    starts = _start_strokes(mdp, plan, strokes)
    texts = _texts(mdp, plan, strokes, starts)
    low, high = _bounds(plan, [*strokes, *starts.values()], texts)
    scale = 1.0
    if ax is None:
        figure = new_figure(*(_POINTS / 72 * (high - low)))
        ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    else:
        figure = ax.figure.figure  # of a subfigure, the figure around it
        box = ax.get_window_extent()
        scale = float(min(72 / figure.dpi * np.array([box.width, box.height]) / (_POINTS * (high - low))))
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    _paint(ax, mdp, plan, [*strokes, *starts.values()], texts, scale)
    return figure


def _strokes(mdp: FiniteMDP, plan: Layout) -> list[_Stroke]:
    out = []
    for pair in plan.pairs:
        colour = CYCLE[pair.action % len(CYCLE)]
        if pair.stem is not None:
            out.append(_Stroke(pair.stem, colour, head=False))
        out += [_Stroke(move.curve, colour, head=True) for move in pair.moves]
    return out


def _start_strokes(mdp: FiniteMDP, plan: Layout, strokes: list[_Stroke]) -> dict[int, _Stroke]:
    """An arrow out of nowhere to each start state, from where most room is."""
    out: dict[int, _Stroke] = {}
    if mdp.start is None:
        return out
    for s in np.flatnonzero(mdp.start):
        taken = np.concatenate([_points([*strokes, *out.values()]), np.delete(plan.centres, s, axis=0)])
        best, room = 180.0, -1.0
        for degrees in (180.0, 135.0, 225.0, 90.0, 270.0, 150.0, 210.0, 120.0, 240.0, 45.0, 315.0, 0.0, 60.0, 300.0):
            probe = plan.centres[s] + unit(degrees) * (plan.half + np.linspace(0.1, 0.6, 6))[:, None]
            distance = np.hypot(*(taken[:, None] - probe[None]).transpose(2, 0, 1)).min(initial=9.0)
            if distance > room + 0.05:
                best, room = degrees, float(distance)
        line = np.linspace(plan.centres[s] + unit(best) * (plan.half + 0.5), plan.centres[s], 4)
        out[int(s)] = _Stroke(
            trim(line, None, inside_state(plan.centres[s], plan.half, square=False)), _GREY, head=True
        )
    return out


def _texts(mdp: FiniteMDP, plan: Layout, strokes: list[_Stroke], starts: dict[int, _Stroke]) -> list[_Text]:
    """The states' names, and every label where it covers least."""
    labels: list[Label] = []
    look: list[tuple[float, str]] = []

    def add(label: Label, size: float, colour: str) -> None:
        labels.append(label)
        look.append((size, colour))

    for pair in plan.pairs:
        colour = _darker(CYCLE[pair.action % len(CYCLE)])
        text = _pair_text(mdp, pair.state, pair.action)
        if pair.dot is None:
            add(label_along(text, _size(text, _LABEL_SIZE), pair.moves[0].curve, 0.5, _GAP), _LABEL_SIZE, colour)
            continue
        add(label_around(text, _size(text, _LABEL_SIZE), pair.dot, _DOT + _GAP), _LABEL_SIZE, colour)
        for move in pair.moves:
            text = f"{move.probability:.3g}" + ("" if move.reward is None else f", {_signed(move.reward)}")
            add(
                label_along(
                    text, _size(text, _SMALL_SIZE), move.curve, 0.45 if move.target == pair.state else 0.3, _GAP
                ),
                _SMALL_SIZE,
                colour,
            )
    for s, stroke in starts.items():
        probability = 0.0 if mdp.start is None else mdp.start[s]
        text = "start" if probability == 1.0 else f"start {probability:.3g}"
        add(label_around(text, _size(text, _SMALL_SIZE), stroke.curve[0], _GAP), _SMALL_SIZE, _GREY)
    shapes = np.hstack([plan.centres, np.full_like(plan.centres, plan.half + 0.03)])
    dots = np.array([[*pair.dot, _DOT, _DOT] for pair in plan.pairs if pair.dot is not None]).reshape(-1, 4)
    centres = place_labels(labels, shapes, dots, _points([*strokes, *starts.values()]))
    names = [_Text(mdp.state_name(s), plan.centres[s], _STATE_SIZE, _INK) for s in range(mdp.n_states)]
    return names + [
        _Text(label.text, centre, size, colour)
        for label, centre, (size, colour) in zip(labels, centres, look, strict=True)
    ]


def _pair_text(mdp: FiniteMDP, s: int, a: int) -> str:
    """Name and reward; the name alone where the reward depends on the next state."""
    row = s * mdp.n_actions + a
    entries = slice(mdp.transitions.indptr[row], mdp.transitions.indptr[row + 1])
    if mdp.transition_rewards is not None and np.ptp(mdp.transition_rewards[entries]) > 0:
        return mdp.action_name(a)
    return f"{mdp.action_name(a)}, {_signed(float(mdp.rewards[s, a]))}"


def _signed(reward: float) -> str:
    return "0" if reward == 0 else f"{reward:+.3g}".replace("-", "−")


def _darker(colour: str) -> str:
    """Thin letters need more contrast than lines."""
    return str(to_hex(tuple(0.72 * channel for channel in to_rgb(colour))))


@lru_cache(maxsize=1024)
def _size(text: str, points: float) -> tuple[float, float]:
    """The width and height of a text in units of the layout; a dollar sign is no mathematics here."""
    box = TextPath((0, 0), text.replace("$", "S") or " ", size=points).get_extents()
    return float(box.width) / _POINTS + 0.04, 1.15 * points / _POINTS


def _points(strokes: list[_Stroke]) -> Array:
    """Points along all strokes, about as dense as the strokes are wide."""
    t = np.linspace(0.0, 1.0, 60)
    return np.concatenate([np.zeros((0, 2)), *(at(stroke.curve, t) for stroke in strokes)])


def _bounds(plan: Layout, strokes: list[_Stroke], texts: list[_Text]) -> tuple[Array, Array]:
    corners = [plan.centres - plan.half, plan.centres + plan.half, _points(strokes)]
    for text in texts:
        reach = 0.5 * np.array(_size(text.text, text.size))
        corners.append(np.stack([text.centre - reach, text.centre + reach]))
    everything = np.concatenate(corners)
    return everything.min(axis=0) - _MARGIN, everything.max(axis=0) + _MARGIN


def _paint(ax: Axes, mdp: FiniteMDP, plan: Layout, strokes: list[_Stroke], texts: list[_Text], scale: float) -> None:
    for stroke in strokes:
        codes = [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4]
        arrow = "-|>,head_length=4.5,head_width=1.9" if stroke.head else "-"
        ax.add_patch(
            FancyArrowPatch(
                path=Path(stroke.curve, codes),
                arrowstyle=arrow,
                mutation_scale=scale,
                linewidth=1.1 * scale,
                color=stroke.colour,
                capstyle="butt",
                joinstyle="miter",
            )
        )
    for s in range(mdp.n_states):
        for half in (plan.half, plan.half - 0.05) if mdp.terminal[s] else (plan.half,):
            shape = (
                Rectangle(plan.centres[s] - half, 2 * half, 2 * half)
                if mdp.terminal[s]
                else Circle(plan.centres[s], half)
            )
            shape.set(facecolor="white", edgecolor=_INK, linewidth=1.1 * scale)
            ax.add_patch(shape)
    for pair in plan.pairs:
        if pair.dot is not None:
            ax.add_patch(Circle((pair.dot[0], pair.dot[1]), _DOT, color=CYCLE[pair.action % len(CYCLE)], linewidth=0))
    backing = {"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.85}
    for text in texts:
        ax.text(
            text.centre[0],
            text.centre[1],
            text.text,
            fontsize=text.size * scale,
            color=text.colour,
            ha="center",
            va="center",
            parse_math=False,
            bbox=None if text.colour == _INK else backing,
        )
