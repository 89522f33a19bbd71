"""`ipe draw`: a small MDP as a diagram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from ipe.cli.inputs import read_mdp
from ipe.cli.outputs import check_out
from ipe.cli.parsing import Flag


@dataclass(frozen=True)
class Arguments:
    """Draw a small MDP: its states, actions, probabilities and rewards.

    examples:
      ipe draw switch-stay --out switch-stay.svg
      ipe draw chain:n=4,slip=0.1 --out chain.png
    """

    mdp: Annotated[Positional[str], arg(metavar="MDP")]
    """The MDP, of at most 12 states: a file (.npz, .json), or a name of the zoo, alone or with parameters as in
    chain:n=4,slip=0.1 (`ipe zoo` lists them)."""
    out: Annotated[str, arg(metavar="FILE")]
    """The figure: .svg, .png or .pdf."""
    overwrite: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Replace the file at --out if there is one."""


def run(arguments: Arguments) -> None:
    """Draw the MDP into the file."""
    from ipe.figures.mdp import draw_mdp
    from ipe.figures.style import check_figure_path

    check_out(arguments.out, arguments.overwrite)
    check_figure_path(arguments.out)
    mdp = read_mdp(arguments.mdp)
    draw_mdp(mdp, arguments.out)
    print(f"wrote {arguments.out}: {mdp!r}")
