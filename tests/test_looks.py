"""One colour, marker and line style per behaviour: in every figure, in the report and in the explorer."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex

from ipe.base.looks import BEHAVIOURS, LOOKS, look_of, looks_css, slot_of, slots_for
from ipe.figures.learning import learning_curves
from ipe.figures.sensitivity import Curve, Panel, draw_sensitivity

CURVES = np.ones((2, 3))
GRID = [1, 2, 3]


def test_no_two_slots_look_alike() -> None:
    assert len({(look.colour, look.line) for look in LOOKS}) == len({look.marker for look in LOOKS}) == len(LOOKS) == 12
    assert len(set(BEHAVIOURS.values())) == len(BEHAVIOURS)


@pytest.mark.parametrize("behaviour", ["epsilon-ipe", "epsilon-greedy", "ipe", "boltzmann"])
@pytest.mark.parametrize("place", [0, 1])
def test_a_behaviour_looks_the_same_in_curves_and_sensitivity_wherever_it_stands(behaviour: str, place: int) -> None:
    look, names = look_of(behaviour), ["something else", "another thing"]
    names[place] = behaviour
    line = learning_curves(dict.fromkeys(names, CURVES), GRID).axes[0].lines[place]
    assert (to_hex(line.get_color()), line.get_linestyle()) == (look.colour.lower(), look.line)
    curves = [Curve(name, np.ones(2), np.ones(2), np.ones(2), name if name == behaviour else None) for name in names]
    (ax,) = draw_sensitivity([Panel("", "", False, [curves])], ["score"], [None]).axes
    drawn = ax.containers[place].lines[0]  # type: ignore[attr-defined]
    assert to_hex(drawn.get_color()) == look.colour.lower()
    assert (drawn.get_marker(), drawn.get_linestyle()) == (look.marker, look.line)


def test_a_new_behaviour_has_a_look_of_its_own_name() -> None:
    assert slot_of("my behaviour") == slot_of("my behaviour") not in BEHAVIOURS.values()


def test_lines_of_the_same_behaviour_are_told_apart() -> None:
    slots = slots_for(["ipe", "epsilon-ipe", "ipe", None, "ipe"])
    assert slots[:2] == [BEHAVIOURS["ipe"], BEHAVIOURS["epsilon-ipe"]]
    assert len(set(slots)) == 5
    assert len(slots_for([None] * 20)) == 20


def test_the_pages_have_the_same_table() -> None:
    style = looks_css()
    for behaviour, slot in BEHAVIOURS.items():
        assert f"--{behaviour}: var(--c{slot % 6});" in style
        assert f".s{slot} {{ color: var(--c{slot % 6}); }}" in style
        assert f"--c{slot % 6}: light-dark({LOOKS[slot].light}, {LOOKS[slot].dark});" in style
