r"""The linear systems of interior-point methods: :math:`(A^\top \Theta A + E)\, x = b` with positive diagonals.

Each row of A touches a few states, so the matrix of the system is sparse, but its Cholesky factor need not be: states
that reach many others fill it. On a grid, a queue or a walk the factor stays sparse at any size. On a random graph it
is dense. What decides is not the number of states but how wide the graph of the states is: `predicted_work` puts the
states in a narrow order (reverse Cuthill-McKee, milliseconds) and reads the fill of the factor off its bandwidth. A few
hubs, which many rows lead to, make any order wide, but they cost little when they come last; so they are set aside.

- Sparse factors come from SuperLU, without pivots, in an order of little fill. A few conjugate gradients with that
  factor as their preconditioner remove what rounding and a rank-one term leave.
- Dense factors come from LAPACK. Before those are formed, conjugate gradients are tried, which suffice while the
  system is well conditioned.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from time import monotonic
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from ipe.base.arrays import Array, Mask, dot
from ipe.inverse.cholesky import cholesky, mirror
from ipe.inverse.watch import TimeOverError, Watch
from ipe.planning.krylov import conjugate_gradients

Solve: TypeAlias = Callable[[Array], Array]

ALWAYS_DIRECT = 1500
"""States up to which a dense factor costs so little that conjugate gradients are not tried."""
DENSE_UP_TO = 12_000
"""States up to which a dense factor (8 bytes times their square) is affordable."""
SPARSE_FLOPS = 4e10
"""Work of one sparse factorisation, some 20 seconds, up to which interior points are affordable."""
SPARSE_ENTRIES = 2e8
"""Entries of a sparse factor that still fit: with their indices, twice, some gigabytes."""
HUB = 8.0
"""How many times as many rows as on average lead to a state that is called a hub."""
HUBS_FROM = 1e7
"""Work of a factor from which hubs are looked for: below, there is nothing to gain."""
MAX_CG_STEPS = 300
CG_TOLERANCE = 1e-13
"""The factor by which the squared residual of a system must fall. An inexact step spoils the dual equations of an
interior-point method, and with them its lower bound."""
LONG_FLOPS = 1e9
"""Work of a sparse factorisation, some tenths of a second, from which it runs in a thread that is watched."""
FASTEST = 5e9
"""Operations per second of a sparse factorisation at best: one that cannot end in time is not begun."""
REFINEMENT_STEPS = 12
REFINED = 1e-28
"""The factor by which refinement lowers the squared residual: to rounding."""
REGULARISATIONS = (1e-13, 1e-11, 1e-9)
"""What is added to the diagonal of a system, relative to its entries, so that no pivot is lost to rounding."""


@dataclass(frozen=True)
class Work:
    """What one factorisation is predicted to cost."""

    entries: float
    flops: float
    hubs: bool = False
    """Whether it counts on hubs that come last. HiGHS's IPX finds that order by itself, SuperLU in a longer time."""

    @property
    def sparse(self) -> bool:
        """Whether a sparse factor is affordable."""
        return self.entries <= SPARSE_ENTRIES and self.flops <= SPARSE_FLOPS

    def worthwhile(self, n: int) -> bool:
        """Whether a sparse factor is affordable and costs less than a dense one of n columns."""
        return self.sparse and (n > DENSE_UP_TO or 5.0 * self.flops < float(n) ** 3 / 3.0)


def predicted_work(A: sparse.csr_array) -> Work:
    r"""The fill and the work of a sparse factor of :math:`A^\top \Theta A + E`, from the bandwidth of A's columns.

    Two orders are compared, and the cheaper one counts. In a banded order of bandwidth w the factor has n w entries.
    Nested dissection separates the graph by its narrow levels of w states: some :math:`4 w^2 \log_2 (n/w)` entries
    and :math:`10 w^3` operations. (A slippery grid of 99,856 states: predicted 12 million entries, found 8.) Hubs that
    are set aside add a full column each.
    """
    n = A.shape[1]
    plain = _work_of_width(n, _width(A))
    counts = np.bincount(A.indices, minlength=n)
    hubs = counts > HUB * max(1.0, A.nnz / n)
    if not hubs.any() or plain.flops < HUBS_FROM:
        return plain
    h = float(hubs.sum())
    rest = _work_of_width(n, _width(_without(A, hubs)))
    return min(plain, Work(rest.entries + h * n, rest.flops + h * h * n, hubs=True), key=lambda work: work.flops)


