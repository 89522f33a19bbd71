r"""Entropy matching: the epsilon whose epsilon-greedy policy is as random as a given policy.

The paper's epsilon-IPE looks it up in a table, which shows as steps in its Figure 2b. Here it is
solved, to the last digits that the dtype has.
"""

from __future__ import annotations

import numpy as np

from ipe.base.arrays import place
from ipe.base.numbers import whole_number
from ipe.entropy.arrays import (
    AnyArray,
    actions,
    broadcasts,
    check_range,
    concrete,
    count,
    detached,
    floating,
    like,
    mask,
    namespace,
)
from ipe.entropy.measures import deficit_of, distribution, entropy, entropy_deficit, entropy_of, entropy_of_leaving, phi
from ipe.entropy.softmax import normalised, shifted
from ipe.errors import InputError

TABLE_SIZE = 101
ENTROPY_TOLERANCE = 1e-5
"""How far rounding may have put an entropy outside [0, ln n]; in float32 ln n itself is off by 5e-7."""
SWITCH = 0.7
"""The fraction of ln n below which the entropy, above which the deficit is solved for."""


def epsilon_from_entropy(entropy: AnyArray, n: AnyArray, deficit: AnyArray | None = None) -> AnyArray:
    r"""The :math:`\epsilon` in [0, 1] at which epsilon-greedy with n actions has a given entropy.

    Solves :math:`H(\epsilon\text{-greedy}) = H`, where one action is greedy (`epsilon_greedy_entropy`):
    for :math:`H \le 0.7 \ln n` by Newton's method on :math:`\ln H` against :math:`\ln x`, else on
    :math:`\sqrt{D(y)} = \sqrt D`, :math:`y = 1 - \epsilon`, :math:`D = \ln n - H`; both from a start so
    close that five iterations suffice in float32, seven in float64.

    Near :math:`\epsilon = 1` the answer depends on :math:`\sqrt D`. Without `deficit`, D is computed as the difference
    :math:`\ln n - H`, which leaves only half of the digits of epsilon there (an error of 3e-4 in float32).
    `epsilon_from_probabilities` and `epsilon_from_logits` keep all digits.

    Args:
        entropy: H in nats, any shape; clipped to [0, ln n].
        n: the number of actions, at least 1; broadcasts to the shape of entropy.
        deficit: D, if it is known better than from H; the shape of entropy.

    Returns:
        :math:`\epsilon`, the shape of entropy.

    Example:
        >>> import numpy as np
        >>> round(float(epsilon_from_entropy(0.32508297339144820, 2)), 12)   # probabilities 0.9 and 0.1
        0.2
        >>> epsilon_from_entropy(np.array([0.0, np.log(3.0)]), 3)
        array([0., 1.])
    """
    h = floating(entropy, "entropy", n, deficit)
    _check_entropy(h, n)
    actions_n = like(h, n)
    if deficit is None:
        d = namespace(h).log(actions_n) - h
    else:
        broadcasts(tuple(np.shape(deficit)), tuple(h.shape), "deficit")
        check_range(deficit, "deficit", -ENTROPY_TOLERANCE)
        d = like(h, deficit)
    return _match(h, d, actions_n)


