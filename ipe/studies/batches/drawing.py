"""The study of batches as a figure and as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from ipe.analysis import bootstrap_interval
from ipe.base.looks import LOOKS, slots_for
from ipe.figures.style import new_figure, style
from ipe.studies.batches.cells import Cell
from ipe.studies.batches.judging import returns_by
from ipe.studies.batches.settings import CLONING, CONSERVATIVE, TASKS, TRAININGS
from ipe.studies.learning.evidence import SEED

WAYS: dict[str, str | int] = {way: acts for training in TRAININGS for way, acts in training.ways.items()}
WAYS |= {CONSERVATIVE: 4, CLONING: 5}
"""The ways of acting, each with the behaviour whose look it has in figures, or the number of a look."""
LABELS = {task.name: task.label for task in TASKS}


def draw(results: Mapping[str, Sequence[Cell]]) -> Figure:
    """A panel per task: the mean return of every way of acting, with a 95% interval, for data of each quality; and the
    return of the policy that made the data."""
    with style():
        figure = new_figure(3.4 * len(results) + 0.4, 3.6)
        panels = figure.subplots(1, len(results), squeeze=False)[0]
        for ax, (task, cells) in zip(panels, results.items(), strict=True):
            found = returns_by(cells)
            of_data = {cell.quality: cell.data_return for cell in cells}
            best = next((cell.best for cell in cells), None)
            looks = [LOOKS[slot] for slot in slots_for(list(WAYS.values()))]
            for k, (way, look) in enumerate(zip(WAYS, looks, strict=True)):
                at = [i for i, ways in enumerate(found.values()) if way in ways]
                intervals = [bootstrap_interval(ways[way], seed=SEED) for ways in found.values() if way in ways]
                means = np.array([interval.estimate for interval in intervals])
                ends = np.array([[i.estimate - i.low, i.high - i.estimate] for i in intervals]).T
                x = np.array(at) + 0.13 * (k - (len(WAYS) - 1) / 2)
                ax.errorbar(
                    x, means, ends, linestyle="none", color=look.colour, marker=look.marker, markersize=4, capsize=2,
                    label=way,
                )  # fmt: skip
            for i, quality in enumerate(found):
                ax.hlines(of_data[quality], i - 0.45, i + 0.45, color="0.35", linewidth=1.2,
                          label="the policy that made the data" if i == 0 else None)  # fmt: skip
            if best is not None:
                ax.axhline(best, color="0.35", linewidth=1.0, linestyle=":", label="the optimum")
            ax.set_xticks(range(len(found)), list(found))
            ax.set_xlabel("quality of the data")
            ax.set_title(LABELS[task])
            ax.grid(axis="y", alpha=0.25, linewidth=0.5)
        panels[0].set_ylabel("mean return\n(95% interval over runs)")
        handles: dict[str, Any] = {}
        for ax in panels:
            for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
                handles.setdefault(label, handle)
        columns = min(len(handles), 2 * len(results))
        rows = -(-len(handles) // columns)
        figure.tight_layout(rect=(0, (0.12 + 0.2 * rows) / figure.get_figheight(), 1, 1))
        figure.legend(list(handles.values()), list(handles), loc="lower center", ncols=columns)
    return figure


def table(cells: Sequence[Cell]) -> str:
    """The mean return of each way of acting with a 95% interval, a column per quality, as Markdown."""
    found = returns_by(cells)
    lines = ["| way of acting | " + " | ".join(f"{quality} data" for quality in found) + " |"]
    lines.append("|---" * (1 + len(found)) + "|")
    for way in WAYS:
        if any(way in ways for ways in found.values()):
            row = [_cell(ways[way]) if way in ways else "" for ways in found.values()]
            lines.append(f"| {way} | " + " | ".join(row) + " |")
    of_data = {cell.quality: cell.data_return for cell in cells}
    lines.append("| the policy that made the data | " + " | ".join(_number(of_data[q]) for q in found) + " |")
    return "\n".join(lines) + "\n"


def _cell(values: Sequence[float]) -> str:
    interval = bootstrap_interval(values, seed=SEED)
    return f"{_number(interval.estimate)} ({_number(interval.low)} to {_number(interval.high)})"


def _number(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 2.0 else f"{value:.3f}"
