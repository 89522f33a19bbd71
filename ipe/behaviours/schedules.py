r"""Schedules: an epsilon that depends on the step alone."""

from __future__ import annotations

from ipe.entropy.arrays import AnyArray, check_range, namespace


def linear_schedule(step: AnyArray, initial: AnyArray, final: AnyArray, steps: AnyArray) -> AnyArray:
    r"""Epsilon on a straight line: `initial` at step 0, `final` from step `steps` on.

    From 1 that is :math:`\epsilon_t = \max(\epsilon_N, 1 - (1 - \epsilon_N)\, t/N)`, the usual annealing.

    Args:
        step: t, counted from 0.
        initial, final: the two ends, in [0, 1].
        steps: N > 0.

    Example:
        >>> [float(linear_schedule(t, 1.0, 0.1, 100)) for t in (0, 50, 100, 101)]
        [1.0, 0.55, 0.1, 0.1]
    """
    _check_schedule(step, initial, final, steps)
    done = _progress(step, steps)
    return (1.0 - done) * initial + done * final


def exponential_schedule(step: AnyArray, initial: AnyArray, final: AnyArray, steps: AnyArray) -> AnyArray:
    r"""Epsilon by a constant factor per step: `initial` at step 0, `final` from step `steps` on.

    :math:`\epsilon_t = \epsilon_0 (\epsilon_N / \epsilon_0)^{\min(t/N, 1)}`. A decay by the factor f per step
    down to :math:`\epsilon_N` is :math:`N = \ln(\epsilon_N/\epsilon_0) / \ln f`.

    Args:
        step: t, counted from 0.
        initial, final: the two ends, in (0, 1].
        steps: N > 0.

    Example:
        >>> [round(float(exponential_schedule(t, 1.0, 0.01, 100)), 12) for t in (0, 50, 100, 101)]
        [1.0, 0.1, 0.01, 0.01]
    """
    _check_schedule(step, initial, final, steps, strict=True)
    done = _progress(step, steps)
    return initial ** (1.0 - done) * final**done


SCHEDULES = {"linear": linear_schedule, "exponential": exponential_schedule}
"""The schedules by name."""


def _progress(step: AnyArray, steps: AnyArray) -> AnyArray:
    xp = namespace(step, steps)
    return xp.clip(xp.asarray(step) / xp.asarray(steps), 0.0, 1.0)


def _check_schedule(
    step: AnyArray, initial: AnyArray, final: AnyArray, steps: AnyArray, *, strict: bool = False
) -> None:
    check_range(step, "step", 0.0)
    check_range(steps, "steps", 0.0, strict=True)
    for name, end in (("initial", initial), ("final", final)):
        check_range(end, name, 0.0, 1.0, strict=strict)
