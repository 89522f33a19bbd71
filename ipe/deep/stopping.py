"""A wish to stop: Ctrl-C and SIGTERM, granted between two frames, with a checkpoint."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Any


class Stop(threading.Event):
    """A wish to stop, and the signal that it came by, if it did."""

    signal: int | None = None
    urgent = False
    """Whether Ctrl-C came a second time."""


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
