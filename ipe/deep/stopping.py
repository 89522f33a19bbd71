"""A wish to stop: Ctrl-C and SIGTERM, granted between two frames, with a checkpoint."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

_TICK = 0.05


class Stop:
    """A wish to stop, and the signal that it came by, if it did.

    Like `threading.Event`, but without a lock: a signal that comes while one is being heard would wait for itself.
    """

    signal: int | None = None
    urgent = False
    """Whether Ctrl-C came a second time."""

    def __init__(self) -> None:
        self._wished = False

    def set(self) -> None:
        """Wish it."""
        self._wished = True

    def is_set(self) -> bool:
        """Whether it was wished."""
        return self._wished

    def wait(self, seconds: float) -> bool:
        """Until it is wished, or so many seconds are over; whether it was."""
        deadline = time.monotonic() + seconds
        while not self._wished and (left := deadline - time.monotonic()) > 0.0:
            time.sleep(min(left, _TICK))
        return self._wished


@contextlib.contextmanager
def stopping() -> Iterator[Stop]:
    """Ctrl-C and SIGTERM become a wish to stop, which is granted between two frames; a second Ctrl-C does not wait.

    For the main thread; in another one no signal is heard.
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
