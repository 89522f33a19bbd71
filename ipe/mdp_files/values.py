"""Value functions to and from files: .npy, .npz, .json, .csv and .txt."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array, numeric
from ipe.base.atomic import write_atomic
from ipe.base.files import PathLike, naming, read_bytes, read_json, read_npz, suffix_of
from ipe.base.words import short
from ipe.checks import Form, check_q, check_v
from ipe.errors import InputError
from ipe.mdp import FiniteMDP
from ipe.mdp_files.json_form import Labels, number

_SUFFIXES = (".npy", ".npz", ".json", ".csv", ".txt")


def load_values(path: PathLike, mdp: FiniteMDP) -> tuple[Form, Array]:
    """Read a value function of `mdp`: state values `v` of shape (S,), or action values `q` of shape (S, A).

    =============  ===========================================================================
    suffix         content
    =============  ===========================================================================
    .npy           an array of shape (S,) or (S, A)
    .npz           one array, named `v` or `q`
    .json          a list (v), a list of lists (q), `{state: value}`, `{state: {action: value}}`;
                   or one of these as `{"v": ...}` or `{"q": ...}`
    .csv, .txt     one number per line (v), or A numbers per line (q), between commas or blanks;
                   empty lines and lines that start with `#` are skipped
    =============  ===========================================================================

    Values of terminal states may be left out where states are named, and are 0. Action values of pairs
    that are not allowed may be left out, or be `null` in JSON and `nan` elsewhere.

    Returns:
        Which of the two forms it is, `"v"` or `"q"`, and the values as `check_v` or `check_q` give them.
    """
    with naming(path):
        suffix = suffix_of(path, _SUFFIXES)
        if suffix == ".json":
            form, values = _from_json(read_json(path), mdp)
        elif suffix == ".npz":
            form, values = _from_npz(read_npz(path))
        else:
            values = _from_npy(path) if suffix == ".npy" else _from_text(read_bytes(path))
            form = _form_of(values)
        return form, check_v(mdp, values) if form == "v" else check_q(mdp, values)


def save_values(values: Any, path: PathLike, mdp: FiniteMDP) -> None:
    """Write state values (S,) or action values (S, A) of `mdp` so that `load_values` gives them back exactly.

    Pairs that are not allowed are written as `null` in JSON and as `nan` elsewhere.
    """
    with naming(path):
        suffix = suffix_of(path, _SUFFIXES)
        form = _form_of(numeric(values, "values"))
        if form == "v":
            array = check_v(mdp, values)
        else:
            array = np.where(mdp.allowed | mdp.terminal[:, None], check_q(mdp, values), np.nan)
        if form == "q" and mdp.n_actions == 1 and suffix in (".csv", ".txt"):
            raise InputError(f"q of one action would be read as v from {suffix}; use .json, .npy or .npz")
    write_atomic(path, lambda file: file.write(_encode(form, array, suffix)))


def _encode(form: Form, array: Array, suffix: str) -> bytes:
    if suffix == ".json":
        plain: Any = array.tolist()
        if form == "q":
            plain = [[None if value != value else value for value in row] for row in plain]
        return (json.dumps({form: plain}) + "\n").encode()
    if suffix in (".npy", ".npz"):
        buffer = io.BytesIO()
        if suffix == ".npy":
            np.save(buffer, array, allow_pickle=False)
        else:
            np.savez(buffer, **{form: array})  # type: ignore[arg-type]
        return buffer.getvalue()
    separator = "," if suffix == ".csv" else " "
    return "".join(separator.join(map(repr, row)) + "\n" for row in array.reshape(len(array), -1).tolist()).encode()


def _form_of(values: NDArray[Any]) -> Form:
    if values.ndim not in (1, 2):
        raise InputError(f"values must have the shape (states,) or (states, actions), found {values.shape}")
    return "v" if values.ndim == 1 else "q"


def _from_npz(arrays: dict[str, NDArray[Any]]) -> tuple[Form, NDArray[Any]]:
    forms: tuple[Form, ...] = ("v", "q")
    for form in forms:
        if list(arrays) == [form]:
            return form, arrays[form]
    raise InputError(f"must hold one array, named v or q; found {', '.join(arrays) or 'none'}")


def _from_npy(path: PathLike) -> NDArray[Any]:
    content = read_bytes(path)
    try:
        loaded = np.lib.format.read_array(io.BytesIO(content), allow_pickle=False)
    except Exception as error:  # numpy raises a dozen kinds for a damaged or foreign file
        raise InputError(f"not a readable .npy file, or a damaged one ({error})") from None
    return np.asarray(loaded)


def _from_text(content: bytes) -> Array:
    """Numbers in rows. One per line are state values, more are action values."""
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8 text: {error.reason} at byte {error.start}") from None
    rows: list[list[float]] = []
    for at, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = line.split(",") if "," in line else line.split()
        row = [_cell(cell.strip(), f"line {at}, column {i}") for i, cell in enumerate(cells, start=1)]
        if rows and len(row) != len(rows[0]):
            raise InputError(f"line {at} has {len(row)} numbers, the lines before it {len(rows[0])}")
        rows.append(row)
    if not rows:
        raise InputError("holds no numbers")
    table = np.array(rows)
    return table[:, 0] if table.shape[1] == 1 else table


def _cell(text: str, place: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{place}: {text!r} is not a number") from None


def _from_json(content: Any, mdp: FiniteMDP) -> tuple[Form, Array]:
    asked: Form | None = None
    if isinstance(content, dict) and len(content) == 1:
        key, inner = next(iter(content.items()))
        if key in ("v", "q") and isinstance(inner, (list, dict)) and not _is_row_of(key, inner, mdp):
            asked, content = ("v" if key == "v" else "q"), inner
    if not isinstance(content, (list, dict)) or not content:
        raise InputError(f"must hold a list or an object of values, found {short(content)}")
    entries = list(content.values() if isinstance(content, dict) else content)
    form: Form = "q" if any(isinstance(entry, (list, dict)) for entry in entries) else "v"
    if asked is not None and asked != form:
        raise InputError(
            f"{asked} must hold {'numbers' if asked == 'v' else 'lists or objects'}, found {short(content)}"
        )
    states = Labels("state", mdp.n_states, {name: s for s, name in enumerate(mdp.state_names)})
    if form == "v":
        return form, _row(content, states, "v", ~mdp.terminal)
    actions = Labels("action", mdp.n_actions, {name: a for a, name in enumerate(mdp.action_names)})
    return form, _table(content, states, actions, mdp)


def _is_row_of(key: str, inner: Any, mdp: FiniteMDP) -> bool:
    """Whether `{"q": {...}}` is one state called q with its actions, and not the form q."""
    return key in mdp.state_names and isinstance(inner, dict) and set(inner) <= set(mdp.action_names)


def _row(content: Any, labels: Labels, field: str, needed: NDArray[np.bool_]) -> Array:
    """Numbers in the order of the labels, from a list or by label. What is null or left out becomes NaN."""
    row = np.full(labels.count, np.nan)
    if isinstance(content, list):
        if len(content) != labels.count:
            raise InputError(f"{field} must have {labels.count} entries, one per {labels.kind}; found {len(content)}")
        items: list[tuple[Any, Any]] = list(enumerate(content))
    elif isinstance(content, dict):
        items = list(content.items())
    else:
        raise InputError(f"{field} must be a list or an object of numbers, found {short(content)}")
    seen = np.zeros(labels.count, dtype=bool)
    for label, value in items:
        at = labels.index(label, field)
        if seen[at]:
            raise InputError(f"{field} holds {labels.kind} {label!r} twice, under two names")
        seen[at] = True
        if value is not None or needed[at]:
            row[at] = number(value, f"{field}[{label!r}]")
    missing = needed & ~seen
    if missing.any():
        raise InputError(f"{field} has no value for {labels.kind} {_label(labels, int(np.argmax(missing)))}")
    return np.where(needed | ~np.isnan(row), row, 0.0) if labels.kind == "state" else row


def _table(content: Any, states: Labels, actions: Labels, mdp: FiniteMDP) -> Array:
    table = np.full((states.count, actions.count), np.nan)
    if isinstance(content, list) and len(content) != states.count:
        raise InputError(f"q must have {states.count} rows, one per state; found {len(content)}")
    items = enumerate(content) if isinstance(content, list) else content.items()
    seen = mdp.terminal.copy()
    for label, row in items:
        s = states.index(label, "q")
        table[s] = _row(row, actions, f"q[{label!r}]", mdp.allowed[s])
        seen[s] = True
    if not seen.all():
        raise InputError(f"q has no values for state {_label(states, int(np.argmin(seen)))}")
    return table


def _label(labels: Labels, at: int) -> str:
    return repr(list(labels.names)[at]) if labels.names else str(at)
