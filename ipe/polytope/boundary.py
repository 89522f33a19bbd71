r"""The boundary of the value polytope of a two-state MDP.

A state-value function :math:`V` is the value of some policy iff in both states

.. math:: \min_a q_V(s,a) \le V(s) \le \max_a q_V(s,a), \qquad q_V = r + \gamma P V.

Solve :math:`V(s) = q_V(s,a)` for :math:`V(s)`, :math:`t` being the other state's value: the line

.. math:: \ell_{s,a}(t) = \frac{r(s,a) + \gamma P(s'|s,a)\, t}{1 - \gamma P(s|s,a)}

with a slope in :math:`[0, \gamma]`. With :math:`m_s = \min_a \ell_{s,a}`, which is concave, and
:math:`M_s = \max_a \ell_{s,a}`, which is convex, the achievable set is

.. math:: m_0(V_1) \le V_0 \le M_0(V_1), \qquad m_1(V_0) \le V_1 \le M_1(V_0).

A curve of state 0 and a curve of state 1 meet exactly once, because the composition of the two is a contraction.
So there are four corners: both states maximise (:math:`V^*`), both minimise, and the two games in which one
maximises and the other minimises. The boundary consists of the arcs :math:`m_0, m_1, M_0, M_1` between them. The
arcs of one state touch only where all its actions tie: then the set is pinched into two polygons there, or, if
they tie along the whole arc, it is a segment without area.

"Two-state" means two states that are not terminal; 0 and 1 are their places in `two_states(mdp)`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from ipe.base.arrays import Array
from ipe.checks import check_mdp
from ipe.errors import InputError
from ipe.mdp import FiniteMDP

Lines: TypeAlias = tuple[Array, Array]
"""Intercepts and slopes of the lines of one state, an entry per allowed action."""


def two_states(mdp: FiniteMDP) -> tuple[int, int]:
    """The two states that are not terminal, or an `InputError` that says how many there are."""
    check_mdp(mdp)
    live = np.flatnonzero(~mdp.terminal)
    if live.size != 2:
        raise InputError(
            f"the value polytope is for MDPs with exactly two states that are not terminal; this one has {live.size}"
        )
    return int(live[0]), int(live[1])


def action_values(mdp: FiniteMDP, states: tuple[int, int], points: Array) -> tuple[Array, Array]:
    """For points (..., 2), the action values q_V of the allowed actions of each of the two states, (..., k)."""
    v = np.zeros((points.size // 2, mdp.n_states))
    v[:, states] = points.reshape(-1, 2)
    q = (mdp.gamma * (mdp.transitions @ v.T)).T.reshape(-1, mdp.n_states, mdp.n_actions) + mdp.rewards
    first, second = (q[:, s, mdp.allowed[s]] for s in states)
    shape = points.shape[:-1]
    return first.reshape(*shape, first.shape[1]), second.reshape(*shape, second.shape[1])


def lines_of(mdp: FiniteMDP, states: tuple[int, int], i: int, pi: Array | None = None) -> Lines:
    """Intercepts and slopes of the lines of state `states[i]`, as functions of the other state's value.

    There is one line l(s, a) per allowed action a. If `pi` is given, there is one line per row, a mixture of actions.
    """
    s = states[i]
    actions = np.flatnonzero(mdp.allowed[s])
    rewards = mdp.rewards[s, actions]
    transitions = mdp.transitions[s * mdp.n_actions + actions].toarray()
    if pi is not None:
        rewards, transitions = pi @ rewards, pi @ transitions
    leaving = 1.0 - mdp.gamma * transitions[:, s]
    return rewards / leaving, mdp.gamma * transitions[:, states[1 - i]] / leaving


def meet(first: Lines, second: Lines) -> Array:
    """Where lines of the first state meet lines of the second: values of policies, shape (..., 2)."""
    (alpha0, slope0), (alpha1, slope1) = first, second
    corner = np.stack([alpha0 + slope0 * alpha1, alpha1 + slope1 * alpha0], axis=-1)
    return np.asarray(corner / (1.0 - slope0 * slope1)[..., None])


def boundary_walk(lines: tuple[Lines, Lines], values: Array, blur: float) -> Array:
    """The closed walk along m_0, m_1, M_0 and M_1 with the interior on the left, as points (k, 2).

    Its corners are the values of four games, in which each state takes the min or the max over its actions.

    Args:
        lines: the lines of the two states.
        values: the points where the lines meet, shape (k_0, k_1, 2).
        blur: differences in values up to this size are rounding.
    """
    low, high = values.min(axis=(0, 1)), values.max(axis=(0, 1))
    upper_left = values.max(axis=1).min(axis=0)
    lower_right = values.min(axis=1).max(axis=0)
    for one, other in ((upper_left, lower_right), (lower_right, upper_left)):
        if np.abs(one - low).max() <= blur and np.abs(other - high).max() <= blur:
            return np.stack([low, high])  # one state has, in effect, one action: a segment or a point
    steep, shallow = (lines[0], 0, _tie(lines[0], blur)), (lines[1], 1, _tie(lines[1], blur))
    left = _arc(*steep, -1, low, upper_left)[::-1]
    bottom = _arc(*shallow, -1, low, lower_right)
    right = _arc(*steep, +1, lower_right, high)
    top = _arc(*shallow, +1, upper_left, high)[::-1]
    return np.concatenate([left[:-1], bottom[:-1], right[:-1], top[:-1]])


def _arc(lines: Lines, i: int, tie: float | None, sign: int, start: Array, end: Array) -> Array:
    """The curve M (sign +1) or m (-1) of state i from corner to corner: its break points, shape (k, 2)."""
    alpha, slope = sign * lines[0], sign * lines[1]
    lo, hi = float(start[1 - i]), float(end[1 - i])
    breaks = _break_points(alpha, slope, lo, hi)
    if tie is not None:  # both arcs turn in the very same point, not in two that differ by rounding
        breaks = [tie] if lo < tie < hi else []
    t = np.array(breaks)
    between = np.empty((t.size, 2))
    between[:, 1 - i] = t
    between[:, i] = sign * (alpha + np.multiply.outer(t, slope)).max(axis=1)
    return np.concatenate([start[None], between, end[None]])


def _break_points(alpha: Array, slope: Array, lo: float, hi: float) -> list[float]:
    """Where the highest of the lines alpha + slope t changes, between lo and hi, in increasing order."""
    at_lo = alpha + slope * lo
    current = int(np.lexsort((slope, at_lo))[-1])
    t, points = lo, []
    while (steeper := np.flatnonzero(slope > slope[current])).size:
        with np.errstate(over="ignore"):
            crossings = (alpha[current] - alpha[steeper]) / (slope[steeper] - slope[current])
        t = max(t, float(crossings.min()))
        if t >= hi:
            break
        if t > lo:
            points.append(t)
        first = steeper[crossings <= t]
        current = int(first[np.argmax(slope[first])])
    return points


def _tie(lines: Lines, blur: float) -> float | None:
    """The other state's value at which all actions of a state are equally good, if there is one."""
    alpha, slope = lines
    flat, steep = int(np.argmin(slope)), int(np.argmax(slope))
    if slope[flat] == slope[steep]:
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        t = float((alpha[flat] - alpha[steep]) / (slope[steep] - slope[flat]))
        return t if np.ptp(alpha + slope * t) <= blur else None
