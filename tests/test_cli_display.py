"""The display of long work: drawn in place on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import contextlib
import io
import math
import signal
import warnings
from typing import NamedTuple

import pytest

from ipe.cli import display as display_module
from ipe.cli.display import Display, say_some
from ipe.cli.interrupt import Stopped, stoppable
from ipe.cli.solve import GapDisplay
from ipe.deep.stopping import stopping
from ipe.errors import InputError


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "5")
    monkeypatch.setattr(display_module, "_REDRAW_SECONDS", 0.0)
    return Terminal()


def test_lines_are_drawn_over_those_before(terminal: Terminal) -> None:
    with Display("ipe test", stream=terminal) as display:
        display.begin("a title")
        display.show(["one", "two"])
        display.show(["a line that is too long for it"])
    title, first, second, last = terminal.getvalue().split("\033[J")
    assert title == "a title\n\033[1F"
    assert first == "a title\none\ntwo\n\033[3F"
    assert second == "a title\na line that is too \n\033[2F"
    assert last == "a title\na line that is too \n"


def test_no_more_lines_than_the_terminal_has(terminal: Terminal) -> None:
    with Display("ipe test", stream=terminal) as display:
        display.begin("a title")
        assert display.rows == 3
        display.show([str(i) for i in range(9)])
    assert terminal.getvalue().endswith("\033[Ja title\n0\n1\n2\n")


def test_what_is_not_kept_or_refused_is_taken_back(terminal: Terminal) -> None:
    with Display("ipe test", keep=False, stream=terminal) as display:
        display.show(["passing"])
    assert terminal.getvalue() == "passing\n\033[1F\033[J"
    with contextlib.suppress(InputError), Display("ipe test", stream=terminal) as display:
        display.begin("a title")
        raise InputError("refused")
    assert terminal.getvalue().endswith("a title\n\033[1F\033[J")


def test_a_second_title_goes_below_the_first(terminal: Terminal) -> None:
    with Display("ipe test", stream=terminal) as display:
        display.begin("first")
        display.show(["1"])
        display.begin("second")
        display.show(["2"])
    assert terminal.getvalue().split("\033[J")[-3:] == [
        "first\n1\nsecond\n\033[1F",
        "second\n2\n\033[2F",
        "second\n2\n",
    ]


@pytest.mark.filterwarnings("default")
def test_warnings_become_notes_above_the_progress(terminal: Terminal, capsys: pytest.CaptureFixture[str]) -> None:
    with Display("ipe test", stream=terminal) as display:
        display.show(["working"])
        warnings.warn("it is\nlate", stacklevel=1)
    assert capsys.readouterr().err == "ipe test: note: it is late\n"
    assert terminal.getvalue() == "working\n\033[1F\033[Jworking\n\033[1F\033[Jworking\n"


def test_without_a_terminal_there_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    now = [0.0]
    monkeypatch.setattr("ipe.cli.display.time.monotonic", lambda: now[0])
    with Display("ipe test", stream=stream) as display:
        display.begin("a title")
        for now[0] in (0.0, 1.0, 29.0, 31.0):
            display.show(["not shown"], f"a at {now[0]:g}", about="a")
            display.show(["not shown"])
        display.show([], "b at 31", about="b")
        display.show([], "the end", about="b", at_once=True)
        display.show([], "the end", about="b", at_once=True)
    assert stream.getvalue() == "a title\na at 0\na at 31\nb at 31\nthe end\n"


def test_a_terminal_without_commands_is_none(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with Display("ipe test", stream=terminal) as display:
        display.show(["drawn"], "said")
    assert terminal.getvalue() == "said\n"


def test_some_sentences(capsys: pytest.CaptureFixture[str]) -> None:
    say_some("ipe test", ["a", "b", "c"], "; in a file", most=2)
    assert capsys.readouterr().err == "ipe test: a\nipe test: b\nipe test: ... and 1 more; in a file\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_with_how_to_go_on(number: int, code: int) -> None:
    def hear(*_: object) -> None:
        raise KeyboardInterrupt("frame 7")

    before = signal.signal(number, hear)
    try:
        with pytest.raises(Stopped) as caught, stoppable(lambda interrupt: f"stopped at {interrupt}"):
            signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    assert (str(caught.value), caught.value.code) == ("stopped at frame 7", code)


def test_sigterm_stops_between_two_trainings_and_is_as_before_afterwards() -> None:
    def two_signals() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)  # as by `timeout`, while the first one is answered

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    with pytest.raises(Stopped) as caught, stoppable(lambda _: "stopped"):
        two_signals()
    assert (str(caught.value), caught.value.code) == ("stopped", 143)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_second_sigterm_does_not_hide_what_a_training_says_of_the_first() -> None:
    def training() -> None:
        with stopping() as stop:
            signal.raise_signal(signal.SIGTERM)
            assert stop.signal == signal.SIGTERM
        signal.raise_signal(signal.SIGTERM)
        raise KeyboardInterrupt("frame 7, saved")

    with pytest.raises(Stopped) as caught, stoppable(lambda interrupt: f"stopped at {interrupt}"):
        training()
    assert (str(caught.value), caught.value.code) == ("stopped at frame 7, saved", 143)


class Told(NamedTuple):
    """What a solver tells."""

    gap: float
    seconds: float
    iterations: int = 7
    method: str = "pdhg"
    target: float = 1e-4


def test_a_solve_shows_its_gap_and_the_time_left(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with Display("ipe solve", stream=terminal) as display:
        show = GapDisplay(display)
        assert show.line(Told(math.inf, 1.0)) == "pdhg, 7 iterations: time left not known yet"
        assert show.line(Told(1.0, 10.0)).endswith(
            "[....................] gap 1.0e+00 of 1.0e-04; time left not known yet"
        )
        assert show.line(Told(1e-1, 20.0)).endswith("[#####...............] gap 1.0e-01 of 1.0e-04; about 30 s left")
        assert show.line(Told(1e-5, 50.0)).endswith("[####################] gap 1.0e-05 of 1.0e-04; done")
        assert show.line(Told(1e-9, 50.0, method="highs", target=1e-6)).endswith("; done")
        show(Told(1e-2, 30.0))
    assert terminal.getvalue().count("[##########..........] gap 1.0e-02 of 1.0e-04; about 20 s left\n") == 2


def test_a_short_solve_is_silent_without_a_terminal() -> None:
    stream = io.StringIO()
    with Display("ipe solve", stream=stream) as display:
        show = GapDisplay(display)
        show(Told(1.0, 1.0))
        assert stream.getvalue() == ""
        show(Told(1e-2, 40.0))
    assert stream.getvalue() == "pdhg, 7 iterations [##########..........] gap 1.0e-02 of 1.0e-04; about 39 s left\n"
