r"""What changes from step to step: schedules of epsilon, VDBE's epsilon, the conservative policy."""

from __future__ import annotations

from ipe.behaviours.policies import greedy
from ipe.entropy.arrays import AnyArray, actions, broadcasts, check_range, like, namespace, per_row


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


def vdbe_update(
    epsilon: AnyArray, delta: AnyArray, alpha: AnyArray, sigma: AnyArray, n: AnyArray, rate: AnyArray | None = None
) -> AnyArray:
    r"""Epsilon from value differences (VDBE; Tokic, 2010), the known adaptive epsilon-greedy.

    For the state whose action was just updated by :math:`\alpha \delta`,

    .. math::
        \epsilon(s) \leftarrow c \, \frac{1 - e^{-|\alpha\delta|/\sigma}}{1 + e^{-|\alpha\delta|/\sigma}}
        + (1 - c) \, \epsilon(s).

    Args:
        epsilon: :math:`\epsilon(s)`; Tokic starts it at 1.
        delta: the temporal-difference error of the action-value update.
        alpha: the step size of that update.
        sigma: the inverse sensitivity, > 0.
        n: the number of actions allowed in s.
        rate: c in [0, 1]. Default: 1/n.

    Returns:
        The new :math:`\epsilon(s)`.

    Example:
        >>> round(float(vdbe_update(1.0, delta=0.0, alpha=0.5, sigma=1.0, n=2)), 6)
        0.5
    """
    check_range(epsilon, "epsilon", 0.0, 1.0)
    check_range(sigma, "sigma", 0.0, strict=True)
    check_range(n, "n", 1.0)
    check_range(0.0 if rate is None else rate, "rate", 0.0, 1.0)
    xp = namespace(epsilon, delta, alpha, sigma, n, rate)
    rate = 1.0 / n if rate is None else rate
    # (1 - e^-x) / (1 + e^-x) = tanh(x / 2)
    return rate * xp.tanh(xp.abs(xp.asarray(alpha * delta)) / (2.0 * sigma)) + (1.0 - rate) * epsilon


def conservative_update(average: AnyArray, q: AnyArray, rate: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The conservative policy, a moving average of greedy ones.

    .. math:: \pi \leftarrow (1-c)\,\pi + c\,\mathrm{greedy}(Q)

    The idea of conservative policy iteration (Kakade and Langford, 2002). The policy is itself the
    behaviour; start it with `ipe.entropy.uniform`.

    Args:
        average: the policy so far, shape (..., A).
        q: action values, shape (..., A).
        rate: c in [0, 1], broadcasts to (...).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        The new policy, shape (..., A).

    Example:
        >>> import numpy as np
        >>> conservative_update(np.array([0.5, 0.5]), np.array([0.0, 1.0]), 0.2)
        array([0.4, 0.6])
    """
    average = actions(average, "average")
    check_range(rate, "rate", 0.0, 1.0)
    rate = per_row(average, rate, "rate")[..., None]
    q = like(average, q)
    broadcasts(tuple(q.shape), tuple(average.shape), "q")
    return (1.0 - rate) * average + rate * greedy(q, allowed)


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
