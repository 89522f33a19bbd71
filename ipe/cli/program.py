"""The program `ipe`: which commands there are, and how each of them ends.

A command is a module with a frozen dataclass `Arguments` (see `ipe.cli.options`), whose docstring is its help, and a
function `run(arguments)`, which may return an exit code. A command that consists of several, as `ipe reproduce` does,
has a function `choose(words)` that finds the dataclass. Only the module of the command asked for is imported, and heavy
packages (scipy, matplotlib) only when it runs, so that help and wrong arguments are answered at once.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from ipe.cli.display import say
from ipe.errors import InputError, NotSolvedError

DONE, FAILED, WRONG_INPUT, NOT_SOLVED = 0, 1, 2, 3
INTERRUPTED, BROKEN_PIPE = 130, 141  # 128 and the number of the signal, as shells have it

_LONGEST_WORD, _LONGEST_SENTENCE = 120, 1200


class Command(NamedTuple):
    """The module of a command, and what the command does in one line."""

    module: str
    summary: str
    saves: bool = False
    """Whether the command, after Ctrl-C, saves what it has; it then takes the time that it needs to end."""


COMMANDS: dict[str, Command] = {
    "solve": Command("ipe.cli.solve", "find the policy whose values these are, or the nearest to them"),
    "zoo": Command("ipe.cli.zoo", "list the MDPs that have a name, or show one MDP in full"),
    "draw": Command("ipe.cli.draw", "draw a small MDP as a diagram: .svg, .png or .pdf"),
    "reproduce": Command(
        "ipe.cli.reproduce", "run a study of the paper: figures, data and a verdict on every claim", saves=True
    ),
    "train": Command(
        "ipe.cli.train", "train DQN with epsilon-IPE or another behaviour, many seeds at once", saves=True
    ),
    "sweep": Command("ipe.cli.sweep", "train a grid of settings by seeds, on this machine or a cluster", saves=True),
    "status": Command("ipe.cli.status", "show how far a sweep is: done, running, failed, the time left"),
    "evaluate": Command("ipe.cli.evaluate", "play new episodes with a trained run's policy, and print their returns"),
    "curves": Command("ipe.cli.curves", "draw learning curves of training runs, and print the areas under them"),
    "report": Command("ipe.cli.report", "write a sweep's results as one page, figures and tables"),
    "watch": Command("ipe.cli.watch", "draw a trained run's policy in its environment as a GIF"),
    "audit": Command("ipe.cli.audit", "split a Q-function's error into noise, estimation and what no policy removes"),
    "polytope": Command("ipe.cli.polytope", "draw the values of all policies of a two-state MDP, and the value map"),
    "explore": Command("ipe.cli.explore", "explore the value polytope of a two-state MDP in the browser"),
}

_OTHER_WORDS = {
    "eval": "evaluate", "play": "evaluate", "test": "evaluate", "plot": "curves", "resume": "train --resume RUN",
    "run": "train", "list": "zoo", "gif": "watch", "render": "watch",
}  # fmt: skip
"""Commands of other programs, and what they are called here."""

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
    _look_in_the_current_folder()
    from ipe.cli.interrupt import ending_soon, losing_no_interrupt  # for the process, not for a caller within it

    with losing_no_interrupt():
        if (command := COMMANDS.get(" ".join(sys.argv[1:2]))) and command.saves:
            return _main(sys.argv[1:])
        with ending_soon(lambda: _end(sys.argv[1:], "interrupted", INTERRUPTED)):
            return _main(sys.argv[1:])


def _look_in_the_current_folder() -> None:
    """Let `package.module:EnvId` name a module of the current folder, as it does for `python -m ipe`.

    The folder comes last, so that no file in it hides a module that is installed.
    """
    with contextlib.suppress(OSError):  # the current folder may be gone
        if (folder := os.getcwd()) not in sys.path and not sys.flags.safe_path:
            sys.path.append(folder)


def _main(words: list[str]) -> int:
    from ipe.cli.interrupt import Stopped

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names that the terminal has no characters for
    try:
        code = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()
    except InputError as error:
        return _end(words, str(error), WRONG_INPUT)
    except NotSolvedError as error:
        return _end(words, str(error), NOT_SOLVED)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "ipe":
            raise
        from ipe.base.packages import missing_package

        return _end(words, str(missing_package("this command", error.name, extra="gymnasium")), WRONG_INPUT)
    except MemoryError as error:
        return _end(words, f"there is not enough memory ({str(error) or 'out of memory'})", WRONG_INPUT)
    except Stopped as stopped:
        return _end(words, str(stopped), stopped.code)
    except KeyboardInterrupt:
        return _end(words, "interrupted", INTERRUPTED)
    except BrokenPipeError:
        _let_go_of_stdout()
        return BROKEN_PIPE
    except OSError as error:  # a full disk, say: files that are read or written have an InputError of their own
        if error.errno == errno.ENAMETOOLONG:
            return _end(words, f"the name of the file is too long: {error.filename}", WRONG_INPUT)
        _let_go_of_stdout()
        return _end(words, f"cannot write the output: {error.strerror or error}", FAILED)
    return code


def _run(words: list[str]) -> int:
    if not words:
        raise InputError(f"which command: {', '.join(COMMANDS)}? `ipe --help` says what they do")
    first, *rest = words
    if first in ("version", "--version"):
        import ipe

        print(f"ipe {ipe.__version__}")
        return DONE
    if first == "help" and rest and rest[0] in COMMANDS:
        return _run([*rest, "--help"])
    if first == "help" and rest:
        raise InputError(f"{_not_known(rest[0])}; see `ipe --help`")
    if first in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        print(_HELP.format(commands="\n".join(f"  {n.ljust(width)}  {c.summary}" for n, c in COMMANDS.items())))
        return DONE
    from ipe.cli.parsing import parse

    prog, arguments, run, left = command_of(words)
    found = parse(arguments, left, prog)
    return DONE if found is None else run(found) or DONE  # a command that always ends well returns nothing


def command_of(words: Sequence[str]) -> tuple[str, type[Any], Callable[[Any], int | None], list[str]]:
    """The command that some words call: as the user writes it, its dataclass of arguments, the function that runs it,
    and the words that are its arguments."""
    first, *rest = words
    if first not in COMMANDS:
        raise InputError(f"{_not_known(first)}; see `ipe --help`")
    module = import_module(COMMANDS[first].module)
    if not hasattr(module, "choose"):
        return f"ipe {first}", module.Arguments, module.run, rest
    chosen, arguments, left = module.choose(rest)
    return f"ipe {first} {chosen}".rstrip(), arguments, module.run, left


def _not_known(word: str) -> str:
    from ipe.base.words import did_you_mean

    if word.startswith("-"):
        close = did_you_mean(word, ["--help", "--version"], cutoff=0.7)
        return f"there is no option {word}{close}" if close else f"the command comes first, and {word!r} is none"
    if word in _OTHER_WORDS:
        return f"there is no command {word!r}; here it is `ipe {_OTHER_WORDS[word]}`"
    hint = did_you_mean(word, COMMANDS, cutoff=0.7) or f" (there are {', '.join(COMMANDS)})"
    return f"there is no command {word!r}{hint}"


def _end(words: Sequence[str], sentence: str, code: int) -> int:
    """Say why the command ends, and return the exit code. Words that are very long are not repeated in full."""
    for word in words:
        if len(word) > _LONGEST_WORD:
            sentence = sentence.replace(word, f"{word[: _LONGEST_WORD - 40]}...{word[-20:]}")
    if len(sentence) > _LONGEST_SENTENCE:  # a part of a word, or one that was written differently
        sentence = f"{sentence[: _LONGEST_SENTENCE - 400]} ... {sentence[-300:]}"
    say(f"ipe {words[0]}" if words and words[0] in COMMANDS else "ipe", sentence)
    return code


def _let_go_of_stdout() -> None:
    """Send what is still in the buffer nowhere: flushing it when Python exits would fail again, and be reported."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # a stdout without a descriptor has no such flush
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
