"""`ipe polytope`: the values of all policies in two states, and where value functions lead, as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ipe.cli.inputs import MDP, read_mdp
from ipe.cli.next_steps import mdp_steps, next_line
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import FIGURE, OVERWRITE, check_out
from ipe.errors import InputError

if TYPE_CHECKING:
    from ipe.base.arrays import Array
    from ipe.mdp import FiniteMDP

GRID_STEPS = 12
"""About how many steps of the grid cover the longer side of the polytope."""


@dataclass(frozen=True)
class Arguments:
    """Draw the value polytope of a two-state MDP: the values of all its policies, and the value map.

    The map leads from each point V of a grid to the true values of its evaluation policy, and in a second
    panel to those of its greedy policy (the paper's Figure 3). Of an MDP with more states, choose two: the
    others follow the uniform policy, or any policy.

    examples:
      ipe polytope switch-stay --out value-map.svg
      ipe polytope dadashi-3 --no-map --out polytope.pdf
      ipe polytope river-swim --states 0,5 --others any --out two-states.svg
    """

    mdp: str = argument("MDP", f"The MDP, with two states that are not terminal or with --states: {MDP}")
    out: str = option("The figure: .svg, .png or .pdf.", metavar="FILE")
    states: str | None = option("Two states of a larger MDP, say 0,5: draw their values, without the map.", None)
    others: Literal["uniform", "any"] = option(
        "What the states other than --states do. With any: which values are achieved, and which are not.",
        "uniform",
    )
    no_map: bool = flag("Draw the polytope alone.")
    overwrite: bool = flag(OVERWRITE)


def run(arguments: Arguments) -> None:
    """Draw the polytope, and the value map on a grid around it, into the file."""
    check_out(arguments.out, arguments.overwrite, FIGURE)
    from ipe.figures.polytope import draw_polytope, draw_value_map
    from ipe.polytope import value_polytope

    mdp = read_mdp(arguments.mdp)
    if arguments.states is not None:
        print(f"wrote {arguments.out}: {_draw_two(mdp, arguments)}")
        print(next_line(*mdp_steps(arguments.mdp, mdp, "polytope")))
        return
    if arguments.others == "any":
        raise InputError("--others is about the states other than --states: give --states too")
    polytope = value_polytope(mdp)
    said = f"wrote {arguments.out}: {polytope!r}"
    if arguments.no_map:
        draw_polytope(mdp, arguments.out)
    else:
        grid = grid_around(polytope.vertices)
        draw_value_map(mdp, grid, path=arguments.out)
        said += f"; {len(grid)} value functions, {int(polytope.contains(grid).sum())} of them achievable"
    print(said)
    print(next_line(*mdp_steps(arguments.mdp, mdp, "polytope")))


def _draw_two(mdp: FiniteMDP, arguments: Arguments) -> str:
    """Draw two chosen states of a larger MDP; what was drawn, in words."""
    from ipe.figures.polytope import draw_polytope
    from ipe.figures.projection import draw_projection
    from ipe.polytope import value_polytope

    words = (arguments.states or "").split(",")
    if len(words) != 2 or not all(word.isascii() and word.isdecimal() for word in words):
        raise InputError(f"--states must be two states, as in 0,5; found {arguments.states!r}")
    states = int(words[0]), int(words[1])
    if arguments.others == "any":
        draw_projection(mdp, states, arguments.out)
        return f"the values of states {states[0]} and {states[1]}, all states following any policy"
    draw_polytope(mdp, arguments.out, states=states)
    return f"{value_polytope(mdp, states)!r}, the other states following the uniform policy"


def grid_around(points: Array) -> Array:
    """A grid of round numbers whose outermost points lie beyond all the given ones; shape (n, 2).

    For the zoo's Switch-Stay MDP it is the grid of the paper.

    Example:
        >>> from ipe.polytope import paper_grid, value_polytope
        >>> from ipe.zoo import switch_stay
        >>> bool((grid_around(value_polytope(switch_stay()).vertices) == paper_grid()).all())
        True
    """
    import numpy as np

    low, high = points.min(axis=0), points.max(axis=0)
    extent = float((high - low).max()) or max(1.0, float(np.abs(low).max()))
    rough = extent / GRID_STEPS
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * min((1.0, 2.0, 5.0, 10.0), key=lambda digit: abs(np.log(digit * power / rough)))
    # A point on the grid up to rounding is on it: the grid goes one step further.
    first, last = np.ceil(low / step - 1e-9) - 1, np.floor(high / step + 1e-9) + 1
    axes = [step * np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
