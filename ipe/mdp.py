r"""Finite Markov decision processes.

A `FiniteMDP` is states :math:`s \in \{0, \dots, S-1\}`, for each the actions
:math:`\mathcal{A}(s) \subseteq \{0, \dots, A-1\}` that are allowed there, probabilities
:math:`P(s'|s,a)`, expected rewards :math:`r(s,a)` and a discount :math:`\gamma \in [0, 1)`.
A terminal state has no actions and the value 0.

Whatever form the arrays come in, there is one representation inside: a sparse matrix with the row
`s * A + a` for the pair (s, a), empty where the pair does not exist. Nothing is repaired: a row that
does not sum to one, a negative entry, a NaN is refused by the name of its (state, action).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ipe.errors import InputError

Array: TypeAlias = NDArray[np.float64]
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]

ROW_SUM_TOLERANCE = 1e-8


@dataclass(frozen=True, init=False, eq=False, repr=False)
class FiniteMDP:
    r"""A finite MDP :math:`(P, r, \gamma)` with action sets and terminal states.

    Args:
        transitions: :math:`P(s'|s,a)`, as one of

            - a dense array of shape (S, A, S);
            - a sparse matrix of shape (S * A, S) whose row `s * A + a` is :math:`P(\cdot|s,a)`;
            - a sequence of A sparse matrices of shape (S, S), one per action.
        rewards: :math:`r(s,a)` of shape (S, A); or rewards that depend on the next state,
            :math:`r(s,a,s')`, dense of shape (S, A, S) or sparse of shape (S * A, S). Planning uses their
            expectation, simulation the rewards themselves.
        gamma: the discount, in [0, 1).
        allowed: boolean, shape (S, A): the action sets :math:`\mathcal{A}(s)`. Default: every action in
            every state that is not terminal. Rows of actions that are not allowed are not part of the
            model and are not looked at.
        terminal: the terminal states, as a boolean mask of length S or as indices. Their rows must be
            empty, or stay in place with reward 0.
        start: the state in which episodes start, or a distribution over states, or None.
        state_names, action_names: for printing and drawing.
        tolerance: how far the sum of a row may be from one.

    Example:
        >>> import numpy as np
        >>> stay, switch = np.eye(2), np.eye(2)[::-1]
        >>> mdp = FiniteMDP(np.stack([stay, switch], axis=1), [[1.0, -1.0], [2.0, 0.0]], gamma=0.9)
        >>> mdp
        FiniteMDP(2 states, 2 actions, gamma=0.9, deterministic)
        >>> FiniteMDP(np.stack([stay, 0.9 * switch], axis=1), [[1.0, -1.0], [2.0, 0.0]], gamma=0.9)
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: transitions[0, 1] sum to 0.9, not to 1 (off by -0.1); 2 rows are wrong
    """

    transitions: sparse.csr_array
    rewards: Array
    gamma: float
    allowed: Mask
    terminal: Mask
    start: Array | None
    transition_rewards: Array | None
    """:math:`r(s,a,s')`, aligned with `transitions.data`, when the rewards depend on the next state."""
    state_names: tuple[str, ...]
    action_names: tuple[str, ...]

    def __init__(
        self,
        transitions: Any,
        rewards: Any,
        gamma: float,
        *,
        allowed: ArrayLike | None = None,
        terminal: ArrayLike | None = None,
        start: ArrayLike | None = None,
        state_names: Sequence[str] | None = None,
        action_names: Sequence[str] | None = None,
        tolerance: float = ROW_SUM_TOLERANCE,
    ) -> None:
        rows = _as_rows(transitions)
        n_states = rows.shape[1]
        n_actions = rows.shape[0] // n_states
        terminal_mask = _terminal_mask(terminal, n_states)
        allowed_mask = _allowed_mask(allowed, terminal_mask, n_actions)
        _check_terminal_rows(rows, terminal_mask, n_actions)

        rows = _keep_rows(rows, allowed_mask.ravel())
        _check_probabilities(rows, allowed_mask, _tolerance(tolerance))
        expected, per_transition = _rewards(rewards, rows, allowed_mask, terminal_mask)

        for array in (rows.data, rows.indices, rows.indptr, expected, allowed_mask, terminal_mask):
            array.flags.writeable = False
        fields = {
            "transitions": rows,
            "rewards": expected,
            "gamma": _gamma(gamma),
            "allowed": allowed_mask,
            "terminal": terminal_mask,
            "start": _start(start, terminal_mask),
            "transition_rewards": per_transition,
            "state_names": _names(state_names, n_states, "state_names"),
            "action_names": _names(action_names, n_actions, "action_names"),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def n_states(self) -> int:
        """The number of states S, terminal ones included."""
        return int(self.rewards.shape[0])

    @property
    def n_actions(self) -> int:
        """The number of actions A, the union over all states."""
        return int(self.rewards.shape[1])

    @property
    def all_allowed(self) -> bool:
        """Whether every action is allowed in every state (then there is no terminal state either)."""
        return bool(self.allowed.all())

    @property
    def is_deterministic(self) -> bool:
        """Whether every allowed pair (s, a) has exactly one successor."""
        counts = np.diff(self.transitions.indptr)
        return bool((counts[self.allowed.ravel()] == 1).all())

    def state_name(self, state: int) -> str:
        """The name of a state: the one given, or `s3` for state 3."""
        return self.state_names[state] if self.state_names else f"s{state}"

    def action_name(self, action: int) -> str:
        """The name of an action: the one given, or `a3` for action 3."""
        return self.action_names[action] if self.action_names else f"a{action}"

    def with_gamma(self, gamma: float) -> FiniteMDP:
        """The same MDP with another discount; it shares the arrays."""
        twin = object.__new__(FiniteMDP)
        for name in self.__dataclass_fields__:
            object.__setattr__(twin, name, getattr(self, name))
        object.__setattr__(twin, "gamma", _gamma(gamma))
        return twin

    def __repr__(self) -> str:
        parts = [f"{self.n_states} states", f"{self.n_actions} actions", f"gamma={self.gamma:g}"]
        if n_terminal := int(self.terminal.sum()):
            parts.append(f"{n_terminal} terminal")
        live = ~self.terminal
        if not self.allowed[live].all():
            parts.append(f"{int(self.allowed.sum())} of {int(live.sum()) * self.n_actions} pairs allowed")
        parts.append("deterministic" if self.is_deterministic else "stochastic")
        return f"FiniteMDP({', '.join(parts)})"


def numeric(array: Any, name: str) -> Array:
    """`array` as float64, or an `InputError` that names it."""
    out = _array(array, name, of=" of numbers")
    if out.dtype.kind not in "fiub":
        raise InputError(f"{name} must hold real numbers, found dtype {out.dtype}")
    return out.astype(np.float64)


def _array(array: Any, name: str, of: str = "") -> NDArray[Any]:
    try:
        return np.asarray(array)
    except ValueError as error:  # ragged lists
        raise InputError(f"{name} is not an array{of}: {error}") from None


def _gamma(gamma: float) -> float:
    if isinstance(gamma, bool) or not isinstance(gamma, (int, float, np.integer, np.floating)):
        raise InputError(f"gamma must be a number in [0, 1), found {gamma!r}")
    value = float(gamma)
    if not 0.0 <= value < 1.0:
        raise InputError(f"gamma must lie in [0, 1), found {value!r}")
    return value


def _tolerance(tolerance: float) -> float:
    number = isinstance(tolerance, (int, float, np.integer, np.floating)) and not isinstance(tolerance, bool)
    if not number or not 0.0 <= tolerance < np.inf:  # NaN would let every row pass
        raise InputError(f"tolerance must be a finite number >= 0, found {tolerance!r}")
    return float(tolerance)


def _as_rows(transitions: Any) -> sparse.csr_array:
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
    """A negative entry must survive the summing of duplicates: 1.5 and -0.5 are not a probability."""
    negative = entries.data < 0
    if negative.any():
        places = entries.coords[0].astype(np.int64) * entries.shape[1] + entries.coords[1]
        entries.data[np.isin(places, places[negative]) & (entries.data > 0)] = 0.0
    return entries


def _csr(matrix: Any, name: str) -> sparse.csr_array:
    """A copy with float64 entries whose indices are inside the matrix: scipy reads past its arrays where not."""
    rows = sparse.csr_array(matrix, copy=True).astype(np.float64)
    try:
        rows.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"{name} is not a valid sparse matrix: {error}") from None
    return rows


def _tidy(rows: sparse.csr_array) -> sparse.csr_array:
    """Indices sorted, no duplicates and no explicit zeros, 32-bit indices where they fit."""
    rows.sum_duplicates()
    rows.eliminate_zeros()
    if max(rows.nnz, *rows.shape) < np.iinfo(np.int32).max:
        rows.indices = rows.indices.astype(np.int32, copy=False)
        rows.indptr = rows.indptr.astype(np.int32, copy=False)
    return rows


def _interleave(matrices: Sequence[Any]) -> sparse.csr_array:
    """One (S, S) matrix per action, as rows `s * A + a`."""
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


def _terminal_mask(terminal: ArrayLike | None, n_states: int) -> Mask:
    if terminal is None:
        return np.zeros(n_states, dtype=bool)
    given = _array(terminal, "terminal")
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


def _allowed_mask(allowed: ArrayLike | None, terminal: Mask, n_actions: int) -> Mask:
    n_states = terminal.shape[0]
    if allowed is None:
        return np.repeat(~terminal[:, None], n_actions, axis=1)
    given = _array(allowed, "allowed")
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


def _check_terminal_rows(rows: sparse.csr_array, terminal: Mask, n_actions: int) -> None:
    """A terminal state's rows are empty or stay in place: anything else contradicts the word."""
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


