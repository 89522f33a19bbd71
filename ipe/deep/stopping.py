"""The wish to stop: Ctrl-C and SIGTERM are heard, and granted between two frames, with a checkpoint."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

_TICK = 0.05


class Stop:
    """A wish to stop, and the signal by which it came, if it came by one.

    It is like `threading.Event`, but without a lock: a signal that comes while another is being heard would wait for
    itself.
    """

    signal: int | None = None
    urgent = False
    """Whether Ctrl-C came a second time."""

    def __init__(self) -> None:
        self._wished = False

    def set(self) -> None:
        """Wish to stop."""
        self._wished = True

    def is_set(self) -> bool:
        """Whether somebody has wished to stop."""
        return self._wished

    def wait(self, seconds: float) -> bool:
        """Wait until somebody wishes to stop, or so many seconds are over; returns whether somebody has."""
        deadline = time.monotonic() + seconds
        while not self._wished and (left := deadline - time.monotonic()) > 0.0:
            time.sleep(min(left, _TICK))
        return self._wished


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Turn Ctrl-C and SIGTERM into a wish to stop, which is granted between two frames; a second Ctrl-C does not wait.

    Signals are heard in the main thread only.
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