def _work_of_width(n: int, w: float) -> Work:
    levels = math.log2(n / w + 1.0)
    entries = min(n * w, 8.0 * n + 4.0 * w * w * levels)
    return Work(entries, min(n * w * w, 30.0 * entries + 10.0 * w**3))


def _without(A: sparse.csr_array, columns: Mask) -> sparse.csr_array:
    """A without the entries of some columns, which stay as empty ones."""
    kept = ~columns[A.indices]
    indptr = np.concatenate([[0], np.cumsum(kept)])[A.indptr]
    return sparse.csr_array((A.data[kept], A.indices[kept], indptr), shape=A.shape)


def _width(A: sparse.csr_array) -> int:
    """The bandwidth of :math:`A^\\top A` after its columns are put in a narrow order; at least 1."""
    n = A.shape[1]
    if A.nnz == 0:
        return 1
    first = np.repeat(A.indices[np.minimum(A.indptr[:-1], A.nnz - 1)], np.diff(A.indptr))
    # Each row as a star around its first column: as connected as the clique that the row makes, and far smaller.
    star = sparse.csr_array((np.ones(A.nnz, np.bool_), (first, A.indices)), shape=(n, n))
    graph = sparse.csr_array(star + star.T)
    place = np.empty(n, dtype=np.int64)
    place[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(n)
    rows = np.flatnonzero(np.diff(A.indptr))
    places, starts = place[A.indices], A.indptr[rows]
    spread = np.maximum.reduceat(places, starts) - np.minimum.reduceat(places, starts)
    return max(1, int(spread.max()))


class NormalEquations:
    """Solvers of the systems of one matrix A, for changing diagonals; long factorisations end when the time is over."""

    def __init__(self, A: sparse.csr_array, watch: Watch | None = None) -> None:
        self.A, self.watch = A, watch or Watch()
        self.direct = self.sparse or A.shape[1] <= ALWAYS_DIRECT
        """Whether systems are factorised at once, instead of trying conjugate gradients first."""
        self.failed = False
        """Whether no system could be factorised, so that no further progress is possible."""
        self._kept: tuple[Array, Any] | None = None
        self._held: list[Any] = []
        self._worker: Executor | None = None
        self._seconds = self._work.flops / FASTEST

    @cached_property
    def _work(self) -> Work:
        return predicted_work(self.A)

    @cached_property
    def sparse(self) -> bool:
        """Whether a sparse factor costs less than a dense one."""
        return self._work.worthwhile(self.A.shape[1])

    def solver(self, theta: Array, e: Array, g: Array | None = None, total: float = 1.0) -> Solve:
        r"""A function that solves :math:`(A^\top \Theta A + E - g g^\top / \text{total})\, x = b` for given b."""
        return (self._factorised if self.direct else self._iterative)(theta, e, g, total)

    def _factorised(self, theta: Array, e: Array, g: Array | None, total: float) -> Solve:
        if not self.sparse:
            return self._dense(theta, e, g, total)
        factorise = partial(self._sparse, theta, e, g, total)
        if self._work.flops <= LONG_FLOPS:
            return factorise()
        if self._seconds > self.watch.remaining:
            raise TimeOverError
        started = monotonic()
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1)
            weakref.finalize(self, _release, self._held, self._worker)
        solve = self.watch.run(factorise, self._worker)
        self._seconds = monotonic() - started  # each one has the same pattern, and takes as long as the last
        return solve

    def _product(self, theta: Array, e: Array, g: Array | None, total: float) -> Solve:
        def product(x: Array) -> Array:
            out: Array = self.A.T @ (theta * (self.A @ x)) + e * x
            return out if g is None else out - g * (dot(g, x) / total)

        return product

    def _iterative(self, theta: Array, e: Array, g: Array | None, total: float) -> Solve:
        diagonal = sparse.csr_array(self.A.multiply(self.A)).T @ theta + e
        if g is not None:
            diagonal = diagonal - g * g / total
        product = self._product(theta, e, g, total)

        def solve(b: Array) -> Array:
            solved = conjugate_gradients(product, lambda r: r / diagonal, b, target=CG_TOLERANCE, limit=MAX_CG_STEPS)
            if solved.converged:
                return solved.x
            self.direct = True
            return self._factorised(theta, e, g, total)(b)

        return solve

    def _dense(self, theta: Array, e: Array, g: Array | None, total: float) -> Solve:
        matrix = self._gram(theta).toarray() if self._thin else np.array(self._gram(theta))
        matrix[np.diag_indices_from(matrix)] += e
        if g is not None:
            for rows in np.array_split(np.arange(len(g)), len(g) // 256 + 1):  # without a second matrix
                matrix[rows[0] : rows[-1] + 1] -= np.outer(g[rows], g / total)
        diagonal = matrix.diagonal().copy()
        for regularisation in (0.0, *REGULARISATIONS):
            matrix[np.diag_indices_from(matrix)] = diagonal * (1.0 + regularisation)
            try:
                solve = cholesky(matrix, self.watch)
            except np.linalg.LinAlgError:  # rounding has made the matrix indefinite
                mirror(matrix)
                continue
            return self._refined(solve, theta, e, g, total) if regularisation else solve
        self.failed = True
        return np.zeros_like

    def _sparse(self, theta: Array, e: Array, g: Array | None, total: float) -> Solve:
        # SuperLU's memory is given back only if a factor is dropped in the thread that made it. So this list holds the
        # only reference to a factor, and each thread empties it before it makes the next.
        held = self._held
        held.clear()
        matrix = sparse.csc_array(self._gram(theta))
        matrix.setdiag((matrix.diagonal() + e) * (1.0 + REGULARISATIONS[0]) + np.finfo(float).tiny)
        try:
            held.append(
                splu(matrix, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
            )
        except RuntimeError:  # SuperLU met a pivot of exactly 0
            self.failed = True
            return np.zeros_like

        def solve(b: Array) -> Array:
            return np.asarray(held[0].solve(b))

        return self._refined(solve if g is None else _rank_one_less(solve, g, total), theta, e, g, total)

    def _refined(self, solve: Solve, theta: Array, e: Array, g: Array | None, total: float) -> Solve:
        """Conjugate gradients on the exact system, with a solver of one nearby as their preconditioner."""
        product = self._product(theta, e, g, total)
        return lambda b: conjugate_gradients(product, solve, b, target=REFINED, limit=REFINEMENT_STEPS).x

    @cached_property
    def _thin(self) -> bool:
        """Whether rows have so few entries that a sparse product is faster than a dense one."""
        counts = np.diff(self.A.indptr).astype(np.float64)
        return 100.0 * float((counts * counts).sum()) < float(self.A.shape[0]) * float(self.A.shape[1]) ** 2

    @cached_property
    def _dense_rows(self) -> Array:
        return np.asarray(self.A.toarray())

    def _gram(self, theta: Array) -> Any:
        r""":math:`A^\top \Theta A`, sparse or dense; kept as long as the weights are the same array."""
        if self._kept is None or self._kept[0] is not theta:
            root = np.sqrt(theta)
            if self._thin or self.sparse:
                scaled = sparse.csr_array(sparse.diags_array(root) @ self.A)
                product: Any = sparse.csr_array(scaled.T @ scaled)
            else:
                scaled = root[:, None] * self._dense_rows
                product = self.watch.run(partial(np.matmul, scaled.T, scaled))
            self._kept = theta, product
        return self._kept[1]


def _release(held: list[Any], worker: Executor) -> None:
    """Drop the last factor in the thread that made it, and end that thread."""
    with suppress(RuntimeError):  # at the end of the program no thread takes work any more
        worker.submit(held.clear)
    worker.shutdown(wait=False)


def _rank_one_less(solve: Solve, g: Array, total: float) -> Solve:
    r"""Solves with :math:`K - g g^\top / \text{total}`, from solves with K (Sherman and Morrison)."""
    column = solve(g)
    rest = total - dot(g, column)
    rest = max(rest, 1e-14 * total)  # positive in exact arithmetic
    return lambda b: solve(b) + column * (dot(column, b) / rest)