def _keep_rows(rows: sparse.csr_array, keep: Mask) -> sparse.csr_array:
    if keep.all():
        return rows
    counts = np.diff(rows.indptr)
    entries = np.repeat(keep, counts)
    indptr = np.concatenate([[0], np.cumsum(np.where(keep, counts, 0))]).astype(rows.indptr.dtype)
    return sparse.csr_array((rows.data[entries], rows.indices[entries], indptr), shape=rows.shape)


def _check_probabilities(rows: sparse.csr_array, allowed: Mask, tolerance: float) -> None:
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


def _rewards(rewards: Any, rows: sparse.csr_array, allowed: Mask, terminal: Mask) -> tuple[Array, Array | None]:
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
    _check_terminal_rewards(dense, terminal)
    wrong = ~np.isfinite(dense) & allowed
    if wrong.any():
        s, a = np.argwhere(wrong)[0]
        raise InputError(f"rewards[{s}, {a}] = {dense[s, a]:g} is not a finite number")
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


def _check_terminal_rewards(rewards: Array, terminal: Mask) -> None:
    wrong = terminal[:, None] & (rewards != 0)
    if wrong.any():
        s, a = np.argwhere(wrong)[0]
        raise InputError(f"state {s} is terminal, but rewards[{s}, {a}] = {rewards[s, a]:g} is not 0")


