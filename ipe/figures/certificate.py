"""A picture of a certificate: where the residual is, promised against true values, where the policy is undecided."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ipe.base.arrays import Array
from ipe.base.numbers import whole_number
from ipe.errors import InputError
from ipe.figures.style import OKABE_ITO, check_figure_path, new_figure, save_figure, style
from ipe.inverse import EvaluationPolicy
from ipe.planning.operators import backup

MANY = 2000
"""States from which dots are drawn as pixels, so that a file stays small."""
_NORMS = {"l2": "l2", "l1": "l1", "linf": "sup"}


def draw_certificate(
    result: EvaluationPolicy,
    path: str | os.PathLike[str] | None = None,
    *,
    shape: tuple[int, int] | None = None,
) -> Figure:
    """Draw a solution with its proof, in three panels.

    The first shows each state's largest residual, the second the value that was promised against the true value of
    the policy, the third the policy's entropy relative to that of a uniform one: 1 where it is undecided.

    Args:
        result: what `evaluation_policy` returned.
        path: the file to write: `.svg`, `.png` or `.pdf`.
        shape: rows and columns of a grid world whose states are numbered row by row. The first and the third panel
            are then maps of the grid.

    Returns:
        The figure.

    Example:
        >>> import ipe
        >>> result = ipe.evaluation_policy(ipe.zoo.switch_stay(), v=[18.0, -6.0])
        >>> [axes.get_title() for axes in draw_certificate(result).axes]
        ['largest residual of each state', 'promised and true values', 'entropy (1: undecided)']
    """
    if path is not None:
        check_figure_path(path)
    grid = None if shape is None else _check_shape(shape, result.mdp.n_states)
    with style():
        figure = new_figure(9.5, 3.3)
        figure.set_layout_engine("constrained")
        first, second, third = figure.subplots(1, 3)
        _per_state(first, residual_per_state(result), grid, result, "largest residual of each state", None)
        below = "exact" if result.gap == 0 else f"no policy has less than {result.residual_lower_bound:.6g}"
        norm = _NORMS[result.norm]
        figure.suptitle(f"residual {result.residual:.6g} in the {norm} norm; {below}", fontsize="medium")
        _promises(second, result)
        _per_state(third, undecided(result), grid, result, "entropy (1: undecided)", 1.0)
    if path is not None:
        save_figure(figure, path)
    return figure


def residual_per_state(result: EvaluationPolicy) -> Array:
    """The largest absolute residual of each state, over its allowed actions; 0 in terminal states."""
    mdp = result.mdp
    if result.form == "v":
        return np.where(mdp.terminal, 0.0, np.abs(result.v - result.given))
    residuals: Array = np.abs(np.where(mdp.allowed, backup(mdp, result.v) - result.given, 0.0)).max(axis=1)
    return residuals


def undecided(result: EvaluationPolicy) -> Array:
    """The entropy of each state's policy over that of a uniform one; 0 where there is one action."""
    count = result.mdp.allowed.sum(axis=1)
    return np.where(count > 1, result.entropy / np.log(np.maximum(count, 2)), 0.0)


def _per_state(
    ax: Axes,
    values: Array,
    grid: tuple[int, int] | None,
    result: EvaluationPolicy,
    title: str,
    top: float | None = None,
) -> None:
    ax.set_title(title)
    if grid is not None:
        image = ax.imshow(values.reshape(grid), cmap="viridis", vmin=0.0, vmax=top, interpolation="nearest")
        ax.figure.colorbar(image, ax=ax, shrink=0.85)
        ax.set_axis_off()
        return
    states = np.flatnonzero(~result.mdp.terminal)
    look = _marks(len(states))
    ax.plot(states, values[states], ".", color=OKABE_ITO["blue"], clip_on=False, **look)  # points at 0 are seen whole
    ax.set_ylim(bottom=0.0, top=None if top is None else 1.05 * top)
    if len(states) <= 8:
        ax.set_xticks(states, [result.mdp.state_name(int(s)) for s in states])


def _promises(ax: Axes, result: EvaluationPolicy) -> None:
    live = ~result.mdp.terminal
    promised, true = result.promised[live], result.values[live]
    ends = [float(min(promised.min(), true.min())), float(max(promised.max(), true.max()))]
    ax.plot(ends, ends, "-", color="0.7", linewidth=0.8, label="promised = true")
    ax.plot(promised, true, ".", color=OKABE_ITO["vermillion"], **_marks(promised.size))
    ax.legend(loc="best", frameon=False, fontsize="small")
    ax.set_title("promised and true values")
    ax.set_xlabel("promised")
    ax.set_ylabel("true")


def _marks(count: int) -> dict[str, Any]:
    """How that many points are drawn: smaller where they are many."""
    return {"markersize": 3 if count > 50 else 7, "rasterized": count > MANY}


def _check_shape(shape: Any, n_states: int) -> tuple[int, int]:
    try:
        rows, columns = shape
    except (TypeError, ValueError):
        raise InputError(f"shape must be two numbers, rows and columns; found {shape!r}") from None
    rows, columns = whole_number(rows, "shape[0]", 1), whole_number(columns, "shape[1]", 1)
    if rows * columns != n_states:
        raise InputError(f"shape {rows} x {columns} has {rows * columns} cells, but the MDP has {n_states} states")
    return rows, columns
