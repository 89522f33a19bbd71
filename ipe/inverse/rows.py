"""Products with the transition matrix, on both cores where the matrix is large."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ipe.base.arrays import Array

THREADED_FROM = 1_000_000
"""Entries from which threads are faster than one: below, the hand-over costs more than it saves."""

BLOCKS = 4
"""How many blocks of rows a large matrix is cut into: fixed, so that the order of the sums, and with it the
last bits of the result, does not depend on the number of cores."""


_Sparse = TypeVar("_Sparse", sparse.csr_array, sparse.csc_array)
_Block: TypeAlias = tuple[slice, sparse.csr_array, sparse.csc_array]


class Rows:
    """A sparse matrix P with the products `P v`, `P' y` and `P' D P v`.

    scipy releases the interpreter lock inside a product, so large matrices are cut into blocks of rows
    that threads work on side by side.
    """

    def __init__(self, matrix: sparse.csr_array) -> None:
        self.matrix = matrix
        self.n_rows, self.n_columns = matrix.shape

    @cached_property
    def _blocks(self) -> list[_Block]:
        m = self.matrix
        count = BLOCKS if m.nnz >= THREADED_FROM else 1
        if count == 1:
            return [(slice(None), m, m.T)]
        cuts = np.searchsorted(m.indptr, np.linspace(0, m.nnz, count + 1)[1:-1])
        edges = [0, *(int(c) for c in cuts), self.n_rows]
        blocks = []
        for first, last in pairwise(edges):
            i, j = m.indptr[first], m.indptr[last]
            parts = m.data[i:j], m.indices[i:j], m.indptr[first : last + 1] - i
            shape = last - first, self.n_columns
            by_rows = _sharing(sparse.csr_array(shape, dtype=m.dtype), *parts)
            transposed = _sharing(sparse.csc_array(shape[::-1], dtype=m.dtype), *parts)
            blocks.append((slice(first, last), by_rows, transposed))
        return blocks

    @cached_property
    def single(self) -> Rows:
        """The same matrix in single precision: half the time where memory is what limits."""
        m = self.matrix
        return Rows(sparse.csr_array((m.data.astype(np.float32), m.indices, m.indptr), shape=m.shape))

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(min(BLOCKS, os.cpu_count() or 1))

    def times(self, v: Array) -> Array:
        """`P v`."""
        if len(self._blocks) == 1:
            out: Array = self.matrix @ v
            return out
        return np.concatenate(list(self._pool.map(lambda block: block[1] @ v, self._blocks)))

    def transposed_times(self, y: Array) -> Array:
        """`P' y`."""
        return self._sum(lambda block: block[2] @ y[block[0]])

    def normal_times(self, d: Array, v: Array) -> Array:
        """`P' D P v`, block by block: a row's entries are used twice while they are near."""
        return self._sum(lambda block: block[2] @ (d[block[0]] * (block[1] @ v)))

    def squared_transposed_times(self, y: Array) -> Array:
        """`(P * P)' y`: the diagonal of `P' Y P`."""
        return self._sum(lambda block: _squared(block[2]) @ y[block[0]])

    def _sum(self, product: Callable[[_Block], Array]) -> Array:
        if len(self._blocks) == 1:
            return np.asarray(product(self._blocks[0]))
        parts = list(self._pool.map(product, self._blocks))
        total: Array = parts[0]
        for part in parts[1:]:
            total += part
        return total


def _sharing(matrix: _Sparse, data: NDArray[Any], indices: NDArray[Any], indptr: NDArray[Any]) -> _Sparse:
    """An empty sparse matrix, filled with views. SciPy's constructors copy a view of less than half an array."""
    matrix.data, matrix.indices, matrix.indptr = data, indices, indptr
    return matrix


def _squared(block: sparse.csc_array) -> sparse.csc_array:
    empty = sparse.csc_array(block.shape, dtype=block.dtype)
    return _sharing(empty, block.data * block.data, block.indices, block.indptr)
