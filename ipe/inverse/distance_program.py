r"""The nearest achievable values as a mixed-integer linear program.

U is the value function of some policy iff in every state that is not terminal there are actions a, b with
:math:`q_U(s,a) \ge U(s) \ge q_U(s,b)`: a union of polyhedra, one per choice of a and b, which binary variables
make.

.. math::
    \min_{U, z, w, \tau} \tau \quad \text{subject to} \quad
    & |V - U| \le \tau \quad (\text{or } |Q - q_U| \le \tau) \\
    & q_U(s,a) - U(s) \ge \underline D_{sa} (1 - z_{sa}), \quad \textstyle\sum_a z_{sa} = 1, \\
    & q_U(s,b) - U(s) \le \overline D_{sb} (1 - w_{sb}), \quad \textstyle\sum_b w_{sb} = 1,
      \quad z_{sa} + w_{sa} \le 1 .

:math:`\underline D` and :math:`\overline D` bound :math:`q_U - U` over a box for U. The program is written around an
achievable U that is known, in units of its distance, so that the solver's absolute tolerances are relative to what is
minimised and these bounds are small numbers; a state for which the box settles the matter gets no binaries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from ipe.checks import Form
from ipe.mdp import Array, FiniteMDP, Mask
from ipe.planning.operators import action_bounds, backup

SLACK = 1e-6
"""By how much the box is widened, in units of the known distance: it must not cut off what rounding moved."""
SWEEPS = 200
POLISH = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Program:
    r"""The program in :math:`x = (U - c) / h`, :math:`c` an achievable U and :math:`h` its distance.

    The columns are x (a state each), :math:`\tau`, then the binaries. `rows` holds for every choice, `up` and `down`
    are the rows :math:`(q_U - U)(s,a) / h` of the pairs with a binary z or w, and of those that need none
    because no other action of the state can serve.
    """

    centre: Array
    unit: float
    low: Array
    high: Array
    fit: sparse.csr_array
    offset: Array
    gain: sparse.csr_array
    gain_offset: Array
    gain_low: Array
    gain_high: Array
    up: Mask
    down: Mask


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the solver found: values U (None if nothing) and a lower bound on the distance."""

    values: Array | None
    lower_bound: float
    nodes: int
    finished: bool


def build(mdp: FiniteMDP, form: Form, given: Array, box: tuple[Array, Array], centre: Array, unit: float) -> Program:
    r"""The program for values at most `unit` away from an achievable function, `centre`.

    Args:
        mdp: the MDP.
        form: "v" or "q", what is given.
        given: the values, checked.
        box: bounds on every achievable U: the least and the optimal values of the MDP.
        centre: an achievable U.
        unit: its distance from the given values.
    """
    live = ~mdp.terminal
    pairs = mdp.allowed.ravel()
    low, high, q_low, q_high = _tighten(mdp, form, given, box, unit * (1 + SLACK))
    low, high = (low - centre) / unit - SLACK, (high - centre) / unit + SLACK
    seen = live if form == "v" else np.asarray(mdp.transitions.sum(axis=0)).ravel() > 0
    seen = seen & live
    low, high = np.where(seen, np.minimum(low, 0.0), 0.0), np.where(seen, np.maximum(high, 0.0), 0.0)
    q_centre = backup(mdp, centre)
    own = sparse.csr_array(
        (np.ones(pairs.size), np.repeat(np.arange(mdp.n_states), mdp.n_actions), np.arange(pairs.size + 1)),
        shape=mdp.transitions.shape,
    )
    gain = sparse.csr_array(mdp.gamma * mdp.transitions - own)
    gain_offset = (q_centre - centre[:, None]).ravel() / unit
    positive, negative = gain.maximum(0), gain.minimum(0)
    gain_low = gain_offset + positive @ low + negative @ high
    gain_high = gain_offset + positive @ high + negative @ low
    gain_low = np.maximum(gain_low, ((q_low - centre[:, None]) / unit - high[:, None]).ravel() - SLACK)
    gain_high = np.minimum(gain_high, ((q_high - centre[:, None]) / unit - low[:, None]).ravel() + SLACK)
    choices = (mdp.allowed & seen[:, None])
    up, down = _choices(choices, gain_low, gain_high), _choices(choices, -gain_high, -gain_low)
    if form == "v":
        fit, offset = sparse.eye_array(mdp.n_states, format="csr")[live], (centre - given)[live] / unit
    else:
        fit, offset = mdp.gamma * mdp.transitions[pairs], (q_centre - given).ravel()[pairs] / unit
    return Program(
        centre, unit, low, high, sparse.csr_array(fit), offset, gain, gain_offset, gain_low, gain_high, up, down
    )


