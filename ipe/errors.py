"""The ways in which `ipe` says no: the input is wrong, the problem was not solved, or somebody pressed Ctrl-C."""

from __future__ import annotations

from typing import Any


class InputError(ValueError):
    """An input that the caller can correct. The message names the field or the index and the amount."""


class SolveInterrupted(KeyboardInterrupt):
    """Ctrl-C during a solve. `result` is the best that the solver had by then, with its proven gap."""

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted")
        self.result = result


class NotSolvedError(RuntimeError):
    """A solver stopped before it reached its tolerance.

    `result` is what the solver had by then, with its true gap. A caller who accepts that gap may use it.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result
