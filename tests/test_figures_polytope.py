"""The figures of the value polytope and of the value map: what is on them, and that nothing lies on top of text."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import same_color
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.quiver import Quiver
from numpy.testing import assert_allclose

from ipe.base.arrays import Array
from ipe.base.looks import LOOKS, look_of
from ipe.errors import InputError
from ipe.figures.polytope import draw_polytope, draw_value_map
from ipe.figures.value_plane import INK
from ipe.mdp import FiniteMDP
from ipe.polytope import paper_grid, value_map, value_polytope
from ipe.zoo import dadashi, garnet, switch_stay
from tests.tiers import tiered


def texts(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def legend_texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def arrows(ax: Axes, color: str) -> tuple[Array, Array]:
    """The end points of the arrows of a colour: shafts (n, 2, 2) and the tips of their heads (n, 2)."""
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    shafts = [np.asarray(c.get_segments()) for c in lines if same(c.get_edgecolor(), color)]
    heads = [c.XY for c in ax.collections if isinstance(c, Quiver) and same(c.get_facecolor(), color)]
    empty = np.empty((0, 2))
    return (np.concatenate(shafts) if shafts else empty, np.concatenate(heads) if heads else empty)


def same(rgba: Any, color: str) -> bool:
    return bool(same_color(rgba[0][:3], color))


def dots(ax: Axes, color: str) -> Array:
    found = [line.get_xydata() for line in ax.lines if line.get_marker() == "o" and same_color(line.get_color(), color)]
    return np.concatenate([np.asarray(xy) for xy in found])


def mdp_with_one_action_in_s0() -> FiniteMDP:
    mdp = switch_stay()
    return FiniteMDP(mdp.transitions, mdp.rewards, 0.9, allowed=np.array([[True, False], [True, True]]))


def with_large_numbers_and_long_names() -> FiniteMDP:
    mdp = switch_stay()
    return FiniteMDP(
        mdp.transitions,
        123_456.0 * mdp.rewards,
        0.9,
        state_names=["the bottom of the hill", "the top"],
        action_names=["stay", "go to the other"],
    )


class TestValueMap:
    inside, outside = INK, (look_of("ipe").colour, look_of("greedy").colour)
    figure = draw_value_map(switch_stay(), paper_grid())

    def test_two_panels_with_the_same_axes(self) -> None:
        left, right = self.figure.axes
        assert (left.get_title(), right.get_title()) == ("Evaluation policy", "Greedy policy")
        assert (left.get_xlabel(), left.get_ylabel()) == ("$V$(s0)", "$V$(s1)")
        assert (right.get_xlabel(), right.get_ylabel()) == ("$V$(s0)", "")
        assert left.get_xlim() == right.get_xlim()
        assert left.get_ylim() == right.get_ylim()
        for ax in (left, right):
            assert ax.get_aspect() == 1.0
            assert ax.get_xlim()[0] < -6 < 18 < ax.get_xlim()[1]
            assert ax.get_ylim()[0] < -6 < 22 < ax.get_ylim()[1]

    def test_points_are_coloured_by_inside_and_outside(self) -> None:
        for ax, colour in zip(self.figure.axes, self.outside, strict=True):
            assert len(dots(ax, self.inside)) == 18
            assert len(dots(ax, colour)) == 177

    @pytest.mark.parametrize(("panel", "policy", "inside_arrows"), [(0, "ipe", 0), (1, "greedy", 18)])
    def test_arrows_lead_from_points_to_images(self, panel: int, policy: Any, inside_arrows: int) -> None:
        grid = paper_grid()
        images = value_map(switch_stay(), grid, policy=policy)
        inside = value_polytope(switch_stay()).contains(grid)
        shafts, heads = arrows(self.figure.axes[panel], self.outside[panel])
        assert_allclose(shafts[:, 0], grid[~inside])
        assert_allclose(shafts[:, 1], images[~inside])
        assert_allclose(heads, images[~inside])
        assert all(c.pivot == "tip" for c in self.figure.axes[panel].collections if isinstance(c, Quiver))
        moved = np.abs(images - grid).max(axis=1) > 1e-9
        assert len(arrows(self.figure.axes[panel], self.inside)[1]) == (moved & inside).sum() == inside_arrows

    def test_legend_explains_every_mark(self) -> None:
        assert legend_texts(self.figure) == [
            "value polytope: the values of all policies",
            "deterministic policy: action in s0, in s1",
            r"from $V$ to $V^\pi$, its policy's value (none: $V^\pi = V$)",
            "$V$ inside the polytope, in black",
            "$V$ outside the polytope, in its policy's colour",
        ]

    def test_legend_names_only_what_is_there(self) -> None:
        vertices = value_polytope(switch_stay()).vertices
        for points, absent in ((vertices, "outside"), (vertices + 30.0, "inside")):
            texts = legend_texts(draw_value_map(switch_stay(), points))
            assert not any(text.startswith(f"$V$ {absent} the polytope") for text in texts)

    def test_images_of_ones_own(self) -> None:
        points = np.array([[0.0, 5.0], [5.0, 0.0]])
        nearest = value_polytope(switch_stay()).nearest(points)[0]
        alone = draw_value_map(switch_stay(), points, nearest)
        assert [ax.get_title() for ax in alone.axes] == [""]
        assert_allclose(arrows(alone.axes[0], LOOKS[0].colour)[1], nearest)
        three = draw_value_map(switch_stay(), points, {"l2": nearest, "none": points, "far": points + 50.0})
        assert [ax.get_title() for ax in three.axes] == ["l2", "none", "far"]
        assert arrows(three.axes[1], LOOKS[1].colour)[1].size == 0
        assert three.axes[0].get_xlim()[1] > 55

    @pytest.mark.parametrize(
        ("points", "images", "message"),
        [
            ([0.0, 1.0], None, r"points must have shape \(n, 2\); found \(2,\)"),
            ([[0.0, 1.0, 2.0]], None, r"points must have shape \(..., 2\)"),
            ([[0.0, np.nan]], None, r"points\[0, 1\] = nan is not a finite number"),
            ([[0.0, 1.0]], [[0.0, 1.0], [0.0, 1.0]], "images must have a row for each of the 1 points; found 2"),
            ([[0.0, 1.0]], {"a": [[0.0, np.inf]]}, r"images\['a'\]\[0, 1\] = inf is not a finite number"),
            ([[0.0, 1.0]], {"a": np.zeros((3, 2))}, r"images\['a'\] must have a row for each of the 1 points; found 3"),
            ([[0.0, 1.0]], {}, "images is empty"),
        ],
    )
    def test_wrong_input_is_named(self, points: Any, images: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            draw_value_map(switch_stay(), points, images)


class TestPolytope:
    def test_two_triangles_filled_with_their_boundary(self) -> None:
        (ax,) = draw_polytope(switch_stay()).axes
        polytope = value_polytope(switch_stay())
        drawn = [patch.get_xy()[:-1] for patch in ax.patches if isinstance(patch, Polygon)]
        assert len(drawn) == 2
        for polygon, expected in zip(drawn, polytope.polygons, strict=True):
            assert_allclose(polygon, expected)
        (boundary,) = (c for c in ax.collections if isinstance(c, LineCollection))
        assert_allclose(np.asarray(boundary.get_segments()), polytope.segments)
        (marks,) = (line for line in ax.lines if line.get_marker() == "D")
        assert_allclose(np.asarray(marks.get_xydata()), polytope.vertices)
        assert texts(ax) == ["stay, stay", "stay, switch", "switch, stay", "switch, switch"]

    def test_into_given_axes_with_more_in_view(self) -> None:
        figure = Figure(figsize=(8, 4))
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        assert draw_polytope(switch_stay(), ax=right, include=[[40.0, 10.0]], labels=False) is figure
        assert not left.collections
        assert not figure.legends
        assert right.get_xlim()[1] > 40
        assert texts(right) == []
        entries = [text.get_text() for text in right.legend().get_texts()]
        assert entries == ["value polytope: the values of all policies", "deterministic policy: action in s0, in s1"]

    def test_in_a_subfigure_the_root_figure_is_returned(self) -> None:
        figure = Figure()
        FigureCanvasAgg(figure)
        ax = figure.subfigures(1, 2, squeeze=False)[0, 1].subplots()
        assert draw_polytope(switch_stay(), ax=ax) is figure

    def test_policies_of_equal_value_share_a_label(self) -> None:
        twice = FiniteMDP(np.eye(2)[[0, 0, 1, 1]].reshape(2, 2, 2), [[1.0, 1.0], [2.0, 0.0]], 0.9)
        assert texts(draw_polytope(twice).axes[0]) == ["a0, a0\na1, a0", "a0, a1\na1, a1"]

    def test_many_policies_are_not_named(self) -> None:
        assert len(texts(draw_polytope(garnet(2, 4, 2, seed=0)).axes[0])) == 16
        assert texts(draw_polytope(garnet(2, 5, 2, seed=0)).axes[0]) == []

    def test_a_segment_and_a_point_are_drawn_in_a_view_that_shows_them(self) -> None:
        (segment,) = draw_polytope(mdp_with_one_action_in_s0()).axes
        assert not segment.patches
        assert np.ptp(segment.get_xlim()) > 0.3 * np.ptp(segment.get_ylim())
        (point,) = draw_polytope(FiniteMDP(np.eye(2)[:, None], [[1.0], [2.0]], 0.9)).axes
        assert point.get_xlim()[0] < 10 < point.get_xlim()[1]
        assert point.get_ylim()[0] < 20 < point.get_ylim()[1]
        assert texts(point) == ["a0, a0"]

    def test_names_with_dollar_signs_are_not_mathematics(self) -> None:
        mdp = switch_stay()
        named = FiniteMDP(mdp.transitions, mdp.rewards, 0.9, state_names=["$1", "$2_"], action_names=["pay $", "$x^"])
        figure = draw_polytope(named)
        figure.canvas.draw()  # mathematics that does not parse would raise here
        assert texts(figure.axes[0])[0] == r"pay \$, pay \$"

    def test_too_many_states(self) -> None:
        with pytest.raises(InputError, match="this one has 3"):
            draw_polytope(garnet(3, 2, 2))
        with pytest.raises(InputError, match=r"include must have shape \(..., 2\)"):
            draw_polytope(switch_stay(), include=[1.0])


FIGURES = [
    pytest.param(lambda: draw_polytope(switch_stay()), id="switch-stay"),
    *(pytest.param(lambda k=k: draw_polytope(dadashi(k)), id=f"dadashi-{k}") for k in range(1, 6)),
    pytest.param(lambda: draw_value_map(switch_stay(), paper_grid()), id="value-map"),
    pytest.param(lambda: draw_value_map(dadashi(3), paper_grid() / 3), id="value-map-dadashi-3"),
    pytest.param(lambda: draw_value_map(dadashi(5), paper_grid() / 3, paper_grid() / 4), id="one-panel"),
    pytest.param(lambda: draw_polytope(mdp_with_one_action_in_s0()), id="segment"),
    pytest.param(lambda: draw_polytope(with_large_numbers_and_long_names()), id="large-and-long"),
]


@pytest.mark.parametrize("make", FIGURES)
def test_texts_are_on_the_page_apart_and_off_the_marks(make: Any) -> None:
    figure = make()
    figure.canvas.draw()
    page = figure.bbox
    assert page.width <= 7.2 * figure.dpi
    boxes = [figure.legends[0].get_window_extent()]
    for ax in figure.axes:
        around = ax.get_tightbbox()  # tick labels and multipliers too
        assert page.x0 <= around.x0 < around.x1 <= page.x1
        assert page.y0 <= around.y0 < around.y1 <= page.y1
        (marks,) = (line for line in ax.lines if line.get_marker() == "D")
        names = [text.get_window_extent() for text in ax.texts]
        assert not any(box.contains(*at) for box in names for at in ax.transData.transform(marks.get_xydata()))
        boxes += names
        boxes += [artist.get_window_extent() for artist in (ax.title, ax.xaxis.label, ax.yaxis.label)]
    boxes = [box for box in boxes if box.width > 1]
    for box in boxes:
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
    for one, other in itertools.combinations(boxes, 2):
        assert not one.padded(-1).overlaps(other.padded(-1))


class TestFiles:
    @pytest.mark.parametrize("suffix", tiered(["png", "pdf", "svg"], "svg"))
    def test_same_figure_same_bytes(self, tmp_path: Path, suffix: str) -> None:
        for name in ("a", "b"):
            draw_value_map(switch_stay(), paper_grid()[::7], path=tmp_path / f"{name}.{suffix}")
        first, second = ((tmp_path / f"{name}.{suffix}").read_bytes() for name in ("a", "b"))
        assert len(first) > 5000
        assert first == second

    def test_a_wrong_suffix_is_refused_before_anything_is_written(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"must be \.svg, \.png or \.pdf; found \.jpg"):
            draw_polytope(switch_stay(), tmp_path / "figure.jpg")
        with pytest.raises(InputError, match=r"must be \.svg, \.png or \.pdf; found \.jpg"):
            draw_value_map(switch_stay(), [[0.0, 0.0]], path=tmp_path / "figure.jpg")
        assert list(tmp_path.iterdir()) == []

    def test_the_users_settings_neither_matter_nor_change(self, tmp_path: Path) -> None:
        draw_polytope(switch_stay(), tmp_path / "default.png")
        with mpl.rc_context({"axes.linewidth": 5.0, "font.size": 30.0}):
            draw_polytope(switch_stay(), tmp_path / "theirs.png")
            assert mpl.rcParams["font.size"] == 30.0
        assert (tmp_path / "default.png").read_bytes() == (tmp_path / "theirs.png").read_bytes()
