"""The figure of learning curves: what is drawn is what the curves say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import FillBetweenPolyCollection, LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.testing import assert_allclose

from ipe.base.arrays import Array
from ipe.errors import InputError
from ipe.figures import learning_curves, save_figure

GRID = np.array([1000, 2000, 3000, 4000])
NAN = np.nan
GROUPS = {
    "ε-IPE": np.array([[NAN, 1.0, 3.0, 5.0], [NAN, 3.0, 5.0, 9.0]]),
    "ε-greedy": np.array([[0.0, 0.0, 1.0, 1.0], [NAN, 1.0, 1.0, 2.0], [0.0, 2.0, 4.0, 0.0]]),
}


def xy(line: Line2D) -> Array:
    return np.asarray(line.get_xydata(), dtype=np.float64)


def single_runs(ax: Axes) -> list[Array]:
    return [np.asarray(line) for c in ax.collections if isinstance(c, LineCollection) for line in c.get_segments()]


def bands(ax: Axes) -> list[Array]:
    found = [c for c in ax.collections if isinstance(c, FillBetweenPolyCollection)]
    return [np.concatenate([path.vertices for path in c.get_paths()]) for c in found]


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_means_bands_and_runs_are_drawn_where_they_are() -> None:
    figure = learning_curves(GROUPS, GRID, title="Both")
    (ax,) = figure.axes
    assert_allclose(xy(ax.lines[0]), np.column_stack([GRID, [NAN, 2.0, 4.0, 7.0]]))
    assert_allclose(xy(ax.lines[1]), np.column_stack([GRID, [0.0, 1.0, 2.0, 1.0]]))
    low, high = (bands(ax)[0][:, 1].min(), bands(ax)[0][:, 1].max())
    assert_allclose([low, high], [1.0, 9.0])  # standard errors: 1, 1, 2
    drawn = single_runs(ax)
    assert [len(run) for run in drawn] == [3, 3, 4, 3, 4]
    assert_allclose(drawn[1], np.column_stack([GRID, GROUPS["ε-IPE"][1]])[1:])
    assert legend_texts(figure) == ["ε-IPE (n = 2)", "ε-greedy (n = 3)"]
    assert figure.legends[0].get_title().get_text() == "mean over runs, ± standard error, single runs thin"
    assert ax.get_xlabel() == "frames (thousands)"
    assert ax.get_ylabel() == "return (mean of the last 20 episodes)"
    assert ax.xaxis.get_major_formatter()(3000, 0) == "3"
    assert ax.lines[0].get_color() != ax.lines[1].get_color()
    assert ax.lines[0].get_linestyle() != ax.lines[1].get_linestyle()


def test_a_band_of_ones_own_and_no_runs() -> None:
    ends = {"ε-IPE": (np.full(4, -7.0), np.full(4, 11.0))}
    figure = learning_curves(GROUPS, GRID, bands=ends, band="95% bootstrap interval", runs=False)
    (ax,) = figure.axes
    assert len(bands(ax)) == 1
    assert_allclose([bands(ax)[0][:, 1].min(), bands(ax)[0][:, 1].max()], [-7.0, 11.0])
    assert single_runs(ax) == []
    assert "95% bootstrap interval" in figure.legends[0].get_title().get_text()
    assert ax.get_ylim()[0] < -7.0 < 11.0 < ax.get_ylim()[1]


def test_epsilon_has_its_panel_with_mean_and_range() -> None:
    epsilon = {"ε-IPE": np.array([[NAN, 1.0, 0.5, 0.1], [NAN, 0.5, 0.5, 0.3]]), "ε-greedy": np.full((3, 4), NAN)}
    figure = learning_curves(GROUPS, GRID, epsilon=epsilon)
    _, ax = figure.axes
    (line,) = ax.lines
    assert_allclose(xy(line), np.column_stack([GRID[1:], [0.75, 0.5, 0.2]]))
    assert line.get_color() == figure.axes[0].lines[0].get_color()
    assert_allclose([bands(ax)[0][:, 1].min(), bands(ax)[0][:, 1].max()], [0.1, 1.0])


def test_ten_groups_look_different_and_the_same_figure_gives_the_same_bytes(tmp_path: Path) -> None:
    many = {f"group {i}": np.full((1, 4), float(i)) for i in range(10)}
    figure = learning_curves(many, GRID)
    assert len({(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}) == 10
    for name in ("a.svg", "b.svg"):
        save_figure(learning_curves(many, GRID), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_the_legend_covers_no_panel_and_is_on_the_page() -> None:
    many = {f"a group with a rather long name {i}": np.full((1, 4), float(i)) for i in range(5)}
    figure = learning_curves(many, GRID, epsilon={next(iter(many)): np.full((1, 4), 0.5)})
    figure.canvas.draw()
    legend, panel = figure.legends[0].get_window_extent(), figure.axes[-1].get_tightbbox()
    assert panel is not None
    assert 0.0 <= legend.y0 < legend.y1 <= panel.y0 + 1.0
    assert legend.x0 >= 0.0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: learning_curves({}, GRID), "groups is empty"),
        (lambda: learning_curves({"a": np.zeros((2, 3))}, GRID), r"a: curves must have shape \(runs, 4\).*\(2, 3\)"),
        (lambda: learning_curves(GROUPS, [1, 2, 2, 3]), r"grid\[2\] = 2"),
        (lambda: learning_curves(GROUPS, GRID, epsilon={"b": np.zeros((1, 4))}), "epsilon: there is no group 'b'"),
        (lambda: learning_curves(GROUPS, GRID, bands={"ε-IPE": ([1], [2])}), r"bands of ε-IPE must have shape \(4,\)"),
    ],
)
def test_refusals(call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        call()


def test_a_note_stands_above_the_legend() -> None:
    note = "Settings that differ: " + ", ".join(f"number {i} (1, 2)" for i in range(9)) + "."
    (legend,) = learning_curves(GROUPS, GRID, note=note).legends
    first, *lines = legend.get_title().get_text().split("\n")
    assert first.startswith("mean over runs")
    assert " ".join(lines) == note
    assert len(lines) == 2


def test_a_long_note_and_many_groups_leave_the_axis_its_label() -> None:
    """The label is as long as the panel is high: what stands below must not take the panel's height."""
    groups = {f"group {i}": np.ones((2, len(GRID))) * i for i in range(6)}
    figure = learning_curves(groups, GRID, note="Settings that differ: " + "a number (1, 2, 3, 4, 5, 6), " * 10)
    figure.draw_without_rendering()
    label = figure.axes[0].yaxis.label.get_window_extent()
    assert label.y0 >= 0.0
    assert label.y1 <= figure.bbox.y1
