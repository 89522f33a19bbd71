r"""The forms in which other libraries hold a finite MDP: QuantEcon's `DiscreteDP` and pymdptoolbox's arrays.

- QuantEcon has R of shape (S, A), or a list of pairs with one reward each, and Q. A reward of minus infinity means that
  the action is not allowed. It has no terminal states: they become states that stay in place with reward 0.
- pymdptoolbox has P of shape (A, S, S), dense or one sparse matrix per action, and R of shape (S, A), (A, S, S) or
  (S,). It knows no action sets: every action is allowed everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array, Indices, Mask, array_like, numeric, refuse_where
from ipe.base.numbers import finite_number
from ipe.base.packages import missing_package
from ipe.errors import InputError


def arrays_from_quantecon(ddp: Any) -> dict[str, Any]:
    """The arguments of `FiniteMDP` that a QuantEcon `DiscreteDP` stands for."""
    for name in ("R", "Q", "beta"):
        if not hasattr(ddp, name):
            raise InputError(f"ddp must be a DiscreteDP of QuantEcon, found {type(ddp).__name__} without {name}")
    R, Q, gamma = numeric(ddp.R, "R"), ddp.Q, finite_number(ddp.beta, "beta")
    s, a = getattr(ddp, "s_indices", None), getattr(ddp, "a_indices", None)
    if s is None or a is None:
        allowed = ~np.isneginf(R)
        return {"transitions": Q, "rewards": np.where(allowed, R, 0.0), "gamma": gamma, "allowed": allowed}
    n_states = int(Q.shape[1])
    s, a = (_pair_indices(x, name, len(R)) for x, name in ((s, "s_indices"), (a, "a_indices")))
    n_actions = int(a.max(initial=0)) + 1
    refuse_where(s >= n_states, s, "s_indices", f"not a state: there are {n_states}")
    if R.shape != Q.shape[:1]:
        raise InputError(f"Q must have one row for each of the {len(R)} pairs of R; found shape {tuple(Q.shape)}")
    allowed, rewards = np.zeros((n_states, n_actions), dtype=bool), np.zeros((n_states, n_actions))
    usable = ~np.isneginf(R)
    allowed[s[usable], a[usable]] = True
    rewards[s[usable], a[usable]] = R[usable]
    pairs = sparse.coo_array(sparse.csr_array(Q))
    rows = s[pairs.coords[0]] * n_actions + a[pairs.coords[0]]
    shape = (n_states * n_actions, n_states)
    transitions = sparse.csr_array((pairs.data, (rows, pairs.coords[1])), shape=shape)
    return {"transitions": transitions, "rewards": rewards, "gamma": gamma, "allowed": allowed}


def _pair_indices(given: Any, name: str, count: int) -> Indices:
    """The states or the actions of QuantEcon's pairs."""
    out = array_like(given, name)
    if out.dtype.kind not in "iu" or out.shape != (count,):
        raise InputError(f"{name} must be {count} whole numbers, one per pair; found {out.dtype}, shape {out.shape}")
    refuse_where(out < 0, out, name, "negative")
    return out.astype(np.intp)


def quantecon_form(transitions: sparse.csr_array, rewards: Array, gamma: float, allowed: Mask, terminal: Mask) -> Any:
    """The `DiscreteDP` of an MDP, as a list of its allowed pairs with a sparse Q."""
    try:
        from quantecon.markov import DiscreteDP
    except ImportError:
        raise missing_package("to_quantecon", "quantecon") from None
    pairs = allowed.copy()
    pairs[terminal, 0] = True
    s, a = np.nonzero(pairs)
    matrix = sparse.csr_matrix(_absorbing(transitions, terminal, [0])[s * allowed.shape[1] + a])
    return DiscreteDP(rewards[s, a], matrix, gamma, s, a)


def arrays_from_mdptoolbox(transitions: Any, rewards: Any) -> dict[str, Any]:
    """The arguments of `FiniteMDP` that pymdptoolbox's arrays stand for."""
    if not isinstance(transitions, (np.ndarray, list, tuple)):
        raise InputError(f"transitions must have shape (actions, states, states); found {transitions!r}")
    matrices = (
        list(transitions) if not isinstance(transitions, np.ndarray) else list(numeric(transitions, "transitions"))
    )
    if not matrices:
        raise InputError("transitions is empty: pymdptoolbox's P has one matrix per action")
    for a, matrix in enumerate(matrices):
        if np.ndim(matrix) != 2 and not sparse.issparse(matrix):
            raise InputError(f"transitions[{a}] must be a matrix (states, states), found shape {np.shape(matrix)}")
    P = [sparse.csr_array(matrix) for matrix in matrices]
    n_actions, n_states = len(P), P[0].shape[0]
    if isinstance(rewards, (list, tuple)):
        rewards = [matrix.toarray() if sparse.issparse(matrix) else matrix for matrix in rewards]
    R = numeric(rewards, "rewards")
    if R.shape == (n_states,):
        R = np.repeat(R[:, None], n_actions, axis=1)
    elif R.shape == (n_actions, n_states, n_states):
        R = np.moveaxis(R, 0, 1)
    elif R.shape != (n_states, n_actions):
        raise InputError(
            f"rewards must have shape ({n_states}, {n_actions}), ({n_actions}, {n_states}, {n_states}) or "
            f"({n_states},); found {R.shape}"
        )
    return {"transitions": P, "rewards": R}


def mdptoolbox_form(
    transitions: sparse.csr_array, rewards: Array, allowed: Mask, terminal: Mask
) -> tuple[list[Any], Array]:
    """P as one sparse matrix (S, S) per action, and R of shape (S, A)."""
    missing = ~allowed & ~terminal[:, None]
    if missing.any():
        s, a = np.argwhere(missing)[0]
        raise InputError(f"pymdptoolbox has no action sets, but action {a} is not allowed in state {s}")
    rows, n_actions = _absorbing(transitions, terminal, range(allowed.shape[1])), allowed.shape[1]
    first = np.arange(allowed.shape[0]) * n_actions
    return [sparse.csr_matrix(rows[first + a]) for a in range(n_actions)], rewards.copy()


def _absorbing(transitions: sparse.csr_array, terminal: Mask, actions: Iterable[int]) -> sparse.csr_array:
    """The transitions with terminal states that stay in place by these actions."""
    ended, n_actions = np.flatnonzero(terminal), transitions.shape[0] // transitions.shape[1]
    rows = np.concatenate([ended * n_actions + a for a in actions])
    columns = np.resize(ended, rows.size)
    stay = sparse.csr_array((np.ones(rows.size), (rows, columns)), shape=transitions.shape)
    return sparse.csr_array(transitions + stay)
