"""Environments for the tests of sweeps: `tests.sweep_environments:Trouble-v0`, which can be trouble in every way."""

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path
from typing import Any

import gymnasium

from tests.deep_environments import Drift, Result


class Trouble(Drift):
    """`Drift`, with more that can go wrong in the chosen episode.

    Args:
        end, bad, fault, at: as for `Drift`. Faults more: hang (sleeps for ever), hold (the same in C, with Python's
            lock held), exit (ends the process), quit (raises SystemExit).
        pause: seconds per step, everywhere.
        unless: a file; if it is there, nothing goes wrong.
    """

    def __init__(
        self,
        end: float = 0.1,
        bad: int = 0,
        fault: str = "nan",
        at: int = 3,
        pause: float = 0.0,
        unless: str = "",
    ) -> None:
        super().__init__(end, bad, fault, at)
        self._pause, self._unless = pause, unless

    def step(self, action: Any) -> Result:
        if self._pause:
            time.sleep(self._pause)
        return super().step(action)

    def _faulty(self) -> Any:
        if self._unless and Path(self._unless).exists():
            return self._x.astype("float32")
        if self._fault == "hang":
            time.sleep(1e6)
        if self._fault == "hold":
            ctypes.PyDLL(None).sleep(10**6)
        if self._fault == "exit":
            os._exit(7)
        if self._fault == "quit":
            raise SystemExit(3)
        return super()._faulty()


if "Trouble-v0" not in gymnasium.registry:
    gymnasium.register("Trouble-v0", entry_point=Trouble)
