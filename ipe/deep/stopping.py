"""Requests to stop: Ctrl-C and SIGTERM stop a training between two frames, with a checkpoint."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

_TICK = 0.05


class Stop:
    """Whether somebody has asked to stop, and by which signal, if it was by one.

    It is like `threading.Event`, but without a lock: with one, a signal that arrives while another signal is being
    handled would wait for itself.
    """

    signal: int | None = None
    """The signal that asked to stop; None if it was not a signal."""
    urgent = False
    """Whether Ctrl-C came a second time."""

    def __init__(self) -> None:
        self._asked = False

    def set(self) -> None:
        """Ask to stop."""
        self._asked = True

    def is_set(self) -> bool:
        """Whether somebody has asked to stop."""
        return self._asked

    def wait(self, seconds: float) -> bool:
        """Wait until somebody asks to stop, or until the seconds are over; return whether somebody has asked."""
        deadline = time.monotonic() + seconds
        while not self._asked and (left := deadline - time.monotonic()) > 0.0:
            time.sleep(min(left, _TICK))
        return self._asked


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Turn Ctrl-C and SIGTERM into a request to stop between two frames; a second Ctrl-C stops at once.

    Python handles signals in the main thread only; in another thread nothing changes.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def hear(number: int, _: Any) -> None:
        if stop.signal is not None and number == signal.SIGINT:
            stop.urgent = True
            raise KeyboardInterrupt
        stop.signal = stop.signal or number  # `timeout` sends SIGTERM twice
        stop.set()

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
