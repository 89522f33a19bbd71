"""`ipe zoo`: the MDPs that have a name, or one MDP in full."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipe.base.columns import columns
from ipe.cli.inputs import read_mdp
from ipe.cli.next_steps import mdp_steps, next_line
from ipe.cli.options import argument, flag

if TYPE_CHECKING:
    from ipe.mdp import FiniteMDP

MAX_ROWS = 100
"""The most pairs of a state and an action that are shown as a table."""


@dataclass(frozen=True)
class Arguments:
    """List the MDPs that have a name, with their parameters; or show one.

    examples:
      ipe zoo
      ipe zoo switch-stay
      ipe zoo chain:n=3,slip=0.1 --json > chain.json
    """

    mdp: str | None = argument(
        "MDP",
        "The MDP to show: a name, alone or with parameters as in chain:n=3,slip=0.1; or a file (.npz, .json).",
        None,
    )
    json: bool = flag("Print JSON: the list; or the MDP, in the form that every command reads from a .json file.")


def run(arguments: Arguments) -> None:
    """Print the list, or the MDP."""
    if arguments.mdp is None:
        print(json.dumps(entries(), indent=2) if arguments.json else "\n".join(_listing()))
        return
    mdp = read_mdp(arguments.mdp)
    if not arguments.json:
        steps = next_line(*mdp_steps(arguments.mdp, mdp, "zoo"))
        print("\n".join([f"{arguments.mdp}: {mdp!r}", "", *_table(mdp), "", steps]))
        return
    from ipe.mdp_files.json_form import dump

    sys.stdout.writelines(dump(mdp))


def entries() -> list[dict[str, Any]]:
    """The zoo: names, descriptions, and parameters with their defaults; None is a default that depends on the MDP."""
    from ipe.zoo import ZOO

    out: list[dict[str, Any]] = []
    for name, entry in ZOO.items():
        parameters = inspect.signature(entry.constructor).parameters.values()
        more = any(p.kind is p.VAR_KEYWORD for p in parameters)
        named = {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}
        out.append({"name": name, "description": entry.description, "parameters": named, "more_parameters": more})
    return out


def _listing() -> Iterator[str]:
    width = max(len(entry["name"]) for entry in entries())
    for entry in entries():
        words = [
            f"{name} (by default as the environment has it)" if default is None else f"{name}={_plain(default)}"
            for name, default in entry["parameters"].items()
        ]
        words += ["and what gymnasium.make takes for it"] if entry["more_parameters"] else []
        yield f"{entry['name'].ljust(width)}  {entry['description']}"
        yield f"{' ' * width}  {', '.join(words)}"
    yield ""
    yield "`ipe zoo NAME` shows one. Parameters follow a colon: garnet:n_states=50,seed=3"
    yield next_line("ipe zoo switch-stay", "ipe solve switch-stay --values 18,-6")


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def _table(mdp: FiniteMDP) -> list[str]:
    """A line for each state and action: the reward, and where they lead; then the start and the terminal states."""
    import numpy as np

    pairs = np.argwhere(mdp.allowed)
    if len(pairs) > MAX_ROWS:
        return [f"({len(pairs)} pairs of state and action are too many for a table; --json prints them all)"]
    rows = [["state", "action", "reward", "next"]]
    for s, a in pairs:
        row = int(s) * mdp.n_actions + int(a)
        rows.append([mdp.state_name(int(s)), mdp.action_name(int(a)), f"{mdp.rewards[s, a]:.6g}", _next(mdp, row)])
    lines = [f"  {line}" for line in columns(rows, left=(0, 1, 3))]
    notes = []
    if mdp.start is not None:
        start = [_share(mdp.state_name(int(s)), mdp.start[s]) for s in np.flatnonzero(mdp.start)]
        notes.append(f"  start     {', '.join(start)}")
    if mdp.terminal.any():
        notes.append(f"  terminal  {', '.join(mdp.state_name(int(s)) for s in np.flatnonzero(mdp.terminal))}")
    return lines + ([""] if notes else []) + notes


def _next(mdp: FiniteMDP, row: int) -> str:
    """The next states of a row with their probabilities, and with their rewards where the rewards differ."""
    entries_of_row = range(mdp.transitions.indptr[row], mdp.transitions.indptr[row + 1])
    rewards = [] if mdp.transition_rewards is None else [mdp.transition_rewards[i] for i in entries_of_row]
    differ = len(set(rewards)) > 1
    words = []
    for k, i in enumerate(entries_of_row):
        name = mdp.state_name(int(mdp.transitions.indices[i]))
        words.append(_share(name, mdp.transitions.data[i]) + (f" (reward {rewards[k]:.6g})" if differ else ""))
    return ", ".join(words)


def _share(name: str, probability: float) -> str:
    return name if probability == 1.0 else f"{name} {probability:.6g}"
