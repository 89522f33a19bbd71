r"""The nearest achievable values as a mixed-integer linear program.

U is the value function of some policy iff in every state that is not terminal there are actions a and b with
:math:`q_U(s,a) \ge U(s) \ge q_U(s,b)`. That is a union of polyhedra, one per choice of all a and b:

.. math::
    \min_{U, \tau, z, w} \; \tau \quad \text{subject to} \quad
    & |V - U| \le \tau \quad (\text{or } |Q - q_U| \le \tau), \\
    & q_U(s,a) - U(s) \ge \underline D_{sa} (1 - z_{sa}), \qquad \textstyle\sum_a z_{sa} = 1, \\
    & q_U(s,b) - U(s) \le \overline D_{sb} (1 - w_{sb}), \qquad \textstyle\sum_b w_{sb} = 1,
      \qquad z_{sa} + w_{sa} \le 1,

with binary z, w and bounds :math:`\underline D \le q_U - U \le \overline D` over a box for U. (In a state with more
than one action a and b can be chosen different: any other action c has :math:`q_U(s,c)` above U(s) or below.)

The program is written in the units of a `Frame`. Where the box already proves that a state has such an a (or b), the
program has no binaries z (or w) for that state.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

import numpy as np
from scipy import sparse
from scipy.optimize import LinearConstraint, milp

from ipe.base.arrays import Array, Indices, Mask
from ipe.inverse.distance_frame import SLACK, Frame, Ranges, ranges
from ipe.mdp import FiniteMDP

TOLERANCE = 1e-6
"""HiGHS's tolerance, in units of h; taken off its lower bound."""
SOLVER_ERROR = 4


@dataclass(frozen=True, eq=False)
class TreeSearch:
    """What branch and bound found: x, or None, and a lower bound on the distance in units of h."""

    x: Array | None
    lower_bound: float
    nodes: int


def branch_and_bound(maps: Frame, box: tuple[Array, Array], floor: float, time_limit: float) -> TreeSearch:
    """The nearest achievable U, among those at most as far as the centre.

    Args:
        maps: the frame around an achievable centre.
        box: bounds on every achievable U of the MDP.
        floor: a lower bound on the distance, in units of h.
        time_limit: how many seconds branch and bound may take.
    """
    deadline = monotonic() + time_limit
    within = ranges(maps, box)
    allowed = maps.mdp.allowed & maps.seen[:, None]
    up = _candidates(allowed, within.gain_low, within.gain_high)
    down = _candidates(allowed, -within.gain_high, -within.gain_low)
    n, binaries = len(within.low), len(up) + len(down)
    low = np.concatenate([within.low, [floor], np.zeros(binaries)])
    high = np.concatenate([within.high, [1.0 + SLACK], np.ones(binaries)])
    matrix, lower, upper = _constraints(maps, up, down, within)
    # HiGHS takes no point to start from here, but its heuristics favour 0, and without a point it returns no bound. So
    # tau and the binaries that are 1 at the centre are replaced by what they lack to 1: then 0 is the centre.
    flipped = np.concatenate([np.zeros(n, dtype=bool), [True], _first(maps, up, 1.0), _first(maps, down, -1.0)])
    sign = np.where(flipped, -1.0, 1.0)
    shift = matrix @ flipped.astype(float)
    program = {
        "c": np.where(np.arange(len(low)) == n, -1.0, 0.0),
        "integrality": np.repeat([0, 1], [n + 1, binaries]),
        "bounds": (np.where(flipped, 1.0 - high, low), np.where(flipped, 1.0 - low, high)),
        "constraints": LinearConstraint(matrix @ sparse.diags_array(sign), lower - shift, upper - shift),
    }
    for presolve in (True, False):  # now and then HiGHS rejects the point to which its presolve led
        limit = max(deadline - monotonic(), 0.0)
        options = {"time_limit": limit, "mip_rel_gap": 0.1 * TOLERANCE, "presolve": presolve}
        result = milp(**program, options=options)
        if result.status != SOLVER_ERROR:
            break
    bound = result.mip_dual_bound
    if bound is None:  # nothing found; or no binaries, and it was a linear program
        bound = result.fun if result.status == 0 else -np.inf
    x = None if result.x is None else np.asarray(result.x[:n])
    return TreeSearch(x, max(floor, 1.0 + float(bound) - TOLERANCE), int(result.mip_node_count or 0))


