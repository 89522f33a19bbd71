"""The MDPs and values that commands take: MDPs by file or by name; values from a file, the words or a pipe."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ipe.base.words import did_you_mean, refusing
from ipe.cli.options import number, whole_number
from ipe.errors import InputError

if TYPE_CHECKING:  # numpy and scipy come when a command runs, not for its help
    from ipe.base.arrays import Array
    from ipe.checks import Form
    from ipe.mdp import FiniteMDP

MDP = "a file (.npz, .json), or a name of the zoo, alone or with parameters as in chain:n=4,slip=0.1 (see `ipe zoo`)."
"""What the help of every command says about an MDP."""

_VALUE_FILES = (".npy", ".npz", ".json", ".csv", ".txt")


def read_mdp(text: str) -> FiniteMDP:
    """The MDP that a word stands for.

    Args:
        text: the path of an .npz or .json file; or a name of the zoo, alone or with parameters,
            `name:key=value,key=value`. A path with a slash in it is never taken for a name.

    Example:
        >>> read_mdp("river-swim:n=4,gamma=0.9")
        FiniteMDP(4 states, 2 actions, gamma=0.9, stochastic)
        >>> read_mdp("river-swin")
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: there is no file 'river-swin', and the zoo has no such MDP (did you mean ...
    """
    from ipe import zoo
    from ipe.mdp_files import load_mdp

    if not text:
        raise InputError("MDP is empty")
    name, colon, parameters = text.partition(":")
    in_folder = os.path.basename(text) != text
    if not in_folder and name in zoo.names():
        return _from_zoo(name, parameters if colon else None)
    if in_folder or Path(text).suffix.lower() in (".npz", ".json") or os.path.exists(text):
        return load_mdp(text)
    hint = did_you_mean(name, zoo.names())
    raise InputError(f"there is no file {text!r}, and the zoo has no such MDP{hint}; `ipe zoo` lists its names")


def _from_zoo(name: str, text: str | None) -> FiniteMDP:
    from ipe import zoo

    try:
        return zoo.make(name, **({} if text is None else key_values(text)))
    except InputError as error:
        raise error if str(error).startswith(name) else InputError(f"{name}: {error}") from None
    except (ValueError, OverflowError) as error:  # numpy: a size that no array can have
        raise InputError(f"{name}:{text}: {error}") from None


def key_values(text: str) -> dict[str, Any]:
    """`key=value,key=value` as keywords."""
    parameters: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not (key and equals and value):
            raise InputError(f"parameters are key=value, with commas between them; found {part!r}")
        if key in parameters:
            raise InputError(f"{key} is given twice")
        parameters[key] = _parameter(value)
    return parameters


def _parameter(text: str) -> Any:
    """A whole number (also as `1e5`), a number, true or false; anything else is a string."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for read in (whole_number, number):
        with contextlib.suppress(ValueError):
            return read(text)
    return text


def check_sweep(folder: str) -> None:
    """Refuse a folder that holds sweeps instead of being one, and name them."""
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise InputError(f"{folder} is a file; name the folder of a sweep or of a training run")
    if not path.is_dir() or any((path / name).exists() for name in ("sweep.json", "run.json", "halving.json")):
        return  # what is wrong with these, the store says
    if inside := sorted(str(file.parent) for file in path.glob("*/sweep.json")):
        raise InputError(f"{folder} is no sweep, but holds {len(inside)}; name one of them: {', '.join(inside)}")


def read_values(text: str, mdp: FiniteMDP) -> tuple[Form, Array]:
    """The value function that a word stands for, as "v" of shape (S,) or "q" of shape (S, A).

    Args:
        text: the path of a file that `ipe.mdp_files.load_values` reads; numbers, `18,-6` for state values or
            `16.3,17; 20,15.3` with a row per state for action values; or `-`, standard input, which holds what a
            file would.
        mdp: the MDP that they are values of.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> read_values("18,-6", switch_stay())
        ('v', array([18., -6.]))
    """
    from ipe.checks import check_q, check_v

    if text != "-" and (numbers := _numbers(text, "--values")) is not None:
        if ";" in text:
            return "q", check_q(mdp, numbers, "--values")
        return "v", check_v(mdp, numbers[0], "--values")
    return _load(text, mdp, "--values")


def read_weights(text: str, mdp: FiniteMDP, form: Form) -> Array | None:
    """The weights of a norm, in the same forms as the values: one per state for v, one per pair for q."""
    from ipe.checks import check_weights

    if text != "-" and (numbers := _numbers(text, "--weights")) is not None:
        return check_weights(mdp, numbers if ";" in text else numbers[0], form, "--weights")
    return check_weights(mdp, _load(text, mdp, "--weights")[1], form, "--weights")


def _load(text: str, mdp: FiniteMDP, option: str) -> tuple[Form, Array]:
    from ipe.mdp_files import load_values

    if text == "-":
        return _from_stdin(mdp, option)
    return load_values(text, mdp)


def _from_stdin(mdp: FiniteMDP, option: str) -> tuple[Form, Array]:
    """Standard input as the file that its first bytes say it is."""
    from ipe.mdp_files import load_values

    with refusing(f"{option}: standard input cannot be read"):
        content = b"" if sys.stdin is None else sys.stdin.buffer.read()
    begins = content.lstrip()[:6]
    suffix = ".csv"
    for magic, kind in ((b"[", ".json"), (b"{", ".json"), (b"\x93NUMPY", ".npy"), (b"PK", ".npz")):
        if begins.startswith(magic):
            suffix = kind
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, f"values{suffix}")
        Path(file).write_bytes(content)
        try:
            return load_values(file, mdp)
        except InputError as error:
            raise InputError(str(error).replace(file, f"{option} from standard input")) from None


def _numbers(text: str, option: str) -> list[list[float]] | None:
    """Numbers between commas, rows between semicolons; None if the word is the name of a file."""
    if Path(text).suffix.lower() in _VALUE_FILES:
        return None
    rows = text.split(";")
    if len(rows) > 1 and not rows[-1].strip():
        del rows[-1]  # "1,2;" is one row
    table: list[list[float]] = []
    for row in rows:
        table.append([])
        for cell in row.split(","):
            try:
                table[-1].append(number(cell))
            except ValueError:
                if os.path.exists(text):
                    return None
                raise InputError(f"{option}: there is no file {text!r}, and {cell!r} is not a number") from None
        if len(table[-1]) != len(table[0]):
            raise InputError(f"{option}: row {len(table) - 1} has {len(table[-1])} numbers, row 0 has {len(table[0])}")
    return table
