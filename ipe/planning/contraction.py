r"""The guarantees of this room: how fast the Bellman operators contract, and what float64 adds.

Write :math:`\underline\beta, \bar\beta` for :math:`\gamma` times the least and the largest probability with which
a pair (s, a) leads to a state that is not terminal: both are :math:`\gamma` when nothing is terminal. From
:math:`d = TV - V` on the states that are not terminal follow, for :math:`T = T^*` or :math:`T^\pi`, MacQueen's
bounds on the fixed point,

.. math::
    TV + \frac{\beta}{1-\beta} \min d \;\le\; V_{\text{fixed}} \;\le\; TV + \frac{\beta}{1-\beta} \max d,

with :math:`\beta = \underline\beta` for a positive minimum or a negative maximum and :math:`\bar\beta` otherwise:
the k-th further sweep moves no state by less than :math:`\beta^k \min d` or by more than :math:`\beta^k \max d`.
A terminal state is worth 0 throughout and needs no bound. Without terminal states the middle of the two sides
is returned, which halves the error or better. With them it is not: a constant added to all the other states is not
carried through T, so that the middle, though nearer, would be a worse start for anything that sweeps again.

A computed sweep is off by at most `roundings * 2^-53 * (max|r| + max|v|)` (a sum of n products, in
any order), and the bounds are widened by that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ipe.base.arrays import Array, Mask, sup
from ipe.errors import InputError

UNIT = 2.0**-53  # the largest relative error of one operation in float64
UNDERFLOW = 2.0**-1074  # the largest absolute error of one whose result is smaller than float64 resolves
OVERFLOW = 1e300  # larger values are refused


@dataclass(frozen=True)
class Contraction:
    r"""The moduli :math:`\underline\beta` and :math:`\bar\beta` of an operator, and the rounding of its sweeps."""

    low: float
    high: float
    roundings: int
    reward: float

    def rounding(self, v: Array) -> float:
        """How far a computed sweep from `v`, or its difference to `v`, may be from the true one."""
        return self.roundings * (UNIT * (self.reward + sup(v)) + UNDERFLOW)

    def enough_sweeps(self, distance: float, target: float) -> int:
        """After how many sweeps a difference between successive values of `distance` is at most `target`."""
        if self.high == 0.0 or distance <= target:
            return 1
        return 1 + int(np.ceil(np.log(target / distance) / np.log(self.high)))


class Interval(NamedTuple):
    """The fixed point lies within `error` of `tv + shift`; `shift` is 0 if there are terminal states."""

    shift: float
    error: float
    floor: float
    """The least error that float64 can guarantee: the value of `error` if the computed difference were 0."""


def contraction(rows: Any, present: Mask, live: Mask, gamma: float, rewards: Array, additions: int) -> Contraction:
    """The contraction of the operator with these rows.

    Args:
        rows: the sparse matrix of a sweep, `v -> rewards + gamma * rows @ v`.
        present: its rows that exist.
        live: the states that are not terminal.
        gamma: the discount.
        rewards: one per row.
        additions: how many more roundings an entry takes part in after the sum over its row.
    """
    mass = np.where(present, rows @ live.astype(np.float64), np.nan)
    longest = int(np.diff(rows.indptr).max(initial=0))
    roundings = longest + additions + 5  # times gamma, plus the reward, minus v; a product more; second-order terms
    if not present.any():
        return Contraction(0.0, 0.0, roundings, 0.0)
    low = gamma * float(np.nanmin(mass)) * (1 - roundings * UNIT)
    high = gamma * float(np.nanmax(mass)) * (1 + roundings * UNIT)
    if high >= 1.0:
        row = int(np.nanargmax(mass))
        state = row // (rows.shape[0] // rows.shape[1])
        raise InputError(
            f"gamma = {gamma!r} times the sum {mass[row]:.12g} of a row of probabilities in state {state} is not "
            f"below 1: the values need not be finite"
        )
    reward = sup(rewards)
    if reward > OVERFLOW * (1 - high):
        raise InputError(
            f"rewards of size {reward:.3g} with gamma = {gamma!r} make values as large as "
            f"{reward:.3g} / {1 - high:.3g}, more than float64 can compute with"
        )
    return Contraction(low, high, roundings, reward)


def fixed_point_interval(modulus: Contraction, v: Array, tv: Array, live: Mask) -> Interval:
    """MacQueen's bounds around `tv`, the computed sweep from `v`, widened by the rounding."""
    smallest, largest = _range(tv - v, live)
    rounding = modulus.rounding(v)
    low = -_reach(modulus, -(smallest - rounding)) - rounding
    high = _reach(modulus, largest + rounding) + rounding
    floor = rounding / (1 - modulus.high)
    if not live.all():
        return Interval(0.0, max(high, -low), floor)
    shift = (low + high) / 2
    added = 2 * UNIT * (sup(tv) + abs(shift))  # by the sum tv + shift
    return Interval(shift, (high - low) / 2 + added, floor + added)


def lower_bound(modulus: Contraction, v: Array, tv: Array, live: Mask) -> float:
    """The largest known c with `fixed point >= v + c` in every state that is not terminal."""
    smallest = _range(tv - v, live)[0] - modulus.rounding(v)
    return smallest - _reach(modulus, -smallest)


def _reach(modulus: Contraction, step: float) -> float:
    """How far up the sweeps after one that rose by at most `step` can still lead."""
    beta = modulus.high if step >= 0 else modulus.low
    return step * beta / (1 - beta)


def _range(difference: Array, live: Mask) -> tuple[float, float]:
    moving = difference if live.all() else difference[live]
    return (float(moving.min()), float(moving.max())) if moving.size else (0.0, 0.0)
