"""Two Krylov methods for linear systems of which only the product with a vector is known.

- `conjugate_gradients`, for symmetric positive definite systems: every Newton step of `ipe.inverse`.
- `bicgstab` (van der Vorst, 1992), for any other system: the values of a policy. It stops on the sup norm. SciPy's
  version stops on the 2-norm, too early or too late by a factor that grows with the number of states.

Inner products run in one thread (`ipe.base.arrays.dot`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ipe.base.arrays import Array, dot, sup


class Solved(NamedTuple):
    """What conjugate gradients end with."""

    x: Array
    products: int
    converged: bool
    """Whether the preconditioned residual fell to its target."""


def conjugate_gradients(
    product: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    b: Array,
    *,
    target: float,
    limit: int,
    enough: Callable[[Array, Array, float], bool] | None = None,
) -> Solved:
    r"""Solve `product(x) = b` by preconditioned conjugate gradients, in the precision of `b`.

    The method stops when :math:`r^\top M^{-1} r`, with the residual r and the preconditioner M, has fallen by
    the factor `target`; when `enough` says so; when a direction has no positive curvature; or after `limit` products.

    Args:
        product: multiplies the symmetric positive definite matrix by a vector, into a new array.
        precondition: applies :math:`M^{-1}` to a vector, into a new array.
        b: the right side.
        target: the factor by which :math:`r^\top M^{-1} r` is to fall.
        limit: how many products are allowed.
        enough: called after every step with x, the residual and the factor reached so far.

    Example:
        >>> A, b = np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([3.0, 5.0])
        >>> x, products, converged = conjugate_gradients(A.__matmul__, np.copy, b, target=1e-30, limit=9)
        >>> x.round(12), products, converged
        (array([0.8, 1.4]), 2, True)
    """
    x, residual = np.zeros_like(b), b.copy()
    z = precondition(residual)
    direction, rz = z.copy(), dot(residual, z)
    first, products = rz, 0
    while rz > target * first and products < limit:
        curved = product(direction)
        products += 1
        curvature = dot(direction, curved)
        if curvature <= 0:
            break
        alpha = rz / curvature
        x += alpha * direction
        curved *= alpha
        residual -= curved
        z = precondition(residual)
        previous, rz = rz, dot(residual, z)
        if enough is not None and enough(x, residual, rz / first):
            break
        direction *= rz / previous
        direction += z
    return Solved(x, products, rz <= target * first)


def bicgstab(product: Callable[[Array], Array], b: Array, target: float, limit: int) -> tuple[Array, int]:
    """Solve `product(x) = b` to a sup-norm residual of `target`, in at most `limit` iterations.

    Args:
        product: multiplies the matrix by a vector, into a new array.
        b: the right side.
        target: the residual wanted. The recurrence's residual is compared with it, so the caller checks the true one.
        limit: how many iterations, of two products each, are allowed.

    Returns:
        `x` when the target, the limit or a breakdown was reached, and the number of products.
    """
    x, r, p = np.zeros_like(b), b.copy(), b.copy()
    rho = np.float64(dot(b, r))
    with np.errstate(all="ignore"):  # a breakdown divides by zero
        for iteration in range(limit):
            image = product(p)
            alpha = rho / dot(b, image)
            if not np.isfinite(alpha):
                return x, 2 * iteration + 1
            x += alpha * p
            r -= alpha * image
            if sup(r) <= target:
                return x, 2 * iteration + 1
            t = product(r)
            omega = np.float64(dot(t, r)) / dot(t, t)
            if not np.isfinite(omega):
                return x, 2 * iteration + 2
            x += omega * r
            r -= omega * t
            before, rho = rho, np.float64(dot(b, r))
            beta = rho / before * alpha / omega
            if sup(r) <= target or not np.isfinite(beta):
                return x, 2 * iteration + 2
            p -= omega * image
            p *= beta
            p += r
    return x, 2 * limit
