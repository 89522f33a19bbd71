"""How lines are told apart: one colour, line style and marker per behaviour, in every figure and on every page.

A slot is a number from 0 to 11 with its look. Behaviours have slots of their own, so that a behaviour looks the same
wherever it is drawn; other lines get the slots that are free. Six colours (Okabe and Ito, 2008, which people with every
common kind of colour blindness can tell apart, and a grey) go with two line styles each.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """How a line is drawn.

    Attributes:
        colour: the colour in print.
        light: the colour on a white page, dark enough for text.
        dark: the colour on a dark page, light enough for text.
        line: the line style as matplotlib names it.
        dashes: the same line style as SVG's `stroke-dasharray`.
        marker: the marker as matplotlib names it.
    """

    colour: str
    light: str
    dark: str
    line: str
    dashes: str
    marker: str


_COLOURS = (
    ("#0072B2", "#0072b2", "#56b4e9"),  # blue
    ("#D55E00", "#b84a00", "#ff8a4c"),  # vermillion
    ("#009E73", "#00785a", "#2bc59a"),  # green
    ("#CC79A7", "#b0518a", "#e39ac4"),  # purple
    ("#E69F00", "#946200", "#f0b83c"),  # orange
    ("#56606B", "#56606b", "#aeb8c2"),  # grey
)
_LINES = (("-", "none"), ("--", "8 3"), ("-.", "10 3 2 3"), (":", "3 2"))
_MARKERS = "oDsvPX<^>phd"

LOOKS: tuple[Look, ...] = tuple(
    Look(*_COLOURS[i % 6], *_LINES[(i + i // 6) % 4], marker) for i, marker in enumerate(_MARKERS)
)
"""The look of each slot."""

BEHAVIOURS: dict[str, int] = {
    "epsilon-ipe": 0,
    "epsilon-greedy": 1,
    "ipe": 2,
    "boltzmann": 3,
    "linear": 4,
    "conservative": 5,
    "greedy": 7,
    "tau-ipe": 9,
    "vdbe": 10,
}
"""The slots of behaviours by name. A behaviour that is not listed gets another slot, which its name decides."""


def slot_of(behaviour: str | int) -> int:
    """The slot of a behaviour, listed or not; a number is the slot of a line that is about no behaviour.

    Example:
        >>> slot_of("epsilon-ipe"), slot_of("a behaviour of my own") in BEHAVIOURS.values()
        (0, False)
    """
    if isinstance(behaviour, int):
        return behaviour % len(LOOKS)
    if behaviour in BEHAVIOURS:
        return BEHAVIOURS[behaviour]
    others = [slot for slot in range(len(LOOKS)) if slot not in BEHAVIOURS.values()]
    return others[zlib.crc32(behaviour.encode()) % len(others)]


def look_of(behaviour: str) -> Look:
    """The look of a behaviour.

    Example:
        >>> look_of("epsilon-ipe").colour, look_of("epsilon-ipe").marker
        ('#0072B2', 'o')
    """
    return LOOKS[slot_of(behaviour)]


def slots_for(behaviours: Sequence[str | int | None]) -> list[int]:
    """A slot for each line of a figure: that of its behaviour or its number, or a free one where another line has that
    slot already or the line is not about one behaviour (None).

    Example:
        >>> slots_for(["epsilon-greedy", "epsilon-ipe", "epsilon-ipe", None])
        [1, 0, 2, 3]
    """
    taken: dict[int, int] = {}
    for i, behaviour in enumerate(behaviours):
        if behaviour is not None:
            taken.setdefault(slot_of(behaviour), i)
    slots = {i: slot for slot, i in taken.items()}
    free = [slot for slot in range(len(LOOKS)) if slot not in taken]
    others = [i for i in range(len(behaviours)) if i not in slots]
    slots |= {i: (free or list(range(len(LOOKS))))[k % max(1, len(free))] for k, i in enumerate(others)}
    return [slots[i] for i in range(len(behaviours))]


def looks_css() -> str:
    """The looks for a page: a variable per behaviour's colour, and the classes `s0` to `s11` of the slots."""
    colours = [f"--c{i}: light-dark({light}, {dark});" for i, (_, light, dark) in enumerate(_COLOURS)]
    behaviours = [f"--{name}: var(--c{slot % 6});" for name, slot in BEHAVIOURS.items()]
    classes = [
        f".s{slot} {{ color: var(--c{slot % 6}); }} .s{slot} .mean {{ stroke-dasharray: {look.dashes}; }}"
        for slot, look in enumerate(LOOKS)
    ]
    return "\n".join([":root {", *(f"  {rule}" for rule in colours + behaviours), "}", *classes]) + "\n"
