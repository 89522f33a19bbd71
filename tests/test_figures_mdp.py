"""Drawings of MDPs: what is on them, that nothing covers anything, the same bytes twice, and what is refused."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from hypothesis import given
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from ipe import zoo
from ipe.errors import InputError
from ipe.figures import OKABE_ITO, draw_mdp, new_figure, save_figure, style
from ipe.mdp import FiniteMDP
from tests.strategies import mdps
from tests.tiers import examples

MINUS = "\u2212"


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]


def patches(figure: Figure, kind: type) -> list[Any]:
    return [patch for patch in figure.axes[0].patches if isinstance(patch, kind)]


def heads(figure: Figure) -> int:
    return sum("|>" in str(arrow.get_arrowstyle().arrow) for arrow in patches(figure, FancyArrowPatch))


def svg_texts(path: Path) -> list[str]:
    return [element.text or "" for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")]


def test_the_papers_figure_1(tmp_path: Path) -> None:
    figure = draw_mdp(zoo.switch_stay(), tmp_path / "m.svg")
    expected = ["s0", "s1", "stay, +1", f"switch, {MINUS}1", "stay, +2", "switch, 0", "start"]
    assert sorted(texts(figure)) == sorted(expected)
    assert sorted(svg_texts(tmp_path / "m.svg")) == sorted(expected)
    assert len(patches(figure, FancyArrowPatch)) == 5
    assert len(patches(figure, Circle)) == 2
    left, right = (circle.center for circle in patches(figure, Circle))
    assert left[1] == right[1]
    assert left[0] < right[0]


def test_actions_with_several_outcomes_go_through_a_dot() -> None:
    figure = draw_mdp(zoo.dadashi(3))
    assert len(patches(figure, Circle)) == 2 + 6
    assert heads(figure) == 12
    assert len(patches(figure, FancyArrowPatch)) == 12 + 6
    labels = texts(figure)
    assert {"a0, " + MINUS + "0.93", "a1, +0.14", "0.52", "0.48", "0.01"} <= set(labels)
    assert "start" not in labels


def test_terminal_states_are_doubled_squares_and_have_no_arrows() -> None:
    figure = draw_mdp(zoo.chain(5))
    assert len(patches(figure, Rectangle)) == 2
    assert len(patches(figure, Circle)) == 4
    assert texts(figure).count("right, 0") == 3
    assert texts(figure).count("right, +1") == 1


def test_rewards_that_depend_on_the_next_state_stand_at_the_arrows() -> None:
    labels = texts(draw_mdp(zoo.chain(3, slip=0.25)))
    assert {"0.75, +1", "0.25, 0", "right", "left, 0"} <= set(labels)
    assert "right, +0.75" not in labels


def test_actions_that_are_not_allowed_are_not_drawn() -> None:
    stay = np.stack([np.eye(2), np.eye(2)[::-1]], axis=1)
    mdp = FiniteMDP(stay, [[1, 2], [3, 4]], 0.9, allowed=[[True, False], [True, True]])
    figure = draw_mdp(mdp)
    assert texts(figure) == ["s0", "s1", "a0, +1", "a0, +3", "a1, +4"]
    assert heads(figure) == 3


def test_a_start_distribution() -> None:
    mdp = FiniteMDP(np.stack([np.eye(3)], axis=1), np.zeros((3, 1)), 0.9, start=[0.25, 0.75, 0.0])
    assert {"start 0.25", "start 0.75"} <= set(texts(draw_mdp(mdp)))


def test_names_are_drawn_as_they_are(tmp_path: Path) -> None:
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[1.0]], 0.9, state_names=["$x_1$ <&>"], action_names=["$a$"])
    draw_mdp(mdp, tmp_path / "m.svg")
    assert svg_texts(tmp_path / "m.svg") == ["$x_1$ <&>", "$a$, +1"]


EXAMPLES = {
    "switch-stay": zoo.switch_stay(),
    "slip": zoo.switch_stay(slip=0.1),
    "dadashi": zoo.dadashi(3),
    "chain": zoo.chain(5),
    "slippery chain": zoo.chain(5, slip=0.1),
    "river": zoo.river_swim(),
    "circle": zoo.garnet(4, 2, 1, seed=3),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_no_label_covers_a_label_or_a_state_and_all_is_inside(name: str) -> None:
    figure = draw_mdp(EXAMPLES[name])
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    # The box of a text has room for descenders on all sides: only ink that meets is an overlap.
    ink = [(box.x0 + 1, box.y0 + 0.15 * box.height, box.x1 - 1, box.y1 - 0.15 * box.height) for box in boxes]
    for (i, one), (j, other) in itertools.combinations(enumerate(ink), 2):
        apart = one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
        assert apart, (texts(figure)[i], texts(figure)[j])
    width, height = figure.bbox.width, figure.bbox.height
    boxes += [arrow.get_window_extent(renderer) for arrow in patches(figure, FancyArrowPatch)]
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height for box in boxes)


@examples(8)
@given(mdps(max_states=4, max_actions=2))
def test_random_mdps_have_all_their_arrows(mdp: FiniteMDP) -> None:
    figure = draw_mdp(mdp)
    assert heads(figure) == mdp.transitions.nnz
    several = int((np.diff(mdp.transitions.indptr) > 1).sum())
    assert len(patches(figure, Circle)) == int((~mdp.terminal).sum()) + several
    assert texts(figure)[: mdp.n_states] == [mdp.state_name(s) for s in range(mdp.n_states)]


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf", ".SVG"])
def test_the_same_bytes_twice(suffix: str, tmp_path: Path) -> None:
    one, other = tmp_path / f"one{suffix}", tmp_path / f"other{suffix}"
    draw_mdp(zoo.switch_stay(slip=0.1), one)
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "savefig.dpi": 17, "lines.linewidth": 9}):
        draw_mdp(zoo.switch_stay(slip=0.1), str(other))
    assert one.read_bytes() == other.read_bytes()
    start = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}[suffix.lower()]
    assert one.read_bytes().startswith(start)
    assert b"CreationDate" not in one.read_bytes()
    assert b"<dc:date>" not in one.read_bytes()
    assert sorted(os.listdir(tmp_path)) == sorted([one.name, other.name])


def test_the_size_of_a_png(tmp_path: Path) -> None:
    figure = draw_mdp(zoo.switch_stay(), tmp_path / "m.png")
    header = (tmp_path / "m.png").read_bytes()[16:24]
    width, height = int.from_bytes(header[:4], "big"), int.from_bytes(header[4:], "big")
    assert (width, height) == pytest.approx(tuple(200 * figure.get_size_inches()), abs=1)
    assert 3.0 < figure.get_size_inches()[0] < 5.0


def test_global_state_is_left_alone(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    draw_mdp(zoo.switch_stay(), tmp_path / "m.svg")
    assert dict(matplotlib.rcParams) == before
    with pytest.raises(InputError), style():
        draw_mdp(zoo.river_swim(13))
    with style():
        assert matplotlib.rcParams["svg.fonttype"] == "none"
    assert dict(matplotlib.rcParams) == before


@pytest.mark.slow
def test_pyplot_is_never_imported() -> None:
    code = (
        "import sys; from ipe import zoo; from ipe.figures.mdp import draw_mdp; draw_mdp(zoo.switch_stay()); "
        "print('matplotlib.pyplot' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_into_given_axes(tmp_path: Path) -> None:
    figure = new_figure(6, 2)
    left, right = figure.subplots(1, 2)
    assert draw_mdp(zoo.switch_stay(), ax=left) is figure
    assert draw_mdp(zoo.dadashi(1), tmp_path / "m.png", ax=right) is figure
    assert (tmp_path / "m.png").exists()
    alone = draw_mdp(zoo.dadashi(1))
    assert [text.get_text() for text in right.texts] == texts(alone)
    assert right.texts[0].get_fontsize() < alone.axes[0].texts[0].get_fontsize()


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a drawing holds at most 12 states; this MDP has 13"):
        draw_mdp(zoo.river_swim(13), tmp_path / "m.png")
    with pytest.raises(InputError, match="a drawing holds at most 100 transitions; this MDP has 432"):
        draw_mdp(zoo.garnet(12, 3, 12), tmp_path / "m.png")
    with pytest.raises(
        InputError, match=re.escape("m.gif: the suffix of a figure must be .svg, .png or .pdf; found .gif")
    ):
        draw_mdp(zoo.switch_stay(), tmp_path / "m.gif")
    with pytest.raises(InputError, match="found none"):
        save_figure(new_figure(1, 1), tmp_path / "m")
    with pytest.raises(InputError, match="there is no folder"):
        draw_mdp(zoo.switch_stay(), tmp_path / "nowhere" / "m.png")
    assert os.listdir(tmp_path) == []


def test_the_palette_is_the_styles() -> None:
    with style():
        cycle = [entry["color"] for entry in matplotlib.rcParams["axes.prop_cycle"]]
    assert {f"#{colour.lstrip('#').upper()}" for colour in cycle} <= {colour.upper() for colour in OKABE_ITO.values()}
    assert len(set(cycle)) == 7
