"""The last line of a command: what to do next, as commands that can be typed as they stand."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipe.mdp import FiniteMDP


def next_line(*steps: str) -> str:
    """The line that a command ends with.

    Example:
        >>> next_line("ipe zoo", "ipe explore")
        'next: ipe zoo; ipe explore'
    """
    return f"next: {'; '.join(steps)}"


def mdp_steps(source: str, mdp: FiniteMDP, done: str) -> list[str]:
    """The commands that show more of an MDP than the command `done` has shown, two at most; `source` is the MDP as the
    user named it.

    Example:
        >>> from ipe.zoo import chain
        >>> mdp_steps("chain:n=4", chain(4), "draw")
        ['ipe solve chain:n=4 --values 0,0,0,0', 'ipe zoo chain:n=4']
    """
    from ipe.figures.mdp import MAX_STATES

    name, small = shlex.quote(source), mdp.n_states <= MAX_STATES
    steps = {
        "solve": f"ipe solve {name} --values {','.join(['0'] * mdp.n_states)}" if small else "",
        "explore": f"ipe explore {name}" if int((~mdp.terminal).sum()) == 2 else "",
        "draw": f"ipe draw {name} --out mdp.svg" if small else "",
        "zoo": f"ipe zoo {name}",
    }
    others = [step for command, step in steps.items() if step and command != done]
    return others[:2] or [f"ipe zoo {name} --json > mdp.json"]


def run_steps(folder: str, setting: str | None, *commands: str) -> list[str]:
    """Commands about a training run, or about one setting of a sweep.

    Example:
        >>> run_steps("runs/my run", None, "evaluate", "watch --out run.gif")
        ["ipe evaluate 'runs/my run'", "ipe watch 'runs/my run' --out run.gif"]
    """
    chosen = "" if setting is None else f" --setting {shlex.quote(setting)}"
    names = (command.partition(" ") for command in commands)
    return [f"ipe {name} {shlex.quote(folder)}{blank}{options}{chosen}" for name, blank, options in names]
