"""The command line: `ipe COMMAND`; the commands are in `ipe.cli.program`."""

from ipe.cli.program import main

__all__ = ["main"]
