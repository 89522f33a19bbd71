"""The wish to stop: heard whatever it interrupts, even another one."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time

import pytest

from ipe.cli.interrupt import losing_no_interrupt
from ipe.deep.stopping import Stop, stopping

pytestmark = pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")


def test_signals_in_quick_succession_do_not_wait_for_each_other() -> None:
    """With a lock in the handler, the second would: until Python's stack is full of them."""
    main, over = threading.main_thread().ident, []
    assert main is not None

    def send() -> None:
        for _ in range(20_000):
            signal.pthread_kill(main, signal.SIGTERM)
        over.append(True)

    with stopping() as stop:
        sender = threading.Thread(target=send)
        sender.start()
        while not over:
            stop.set()
            stop.wait(0.0)
        sender.join()
        assert stop.is_set()
        assert (stop.signal, stop.urgent) == (signal.SIGTERM, False)


def test_waiting_ends_with_the_wish() -> None:
    stop = Stop()
    begin = time.monotonic()
    assert not stop.wait(0.1)
    assert time.monotonic() - begin >= 0.1
    threading.Timer(0.1, stop.set).start()
    begin = time.monotonic()
    assert stop.wait(60.0)
    assert time.monotonic() - begin < 30.0


def _interrupted_twice(stop: Stop) -> None:
    os.kill(os.getpid(), signal.SIGINT)
    assert stop.wait(10.0)
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(10.0)


def test_a_second_control_c_does_not_wait() -> None:
    with stopping() as stop:
        with pytest.raises(KeyboardInterrupt):
            _interrupted_twice(stop)
        assert stop.urgent


def test_an_interrupt_that_a_callback_swallows_is_not_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """Python ignores what a callback of the garbage collector raises; JAX has such a callback."""
    calls = 0

    def callback(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls <= 2:  # lost twice
            signal.raise_signal(signal.SIGINT)

    def collect_and_wait() -> None:
        gc.collect()
        time.sleep(5)

    gc.callbacks.append(callback)
    try:
        with losing_no_interrupt(), pytest.raises(KeyboardInterrupt):
            collect_and_wait()
    finally:
        gc.callbacks.remove(callback)
    assert calls >= 1
    assert "Traceback" not in capsys.readouterr().err
