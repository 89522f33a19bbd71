"""Finite MDPs to and from .npz files (any size) and .json files (made to be written by hand)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ipe.base.atomic import write_atomic
from ipe.base.files import PathLike, check_keys, naming, read_json, read_npz, suffix_of
from ipe.errors import InputError
from ipe.mdp import ROW_SUM_TOLERANCE, FiniteMDP
from ipe.mdp_files.json_form import FORMAT, VERSION, check_pairs, dump, parse

_SUFFIXES = (".npz", ".json")
_REQUIRED = ("format", "version", "data", "indices", "indptr", "rewards", "gamma", "allowed", "terminal")
_OPTIONAL = ("start", "transition_rewards", "state_names", "action_names")

# The kinds of numpy dtypes, and the number of dimensions, of each array in an .npz file.
_KINDS = {
    "data": ("f", 1),
    "indices": ("iu", 1),
    "indptr": ("iu", 1),
    "rewards": ("f", 2),
    "gamma": ("f", 0),
    "allowed": ("b", 2),
    "terminal": ("b", 1),
    "start": ("f", 1),
    "transition_rewards": ("f", 1),
    "state_names": ("U", 1),
    "action_names": ("U", 1),
}
_KIND_NAMES = {"f": "floats", "iu": "whole numbers", "b": "booleans", "U": "strings"}


def save_mdp(mdp: FiniteMDP, path: PathLike) -> None:
    """Write an MDP to a file; `load_mdp` gives it back exact to the bit.

    The file appears whole or not at all, also when the power fails.

    Args:
        mdp: the MDP.
        path: ends in `.npz` (compact, any size) or `.json` (readable, for small ones).
    """
    with naming(path):
        suffix = suffix_of(path, _SUFFIXES)
        arrays = _arrays(mdp) if suffix == ".npz" else {}
        if suffix == ".json":
            check_pairs(mdp.n_states, mdp.n_actions)
    if suffix == ".npz":
        write_atomic(path, lambda file: np.savez(file, **arrays))
    else:
        write_atomic(path, lambda file: file.writelines(line.encode() for line in dump(mdp)))


def load_mdp(path: PathLike, *, tolerance: float = ROW_SUM_TOLERANCE) -> FiniteMDP:
    """Read an MDP from a `.npz` or `.json` file (`docs/formats.md` describes both).

    The content is validated as if it were given to `FiniteMDP`. Nothing is repaired and nothing is unpickled.

    Args:
        path: the file.
        tolerance: how far the sum of a row of probabilities may be from one.

    Raises:
        InputError: in one sentence that names the file and the field.
    """
    with naming(path):
        if suffix_of(path, _SUFFIXES) == ".json":
            return parse(read_json(path), tolerance)
        return _from_arrays(read_npz(path), tolerance)


def _arrays(mdp: FiniteMDP) -> dict[str, Any]:
    out: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "data": mdp.transitions.data,
        "indices": mdp.transitions.indices,
        "indptr": mdp.transitions.indptr,
        "rewards": mdp.rewards,
        "gamma": np.float64(mdp.gamma),
        "allowed": mdp.allowed,
        "terminal": mdp.terminal,
    }
    if mdp.start is not None:
        out["start"] = mdp.start
    if mdp.transition_rewards is not None:
        out["transition_rewards"] = mdp.transition_rewards
    for field in ("state_names", "action_names"):
        names = getattr(mdp, field)
        for i, name in enumerate(names):
            if name.endswith("\0"):  # numpy pads strings with NUL, and would take it for padding
                raise InputError(f"{field}[{i}] ends in a NUL character, which .npz cannot hold; .json can")
        if names:
            out[field] = np.array(names)
    return out


def _from_arrays(arrays: dict[str, NDArray[Any]], tolerance: float) -> FiniteMDP:
    check_keys(arrays, _REQUIRED, _OPTIONAL)
    _check_format(arrays)
    for name, (kinds, dimensions) in _KINDS.items():
        if (array := arrays.get(name)) is not None and (array.dtype.kind not in kinds or array.ndim != dimensions):
            wanted = f"{name} must hold {_KIND_NAMES[kinds]} in {dimensions} dimensions"
            raise InputError(f"{wanted}; found dtype {array.dtype} in {array.ndim}")
    n_states, n_actions = arrays["rewards"].shape
    shape = (n_states * n_actions, n_states)
    _check_rows(arrays, shape)
    structure = (arrays["indices"], arrays["indptr"])
    per_transition = arrays.get("transition_rewards")
    if per_transition is not None:
        rewards: Any = sparse.csr_array((per_transition, *structure), shape=shape)
    else:
        rewards = arrays["rewards"]
    mdp = FiniteMDP(
        sparse.csr_array((arrays["data"], *structure), shape=shape),
        rewards,
        float(arrays["gamma"]),
        allowed=arrays["allowed"],
        terminal=arrays["terminal"],
        start=arrays.get("start"),
        state_names=_names(arrays, "state_names"),
        action_names=_names(arrays, "action_names"),
        tolerance=tolerance,
    )
    if per_transition is not None:
        _check_expected(mdp, arrays["rewards"])
    return mdp


def _check_format(arrays: dict[str, NDArray[Any]]) -> None:
    form, version = arrays["format"], arrays["version"]
    if form.shape != () or str(form) != FORMAT:
        raise InputError(f"format must be {FORMAT!r}, found {str(form)!r}")
    if version.shape != () or version.dtype.kind not in "iu" or int(version) != VERSION:
        raise InputError(f"version must be {VERSION}, the one that this ipe reads; found {version}")


def _check_rows(arrays: dict[str, NDArray[Any]], shape: tuple[int, int]) -> None:
    """Refuse data, indices and indptr that are not the rows of a matrix of this shape, or that repeat an entry."""
    data, indices, indptr = arrays["data"], arrays["indices"], arrays["indptr"]
    if indptr.size != shape[0] + 1:
        raise InputError(f"indptr must have {shape[0] + 1} entries, one per pair (s, a) and one; found {indptr.size}")
    for name in ("indices", "transition_rewards"):
        if name in arrays and arrays[name].size != data.size:
            raise InputError(f"{name} must have the {data.size} entries of data; found {arrays[name].size}")
    bounds = indptr.astype(np.int64)
    counts = bounds[1:] - bounds[:-1]
    if indptr[0] != 0 or indptr[-1] != data.size or (counts < 0).any():
        raise InputError(f"indptr must rise from 0 to {data.size}, the entries of data")
    outside = (indices < 0) | (indices >= shape[1])
    if outside.any():
        at = int(np.argmax(outside))
        raise InputError(f"indices[{at}] = {indices[at]} is no state; states run from 0 to {shape[1] - 1}")
    places = np.sort(np.repeat(np.arange(shape[0]), counts) * shape[1] + indices.astype(np.int64))
    twice = places[1:] == places[:-1]
    if twice.any():
        row, state = divmod(int(places[1:][twice][0]), shape[1])
        raise InputError(f"indices hold the next state {state} twice in row {row}")


def _names(arrays: dict[str, NDArray[Any]], field: str) -> list[str] | None:
    return [str(name) for name in arrays[field]] if field in arrays else None


def _check_expected(mdp: FiniteMDP, rewards: NDArray[np.float64]) -> None:
    """Refuse expected rewards r(s,a) that do not agree with the rewards r(s,a,s') beside them in the file."""
    scale = 1.0 + np.abs(mdp.rewards).max(initial=0.0)
    wrong = ~(np.abs(rewards - mdp.rewards) <= 1e-8 * scale)
    if wrong.any():
        s, a = np.argwhere(wrong)[0]
        raise InputError(
            f"rewards[{s}, {a}] = {rewards[s, a]:g} is not the expectation {mdp.rewards[s, a]:g} of transition_rewards"
        )
