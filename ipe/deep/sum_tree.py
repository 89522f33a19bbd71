r"""Sums of priorities in binary trees, one for each seed of a batch (Schaul et al., 2016, appendix B.2.1).

Each inner node is the sum of its two children, so that a leaf is changed, and the leaf in which a point of the line
:math:`[0, \sum_i v_i)` lies is found, in as many steps as the tree is deep. A tree is a function of its leaves alone:
sums are added up anew, never changed by differences. Where the C library can be had (`ipe.deep.native`), it walks
through the trees; NumPy does the same otherwise, to the same bytes.
"""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.deep.native import library


class SumTrees:
    """One tree of sums for each seed.

    Args:
        trees: how many there are.
        leaves: how many leaves each of them has.
        native: whether the C library walks through them. Default: where it can be had.

    Example:
        >>> trees = SumTrees(1, 3)
        >>> trees.set(np.array([[0, 1, 2]]), np.array([[1.0, 0.0, 2.5]]))
        >>> trees.totals.tolist(), trees.find(np.array([[0.5, 1.0, 3.4]])).tolist()
        ([3.5], [[0, 2, 2]])
    """

    def __init__(self, trees: int, leaves: int, native: bool | None = None) -> None:
        self.leaves = leaves
        self.size = 1 << max(leaves - 1, 1).bit_length()
        self._nodes = np.zeros((trees, 2 * self.size))
        self._trees = np.arange(trees)[:, None]
        self._levels = self.size.bit_length() - 1
        self._library = _library() if native is None or native else None
        if native and self._library is None:
            raise RuntimeError("there is no C library")

    @property
    def values(self) -> NDArray[np.float64]:
        """The values of all leaves, (trees, leaves); not a copy."""
        return self._nodes[:, self.size : self.size + self.leaves]

    @property
    def totals(self) -> NDArray[np.float64]:
        """The sum of each tree's leaves, (trees,)."""
        return self._nodes[:, 1]

    def set(self, leaves: NDArray[np.int64], values: NDArray[np.float64]) -> None:
        """Give some leaves of each tree new values, both (trees, n); a leaf that stands twice has the same value in
        both places."""
        if self._library is not None:
            leaves, values = np.ascontiguousarray(leaves), np.ascontiguousarray(values)
            self._library.ipe_tree_set(*self._sizes(leaves), _address(leaves), _address(values))
            return
        places = leaves + self.size
        self._nodes[self._trees, places] = values
        for _ in range(self._levels):
            places = places // 2
            below = self._nodes[self._trees, 2 * places], self._nodes[self._trees, 2 * places + 1]
            self._nodes[self._trees, places] = below[0] + below[1]

    def at(self, leaves: NDArray[np.int64]) -> NDArray[np.float64]:
        """The values of some leaves of each tree, both (trees, n)."""
        return self._nodes[self._trees, leaves + self.size]

    def find(self, points: NDArray[np.float64]) -> NDArray[np.int64]:
        """The leaves in which points lie, both (trees, n): leaf i reaches from the sum of the leaves before it to that
        sum plus its value. A leaf of value 0 is never found."""
        if self._library is not None:
            points, found = np.ascontiguousarray(points), np.empty(points.shape, np.int64)
            self._library.ipe_tree_find(*self._sizes(points), _address(points), _address(found))
            return found
        places = np.ones(points.shape, np.int64)
        for _ in range(self._levels):
            left = self._nodes[self._trees, 2 * places]
            right = ~(points < left) & (self._nodes[self._trees, 2 * places + 1] > 0.0)
            points = np.where(right, points - left, points)
            places = 2 * places + right
        return places - self.size

    def restore(self, values: NDArray[np.float64]) -> None:
        """Take over the values of the first leaves, (trees, n), and give all others 0."""
        self._nodes[:] = 0.0
        self.values[:, : values.shape[1]] = values
        width = self.size
        while width > 1:
            below = self._nodes[:, width : 2 * width]
            width //= 2
            self._nodes[:, width : 2 * width] = below[:, 0::2] + below[:, 1::2]

    def _sizes(self, points: NDArray[Any]) -> tuple[Any, ...]:
        return _address(self._nodes), len(self._nodes), self.size, points.shape[1]


def _library() -> Any:
    """The C library, if it can be had and the user has not asked for XLA's products."""
    if os.environ.get(library.VARIABLE) == "xla":
        return None
    try:
        found = library.loaded()
    except library.UnavailableError:
        return None
    for name in ("ipe_tree_set", "ipe_tree_find"):
        getattr(found, name).argtypes = [ctypes.c_void_p, *[ctypes.c_int64] * 3, ctypes.c_void_p, ctypes.c_void_p]
        getattr(found, name).restype = None
    return found


def _address(array: NDArray[Any]) -> int:
    return int(array.ctypes.data)