def epsilon_from_probabilities(pi: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The :math:`\epsilon` whose epsilon-greedy policy has the entropy of :math:`\pi`.

    As `epsilon_from_entropy`, accurate everywhere: the error is below 3e-7 in float32 and 1e-14 in
    float64. With two actions it is :math:`2 \min(\pi)`.

    Args:
        pi: probabilities, shape (..., A).
        allowed: boolean, broadcasts to (..., A): n is the number of allowed actions, row by row.

    Returns:
        :math:`\epsilon`, shape (...).

    Example:
        >>> import numpy as np
        >>> epsilon_from_probabilities(np.array([[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]]))
        array([0.4, 1. ])
    """
    probabilities, permitted = distribution(pi, allowed)
    if probabilities.shape[-1] <= 2:
        return _of_two(probabilities, permitted)
    solved = _match(entropy(pi, allowed), entropy_deficit(pi, allowed), count(permitted, probabilities))
    return _or_of_two(solved, probabilities, permitted)


def epsilon_from_logits(logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The :math:`\epsilon` whose epsilon-greedy policy has the entropy of `softmax(logits)`.

    As `epsilon_from_probabilities`, which it agrees with, but it keeps what the probabilities round away.

    Args:
        logits: :math:`\theta`, shape (..., A).
        allowed: boolean, broadcasts to (..., A): n is the number of allowed actions, row by row.

    Returns:
        :math:`\epsilon`, shape (...).

    Example:
        >>> import numpy as np
        >>> epsilon_from_logits(np.log(np.array([7.0, 1.0, 1.0, 1.0])))
        array(0.4)
    """
    logits = actions(logits, "logits")
    permitted = mask(logits, allowed)
    z, powers = shifted(logits, permitted)
    probabilities = normalised(powers)
    if logits.shape[-1] <= 2:
        return _of_two(probabilities, permitted)
    solved = _match(entropy_of(z, powers), deficit_of(z, powers, permitted), count(permitted, logits))
    return _or_of_two(solved, probabilities, permitted)


def epsilon_table(entropy: AnyArray, n: AnyArray, size: int = TABLE_SIZE) -> AnyArray:
    r"""The paper's lookup table: of `size` evenly spaced epsilons, the one of the nearest entropy.

    Kept to show the steps of the paper's Figure 2b; `epsilon_from_entropy` is the answer. The paper does
    not give the size of its table: the default 101 holds the hundredths 0, 0.01, ..., 1.

    Args:
        entropy: H in nats, any shape.
        n: the number of actions, at least 1; broadcasts to the shape of entropy.
        size: how many epsilons the table holds, at least 2.

    Returns:
        :math:`\epsilon`, the shape of entropy.

    Example:
        >>> float(epsilon_table(0.3, 2, size=11))   # exactly: 0.1777
        0.2
    """
    size = whole_number(size, "size", 2)
    h = floating(entropy, "entropy", n)
    xp = namespace(h)
    _check_entropy(h, n)
    epsilons = like(h, np.linspace(0.0, 1.0, size))
    actions_n = like(h, n)[..., None]
    table = entropy_of_leaving(epsilons * ((actions_n - 1.0) / actions_n), actions_n)
    return epsilons[xp.argmin(xp.abs(h[..., None] - table), axis=-1)]


def _check_entropy(h: AnyArray, n: AnyArray) -> None:
    broadcasts(tuple(np.shape(n)), tuple(h.shape), "n")
    check_range(n, "n", 1.0)
    values, count_n = concrete(h), concrete(n)
    if values is None or count_n is None:
        return
    top = np.broadcast_to(np.log(count_n), values.shape)
    wrong = ~((values >= -ENTROPY_TOLERANCE) & (values <= top + ENTROPY_TOLERANCE))
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise InputError(f"entropy{place(at)} = {values[at]:g} is outside [0, ln n] = [0, {top[at]:.6g}] (in nats)")


def _of_two(probabilities: AnyArray, permitted: AnyArray) -> AnyArray:
    """Exact for one or two actions: twice the smaller probability."""
    xp = namespace(probabilities)
    smaller = xp.amin(xp.where(permitted, probabilities, 1.0), axis=-1)
    return xp.where(count(permitted, probabilities) == 2, xp.clip(2.0 * smaller, None, 1.0), 0.0 * smaller)


def _or_of_two(solved: AnyArray, probabilities: AnyArray, permitted: AnyArray) -> AnyArray:
    two = count(permitted, probabilities) == 2
    return namespace(solved).where(two, _of_two(probabilities, permitted), solved)


def _match(h: AnyArray, d: AnyArray, n: AnyArray) -> AnyArray:
    """Run both solvers, each on a harmless input where the other one gives the answer.

    With NumPy a solver that is needed nowhere is not run.
    """
    xp = namespace(h)
    info = xp.finfo(h.dtype)
    iterations = 7 if info.eps < 1e-10 else 5
    several = xp.where(n < 2, 2.0, n) + xp.zeros_like(h)
    top = xp.log(several)
    low = (n >= 2) & (h <= SWITCH * top) & (h > 1e4 * info.tiny)
    high = (n >= 2) & (h > SWITCH * top) & (d > 1e-4 * info.eps**2)  # below, 1 - y is 1
    x, y = xp.zeros_like(h), xp.zeros_like(h)
    if xp is not np or low.any():
        x = _solve_entropy(xp.where(low, h, 0.5 * top), several, iterations)
    if xp is not np or high.any():
        y = _solve_deficit(xp.where(high, d, 0.2 * top), several, iterations)
    epsilon = xp.where(low, xp.clip(x * (several / (several - 1.0)), 0.0, 1.0), 0.0)
    epsilon = xp.where((n >= 2) & (h > SWITCH * top), xp.where(high, 1.0 - y, 1.0), epsilon)
    return xp.where(h == h, epsilon, h)  # a NaN stays one


def _solve_entropy(h: AnyArray, n: AnyArray, iterations: int) -> AnyArray:
    """x with H(x) = h. The steps multiply, so that a small x keeps its digits."""
    xp = namespace(h)
    others = xp.log(n - 1.0)
    given = detached(h)
    u = others - xp.log(given)
    x = given / (1.0 + xp.sqrt(2.0 * u) + u)  # u > 0: h <= 0.7 ln n < n - 1
    for _ in range(iterations):
        value = entropy_of_leaving(x, n)
        slope = xp.log1p(-x) - xp.log(x) + others
        x = x * xp.exp(-xp.log(value / given) * value / (x * slope))
    # Adds 0. Its derivative is that of the root, which so need not be taken through the iterations.
    return x + (h - given) / slope


def _solve_deficit(d: AnyArray, n: AnyArray, iterations: int) -> AnyArray:
    """y with D(y) = d, where D(y) = (phi((n-1) y) + (n-1) phi(-y)) / n. Above 0.7 ln n it is at most 0.65."""
    xp = namespace(d)
    given = detached(d)
    root = xp.sqrt(given)
    y = root * xp.sqrt(2.0 / (n - 1.0))
    for _ in range(iterations):
        value = (phi((n - 1.0) * y) + (n - 1.0) * phi(-y)) / n
        slope = (xp.log1p((n - 1.0) * y) - xp.log1p(-y)) * ((n - 1.0) / n)
        at = xp.sqrt(value)
        y = xp.clip(y - (at - root) * 2.0 * at / slope, 0.0, 0.99)
    return y + (d - given) / slope  # as above
