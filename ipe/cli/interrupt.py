"""Ctrl-C and SIGTERM: commands that save say how to go on; commands that compute end even inside a solver.

Python turns a signal into a `KeyboardInterrupt` once it is back from whatever C code is running; HiGHS or a dense
factorisation can take minutes. For such commands a thread waits for the signal, and ends the process if
Python does not.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

_AGAIN = 0.05
"""The seconds after which a Ctrl-C that was lost is sent again."""
GRACE = 1.0
"""The seconds that Python has to end by itself after Ctrl-C, its files closed and removed."""
_answering = threading.Event()
"""Set while a command runs that answers the first Ctrl-C with what it has, which may take longer."""


class Stopped(Exception):  # noqa: N818
    """A command was stopped by a signal: how far it came and how to go on, in a sentence, and the exit code."""

    def __init__(self, sentence: str, code: int) -> None:
        super().__init__(sentence)
        self.code = code


@contextlib.contextmanager
def stoppable(sentence: Callable[[KeyboardInterrupt], str]) -> Iterator[None]:
    """Inside this block, Ctrl-C and SIGTERM end the command with the exit code of the signal, and with a sentence about
    the interrupt that the work raised after it had saved what it has. Between two trainings SIGTERM interrupts as
    Ctrl-C does; a training answers both by itself."""
    with hearing_signals() as heard, _interrupted_by_sigterm(heard):
        try:
            yield
        except KeyboardInterrupt as interrupt:
            first, *_ = (*heard(), signal.SIGINT)
            raise Stopped(sentence(interrupt), 128 + first) from None


@contextlib.contextmanager
def _interrupted_by_sigterm(heard: Callable[[], list[int]]) -> Iterator[None]:
    """Inside this block, SIGTERM raises `KeyboardInterrupt`, unless somebody else answers it already. After a first
    signal, whoever answered that one, a SIGTERM changes nothing: `timeout` sends two."""
    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def hear(*_: Any) -> None:
        if len(heard()) == 1:  # this one
            raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


@contextlib.contextmanager
def losing_no_interrupt() -> Iterator[None]:
    """Inside this block, a Ctrl-C that came while Python called back from C code is sent again, a moment later.

    Python raises `KeyboardInterrupt` wherever it is. Inside a callback that returns nothing to its caller, as JAX's at
    each garbage collection, Python prints the exception as ignored and goes on.
    """
    before = sys.unraisablehook
    timers: list[threading.Timer] = []

    def send_again(unraisable: Any) -> None:
        if unraisable.exc_type is not KeyboardInterrupt:
            before(unraisable)
        elif not any(timer.is_alive() for timer in timers):  # two that are lost within that time are one
            timers.append(threading.Timer(_AGAIN, os.kill, (os.getpid(), signal.SIGINT)))
            timers[-1].daemon = True
            timers[-1].start()

    sys.unraisablehook = send_again
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:  # whatever comes after this block is not interrupted
            timer.cancel()


@contextlib.contextmanager
def ending_soon(on_time_out: Callable[[], int]) -> Iterator[None]:
    """Inside this block, Ctrl-C ends the process after `GRACE` seconds at the latest.

    The process ends by a `KeyboardInterrupt` as always, if that comes in time. Only a program's main thread may use it.

    Args:
        on_time_out: says what is to be said, and returns the exit code.
    """
    with _signal_numbers() as heard:
        threading.Thread(target=_watch, args=(heard, on_time_out), daemon=True).start()
        yield


@contextlib.contextmanager
def answering() -> Iterator[None]:
    """Inside this block the command answers the first Ctrl-C by itself and takes its time; the second one ends it."""
    _answering.set()
    try:
        yield
    except KeyboardInterrupt:
        raise  # the thread that waits for signals clears the flag, when it hears of this Ctrl-C: often later than here
    except BaseException:
        _answering.clear()
        raise
    else:
        _answering.clear()


def _watch(heard: socket.socket, on_time_out: Callable[[], int]) -> None:
    with heard:
        while number := heard.recv(1):
            if number[0] != signal.SIGINT:
                continue
            if _answering.is_set():
                _answering.clear()
            elif not _closed_within(heard, GRACE):
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
def hearing_signals() -> Iterator[Callable[[], list[int]]]:
    """Inside this block, know which signals there were that one of Python's handlers made an exception of.

    Outside a program's main thread nothing is heard.

    Yields:
        A function that returns the numbers of the signals so far.
    """
    if threading.current_thread() is not threading.main_thread():
        yield list
        return
    numbers: list[int] = []
    with _signal_numbers() as heard, heard:
        heard.setblocking(False)

        def all_of_them() -> list[int]:
            with contextlib.suppress(BlockingIOError):
                numbers.extend(heard.recv(64))
            return numbers

        yield all_of_them


@contextlib.contextmanager
def _signal_numbers() -> Iterator[socket.socket]:
    """A socket to which Python writes the number of every signal, until this block is left."""
    heard, told = socket.socketpair()
    told.setblocking(False)
    before = signal.set_wakeup_fd(told.fileno(), warn_on_full_buffer=False)
    try:
        yield heard
    finally:
        signal.set_wakeup_fd(before)
        told.close()
