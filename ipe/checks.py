"""Checks of value functions, policies and weights, made before anything is computed with them.

Each function returns a new float64 array that is 0 wherever the MDP has no entry (actions that are not allowed,
terminal states), or raises an `InputError` that names the (state, action) and the amount.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from ipe.base.arrays import Array, numeric, refuse_where
from ipe.errors import InputError
from ipe.mdp import FiniteMDP

POLICY_TOLERANCE = 1e-8

Form = Literal["v", "q"]


def check_mdp(mdp: Any) -> None:
    """Refuse anything that is not a `FiniteMDP`."""
    if not isinstance(mdp, FiniteMDP):
        raise InputError(f"mdp must be a FiniteMDP, found {type(mdp).__name__}")


def check_v(mdp: FiniteMDP, v: Any, name: str = "v") -> Array:
    """A state-value function: shape (S,), finite, 0 in terminal states."""
    check_mdp(mdp)
    values = numeric(v, name)
    if values.shape != (mdp.n_states,):
        raise InputError(f"{name} must have shape ({mdp.n_states},), one value per state; found {values.shape}")
    refuse_where(~np.isfinite(values), values, name, "not a finite number")
    _refuse_terminal_values(mdp, values[:, None], name)
    return values


def check_q(mdp: FiniteMDP, q: Any, name: str = "q") -> Array:
    """An action-value function: shape (S, A), finite where allowed, 0 (or NaN) in terminal states."""
    check_mdp(mdp)
    values = numeric(q, name)
    shape = (mdp.n_states, mdp.n_actions)
    if values.shape != shape:
        raise InputError(f"{name} must have shape {shape}, one value per state and action; found {values.shape}")
    refuse_where(~np.isfinite(values) & mdp.allowed, values, name, "not a finite number")
    _refuse_terminal_values(mdp, np.where(np.isnan(values), 0.0, values), name)
    return values if mdp.all_allowed else np.where(mdp.allowed, values, 0.0)


def check_one_form(mdp: FiniteMDP, v: Any, q: Any) -> tuple[Form, Array]:
    """Exactly one of a state-value and an action-value function: which one was given, and its checked values."""
    if (v is None) == (q is None):
        raise InputError("give either v (one value per state) or q (one value per state and action), and not both")
    return ("v", check_v(mdp, v)) if q is None else ("q", check_q(mdp, q))


def check_policy(mdp: FiniteMDP, policy: Any) -> Array:
    """A policy: shape (S, A), rows that sum to one, exactly 0 where not allowed.

    Terminal states have no policy: what stands in their rows is ignored.
    """
    check_mdp(mdp)
    pi = numeric(policy, "policy")
    shape = (mdp.n_states, mdp.n_actions)
    if pi.shape != shape:
        raise InputError(f"policy must have shape {shape}; found {pi.shape}")
    live = ~mdp.terminal[:, None]
    refuse_where(~(pi >= 0) & live, pi, "policy", "not a probability")
    refuse_where((pi != 0) & ~mdp.allowed & live, pi, "policy", "not 0, but the action is not allowed there")
    pi = np.where(mdp.allowed, pi, 0.0)
    off = np.where(mdp.terminal, 0.0, pi.sum(axis=1) - 1.0)
    wrong = ~(np.abs(off) <= POLICY_TOLERANCE)
    if wrong.any():
        s = int(np.argmax(wrong))
        raise InputError(f"policy[{s}] sums to {1.0 + off[s]:.12g}, not to 1 (off by {off[s]:.3g})")
    return pi


def check_weights(mdp: FiniteMDP, weights: Any, form: Form, name: str = "weights") -> Array | None:
    """Weights of the norm, d(s) in the V form or d(s, a) in the Q form: finite, not negative, not all zero.

    The weights are not normalised here, since l-inf keeps them as they are. They are 0 where the MDP has no row.
    """
    if weights is None:
        return None
    d = numeric(weights, name)
    shape = (mdp.n_states,) if form == "v" else (mdp.n_states, mdp.n_actions)
    if d.shape != shape:
        raise InputError(f"{name} must have shape {shape} for {form}; found {d.shape}")
    present = ~mdp.terminal if form == "v" else mdp.allowed
    refuse_where(~(np.isfinite(d) & (d >= 0)) & present, d, name, "not a finite number >= 0")
    d = np.where(present, d, 0.0)
    if not (d > 0).any():
        raise InputError(f"{name} are zero for every row: at least one must be positive")
    return d


def _refuse_terminal_values(mdp: FiniteMDP, rows: Array, name: str) -> None:
    wrong = mdp.terminal[:, None] & (rows != 0)
    if wrong.any():
        s, a = np.argwhere(wrong)[0]
        raise InputError(f"{name}: state {s} is terminal and has value 0, but {rows[s, a]:g} was given")
