"""Policies that need no solver: greedy, uniform, random."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from ipe.base.arrays import Array, Mask
from ipe.base.numbers import finite_number, whole_number
from ipe.base.words import one_of
from ipe.checks import check_one_form
from ipe.mdp import FiniteMDP
from ipe.planning.operators import backup, largest

Ties = Literal["uniform", "first"]


def greedy_policy(
    mdp: FiniteMDP, *, v: Any = None, q: Any = None, ties: Ties = "uniform", tolerance: float = 0.0
) -> Array:
    r"""The greedy policy, :math:`\pi(a|s) > 0` only where :math:`Q(s,a) \ge \max_b Q(s,b) - \text{tolerance}`.

    Args:
        mdp: the MDP.
        v: state values, shape (S,): greedy for :math:`q_V`; or
        q: action values, shape (S, A). Exactly one of the two.
        ties: "uniform" shares the probability among the actions within the tolerance, "first" gives
            it to the first of them.
        tolerance: how far below the maximum still counts as a tie.

    Returns:
        Shape (S, A); 0 where an action is not allowed, and all 0 in terminal states.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> greedy_policy(switch_stay(), q=[[1.0, 1.0], [2.0, 0.0]])
        array([[0.5, 0.5],
               [1. , 0. ]])
        >>> greedy_policy(switch_stay(), q=[[1.0, 1.0], [2.0, 0.0]], ties="first")
        array([[1., 0.],
               [1., 0.]])
    """
    form, values = check_one_form(mdp, v, q)
    one_of(ties, get_args(Ties), "ties")
    slack = finite_number(tolerance, "tolerance", 0.0)
    best = near_best(mdp, backup(mdp, values) if form == "v" else values, slack)
    return share(best) if ties == "uniform" else _first(best)


def uniform_policy(mdp: FiniteMDP) -> Array:
    r"""Every allowed action with the same probability, :math:`\pi(a|s) = 1 / |\mathcal{A}(s)|`.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> uniform_policy(switch_stay())
        array([[0.5, 0.5],
               [0.5, 0.5]])
    """
    return share(mdp.allowed)


def random_policy(mdp: FiniteMDP, seed: int | np.random.Generator) -> Array:
    r"""A stochastic policy, each :math:`\pi(\cdot|s)` drawn uniformly from the simplex over :math:`\mathcal{A}(s)`.

    Args:
        mdp: the MDP.
        seed: a whole number >= 0 (same seed, same policy) or a NumPy generator to draw from.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> random_policy(switch_stay(), seed=0).sum(axis=1)
        array([1., 1.])
    """
    if not isinstance(seed, np.random.Generator):
        seed = whole_number(seed, "seed", 0, also=" or a numpy.random.Generator")
    pi = np.random.default_rng(seed).standard_exponential((mdp.n_states, mdp.n_actions))
    if not mdp.all_allowed:
        pi[~mdp.allowed] = 0.0
    live = ~mdp.terminal[:, None]
    np.divide(pi, pi.sum(axis=1, keepdims=True), out=pi, where=live)
    return pi


def near_best(mdp: FiniteMDP, q: Array, tolerance: float) -> Mask:
    """The allowed actions within `tolerance` of the best allowed one."""
    if mdp.all_allowed:
        return q >= (largest(q) - tolerance)[:, None]
    top = largest(np.where(mdp.allowed, q, -np.inf))
    return (q >= (top - tolerance)[:, None]) & mdp.allowed


def share(mask: Mask) -> Array:
    """Equal probabilities over the actions marked in each row; rows without a mark stay 0."""
    count = mask.sum(axis=1, keepdims=True)
    pi: Array = mask / np.maximum(count, 1)
    return pi


def _first(mask: Mask) -> Array:
    pi = np.zeros(mask.shape)
    rows = np.flatnonzero(mask.any(axis=1))
    pi[rows, mask[rows].argmax(axis=1)] = 1.0
    return pi
