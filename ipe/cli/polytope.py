"""`ipe polytope`: the values of all policies of a two-state MDP, and where value functions lead, as a figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ipe.cli.inputs import MDP, read_mdp
from ipe.cli.next_steps import mdp_steps, next_line
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import FIGURE, OVERWRITE, check_out

if TYPE_CHECKING:
    from ipe.base.arrays import Array

GRID_STEPS = 12
"""About how many steps of the grid cover the longer side of the polytope."""


@dataclass(frozen=True)
class Arguments:
    """Draw the value polytope of a two-state MDP: the values of all its policies, and the value map.

    The map leads from each point V of a grid to the true values of its evaluation policy, and in a second
    panel to those of its greedy policy (the paper's Figure 3).

    examples:
      ipe polytope switch-stay --out value-map.svg
      ipe polytope dadashi-3 --no-map --out polytope.pdf
    """

    mdp: str = argument("MDP", f"The MDP, with two states that are not terminal: {MDP}")
    out: str = option("The figure: .svg, .png or .pdf.", metavar="FILE")
    no_map: bool = flag("Draw the polytope alone.")
    overwrite: bool = flag(OVERWRITE)


def run(arguments: Arguments) -> None:
    """Draw the polytope, and the value map on a grid around it, into the file."""
    check_out(arguments.out, arguments.overwrite, FIGURE)
    from ipe.figures.polytope import draw_polytope, draw_value_map
    from ipe.polytope import value_polytope

    mdp = read_mdp(arguments.mdp)
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
