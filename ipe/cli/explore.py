"""`ipe explore`: the value polytope of a two-state MDP in the browser."""

from __future__ import annotations

import os
import webbrowser
from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from ipe.cli.inputs import read_mdp
from ipe.cli.outputs import check_out
from ipe.cli.parsing import Flag, Text, WholeNumber
from ipe.errors import InputError


@dataclass(frozen=True)
class Arguments:
    """Explore the value polytope of a two-state MDP in the browser.

    Drag a value function and see its evaluation policy, what that is truly worth, and how far the values are from
    those of any policy; edit the MDP; watch Algorithm 1 learn. The page is served on this machine only, until Ctrl-C;
    or written to a file that opens without a server.

    examples:
      ipe explore
      ipe explore dadashi-3
      ipe explore my-mdp.json --out explorer.html
    """

    mdp: Annotated[Positional[str], arg(metavar="MDP")] = "switch-stay"
    """The MDP, with two states that are not terminal: a file (.npz, .json), or a name of the zoo, alone or with
    parameters as in switch-stay:slip=0.1 (`ipe zoo` lists them)."""
    out: Annotated[Text, arg(metavar="FILE", help_behavior_hint="(default: serve it)")] = None
    """Write the page to this file, .html, and serve nothing."""
    port: Annotated[WholeNumber, arg(help_behavior_hint="(default: any that is free)")] = None
    """The port of 127.0.0.1 to serve at."""
    no_browser: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Print the address and open no browser."""
    overwrite: Annotated[Flag, arg(help_behavior_hint="")] = False
    """Replace the file at --out if there is one."""


def run(arguments: Arguments) -> None:
    """Write the page, or serve it until Ctrl-C."""
    from ipe.explorer import ExplorerServer, explorer_page, write_explorer
    from ipe.explorer.page import check_page_path

    _check_together(arguments)
    if arguments.out is not None:
        check_out(arguments.out, arguments.overwrite)
        check_page_path(arguments.out)
    mdp = read_mdp(arguments.mdp)
    name = os.path.basename(arguments.mdp)
    if arguments.out is not None:
        write_explorer(arguments.out, mdp, name)
        print(f"wrote {arguments.out}: {mdp!r}; it opens in any browser")
        return
    with ExplorerServer(explorer_page(mdp, name), arguments.port or 0) as server:
        print(f"{mdp!r} at {server.url} (Ctrl-C ends it)", flush=True)
        try:
            if not arguments.no_browser:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:  # the way it is meant to end
            print("\nended")


def _check_together(arguments: Arguments) -> None:
    """Nothing that is given may go unused."""
    if arguments.out is None:
        if arguments.overwrite:
            raise InputError("--overwrite has no effect without --out")
    elif arguments.port is not None or arguments.no_browser:
        option = "--port" if arguments.port is not None else "--no-browser"
        raise InputError(f"{option} has no effect with --out: nothing is served")
