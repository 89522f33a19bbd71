"""The two ways in which `ipe` says no: the input is wrong, or the problem was not solved."""

from __future__ import annotations

from typing import Any


class InputError(ValueError):
    """An input that the caller can correct. The message names the field or the index and the amount."""


class NotSolvedError(RuntimeError):
    """A solver stopped before it reached its tolerance.

    `result` is what the solver had by then, with its true gap. A caller who accepts that gap may use it.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result
