"""Ctrl-C that ends the program also from inside a solver.

Python turns the signal into a `KeyboardInterrupt` once it is back from whatever C code is running; HiGHS or a dense
factorisation can take minutes. A thread that waits for the signal ends the process where Python does not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator

GRACE = 1.0
"""Seconds that Python has to end by itself, its files closed and removed."""


@contextlib.contextmanager
def ending_soon(on_time_out: Callable[[], int]) -> Iterator[None]:
    """Inside this block, Ctrl-C ends the process after `GRACE` seconds at the latest.

    It ends by a `KeyboardInterrupt` as always, if that comes in time. For programs, in their main thread.

    Args:
        on_time_out: says what is to be said, and returns the exit code.
    """
    heard, told = socket.socketpair()
    told.setblocking(False)
    before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(heard, on_time_out), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        told.close()


def _watch(heard: socket.socket, on_time_out: Callable[[], int]) -> None:
    with heard:
        while number := heard.recv(1):
            if number[0] == signal.SIGINT and not _closed_within(heard, GRACE):
                os._exit(on_time_out())


def _closed_within(heard: socket.socket, seconds: float) -> bool:
    """Whether the other end is closed in time; more signals change nothing."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        heard.settimeout(left)
        try:
            if not heard.recv(1):
                return True
        except TimeoutError:
            break
    return False


@contextlib.contextmanager
def hearing_signals() -> Iterator[Callable[[], int | None]]:
    """Inside this block, know which signal it was that some handler of Python's made an exception of.

    For programs, in their main thread; in another one nothing is heard.

    Yields:
        A function that returns the first signal so far, None if there was none.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    heard, told = socket.socketpair()
    heard.setblocking(False)
    told.setblocking(False)
    before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    numbers: list[int] = []

    def first() -> int | None:
        with contextlib.suppress(BlockingIOError):
            numbers.extend(heard.recv(64))
        return numbers[0] if numbers else None

    try:
        yield first
    finally:
        signal.set_wakeup_fd(before)
        told.close()
        heard.close()
