"""The command line: `ipe solve | zoo | draw | polytope`. `docs/command-line.md` shows it."""

from ipe.cli.program import main

__all__ = ["main"]
