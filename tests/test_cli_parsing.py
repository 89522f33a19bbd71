"""The words of a command line: how they are read, how they are refused, and what the help says about them."""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pytest

from ipe.cli.options import argument, flag, number, option, option_names, options_in, part, whole_number
from ipe.cli.parsing import parse
from ipe.cli.program import COMMANDS, command_of
from ipe.errors import InputError


@dataclass(frozen=True)
class Inner:
    """More options."""

    size: int | None = option("How large it is.", None)
    bare: int | None = option("An option without the prefix.", None, prefix="")


@dataclass(frozen=True)
class Arguments:
    """Do something.

    A long paragraph that is filled to the width of the terminal, whatever that is, while the examples stay as they are.

    examples:
      test FILE --rate 0.5
    """

    OTHER_WORDS: ClassVar[dict[str, str]] = {"--speed": "speed is called --rate"}

    file: str = argument("FILE", "The file.")
    others: tuple[str, ...] = argument("OTHER", "More files.", ())
    rate: float = option("The rate.", 0.25)
    kind: Literal["red", "blue"] = option("The colour.", "red")
    again: float | None = option("Do it again.", None, metavar="SECONDS", alone=5.0)
    yes: bool | None = option("Yes or no.", None, choices=("yes", "no"), read=lambda word: word == "yes")
    quiet: bool = flag("Say nothing.")
    inner: Inner = part(Inner, "What is inside.", "inner.")  # noqa: RUF009


def read(*words: str) -> Any:
    return parse(Arguments, words, "test")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["f"], {}),
        (["f", "--rate", "1e-3"], {"rate": 0.001}),
        (["--rate=-2", "f"], {"rate": -2.0}),
        (["f", "--rate", "-2"], {"rate": -2.0}),
        (["f", "a", "--quiet", "b"], {"others": ("a", "b"), "quiet": True}),
        (["f", "--", "--quiet"], {"others": ("--quiet",)}),
        (["f", "-6,-18", "-"], {"others": ("-6,-18", "-")}),
        (["f", "--kind", "blue", "--yes", "no"], {"kind": "blue", "yes": False}),
        (["f", "--again"], {"again": 5.0}),
        (["f", "--again", "3"], {"again": 3.0}),
        (["--again", "3", "f"], {"again": 3.0}),
        (["--again", "f"], {"again": 5.0}),
        (["f", "--again=3"], {"again": 3.0}),
        (["f", "--inner.size", "2e3", "--bare", "1"], {"inner": Inner(2000, 1)}),
    ],
)
def test_words_become_values(words: list[str], expected: dict[str, Any]) -> None:
    assert read(*words) == Arguments(**{"file": "f", **expected})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "FILE is missing; see `test --help`"),
        (["f", "--rate"], "--rate needs a value"),
        (["f", "--rate", "--quiet"], "--rate needs a value"),
        (["f", "--rate", "fast"], "--rate must be a number, found 'fast'"),
        (["f", "--kind", "green"], "--kind must be one of 'red', 'blue'; found 'green'"),
        (["f", "--quiet", "--quiet"], "--quiet is given twice"),
        (["f", "--quiet=yes"], "--quiet takes no value, found 'yes'"),
        (["f", "--rat", "1"], "there is no option --rat (did you mean --rate?)"),
        (["f", "--speed", "1"], "there is no option --speed: speed is called --rate"),
        (["f", "--inner.bare", "1"], "there is no option --inner.bare"),
        (["f", "-q"], "there is no option -q"),
    ],
)
def test_what_is_wrong_is_one_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read(*words)
    assert str(caught.value).startswith(sentence)
    assert str(caught.value).endswith("; see `test --help`")


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_the_help_fits_the_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert read("f", "--help") is None
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "usage: test FILE [OTHER [OTHER ...]] [OPTIONS]"
    assert all(len(line) <= columns for line in lines)
    text = " ".join(" ".join(lines).split())
    assert "examples: test FILE --rate 0.5" in text
    assert "--rate X The rate. (default: 0.25)" in text
    assert "--again [SECONDS] Do it again. --yes" in text
    assert "inner options: What is inside. --inner.size N How large it is." in text


def test_names_and_numbers() -> None:
    names = ["file", "others", "rate", "kind", "again", "yes", "quiet", "inner.size", "bare"]
    assert option_names(Arguments) == names
    assert [whole_number(word) for word in ("12", "-3", "1_000", "2E6", "5e+1")] == [12, -3, 1000, 2_000_000, 50]
    for word in ("", "1.5", "1e99", "1e-3", "٣", "1_", "0x10", "9" * 5000):
        with pytest.raises(ValueError, match="must be a whole number"):
            whole_number(word)
    assert number("-1e-3") == -0.001
    for word in ("", "one", "１", "1,5"):
        with pytest.raises(ValueError, match="must be a number"):
            number(word)


def test_whatever_the_words_are_they_are_read_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(0)
    words = ["", "-", "--", "-h", "--help", "-x", "--x=", "-6,-18", "1e400", "9" * 5000, "\x00", "--json=1", "٣", "3"]
    deadline = time.monotonic() + 3.0
    for _ in range(3000):
        command = rng.choice(list(COMMANDS))
        study = ["switch-stay"] if command == "reproduce" else []
        prog, arguments, _, _ = command_of([command, *study])
        known = [found.name for found in options_in(arguments)]
        with contextlib.suppress(InputError):
            found = parse(arguments, rng.choices([*words, *known], k=rng.randrange(7)), prog)
            assert found is None or isinstance(found, arguments)
        if time.monotonic() > deadline:
            break
    capsys.readouterr()
