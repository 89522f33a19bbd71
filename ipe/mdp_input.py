r"""Checks of the arrays that make an MDP, and the one form into which every input is brought.

Users may give :math:`P(s'|s,a)` as a dense array (S, A, S), as one sparse matrix (S A, S), or as one sparse matrix per
action. Inside there is one form: a CSR matrix of shape (S A, S) whose row `s * A + a` belongs to the pair (s, a), with
empty rows for pairs that are not allowed. Each function here returns new arrays, or raises an `InputError` that names
the (state, action) and the amount.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from ipe.base.arrays import Array, Mask, array_like, numeric, refuse_where
from ipe.base.numbers import finite_number
from ipe.errors import InputError

ROW_SUM_TOLERANCE = 1e-8


def check_gamma(gamma: float) -> float:
    """A discount in [0, 1)."""
    return finite_number(gamma, "gamma", 0, 1, below=True)


def as_rows(transitions: Any) -> sparse.csr_array:
    """The transitions as a new CSR matrix of shape (S * A, S), without duplicates or explicit zeros."""
    if sparse.issparse(transitions):
        return _sparse_rows(transitions, "transitions")
    if isinstance(transitions, (list, tuple)) and transitions and all(map(sparse.issparse, transitions)):
        return _interleave(transitions)
    dense = numeric(transitions, "transitions")
    if dense.ndim != 3 or dense.shape[0] != dense.shape[2] or 0 in dense.shape:
        raise InputError(
            f"transitions must have shape (states, actions, states), or be sparse with shape "
            f"(states * actions, states); found {_shape(dense)}"
        )
    return sparse.csr_array(dense.reshape(-1, dense.shape[2]))


def _sparse_rows(matrix: Any, name: str) -> sparse.csr_array:
    n_rows, n_states = matrix.shape if matrix.ndim == 2 else (1, 0)
    if n_states == 0 or n_rows == 0 or n_rows % n_states:
        raise InputError(
            f"{name}, sparse, must have shape (states * actions, states), with a whole number of "
            f"actions; found {_shape(matrix)}"
        )
    if matrix.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers, found dtype {matrix.dtype}")
    if matrix.format != "csr" or (matrix.data < 0).any():
        matrix = _keep_negatives(sparse.coo_array(matrix, copy=True).astype(np.float64))
    return _tidy(_csr(matrix, name))


def _keep_negatives(entries: sparse.coo_array) -> sparse.coo_array:
    """Keep negative entries through the summing of duplicates: 1.5 and -0.5 sum to 1 and are no probabilities."""
    negative = entries.data < 0
    if negative.any():
        places = entries.coords[0].astype(np.int64) * entries.shape[1] + entries.coords[1]
        entries.data[np.isin(places, places[negative]) & (entries.data > 0)] = 0.0
    return entries


def _csr(matrix: Any, name: str) -> sparse.csr_array:
    """A float64 copy with checked indices: scipy reads past the ends of its arrays where an index is wrong."""
    rows = sparse.csr_array(matrix, dtype=np.float64, copy=True)
    try:
        rows.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"{name} is not a valid sparse matrix: {error}") from None
    return rows


def _tidy(rows: sparse.csr_array) -> sparse.csr_array:
    """Sort the indices, sum duplicates, drop explicit zeros, and use 32-bit indices where they fit."""
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if max(rows.nnz, *rows.shape) < np.iinfo(np.int32).max:
        rows.indices = rows.indices.astype(np.int32, copy=False)
        rows.indptr = rows.indptr.astype(np.int32, copy=False)
    return rows


def _interleave(matrices: Sequence[Any]) -> sparse.csr_array:
    """Bring one (S, S) matrix per action into rows `s * A + a`."""
    n_states = matrices[0].shape[0]
    for a, matrix in enumerate(matrices):
        if matrix.shape != (n_states, n_states) or n_states == 0:
            raise InputError(
                f"transitions[{a}] must have the shape (states, states) of the others, "
                f"({n_states}, {n_states}); found {_shape(matrix)}"
            )
    n_actions = len(matrices)
    stacked = sparse.vstack([sparse.csr_array(m) for m in matrices], format="csr")
    order = np.arange(n_actions * n_states).reshape(n_actions, n_states).T.ravel()
    return _sparse_rows(sparse.csr_array(stacked[order]), "transitions")


def _shape(array: Any) -> str:
    return f"shape {tuple(int(n) for n in array.shape)}"


def terminal_mask(terminal: ArrayLike | None, n_states: int) -> Mask:
    """The terminal states, given as a mask or as indices."""
    if terminal is None:
        return np.zeros(n_states, dtype=bool)
    given = array_like(terminal, "terminal")
    if given.dtype == bool:
        if given.shape != (n_states,):
            raise InputError(f"terminal, a mask, must have shape ({n_states},); found {_shape(given)}")
        return given.copy()
    mask = np.zeros(n_states, dtype=bool)
    if given.size == 0:
        return mask
    if given.dtype.kind not in "iu" or given.ndim != 1:
        raise InputError("terminal must be a boolean mask or a list of state indices")
    outside = (given < 0) | (given >= n_states)
    if outside.any():
        raise InputError(f"terminal names state {given[outside][0]}, but states run from 0 to {n_states - 1}")
    mask[given] = True
    return mask


def allowed_mask(allowed: ArrayLike | None, terminal: Mask, n_actions: int) -> Mask:
    """The allowed pairs: by default all, and none in terminal states."""
    n_states = terminal.shape[0]
    if allowed is None:
        return np.repeat(~terminal[:, None], n_actions, axis=1)
    given = array_like(allowed, "allowed")
    if given.dtype != bool or given.shape != (n_states, n_actions):
        raise InputError(
            f"allowed must be boolean with shape ({n_states}, {n_actions}); found {given.dtype}, {_shape(given)}"
        )
    mask = given & ~terminal[:, None]
    stuck = ~mask.any(axis=1) & ~terminal
    if stuck.any():
        raise InputError(
            f"allowed: every state that is not terminal needs at least one action; "
            f"violated for state {int(np.argmax(stuck))}"
        )
    return mask


def check_terminal_rows(rows: sparse.csr_array, terminal: Mask, n_actions: int) -> None:
    """Refuse a terminal state with a row that leads to another state."""
    if not terminal.any():
        return
    sources = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    states = sources // n_actions
    leaving = terminal[states] & (rows.indices != states)
    if leaving.any():
        at = int(np.argmax(leaving))
        raise InputError(
            f"state {states[at]} is terminal, but transitions[{states[at]}, {sources[at] % n_actions}] "
            f"leads to state {rows.indices[at]} with probability {rows.data[at]:g}"
        )


def keep_rows(rows: sparse.csr_array, keep: Mask) -> sparse.csr_array:
    """The matrix with every row emptied that is not kept."""
    if keep.all():
        return rows
    counts = np.diff(rows.indptr)
    entries = np.repeat(keep, counts)
    indptr = np.concatenate([[0], np.cumsum(np.where(keep, counts, 0))]).astype(rows.indptr.dtype)
    return sparse.csr_array((rows.data[entries], rows.indices[entries], indptr), shape=rows.shape)


def check_probabilities(rows: sparse.csr_array, allowed: Mask, tolerance: float) -> None:
    """Refuse entries that are no probabilities, and rows of allowed pairs that do not sum to one."""
    n_actions = allowed.shape[1]
    for wrong, what in ((~np.isfinite(rows.data), "not a finite number"), (rows.data < 0, "negative")):
        if wrong.any():
            at = int(np.argmax(wrong))
            row = int(np.searchsorted(rows.indptr, at, side="right")) - 1
            raise InputError(
                f"transitions[{row // n_actions}, {row % n_actions}, {rows.indices[at]}] = {rows.data[at]:g} is {what}"
            )
    sums = rows @ np.ones(rows.shape[1])
    off = np.where(allowed.ravel(), sums - 1.0, 0.0)
    wrong = np.abs(off) > tolerance
    if wrong.any():
        row = int(np.argmax(wrong))
        count = int(wrong.sum())
        raise InputError(
            f"transitions[{row // n_actions}, {row % n_actions}] sum to {sums[row]:.12g}, not to 1 "
            f"(off by {off[row]:.3g}); {count} row{'s are' if count > 1 else ' is'} wrong"
        )


def check_rewards(rewards: Any, rows: sparse.csr_array, allowed: Mask, terminal: Mask) -> tuple[Array, Array | None]:
    """Expected rewards of shape (S, A), 0 where not allowed, and the rewards per transition if given."""
    n_states, n_actions = allowed.shape
    if sparse.issparse(rewards):
        if rewards.shape != rows.shape:
            raise InputError(f"rewards, sparse, must have shape {rows.shape}; found {_shape(rewards)}")
        if rewards.dtype.kind not in "fiub":
            raise InputError(f"rewards must hold real numbers, found dtype {rewards.dtype}")
        return _per_transition(_csr(rewards, "rewards"), rows, allowed, terminal)
    dense = numeric(rewards, "rewards")
    if dense.shape == (n_states, n_actions, n_states):
        return _per_transition(dense.reshape(-1, n_states), rows, allowed, terminal)
    if dense.shape != (n_states, n_actions):
        raise InputError(
            f"rewards must have shape ({n_states}, {n_actions}) or ({n_states}, {n_actions}, {n_states}); "
            f"found {_shape(dense)}"
        )
    wrong = terminal[:, None] & (dense != 0)
    if wrong.any():
        s, a = np.argwhere(wrong)[0]
        raise InputError(f"state {s} is terminal, but rewards[{s}, {a}] = {dense[s, a]:g} is not 0")
    refuse_where(~np.isfinite(dense) & allowed, dense, "rewards", "not a finite number")
    return np.where(allowed, dense, 0.0), None


def _per_transition(table: Any, rows: sparse.csr_array, allowed: Mask, terminal: Mask) -> tuple[Array, Array]:
    n_states, n_actions = allowed.shape
    if terminal.any():
        pairs = np.flatnonzero(np.repeat(terminal, n_actions))
        block = table[pairs]
        at, next_states = block.nonzero()
        if at.size:
            s, a = divmod(int(pairs[at[0]]), n_actions)
            value, following = block[at[0], next_states[0]], next_states[0]
            raise InputError(f"state {s} is terminal, but rewards[{s}, {a}, {following}] = {value:g} is not 0")
    sources = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    picked = table[sources, rows.indices]
    values = np.asarray(picked.toarray() if sparse.issparse(picked) else picked, dtype=np.float64).ravel()
    wrong = ~np.isfinite(values)
    if wrong.any():
        at = int(np.argmax(wrong))
        s, a = divmod(int(sources[at]), n_actions)
        raise InputError(f"rewards[{s}, {a}, {rows.indices[at]}] = {values[at]:g} is not a finite number")
    weighted = sparse.csr_array((rows.data * values, rows.indices, rows.indptr), shape=rows.shape)
    expected = (weighted @ np.ones(n_states)).reshape(n_states, n_actions)
    values.flags.writeable = False
    return expected, values


def start_distribution(start: ArrayLike | None, terminal: Mask) -> Array | None:
    """The start distribution, from one state or from a distribution over states that are not terminal."""
    if start is None:
        return None
    n_states = terminal.shape[0]
    given = array_like(start, "start")
    if given.ndim == 0 and given.dtype.kind in "iu":
        if not 0 <= int(given) < n_states:
            raise InputError(f"start names state {int(given)}, but states run from 0 to {n_states - 1}")
        distribution = np.zeros(n_states)
        distribution[int(given)] = 1.0
    else:
        distribution = numeric(start, "start")
        if distribution.shape != (n_states,):
            raise InputError(f"start must be a state or have shape ({n_states},); found {_shape(distribution)}")
        refuse_where(~(np.isfinite(distribution) & (distribution >= 0)), distribution, "start", "not a probability")
        if abs(distribution.sum() - 1) > ROW_SUM_TOLERANCE:
            raise InputError(f"start sums to {distribution.sum():.12g}, not to 1")
    ended = terminal & (distribution > 0)
    if ended.any():
        raise InputError(f"start gives probability to state {int(np.argmax(ended))}, which is terminal")
    distribution.flags.writeable = False
    return distribution


def check_names(names: Sequence[str] | None, count: int, field: str) -> tuple[str, ...]:
    """The given names as a tuple; an empty one if none are given, since default names would only cost memory."""
    if names is None:
        return ()
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise InputError(f"{field} must be {count} strings; found {names!r}")
    given = tuple(names)
    if len(given) != count:
        raise InputError(f"{field} must be {count} strings; found {len(given)}")
    for i, name in enumerate(given):
        if not isinstance(name, str):
            raise InputError(f"{field}[{i}] must be a string; found {name!r}")
    if len(set(given)) != count:
        twice, _ = Counter(given).most_common(1)[0]
        raise InputError(f"{field} holds {twice!r} twice")
    return given
