r"""Entropy matching with Boltzmann policies: the inverse temperature at which softmax is as random as a given policy.

`ipe.entropy.matching` spreads the entropy of a policy evenly over all actions. Here it is spread by value: a better
action is more likely, and among policies with this entropy none has a larger expected Q. The entropy
:math:`H(\eta)` of :math:`b = \mathrm{softmax}(\eta Q)` falls from :math:`\ln n` at :math:`\eta = 0` to
:math:`\ln m` at :math:`\eta = \infty`, where m is the number of actions that tie at the top, and
:math:`H'(\eta) = -\eta \mathrm{Var}_b(Q)`; so there is one solution for every entropy in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ipe.entropy.arrays import AnyArray, actions, broadcasts, count, detached, mask, namespace, sum_actions
from ipe.entropy.measures import deficit_of, distribution, entropy, entropy_deficit, entropy_of, mean_phi
from ipe.entropy.softmax import normalised, shifted, uniform

MOST_ITERATIONS = 60
"""Newton's method takes three to eight iterations; only values that nearly tie at the top take more, up to 40."""


def boltzmann_from_logits(q: AnyArray, logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The Boltzmann policy of Q that has the entropy of `softmax(logits)`.

    .. math:: b = \mathrm{softmax}(\eta Q(s, \cdot)),\ \eta \ge 0,\quad H(b) = H(\mathrm{softmax}(\theta(s, \cdot))).

    There is no temperature to choose, and no scale: Q and :math:`c Q + d` give the same b for every :math:`c > 0`.
    Below :math:`\ln m`, the entropy of the m actions that tie at the top of Q, b is uniform over these; where all
    actions are equal it is uniform. With two actions b has the probabilities of the policy, the larger one on the
    better action.

    The entropy of b is that of the policy to 1e-6 in float32 and 1e-14 in float64. The probabilities are as
    accurate, except where values nearly tie: there H hardly depends on :math:`\eta` and the probabilities have half
    the digits.

    Args:
        q: action values, shape (..., A).
        logits: :math:`\theta` of the policy, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Probabilities, shape (..., A).

    Example:
        >>> import numpy as np
        >>> b = boltzmann_from_logits(np.array([1.0, 0.5, 0.0]), np.array([0.0, 2.0, 1.0]))
        >>> np.round(b, 4)
        array([0.6652, 0.2447, 0.09  ])
    """
    return _boltzmann(q, *_of_logits(logits, allowed), allowed)


def boltzmann_from_probabilities(q: AnyArray, pi: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The Boltzmann policy of Q that has the entropy of the policy :math:`\pi`; see `boltzmann_from_logits`.

    Args:
        q: action values, shape (..., A).
        pi: probabilities, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        Probabilities, shape (..., A).

    Example:
        >>> import numpy as np
        >>> boltzmann_from_probabilities(np.array([[2.0, 3.0], [2.0, 2.0]]), np.array([[0.9, 0.1], [0.9, 0.1]]))
        array([[0.1, 0.9],
               [0.5, 0.5]])
    """
    probabilities, _ = distribution(pi, allowed)
    return _boltzmann(q, entropy(pi, allowed), entropy_deficit(pi, allowed), probabilities, allowed)


def inverse_temperature_from_logits(q: AnyArray, logits: AnyArray, allowed: AnyArray | None = None) -> AnyArray:
    r"""The :math:`\eta \ge 0` of `boltzmann_from_logits`, :math:`b = \mathrm{softmax}(\eta Q)`.

    Args:
        q: action values, shape (..., A).
        logits: :math:`\theta` of the policy, shape (..., A).
        allowed: boolean, broadcasts to (..., A). Default: all.

    Returns:
        :math:`\eta`, shape (...), in units of 1/Q; :math:`\infty` where b is greedy, 0 where it is uniform.

    Example:
        >>> import numpy as np
        >>> eta = inverse_temperature_from_logits(np.array([0.0, 10.0]), np.log(np.array([9.0, 1.0])))
        >>> float(np.round(eta, 6))   # ln 9 / 10
        0.219722
    """
    q, (h, d, pi) = actions(q, "q"), _of_logits(logits, allowed)
    broadcasts(tuple(pi.shape), tuple(q.shape), "logits")
    permitted = mask(q, allowed)
    z, half_spread, n, m = _scaled(q, permitted)
    eta, between, greedy = _solve(z, permitted, n, m, h + 0.0 * n, d + 0.0 * n)
    xp = namespace(eta)
    flat = half_spread == 0
    return xp.where(between, 0.5 * eta / xp.where(flat, 1.0, half_spread), xp.where(greedy & ~flat, xp.inf, 0.0 * eta))


def _of_logits(logits: AnyArray, allowed: AnyArray | None) -> tuple[AnyArray, AnyArray, AnyArray]:
    """The entropy of `softmax(logits)`, how far it is below its maximum, and the probabilities."""
    logits = actions(logits, "logits")
    permitted = mask(logits, allowed)
    z, powers = shifted(logits, permitted)
    return entropy_of(z, powers), deficit_of(z, powers, permitted), normalised(powers)


def _boltzmann(q: AnyArray, h: AnyArray, d: AnyArray, pi: AnyArray, allowed: AnyArray | None) -> AnyArray:
    """The Boltzmann policy of q with entropy h and deficit d; `pi` is a policy that has them."""
    q = actions(q, "q")
    broadcasts(tuple(pi.shape), tuple(q.shape), "logits")
    xp = namespace(q, pi)
    permitted = mask(q, allowed)
    z, _, n, m = _scaled(q, permitted)
    h, d = h + 0.0 * n, d + 0.0 * n
    eta, between, greedy = _solve(z, permitted, n, m, h, d)
    top = permitted & (z == 0)
    solved = normalised(xp.where(permitted, xp.exp(xp.where(between, eta, 0.0)[..., None] * z), 0.0))
    two = _with_two(pi, top, permitted)
    solved = xp.where(((n == 2) & (m == 1))[..., None], two, solved)
    solved = xp.where(greedy[..., None], uniform(q, top), solved)
    unknown = (h != h)[..., None] | xp.any(permitted & (q != q), axis=-1)[..., None]
    return xp.where(unknown & permitted, xp.nan, solved)  # a NaN stays one


def _with_two(pi: AnyArray, top: AnyArray, permitted: AnyArray) -> AnyArray:
    """With two actions: the larger probability of the policy on the better one, exactly."""
    xp = namespace(pi)
    larger = xp.amax(pi, axis=-1)[..., None]
    smaller = xp.amin(xp.where(permitted, pi, 1.0), axis=-1)[..., None]
    return xp.where(top, larger, xp.where(permitted, smaller, 0.0))


def _scaled(q: AnyArray, permitted: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
    """z = (q - max q) / spread in [-1, 0], half the spread, how many actions there are, and how many tie at the top."""
    xp = namespace(q)
    halves, _ = shifted(0.5 * q, permitted)  # half of them: their difference cannot overflow
    half_spread = -xp.amin(xp.where(permitted, halves, 0.0), axis=-1)
    z = halves / xp.where(half_spread == 0, 1.0, half_spread)[..., None]
    return z, half_spread, count(permitted, q), count(permitted & (z == 0), q)


def _solve(
    z: AnyArray, permitted: AnyArray, n: AnyArray, m: AnyArray, h: AnyArray, d: AnyArray
) -> tuple[AnyArray, AnyArray, AnyArray]:
    r"""The inverse temperature on z; where there is one; and where the policy is greedy instead.

    With :math:`D = \ln n - H` and :math:`T = H - \ln m`, the function :math:`y = \ln D - \ln T` of
    :math:`x = \ln \eta` increases from :math:`-\infty` to :math:`\infty`,
    :math:`dy/dx = \eta^2 \mathrm{Var}_b(z) (1/D + 1/T)`. Newton's method on it, kept between two bounds: a step that
    leaves them is replaced by their middle.
    """
    xp = namespace(z)
    info = xp.finfo(z.dtype)
    z, h, d = detached(z), detached(h), detached(d)
    safe_m = xp.clip(m, 1.0, None)
    t = h - xp.log(safe_m)
    greedy = (t <= xp.where(m < 2, 1e4 * info.tiny, 4.0 * info.eps)) & (m < n)
    between = (m >= 1) & (m < n) & ~greedy & (d > 1e-4 * info.eps**2)
    t, d = xp.where(between, t, 0.5), xp.where(between, d, 0.5)
    others = xp.where(between, (n - m) / safe_m, 1.0)
    gap = xp.amin(xp.where(permitted & (z < 0), -z, 1.0), axis=-1)
    low = 0.5 * xp.log(8.0 * d)  # Var <= 1/4, so D <= eta^2 / 8
    k = xp.clip(xp.log(others) - xp.log(t), 1.0, None)
    high = xp.log((k + 2.0 * xp.log1p(k) + 2.0) / gap)  # there T <= others (1 + eta gap) exp(-eta gap) is small enough
    high = xp.where(high > low, high, low + 1.0)
    mean = sum_actions(xp.where(permitted, z, 0.0)) / xp.clip(n, 1.0, None)
    variance = sum_actions(xp.where(permitted, (z - mean[..., None]) ** 2, 0.0)) / xp.clip(n, 1.0, None)
    x = 0.5 * xp.log(2.0 * d / xp.where(between, variance, 1.0))  # exact for small D
    x = xp.where(x < low, low, xp.where(x > high, high, x))
    goal = xp.log(d) - xp.log(t)

    def newton(state: tuple[AnyArray, ...]) -> tuple[AnyArray, ...]:
        x, low, high, done = state
        y, slope = _balance(xp.exp(x), z, permitted, n, safe_m)
        f = y - goal
        low, high = xp.where(f < 0, x, low), xp.where(f < 0, high, x)
        after = x - f / slope
        after = xp.where((after > low) & (after < high), after, 0.5 * (low + high))
        near = xp.abs(after - x) <= 2.0 * info.eps * (1.0 + xp.abs(x))
        return xp.where(done, x, after), low, high, done | near | ~(f == f)

    x, *_ = until_all(newton, (x, low, high, ~between), xp)
    return xp.exp(x), between, greedy


def _balance(eta: AnyArray, z: AnyArray, permitted: AnyArray, n: AnyArray, m: AnyArray) -> tuple[AnyArray, AnyArray]:
    r""":math:`\ln D - \ln T` at an inverse temperature, and its derivative by :math:`\ln \eta`; nothing cancels."""
    xp = namespace(z)
    exponents = eta[..., None] * z
    below = xp.where(permitted, xp.expm1(exponents), 0.0)
    powers = xp.where(permitted, xp.exp(exponents), 0.0)
    rest = sum_actions(xp.where(z < 0, powers, 0.0))
    total = m + rest
    lost = sum_actions(powers * -z)
    tail = xp.log1p(rest / m) + eta * lost / total
    # n b - 1, from expm1 where b is close to 1/n and from the powers where it is close to 0.
    scale = (n / total)[..., None]
    t = powers * scale - 1.0
    accurate = (below - (sum_actions(below) / n)[..., None]) * scale
    deficit = mean_phi(xp.where((total > 0.5 * n)[..., None] & (xp.abs(t) < 0.5), accurate, t), permitted, n[..., None])
    mean = -lost / total
    variance = sum_actions(powers * (z - mean[..., None]) ** 2) / total
    tiny = xp.finfo(z.dtype).tiny
    deficit, tail = xp.clip(deficit, tiny, None), xp.clip(tail, tiny, None)
    slope = eta * eta * variance * (1.0 / deficit + 1.0 / tail)
    return xp.log(deficit) - xp.log(tail), xp.clip(slope, tiny, None)


def until_all(step: Callable[[tuple[Any, ...]], tuple[Any, ...]], state: tuple[Any, ...], xp: Any) -> tuple[Any, ...]:
    """Repeat a step until the last part of the state is true everywhere: compiled by JAX, a plain loop elsewhere."""
    if xp.__name__ == "jax.numpy":
        import jax

        def going(carried: tuple[Any, tuple[Any, ...]]) -> Any:
            return (carried[0] < MOST_ITERATIONS) & ~xp.all(carried[1][-1])

        return jax.lax.while_loop(going, lambda carried: (carried[0] + 1, step(carried[1])), (0, state))[1]
    for _ in range(MOST_ITERATIONS):
        if xp.all(state[-1]):
            break
        state = step(state)
    return state
