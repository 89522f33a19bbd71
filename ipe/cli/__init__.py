"""The command line: `ipe solve | zoo | draw | polytope | reproduce | train | evaluate | watch | curves`."""

from ipe.cli.program import main

__all__ = ["main"]
