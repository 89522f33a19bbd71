r"""A finite MDP from samples: the model that transitions (s, a, r, s') are most likely to come from.

With n(s,a,s') transitions from s by a to s', and :math:`n(s,a) = \sum_{s'} n(s,a,s')`,

.. math:: P(s'|s,a) = \frac{n(s,a,s') + \alpha}{n(s,a) + \alpha |S|}, \qquad r(s,a,s') = \text{mean reward seen},

where :math:`\alpha \ge 0` is the prior's pseudo-count. A pair (s, a) that was never visited is not allowed: nothing is
known of it, and nothing is made up.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ipe.base.arrays import array_like, numeric, refuse_where
from ipe.base.memory import check_memory
from ipe.base.numbers import finite_number, whole_number
from ipe.errors import InputError

MAX_PRIOR_ENTRIES = 10**8
"""The most entries of P with a prior, which makes every row dense."""
ROW_BYTES = 64
"""The memory that a pair takes while the MDP is made: its place in two matrices, its mask, its rewards."""


def arrays_from_transitions(
    state: Any,
    action: Any,
    reward: Any,
    next_state: Any,
    terminated: Any = None,
    *,
    n_states: int | None = None,
    n_actions: int | None = None,
    prior: float = 0.0,
) -> dict[str, Any]:
    """The arguments of `FiniteMDP` that the samples stand for; see `FiniteMDP.from_transitions`."""
    s, following = _indices(state, "state"), _indices(next_state, "next_state")
    a, r = _indices(action, "action"), numeric(reward, "reward")
    ends = np.zeros(s.shape, dtype=bool) if terminated is None else _flags(terminated)
    for name, array in (("action", a), ("reward", r), ("next_state", following), ("terminated", ends)):
        if array.shape != s.shape:
            raise InputError(f"{name} must have the {s.size} entries of state; found shape {array.shape}")
    if not s.size:
        raise InputError("state is empty: there are no transitions")
    refuse_where(~np.isfinite(r), r, "reward", "not a finite number")
    prior = finite_number(prior, "prior", 0.0)
    live = _count(n_states, "n_states", max(int(s.max()), int(following[~ends].max(initial=0))))
    actions = _count(n_actions, "n_actions", int(a.max()))
    total = live + int(ends.any())  # transitions that end an episode lead to one added state
    following = np.where(ends, total - 1, following)
    check_memory(ROW_BYTES * float(total) * actions, f"an MDP of {total} states and {actions} actions")
    pairs = s * actions + a
    if prior > 0 and np.unique(pairs).size * total > MAX_PRIOR_ENTRIES:
        raise InputError(f"prior makes all {np.unique(pairs).size} x {total} entries positive: too many for memory")
    shape = (total * actions, total)
    counts = sparse.csr_array((np.ones(s.size), (pairs, following)), shape=shape)
    paid = sparse.csr_array((r, (pairs, following)), shape=shape)
    visits = counts @ np.ones(total)
    means = sparse.csr_array((paid.data / counts.data, paid.indices, paid.indptr), shape=shape)  # the same places
    allowed = (visits > 0).reshape(total, actions)
    probabilities: Any = sparse.csr_array(sparse.diags_array(1.0 / np.maximum(visits, 1.0)) @ counts)
    if prior > 0:
        probabilities, means = _with_prior(counts, means, visits, prior)
    return {
        "transitions": probabilities,
        "rewards": means,
        "allowed": allowed,
        "terminal": ~allowed.any(axis=1),
        "state_names": [*(f"s{i}" for i in range(live)), "end"] if ends.any() else None,
    }


def _with_prior(
    counts: sparse.csr_array, means: sparse.csr_array, visits: NDArray[np.float64], prior: float
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Probabilities with a pseudo-count for every next state; one never seen pays the mean reward of its pair."""
    n, seen = counts.shape[1], np.flatnonzero(visits > 0)
    dense = (counts[seen].toarray() + prior) / (visits[seen] + prior * n)[:, None]
    where = counts[seen].toarray() > 0
    average = (means[seen] * counts[seen]) @ np.ones(n) / visits[seen]
    paid = np.where(where, means[seen].toarray(), average[:, None])
    places = np.repeat(seen, n), np.tile(np.arange(n), len(seen))
    one, other = (sparse.csr_array((table.ravel(), places), shape=counts.shape) for table in (dense, paid))
    return one, other


def _indices(array: Any, name: str) -> NDArray[np.int64]:
    given = array_like(array, name)
    if given.ndim != 1 or (given.dtype.kind not in "iu" and given.size):
        raise InputError(
            f"{name} must be a list of whole numbers, found dtype {given.dtype} in {given.ndim} dimensions"
        )
    out = given.astype(np.int64)
    refuse_where(out < 0, out, name, "negative")
    return out


def _flags(array: Any) -> NDArray[np.bool_]:
    given = array_like(array, "terminated")
    if given.dtype != bool:
        raise InputError(f"terminated must hold booleans, found dtype {given.dtype}")
    return given


def _count(count: int | None, name: str, largest: int) -> int:
    if count is None:
        return largest + 1
    if whole_number(count, name, 1) <= largest:
        raise InputError(f"{name} = {count}, but the transitions hold the number {largest}")
    return int(count)
