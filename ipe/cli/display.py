"""What a long command shows while it works: lines drawn in place on a terminal, a line now and then elsewhere.

Every command that takes its time shows its progress through a `Display`.
"""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
import warnings
from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from typing import TextIO

QUIET_SECONDS = 30.0
"""The least time between two lines about the same thing where there is no terminal."""
_REDRAW_SECONDS = 0.2


class Display:
    """The progress of one piece of work; a context manager, inside which warnings become notes.

    Args:
        name: the command, as notes begin with it: `ipe train`.
        keep: whether the last lines stay on the terminal when the work is over.
        stream: where it is shown. Default: standard error.
    """

    def __init__(self, name: str, *, keep: bool = True, stream: TextIO | None = None) -> None:
        self._name, self._keep, self._title = name, keep, ""
        self._stream = sys.stderr if stream is None else stream
        self.live = self._stream is not None and self._stream.isatty() and os.environ.get("TERM") != "dumb"
        self._lines: list[str] = []
        self._drawn, self._at = 0, -math.inf
        self._said: dict[Hashable, tuple[float, str]] = {}
        self._around = ExitStack()

    def __enter__(self) -> Display:
        self._around.enter_context(warnings.catch_warnings())
        warnings.showwarning = lambda message, *_, **__: self.note(f"note: {message}")
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self._around.close()

    @property
    def rows(self) -> int:
        """How many lines the terminal has room for."""
        return shutil.get_terminal_size().lines - 1 - bool(self._title)

    def show(
        self, lines: Sequence[str], elsewhere: str | None = None, *, about: Hashable = None, at_once: bool = False
    ) -> None:
        """Show how far the work is.

        Args:
            lines: for a terminal, in the place of the lines shown before.
            elsewhere: for a stream that is no terminal. Default: nothing is shown there.
            about: what the line elsewhere is about: of each thing there is one line in `QUIET_SECONDS`.
            at_once: show the line elsewhere now, however long ago the last one was, unless it is the same again.
        """
        now = time.monotonic()
        if self.live:
            self._lines = list(lines)
            if now - self._at >= _REDRAW_SECONDS:
                self._at = now
                self._draw()
        elif elsewhere is not None:
            when, last = self._said.get(about, (-math.inf, ""))
            if now - when >= QUIET_SECONDS or (at_once and elsewhere != last):
                if self._title and not self._said:
                    self._write(f"{self._title}\n")
                self._said[about] = now, elsewhere
                self._write(f"{elsewhere}\n")

    def begin(self, title: str) -> None:
        """Say what is about to be done, below what was shown before.

        A terminal shows it at once, because the first progress may take a while, and takes it back if the work is
        refused before there is any; elsewhere it comes with the first progress.
        """
        self.close()
        self._title, self._said = title, {}
        if self.live:
            self._draw()

    def note(self, sentence: str) -> None:
        """Say something above the progress, on standard error."""
        self._erase()
        say(self._name, sentence)
        if self.live and (self._title or self._lines):
            self._draw()

    def close(self) -> None:
        """Leave the last lines as they are, or take them back if they are not to be kept."""
        if self.live and self._keep and self._lines:
            self._draw()
        else:
            self._erase()
        self._drawn, self._lines = 0, []

    def _draw(self) -> None:
        size = shutil.get_terminal_size()
        lines = [*([self._title] if self._title else []), *self._lines][: size.lines - 1]
        # A line that wraps would take two rows, and the next drawing would begin one row too low.
        self._erase("".join(f"{line[: size.columns - 1]}\n" for line in lines))
        self._drawn = len(lines)

    def _erase(self, instead: str = "") -> None:
        if self._drawn or instead:
            up = f"\033[{self._drawn}F\033[J" if self._drawn else ""
            self._write(f"{up}{instead}")
            self._drawn = 0

    def _write(self, text: str) -> None:
        if self._stream is not None:
            print(text, end="", file=self._stream, flush=True)


def say(name: str, sentence: str) -> None:
    """Print a sentence on standard error, on one line whatever it holds, after the name of the command."""
    if sys.stderr is not None:
        print(f"{name}: {' '.join(sentence.split())}", file=sys.stderr, flush=True)


def say_some(name: str, sentences: Sequence[str], rest: str = "", most: int = 20) -> None:
    """Say the first of some sentences, and how many more there are; `rest` says where to find those."""
    for sentence in sentences[:most]:
        say(name, sentence)
    if len(sentences) > most:
        say(name, f"... and {len(sentences) - most} more{rest}")
