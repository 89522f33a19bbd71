r"""Mehrotra's predictor and corrector: one step of a primal-dual interior-point method.

An interior-point method keeps slacks :math:`x > 0` (how far each inequality is from being tight) and multipliers
:math:`z > 0`, and drives every product :math:`x_i z_i` to 0 along a path on which all products are equal. A Newton
direction towards products :math:`c_i` is a linear function of the targets :math:`c - x z`. The predictor aims at 0. How
much of the way it can go tells the corrector which positive value to aim at, and the predictor's own change tells it
the second-order error :math:`dx\, dz` to take off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ipe.base.arrays import Array, dot

Arrays: TypeAlias = tuple[Array, ...]

TO_BOUNDARY = 0.995
"""The part of the way to the nearest boundary that a step goes."""


class Change(NamedTuple):
    """A Newton direction: the change of the unknowns, of the slacks and of the multipliers."""

    unknowns: Any
    slacks: Arrays
    multipliers: Arrays


class Step(NamedTuple):
    """A direction with the lengths of the primal and the dual step along it, and the mean product at its start."""

    change: Change
    primal: float
    dual: float
    barrier: float


def mehrotra_step(
    slacks: Arrays,
    multipliers: Arrays,
    direction: Callable[[Arrays], Change],
    *,
    equal_lengths: bool = False,
    inner: Callable[[Array, Array], float] = dot,
) -> Step:
    """The predictor's and the corrector's direction, and a step to 99.5% of the way to the boundary.

    Args:
        slacks: arrays of positive numbers.
        multipliers: positive numbers of the same shapes.
        direction: the Newton direction for given targets, one array per slack.
        equal_lengths: whether primal and dual steps must have the same length, as in quadratic problems.
        inner: the inner product of two vectors.
    """
    count = sum(len(x) for x in slacks)
    barrier = float(sum(inner(x, z) for x, z in zip(slacks, multipliers, strict=True))) / count
    targets = tuple(-x * z for x, z in zip(slacks, multipliers, strict=True))
    change = direction(targets)
    primal, dual = _lengths(slacks, multipliers, change, equal_lengths)
    ahead = sum(
        inner(x + primal * dx, z + dual * dz)
        for x, dx, z, dz in zip(slacks, change.slacks, multipliers, change.multipliers, strict=True)
    )
    centre = barrier * (float(ahead) / count / barrier) ** 3
    targets = tuple(
        centre + target - dx * dz for target, dx, dz in zip(targets, change.slacks, change.multipliers, strict=True)
    )
    change = direction(targets)
    primal, dual = (min(1.0, TO_BOUNDARY * length) for length in _lengths(slacks, multipliers, change, equal_lengths))
    return Step(change, primal, dual, barrier)


def moved(values: Arrays, changes: Arrays, length: float) -> Arrays:
    """The values after a step of that length."""
    return tuple(value + length * change for value, change in zip(values, changes, strict=True))


def _lengths(slacks: Arrays, multipliers: Arrays, change: Change, equal: bool) -> tuple[float, float]:
    primal, dual = _longest_step(slacks, change.slacks), _longest_step(multipliers, change.multipliers)
    return (min(primal, dual),) * 2 if equal else (primal, dual)


def _longest_step(values: Arrays, changes: Arrays) -> float:
    """The longest step, at most 1, that keeps every value from turning negative."""
    step = 1.0
    for value, change in zip(values, changes, strict=True):
        falling = change < 0
        if falling.any():
            with np.errstate(over="ignore"):  # a change so small that it allows any step
                step = min(step, float((-value[falling] / change[falling]).min()))
    return step