def _start(start: ArrayLike | None, terminal: Mask) -> Array | None:
    if start is None:
        return None
    n_states = terminal.shape[0]
    given = _array(start, "start")
    if given.ndim == 0 and given.dtype.kind in "iu":
        if not 0 <= int(given) < n_states:
            raise InputError(f"start names state {int(given)}, but states run from 0 to {n_states - 1}")
        distribution = np.zeros(n_states)
        distribution[int(given)] = 1.0
    else:
        distribution = numeric(start, "start")
        if distribution.shape != (n_states,):
            raise InputError(f"start must be a state or have shape ({n_states},); found {_shape(distribution)}")
        wrong = ~(np.isfinite(distribution) & (distribution >= 0))
        if wrong.any():
            s = int(np.argmax(wrong))
            raise InputError(f"start[{s}] = {distribution[s]:g} is not a probability")
        if abs(distribution.sum() - 1) > ROW_SUM_TOLERANCE:
            raise InputError(f"start sums to {distribution.sum():.12g}, not to 1")
    ended = terminal & (distribution > 0)
    if ended.any():
        raise InputError(f"start gives probability to state {int(np.argmax(ended))}, which is terminal")
    distribution.flags.writeable = False
    return distribution


def _names(names: Sequence[str] | None, count: int, field: str) -> tuple[str, ...]:
    """The names given, or none: a million default names would only cost memory."""
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
