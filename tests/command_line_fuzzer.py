"""Mutated command lines: thousands of them from a seed, and every option of every command with words of a wrong kind.

`python -m tests.command_line_fuzzer COUNT` counts how the lines end. Each line goes through `main()` in this process.
So that none of them computes for long, each ends in an `--out` that is refused, where the command has one.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ipe.cli import main
from ipe.cli.options import options_in
from ipe.cli.program import COMMANDS, command_of

Line = list[str]

# The files and folders that the lines name are those of `make_files`.
LINES: tuple[Line, ...] = (
    ["solve", "switch-stay", "--values", "18,-6", "--norm", "l1", "--json"],
    ["solve", "mdp.json", "--values", "values.json"],
    ["zoo", "chain:n=5"],
    ["zoo"],
    ["draw", "switch-stay"],
    ["polytope", "switch-stay", "--values", "18,-6"],
    ["explore", "switch-stay", "--no-browser"],
    ["reproduce", "switch-stay", "--only", "figure-3"],
    ["reproduce", "lunar-lander", "--confirm-seeds", "2"],
    ["reproduce", "freeway", "--seeds", "2"],
    ["reproduce", "exploration", "--only", "tables"],
    ["train", "CartPole-v1", "--seeds", "2", "--width", "8", "--frames", "100"],
    ["train", "CartPole-v1", "--behaviour", "epsilon-greedy", "--epsilon.final", "0.1", "--optimiser.kind", "adam"],
    ["train", "--resume", "empty", "--frames", "200"],
    ["sweep", "grid.toml", "--seeds", "2"],
    ["sweep", "--resume", "empty"],
    ["status", "empty", "--json"],
    ["report", "empty", "--confirm", "other"],
    ["evaluate", "empty", "--episodes", "3", "--seed", "1"],
    ["watch", "empty", "--episodes", "1"],
    ["curves", "empty", "other"],
    ["audit", "empty", "--env", "CartPole-v1"],
    ["help", "train"],
    ["version"],
)  # fmt: skip
REFUSED_OUT = {
    "solve": "empty", "draw": "missing/a.svg", "polytope": "missing/a.png", "explore": "missing/a.html",
    "reproduce": "grid.toml", "train": "grid.toml", "sweep": "values.json", "report": "grid.toml",
    "watch": "missing/a.gif", "curves": "missing/a.png", "audit": "missing/a.png",
}  # fmt: skip
"""An `--out` of each command that cannot be written."""
WORDS = (
    "", " ", "-", "--", "---", "-x", "--x", "=", "--=", "--out", "0", "-1", "3", "2.5", "1e3", "1e30", "1e999",
    "-inf", "nan", "inf", "0x10", "1_000", "٣", "３", "²", "1,2", ",", ",,", "1,a", "1,", "true", "None", "null", "[]",
    "{}", "a=b", "a=", "=b", "a=1,a=2", "x" * 5000, "9" * 5000, "x" * 300, "../..", "/", "~", "/dev/null",
    "/dev/full", "/proc/self/mem", "empty", "other", "grid.toml", "values.json", "mdp.json", "missing",
    "empty/missing", "a\nb", "a\tb", "a\x00b", "\udcff", "größe", "🙂", "switch-stay", "CartPole-v1", "NoSuch-v0",
    "os:path", "no_module:x", ":", "a:", ":b", "chain:n=-1", "chain:n=x", "chain:n=", "chain:", "chain:m=3",
    "garnet:n=5,n=6", "--help", "--version", "--lr", "--gpu", "%s", "{0}", "$HOME", "`", "'", '"', "\\", "adam", "l2",
    "epsilon-ipe", "train", "18,-6", "1,2,3", "nan,1", "inf,0", "1e400,0",
)  # fmt: skip


def make_files(folder: Path) -> None:
    """Make the files and folders that the lines name."""
    (folder / "empty").mkdir()
    (folder / "other").mkdir()
    (folder / "other" / "note.txt").write_text("not a run\n")
    (folder / "values.json").write_text("[18, -6]\n")
    (folder / "mdp.json").write_text('{"states": 2}\n')
    (folder / "grid.toml").write_text('seeds = 1\n[base]\nenvironment = "CartPole-v1"\n[grid]\nwidth = [4, 8]\n')


def wrong_kinds(words: int, seed: int = 0) -> Iterator[Line]:
    """Every option of every command, each with so many of the words."""
    draw = random.Random(seed)
    seen = set()
    for line in LINES:
        if line[0] not in COMMANDS:
            continue
        prog, arguments, _, _ = command_of(line)
        for option in options_in(arguments):
            if option.kind == "argument" or option.name in ("--out", "--plan") or (prog, option.name) in seen:
                continue
            seen.add((prog, option.name))
            for word in draw.sample(WORDS, words):
                yield ending_soon([*line, option.name, word])


def mutants(count: int, seed: int = 0) -> Iterator[Line]:
    """Yield `count` mutated lines, the same for the same seed."""
    draw = random.Random(seed)
    names = {
        line[0]: [option.name for option in options_in(command_of(line)[1])] for line in LINES if line[0] in COMMANDS
    }
    for _ in range(count):
        line = list(draw.choice(LINES))
        for _ in range(draw.randint(1, 3)):
            _mutate(line, names.get(line[0] if line else "", []), draw)
        yield ending_soon([word for word in line if word != "--plan"])


def _mutate(line: Line, names: list[str], draw: random.Random) -> None:
    at = draw.randrange(len(line) + 1)
    kind = draw.choice(("remove", "repeat", "swap", "replace", "replace", "misspell", "add", "add", "name", "name"))
    if kind == "add":
        line.insert(at, draw.choice(WORDS))
    elif kind == "name" and names:
        line[at:at] = [draw.choice(names), draw.choice(WORDS)][: draw.randint(1, 2)]
    elif line:
        at = min(at, len(line) - 1)
        word, other = line[at], draw.randrange(len(line))
        if kind == "remove":
            del line[at]
        elif kind == "repeat":
            line.insert(other, word)
        elif kind == "swap":
            line[at], line[other] = line[other], word
        elif kind == "replace":
            line[at] = draw.choice(WORDS)
        else:
            cut = draw.randint(0, len(word))
            line[at] = word[:cut] + draw.choice("xX-_=., é") + word[cut + draw.randint(0, 1) :]


def ending_soon(line: Line) -> Line:
    """The line with the `--out` that is refused, where its command has one."""
    out = REFUSED_OUT.get(line[0]) if line else None
    return line if out is None else [*line, "--out", out]


def how_it_ends(line: Line, folder: Path) -> str:
    """Give a line to `main()`, and say how that ended: done, refused, or what was wrong with it."""
    before, begin = _content(folder), time.monotonic()
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(line)
    except BaseException as error:
        return f"raised {type(error).__name__}"
    said = err.getvalue()
    if time.monotonic() - begin > 20.0:
        return "took more than 20 s"
    if code in (0, 3):
        return "done"
    if code != 2:
        return f"exit code {code}"
    if "Traceback" in said or not said.startswith("ipe"):
        return "refused without a sentence"
    if len(said) > 2000 or said.count("\n") > 1:
        return "refused at length"
    if out.getvalue():
        return "refused after output"
    return "refused" if _content(folder) == before else "refused after writing"


def _content(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*"))


def end_lines(lines: Iterator[Line], folder: Path) -> tuple[Counter[str], dict[str, Line]]:
    """Count how lines end, and keep the first line of each end. The current folder is changed meanwhile."""
    ends: Counter[str] = Counter()
    first: dict[str, Line] = {}
    make_files(folder)
    here = os.getcwd()
    os.chdir(folder)
    try:
        for line in lines:
            end = how_it_ends(line, folder)
            ends[end] += 1
            first.setdefault(end, line)
    finally:
        os.chdir(here)
    return ends, first


if __name__ == "__main__":
    for chosen in (mutants(int(sys.argv[1])), wrong_kinds(20)):
        with tempfile.TemporaryDirectory() as temporary:
            counted, examples = end_lines(chosen, Path(temporary))
        print(dict(counted))
        for name, example in examples.items():
            print(f"  {name}: {example!r:.200}")
