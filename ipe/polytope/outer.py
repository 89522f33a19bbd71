r"""Bounds on the values that two chosen states of any MDP can have together.

Hold the second state at the value t, and let all other states follow any policy :math:`\pi`. The value of the first
state is then a line :math:`\ell_\pi(t)` with a slope in :math:`[0, \gamma]`, and

.. math:: M(t) = \max_\pi \ell_\pi(t), \qquad m(t) = \min_\pi \ell_\pi(t)

are the optimal values of the first state, and the least ones, in the MDP in which the second state ends the episode and
pays t. M is convex and m concave, with a break where the best policy changes. So `envelope` finds them whole: it solves
that MDP at both ends of an interval, then where the two lines cross, and so on, until the crossing lies on the curve.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from ipe.base.arrays import Array
from ipe.inverse.extremes import greatest_values
from ipe.mdp import FiniteMDP
from ipe.polytope.boundary import Lines, lines_of
from ipe.polytope.reduction import two_state_mdp

ON_CURVE = 1e-9
"""How far below the curve a crossing may lie, relative to the values, and still count as a break of the curve."""


class Support(NamedTuple):
    """A line that touches a curve, and the policy to which it belongs."""

    intercept: float
    slope: float
    policy: Array

    def at(self, t: float) -> float:
        """The value of the first state when the second one is held at t."""
        return self.intercept + self.slope * t


class Envelope(NamedTuple):
    """The curve M or m of one of the two states over an interval of the other's values."""

    lines: Lines
    """Lines whose maximum (of m: minimum) on the interval is the curve. Where the number of solves did not suffice, a
    chord stands for what is missing, and the maximum lies above the curve."""
    policies: list[Array]
    """The policies of the lines, without those of chords."""
    complete: bool
    """Whether no chord was needed."""


def envelope(
    mdp: FiniteMDP, states: tuple[int, int], i: int, sign: int, within: tuple[float, float], solves: int
) -> Envelope:
    """The curve M (sign 1) or m (sign -1) of `states[i]` for values of the other state from `within[0]` to `within[1]`.

    Args:
        mdp: the MDP.
        states: the two states.
        i: which of them has the curve.
        sign: 1 or -1.
        within: the interval of the other state's values.
        solves: how many MDPs may be solved.
    """
    size = max(1.0, *(abs(t) for t in within)) + float(np.abs(mdp.rewards).max()) / (1.0 - mdp.gamma)
    supports = {t: _support(mdp, states, i, sign, t) for t in within}
    open_intervals, chords = [within], []
    while open_intervals:
        left, right = open_intervals.pop()
        one, other = supports[left], supports[right]
        if abs(one.slope - other.slope) * max(right - left, 0.0) <= ON_CURVE * size:
            continue
        t = (one.intercept - other.intercept) / (other.slope - one.slope)
        if not left < t < right:
            continue
        if len(supports) >= solves:
            slope = (other.at(right) - one.at(left)) / (right - left)
            chords.append((one.at(left) - slope * left, slope))
            continue
        supports[t] = _support(mdp, states, i, sign, t)
        if sign * (supports[t].at(t) - one.at(t)) > ON_CURVE * size:
            open_intervals += [(left, t), (t, right)]
    found = [supports[t] for t in sorted(supports)]
    lines = np.array([(support.intercept, support.slope) for support in found] + chords)
    return Envelope((lines[:, 0], lines[:, 1]), [support.policy for support in found], not chords)


def _support(mdp: FiniteMDP, states: tuple[int, int], i: int, sign: int, t: float) -> Support:
    """The line that touches the curve at t."""
    policy = greatest_values(_held(mdp, states[1 - i], t, sign)).policy
    policy[states[1 - i]] = mdp.allowed[states[1 - i]] / mdp.allowed[states[1 - i]].sum()
    reduced = two_state_mdp(mdp, states, policy)
    intercepts, slopes = lines_of(reduced, (0, 1), i)
    best = int(np.argmax(sign * (intercepts + slopes * t)))
    return Support(float(intercepts[best]), float(slopes[best]), policy)


def _held(mdp: FiniteMDP, state: int, t: float, sign: int) -> FiniteMDP:
    """The MDP in which a state ends the episode and pays t; with all rewards negated for the sign -1."""
    into = np.asarray(mdp.transitions[:, [state]].toarray()).reshape(mdp.rewards.shape)
    kept, terminal, allowed = np.ones(mdp.n_states), mdp.terminal.copy(), mdp.allowed.copy()
    kept[state], terminal[state], allowed[state] = 0.0, True, False
    rows = sparse.csr_array(sparse.diags_array(np.repeat(kept, mdp.n_actions)) @ mdp.transitions)
    rewards = np.where(allowed, sign * (mdp.rewards + mdp.gamma * t * into), 0.0)
    return FiniteMDP(rows, rewards, mdp.gamma, allowed=allowed, terminal=terminal)
