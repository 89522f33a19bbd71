"""The program `ipe`: which commands there are, and how each of them ends.

A command is a module with a frozen dataclass `Arguments`, whose docstring is its help, and a function
`run(arguments)`, which may return an exit code. Only the module of the command asked for is imported, and what is heavy
(scipy, matplotlib) only when it runs, so that help and wrong arguments are answered at once.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from ipe.base.words import did_you_mean
from ipe.errors import InputError, NotSolvedError

DONE, FAILED, WRONG_INPUT, NOT_SOLVED = 0, 1, 2, 3
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 and the number of the signal, as shells have it


class Command(NamedTuple):
    """The module of a command, and what it does in one line."""

    module: str
    summary: str
    saves: bool = False
    """Whether Ctrl-C makes it save what it has, for which it may take its time."""


COMMANDS: dict[str, Command] = {
    "solve": Command("ipe.cli.solve", "the policy that a value function is the value of, or the nearest to it"),
    "zoo": Command("ipe.cli.zoo", "the MDPs that have a name; or one MDP in full"),
    "draw": Command("ipe.cli.draw", "a small MDP as a diagram: .svg, .png or .pdf"),
    "reproduce": Command(
        "ipe.cli.reproduce", "a study of the paper: figures, data and a verdict on every claim", saves=True
    ),
    "train": Command("ipe.cli.train", "DQN with epsilon-IPE or another behaviour, many seeds at once", saves=True),
    "sweep": Command("ipe.cli.sweep", "a grid of settings by seeds, on this machine or a cluster", saves=True),
    "status": Command("ipe.cli.status", "where a sweep is: done, running, failed, the time left"),
    "evaluate": Command("ipe.cli.evaluate", "the returns of a trained run's policy in new episodes"),
    "curves": Command("ipe.cli.curves", "learning curves of training runs as a figure, and the areas under them"),
    "report": Command("ipe.cli.report", "a sweep's results as one page, figures and tables"),
    "watch": Command("ipe.cli.watch", "a trained run's policy in its environment, as a GIF"),
    "audit": Command("ipe.cli.audit", "a Q-function on transitions: noise, estimation, what no policy can remove"),
    "polytope": Command("ipe.cli.polytope", "the values of all policies of a two-state MDP, and the value map on them"),
    "explore": Command("ipe.cli.explore", "the value polytope of a two-state MDP in the browser: drag, edit, learn"),
}

_HELP = """\
usage: ipe COMMAND ...

Inverse policy evaluation: the policy that a value function is the value of.

commands:
{commands}

options:
  -h, --help  this text; `ipe COMMAND --help` for a command
  --version   the version of ipe

examples:
  ipe solve switch-stay --values 18,-6
  ipe zoo
  ipe train LunarLander-v3 --seeds 5

exit codes: 0 done; 2 wrong input, and nothing was written; 3 not solved to the tolerance asked for, or no seed trained
            to the end; 1 the result could not be written, or a training process failed; 130 interrupted,
            143 by SIGTERM; 141 the reader of the output left"""


def main(args: Sequence[str] | None = None) -> int:
    """Run `ipe` with these arguments, by default those of the process.

    What goes wrong is said in one sentence on standard error.

    Args:
        args: a command and its arguments.

    Returns:
        The exit code: 0 done, 2 wrong input, 3 not solved, 1 failed (the output could not be written, say),
        130 interrupted, 143 by SIGTERM, 141 broken pipe.

    Example:
        >>> main(["draw", "switch-stay", "--out", "picture.doc"])
        2
    """
    if args is not None:
        return _main(list(args))
    if (command := COMMANDS.get(" ".join(sys.argv[1:2]))) and command.saves:
        return _main(sys.argv[1:])
    from ipe.cli.interrupt import ending_soon  # for the process, not for a caller within it

    with ending_soon(lambda: _end(_name(sys.argv[1:]), "interrupted", INTERRUPTED)):
        return _main(sys.argv[1:])


def _name(words: list[str]) -> str:
    return f"ipe {words[0]}" if words and words[0] in COMMANDS else "ipe"


def _main(words: list[str]) -> int:
    name = _name(words)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names that the terminal has no characters for
    try:
        code = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except InputError as error:
        return _end(name, str(error), WRONG_INPUT)
    except NotSolvedError as error:
        return _end(name, str(error), NOT_SOLVED)
    except MemoryError as error:
        return _end(name, f"there is not enough memory ({str(error) or 'out of memory'})", WRONG_INPUT)
    except KeyboardInterrupt:
        return _end(name, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        _let_go_of_stdout()
        return BROKEN_PIPE
    except OSError as error:  # a full disk, say: files that are read or written have their own InputError
        _let_go_of_stdout()
        return _end(name, f"cannot write the output: {error.strerror or error}", FAILED)
    return code


def _run(words: list[str]) -> int:
    if not words:
        raise InputError(f"which command: {', '.join(COMMANDS)}? `ipe --help` says what they do")
    first, *rest = words
    if first in ("-h", "--help"):
        width = max(map(len, COMMANDS))
        print(_HELP.format(commands="\n".join(f"  {n.ljust(width)}  {c.summary}" for n, c in COMMANDS.items())))
    elif first == "--version":
        print(f"ipe {_version()}")
    elif first not in COMMANDS:
        raise InputError(f"{_not_known(first)}; see `ipe --help`")
    else:
        from ipe.cli.parsing import parse  # tyro: not needed to say what commands there are

        module = import_module(COMMANDS[first].module)
        try:
            arguments = parse(module.Arguments, rest, f"ipe {first}")
        except SystemExit:  # it has printed the command's help
            return DONE
        return module.run(arguments) or DONE  # a command that always ends well returns nothing
    return DONE


def _not_known(word: str) -> str:
    kind, known = ("option", ["--help", "--version"]) if word.startswith("-") else ("command", list(COMMANDS))
    hint = did_you_mean(word, known, cutoff=0.7)
    if kind == "option" and not hint:
        return f"the command comes first, and {word!r} is none"
    others = f" (there are {', '.join(known)})"
    return f"there is no {kind} {word!r}{hint or others}"


def _version() -> str:
    from importlib import metadata  # slow to import

    try:
        return metadata.version("ipe")
    except metadata.PackageNotFoundError:  # run from its source, not installed
        return "(not installed)"


def _end(name: str, sentence: str, code: int) -> int:
    """Say why it ends, on one line whatever the message holds."""
    if sys.stderr is not None:
        print(f"{name}: {' '.join(sentence.split())}", file=sys.stderr, flush=True)
    return code


def _let_go_of_stdout() -> None:
    """What is still in the buffer goes nowhere: flushing it when Python exits would fail again, and be reported."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stdout without a descriptor has no such flush
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