def _tighten(
    mdp: FiniteMDP, form: Form, given: Array, box: tuple[Array, Array], reach: float
) -> tuple[Array, Array, Array, Array]:
    r"""Bounds on the achievable U within `reach` of the given values, and on :math:`q_U`.

    Sweeps of :math:`U \le \max_a q_U`, :math:`U \ge \min_a q_U`, each with what the given values allow.
    """
    low, high = box
    if form == "v":
        low, high = np.maximum(low, given - reach), np.minimum(high, given + reach)
    for _ in range(SWEEPS):
        q_low, q_high = backup(mdp, low), backup(mdp, high)
        if form == "q":
            q_low, q_high = np.maximum(q_low, given - reach), np.minimum(q_high, given + reach)
        next_low = np.maximum(low, action_bounds(mdp, q_low)[0])
        next_high = np.minimum(high, action_bounds(mdp, q_high)[1])
        moved = max(float((next_low - low).max()), float((high - next_high).max()))
        low, high = next_low, next_high
        if moved <= SLACK * reach:
            break
    return low, high, q_low, q_high


def _choices(allowed: Mask, low: Array, high: Array) -> Mask:
    r"""The pairs that may serve as the action with :math:`q_U(s,a) \ge U(s)`; none where one always does."""
    settled = (allowed & (low.reshape(allowed.shape) >= 0)).any(axis=1)
    possible = allowed & (high.reshape(allowed.shape) >= 0) & ~settled[:, None]
    return possible


def solve(program: Program, floor: float, time_limit: float) -> Outcome:
    up, down = np.flatnonzero(program.up), np.flatnonzero(program.down)
    n, n_actions = len(program.low), program.up.shape[1]
    nz, nw = len(up), len(down)
    minus = sparse.csr_array(-np.ones((len(program.offset), 1)))
    def block(x=None, t=None, z=None, w=None, rows=0):
        parts = []
        for part, width in ((x, n), (t, 1), (z, nz), (w, nw)):
            parts.append(sparse.csr_array((rows, width)) if part is None else part)
        return sparse.hstack(parts, format="csr")
    m = len(program.offset)
    cons = [
        LinearConstraint(block(program.fit, minus, rows=m), -np.inf, -program.offset),
        LinearConstraint(block(-program.fit, minus, rows=m), -np.inf, program.offset),
    ]
    if nz:
        cons.append(LinearConstraint(
            block(program.gain[up], None, sparse.diags_array(program.gain_low[up]), rows=nz),
            (program.gain_low - program.gain_offset)[up], np.inf))
        sums = sparse.csr_array((np.ones(nz), (up // n_actions, np.arange(nz))), shape=(n, nz))
        has = np.unique(up // n_actions)
        cons.append(LinearConstraint(block(None, None, sums[has], rows=len(has)), 1, 1))
    if nw:
        cons.append(LinearConstraint(
            block(program.gain[down], None, None, sparse.diags_array(program.gain_high[down]), rows=nw),
            -np.inf, (program.gain_high - program.gain_offset)[down]))
        sums = sparse.csr_array((np.ones(nw), (down // n_actions, np.arange(nw))), shape=(n, nw))
        has = np.unique(down // n_actions)
        cons.append(LinearConstraint(block(None, None, None, sums[has], rows=len(has)), 1, 1))
    both = np.intersect1d(up, down)
    if both.size:
        zz = sparse.csr_array((np.ones(both.size), (np.arange(both.size), np.searchsorted(up, both))), shape=(both.size, nz))
        ww = sparse.csr_array((np.ones(both.size), (np.arange(both.size), np.searchsorted(down, both))), shape=(both.size, nw))
        count = np.bincount(np.concatenate([up,down])//n_actions)
        cons.append(LinearConstraint(block(None, None, zz, ww, rows=both.size), -np.inf, 1))
    cost = np.zeros(n + 1 + nz + nw); cost[n] = 1
    bounds = Bounds(np.concatenate([program.low, [floor / program.unit], np.zeros(nz + nw)]),
                    np.concatenate([program.high, [1 + SLACK], np.ones(nz + nw)]))
    res = milp(cost, integrality=np.r_[np.zeros(n + 1), np.ones(nz + nw)], bounds=bounds, constraints=cons,
               options={"time_limit": time_limit, "mip_rel_gap": 1e-7})
    return res, up, down
