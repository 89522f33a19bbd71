"""`ipe explore`: the value polytope of a two-state MDP in the browser."""

from __future__ import annotations

import os
import webbrowser
from dataclasses import dataclass

from ipe.cli.inputs import MDP, read_mdp
from ipe.cli.next_steps import next_line
from ipe.cli.options import argument, flag, option
from ipe.cli.outputs import OVERWRITE, check_out
from ipe.errors import InputError


@dataclass(frozen=True)
class Arguments:
    """Explore the value polytope of a two-state MDP in the browser.

    Drag a value function and see its evaluation policy, the true values of that policy, and how far the values are from
    those of any policy; edit the MDP; watch Algorithm 1 learn. The page is served on this machine only, until Ctrl-C;
    or written to a file that opens without a server.

    examples:
      ipe explore
      ipe explore dadashi-3
      ipe explore my-mdp.json --out explorer.html
    """

    mdp: str = argument("MDP", f"The MDP, with two states that are not terminal: {MDP}", "switch-stay")
    out: str | None = option(
        "Write the page to this file, .html, and serve nothing.", None, metavar="FILE", shown="serve it"
    )
    port: int | None = option("The port of 127.0.0.1 to serve the page at.", None, shown="any that is free")
    no_browser: bool = flag("Print the address and open no browser.")
    overwrite: bool = flag(OVERWRITE)


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
        print(f"wrote {arguments.out}: {mdp!r}")
        print(next_line(f"open {arguments.out} in a browser; it needs no server"))
        return
    with ExplorerServer(explorer_page(mdp, name), arguments.port or 0) as server:
        print(f"{mdp!r} at {server.url} (Ctrl-C ends it)", flush=True)
        try:
            if not arguments.no_browser:
                webbrowser.open(server.url)
            server.serve_forever()
        except KeyboardInterrupt:  # how serving is meant to end
            print("\nended")


def _check_together(arguments: Arguments) -> None:
    """Refuse options that would have no effect."""
    if arguments.out is None:
        if arguments.overwrite:
            raise InputError("--overwrite has no effect without --out")
    elif arguments.port is not None or arguments.no_browser:
        option = "--port" if arguments.port is not None else "--no-browser"
        raise InputError(f"{option} has no effect with --out: nothing is served")
