"""BiCGSTAB (van der Vorst, 1992) with the sup norm as its stopping rule.

SciPy's stops on the 2-norm, too early or too late by a factor that grows with the number of states. Its inner
products go through a threaded BLAS besides, which on busy cores waits longer than a sweep takes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ipe.base.arrays import Array
from ipe.planning.contraction import sup


def bicgstab(product: Callable[[Array], Array], b: Array, target: float, limit: int) -> tuple[Array, int]:
    """Solve `product(x) = b` to a sup-norm residual of `target`, in at most `limit` iterations.

    Args:
        product: the matrix, as the function that multiplies by it into a new array.
        b: the right side.
        target: the residual wanted; the residual is the recurrence's, so the caller looks at the true one.
        limit: iterations of two products each.

    Returns:
        `x` when the target, the limit or a breakdown was reached, and the number of products.
    """
    x, r, p = np.zeros_like(b), b.copy(), b.copy()
    rho = _dot(b, r)
    with np.errstate(all="ignore"):  # a breakdown divides by zero
        for iteration in range(limit):
            image = product(p)
            alpha = rho / _dot(b, image)
            if not np.isfinite(alpha):
                return x, 2 * iteration + 1
            x += alpha * p
            r -= alpha * image
            if sup(r) <= target:
                return x, 2 * iteration + 1
            t = product(r)
            omega = _dot(t, r) / _dot(t, t)
            if not np.isfinite(omega):
                return x, 2 * iteration + 2
            x += omega * r
            r -= omega * t
            before, rho = rho, _dot(b, r)
            beta = rho / before * alpha / omega
            if sup(r) <= target or not np.isfinite(beta):
                return x, 2 * iteration + 2
            p -= omega * image
            p *= beta
            p += r
    return x, 2 * limit


def _dot(x: Array, y: Array) -> np.float64:
    return np.float64(np.einsum("i,i->", x, y))
