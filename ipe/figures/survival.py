"""Survival curves: the share of runs that have lasted so long, as steps, with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from ipe.analysis.survival import SurvivalCurve
from ipe.figures.lines import legend_below
from ipe.figures.style import line_styles, new_figure, style


@dataclass(frozen=True, eq=False)
class SurvivalLine:
    """One curve of a panel, its name, and the behaviour that decides its look; None for a look that is free."""

    label: str
    curve: SurvivalCurve
    behaviour: str | None = None


def draw_survival(
    panels: Sequence[tuple[str, Sequence[SurvivalLine]]], *, axis: str = "frames", quantity: str = "share of runs"
) -> Figure:
    """A panel for each group of survival curves, side by side on one scale.

    A line is drawn as far as its runs were watched; the band is the interval at each time by itself.

    Args:
        panels: the title and the curves of each panel.
        axis: the label of the horizontal axis, in thousands.
        quantity: the label of the vertical axis.
    """
    last = max(line.curve.last for _, lines in panels for line in lines)
    with style():
        figure = new_figure(3.3 * len(panels) + 0.5, 3.7)
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for ax, (title, lines) in zip(axes, panels, strict=True):
            looks = line_styles([line.behaviour for line in lines])
            for line, look in zip(lines, looks, strict=True):
                curve = line.curve
                at = np.concatenate([[0.0], curve.time, [curve.last]])
                steps = [np.concatenate([[1.0], y, y[-1:] if y.size else [1.0]]) for y in (curve.low, curve.high)]
                ax.fill_between(at, *steps, step="post", color=look["color"], alpha=0.15, linewidth=0)
                share = np.concatenate([[1.0], curve.survival, curve.survival[-1:] if curve.time.size else [1.0]])
                ax.plot(at, share, drawstyle="steps-post", label=line.label, **look)
            ax.set(title=title, xlabel=f"{axis} (thousands)", xlim=(0.0, last), ylim=(-0.02, 1.02))
            ax.xaxis.set_major_formatter(lambda x, _: f"{x / 1000:g}")
        axes[0].set_ylabel(quantity)
        legend_below(figure, axes, "share (Kaplan-Meier) and 95% interval at each time")
    return figure