def _first(maps: Frame, pairs: Indices, sign: float) -> Mask:
    """Which of the pairs is, at the centre, the best of its state (sign 1) or the worst (sign -1)."""
    gains = np.full(maps.mdp.allowed.size, -np.inf)
    gains[pairs] = sign * maps.gain_offset[pairs]
    chosen = np.zeros(maps.mdp.allowed.size, dtype=bool)
    states = np.unique(pairs // maps.mdp.n_actions)
    chosen[states * maps.mdp.n_actions + gains.reshape(maps.mdp.allowed.shape)[states].argmax(axis=1)] = True
    return chosen[pairs]


def _candidates(allowed: Mask, low: Array, high: Array) -> Indices:
    """The pairs whose gain may be positive or 0, in the states where no pair's gain is certain to be."""
    always, possible = allowed & (low.reshape(allowed.shape) >= 0), allowed & (high.reshape(allowed.shape) >= 0)
    return np.flatnonzero(possible & ~always.any(axis=1, keepdims=True))


def _constraints(maps: Frame, up: Indices, down: Indices, within: Ranges) -> tuple[sparse.csr_array, Array, Array]:
    """The rows over the columns (x, tau, z of the pairs `up`, w of the pairs `down`)."""
    gain_low, gain_high = np.minimum(within.gain_low, -SLACK)[up], np.maximum(within.gain_high, SLACK)[down]
    tau = sparse.csr_array(np.full((len(maps.offset), 1), -1.0))
    shared = np.intersect1d(up, down)
    shared = shared[maps.mdp.allowed.sum(axis=1)[shared // maps.mdp.n_actions] > 1]
    blocks = (
        ({0: maps.fit, 1: tau}, -np.inf, -maps.offset),
        ({0: -maps.fit, 1: tau}, -np.inf, maps.offset),
        ({0: maps.gain[up], 2: sparse.diags_array(gain_low)}, gain_low - maps.gain_offset[up], np.inf),
        ({0: maps.gain[down], 3: sparse.diags_array(gain_high)}, -np.inf, gain_high - maps.gain_offset[down]),
        ({2: _per_state(maps.mdp, up)}, 1.0, 1.0),
        ({3: _per_state(maps.mdp, down)}, 1.0, 1.0),
        ({2: _picks(up, shared), 3: _picks(down, shared)}, -np.inf, 1.0),
    )
    widths = len(maps.centre), 1, len(up), len(down)
    rows, lower, upper = [], [], []
    for parts, low, high in blocks:
        height = next(iter(parts.values())).shape[0]
        row = [parts.get(i, sparse.csr_array((height, width))) for i, width in enumerate(widths)]
        rows.append(sparse.hstack(row))
        lower.append(np.broadcast_to(low, height))
        upper.append(np.broadcast_to(high, height))
    return sparse.vstack(rows, format="csr"), np.concatenate(lower), np.concatenate(upper)


def _per_state(mdp: FiniteMDP, pairs: Indices) -> sparse.csr_array:
    """A row per state that has some of the pairs, with a one at each of that state's pairs."""
    states, rows = np.unique(pairs // mdp.n_actions, return_inverse=True)
    return sparse.csr_array((np.ones(len(pairs)), (rows, np.arange(len(pairs)))), shape=(len(states), len(pairs)))


def _picks(pairs: Indices, some: Indices) -> sparse.csr_array:
    """A row per pair of `some` with a one at its place in `pairs`."""
    places = np.arange(len(some)), np.searchsorted(pairs, some)
    return sparse.csr_array((np.ones(len(some)), places), shape=(len(some), len(pairs)))
