r"""Value functions U near given values, seen from one that is achievable.

Let c be achievable values and h their distance from the given values. In the variable :math:`x = (U - c) / h` every
length is measured in units of the distance that is to be lowered. So the absolute tolerances of the solvers become
relative tolerances, and bounds are small numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ipe.base.arrays import Array, Mask
from ipe.checks import Form
from ipe.mdp import FiniteMDP
from ipe.planning.operators import action_bounds, backup

SLACK = 1e-3
"""How much bounds are widened, in units of h. Rounding must not cut off a solution, and HiGHS's presolve must not meet
coefficients of the size of its tolerances."""
MAX_SWEEPS = 100
MOVED = 1e-6
"""The least movement of a box's bounds, relative to its reach, for which another sweep is made."""
EXACT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Frame:
    r"""The linear maps of x.

    Attributes:
        mdp, form, given: what the distance is asked for.
        centre: c.
        unit: h.
        seen: the states whose U matters: not terminal and, in the Q form, reached by some pair.
        fit, offset: :math:`U - V` (or :math:`q_U - Q`) in units of h is :math:`\text{offset} + \text{fit}\, x`.
        gain, gain_offset: :math:`(q_U - U)(s,a)` in units of h is :math:`\text{gain\_offset} + \text{gain}\, x`,
            a row per pair.
    """

    mdp: FiniteMDP
    form: Form
    given: Array
    centre: Array
    unit: float
    seen: Mask
    fit: sparse.csr_array
    offset: Array
    gain: sparse.csr_array
    gain_offset: Array


@dataclass(frozen=True, eq=False)
class Ranges:
    """Bounds on x and on the gain of every pair, for the achievable U that are no further than the centre."""

    low: Array
    high: Array
    gain_low: Array
    gain_high: Array


def frame(mdp: FiniteMDP, form: Form, given: Array, centre: Array, unit: float) -> Frame:
    """The maps around an achievable `centre` whose distance from `given` is `unit`."""
    n_rows, n_states = mdp.transitions.shape
    q = backup(mdp, centre)
    seen = ~mdp.terminal
    if form == "v":
        fit, offset = sparse.eye_array(n_states, format="csr")[np.flatnonzero(seen)], (centre - given)[seen]
    else:
        fit, offset = mdp.gamma * mdp.transitions[np.flatnonzero(mdp.allowed)], (q - given)[mdp.allowed]
        seen = seen & (np.bincount(mdp.transitions.indices, minlength=n_states) > 0)
    state_of_row = np.arange(n_rows) // mdp.n_actions
    identity = sparse.csr_array((np.ones(n_rows), state_of_row, np.arange(n_rows + 1)), shape=(n_rows, n_states))
    gain = sparse.csr_array(mdp.gamma * mdp.transitions - identity)
    gain_offset = (q - centre[:, None]).ravel() / unit
    return Frame(mdp, form, given, centre, unit, seen, sparse.csr_array(fit), offset / unit, gain, gain_offset)


def descend(maps: Frame, x: Array) -> Array:
    """The nearest U among those for which the best and the worst actions at x still lie on either side of U.

    This is a linear program in which an achievable x is feasible. If the program is not solved, x itself is returned.
    """
    mdp, n = maps.mdp, len(x)
    gains = (maps.gain_offset + maps.gain @ x).reshape(mdp.allowed.shape)
    states = np.flatnonzero(maps.seen)
    best = states * mdp.n_actions + np.where(mdp.allowed, gains, -np.inf)[states].argmax(axis=1)
    worst = states * mdp.n_actions + np.where(mdp.allowed, gains, np.inf)[states].argmin(axis=1)
    tau = sparse.csr_array(np.full((len(maps.offset), 1), -1.0))
    none = sparse.csr_array((len(states), 1))
    rows = [[maps.fit, tau], [-maps.fit, tau], [-maps.gain[best], none], [maps.gain[worst], none]]
    right = [-maps.offset, maps.offset, maps.gain_offset[best], -maps.gain_offset[worst]]
    free = np.where(maps.seen, np.inf, 0.0)
    result = linprog(
        np.append(np.zeros(n), 1.0),
        A_ub=sparse.vstack([sparse.hstack(row) for row in rows], format="csr"),
        b_ub=np.concatenate(right),
        bounds=np.append(np.stack([-free, free], axis=1), [[0.0, np.inf]], axis=0),
        method="highs",
        options=EXACT,
    )
    return x if result.x is None else np.asarray(result.x[:n])


