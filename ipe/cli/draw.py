"""`ipe draw`: a small MDP as a diagram."""

from __future__ import annotations

from dataclasses import dataclass

from ipe.cli.inputs import MDP, read_mdp
from ipe.cli.next_steps import mdp_steps, next_line
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import FIGURE, OVERWRITE, check_out


@dataclass(frozen=True)
class Arguments:
    """Draw a small MDP: its states, actions, probabilities and rewards.

    examples:
      ipe draw switch-stay --out switch-stay.svg
      ipe draw chain:n=4,slip=0.1 --out chain.png
    """

    mdp: str = argument("MDP", f"The MDP, of at most 12 states: {MDP}")
    out: str = option("The figure: .svg, .png or .pdf.", metavar="FILE")
    overwrite: bool = flag(OVERWRITE)


def run(arguments: Arguments) -> None:
    """Draw the MDP into the file."""
    check_out(arguments.out, arguments.overwrite, FIGURE)
    from ipe.figures.mdp import draw_mdp

    mdp = read_mdp(arguments.mdp)
    draw_mdp(mdp, arguments.out)
    print(f"wrote {arguments.out}: {mdp!r}")
    print(next_line(*mdp_steps(arguments.mdp, mdp, "draw")))