def box_around(
    mdp: FiniteMDP, form: Form, given: Array, box: tuple[Array, Array], reach: float
) -> tuple[Array, Array, Array, Array]:
    r"""Bounds on every achievable U within `reach` of the given values, and on its :math:`q_U`.

    Each sweep applies :math:`\min_a q_U \le U \le \max_a q_U` and the given values to the bounds, starting from `box`.
    If a lower bound ends above its upper bound, there is no such U.
    """
    low, high = box
    if form == "v":
        low, high = np.maximum(low, given - reach), np.minimum(high, given + reach)
    for _ in range(MAX_SWEEPS):
        q_low, q_high = backup(mdp, low), backup(mdp, high)
        if form == "q":
            q_low, q_high = np.maximum(q_low, given - reach), np.minimum(q_high, given + reach)
        before = low, high
        low = np.maximum(low, action_bounds(mdp, q_low)[0])
        high = np.minimum(high, action_bounds(mdp, q_high)[1])
        moved = max(float((low - before[0]).max()), float((before[1] - high).max()))
        if moved <= MOVED * reach or (low > high).any():
            break
    return low, high, q_low, q_high


def ranges(maps: Frame, box: tuple[Array, Array]) -> Ranges:
    """Bounds on x and on the gains, by interval arithmetic; `box` bounds every achievable U of the MDP."""
    reach = maps.unit * (1.0 + SLACK)
    low, high, q_low, q_high = box_around(maps.mdp, maps.form, maps.given, box, reach)
    if maps.form == "q":
        fitting = _fitting_box(maps, low, high)
        low, high, q_low, q_high = box_around(maps.mdp, maps.form, maps.given, fitting, reach)
    # The centre is achievable, so that x = 0 lies within, whatever rounding says.
    low = np.where(maps.seen, np.minimum((low - maps.centre) / maps.unit, 0.0) - SLACK, 0.0)
    high = np.where(maps.seen, np.maximum((high - maps.centre) / maps.unit, 0.0) + SLACK, 0.0)
    rising, falling = maps.gain.maximum(0), maps.gain.minimum(0)
    gain_low = maps.gain_offset + rising @ low + falling @ high
    gain_high = maps.gain_offset + rising @ high + falling @ low
    # In the Q form what is given bounds q_U itself.
    below = (q_low - maps.centre[:, None]) / maps.unit - high[:, None] - SLACK
    above = (q_high - maps.centre[:, None]) / maps.unit - low[:, None] + SLACK
    return Ranges(low, high, np.maximum(gain_low, below.ravel()), np.minimum(gain_high, above.ravel()))


def _fitting_box(maps: Frame, low: Array, high: Array) -> tuple[Array, Array]:
    r"""The least and the greatest U(s) with :math:`|Q - q_U| \le h`, by two linear programs per state.

    In the V form the given values are such a box already. In the Q form no sweep finds this box, which can be smaller
    by orders of magnitude.
    """
    rows = sparse.vstack([maps.fit, -maps.fit], format="csr")
    right = 1.0 + SLACK + np.concatenate([-maps.offset, maps.offset])
    bounds = np.stack([low - maps.centre, high - maps.centre], axis=1) / maps.unit + [-SLACK, SLACK]
    ends = {1.0: low.copy(), -1.0: high.copy()}
    for s in np.flatnonzero(maps.seen):
        for sign, end in ends.items():
            cost = np.zeros(len(low))
            cost[s] = sign
            result = linprog(cost, A_ub=rows, b_ub=right, bounds=bounds, method="highs")
            if result.status == 0:
                end[s] = maps.centre[s] + maps.unit * sign * (result.fun - SLACK)
    return np.maximum(low, ends[1.0]), np.minimum(high, ends[-1.0])
