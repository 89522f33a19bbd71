r"""The linear system of policy evaluation, :math:`(I - \gamma P^\pi) v = r^\pi`, and three ways to solve it.

- `direct`: a sparse LU factorisation. Random graphs fill their factors badly (Garnet MDPs with 4 actions and
  5 successors: 12 times the entries at 300 states, 124 times at 4000), narrow ones hardly at all.
- `krylov`: BiCGSTAB, restarted on the true residual. A few dozen products where the chain mixes fast.
- `sweeps`: :math:`v \leftarrow T^\pi v`, for long nearly periodic chains, on which no Krylov method is faster: with
  the eigenvalues of :math:`I - \gamma P^\pi` on a circle around 1, :math:`(1-z)^k` is the best polynomial there is.

Each method ends when the sup norm of the true residual is small, never on an estimate of the residual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from ipe.base.arrays import Array, sup
from ipe.mdp import FiniteMDP
from ipe.planning.contraction import Contraction, contraction
from ipe.planning.krylov import bicgstab
from ipe.planning.operators import average

DIRECT_STATES = 500  # below, factorising takes milliseconds whatever the graph
ENVELOPE_ENTRIES = 30_000_000  # that still fit easily: with their indices, twice, less than a gigabyte
KRYLOV_ITERATIONS = 250  # before BiCGSTAB is restarted on the true residual
FLOOR = 4.0  # times the rounding of one sweep: the residual that can be asked of float64


@dataclass(frozen=True)
class Chain:
    r"""The Markov chain with rewards that a policy makes of an MDP: :math:`T^\pi v = r^\pi + \gamma P^\pi v`."""

    matrix: Any
    rewards: Array
    gamma: float
    modulus: Contraction

    def sweep(self, v: Array, count: int = 1) -> Array:
        r""":math:`T^\pi` applied to `v`, `count` times."""
        for _ in range(count):
            v = self.matrix @ v
            v *= self.gamma
            v += self.rewards
        return v

    def residual(self, v: Array) -> Array:
        r""":math:`T^\pi v - v`."""
        difference = self.sweep(v)
        difference -= v
        return difference

    def error_bound(self, v: Array, residual: float) -> float:
        r"""The residual over :math:`1 - \bar\beta`, rounding included: no value of the chain is further from `v`."""
        return (residual + self.modulus.rounding(v)) / (1 - self.modulus.high)

    def target(self, v: Array, tol: float) -> float:
        """The residual at which the error bound is `tol`, or the least that float64 is good for."""
        rounding = self.modulus.rounding(v)
        return max(tol * (1 - self.modulus.high) - rounding, FLOOR * rounding)


@dataclass(frozen=True)
class Solution:
    """Values, the sup norm of their residual, and how they were found."""

    v: Array
    residual: float
    solved: bool
    iterations: int
    method: str


def policy_chain(mdp: FiniteMDP, pi: Array) -> Chain:
    """The chain of a stochastic policy.

    The rows of a state's actions lie side by side in memory: scaled by the policy and read as one long
    row, they are the row of the chain. Nothing is sorted, merged or multiplied out, and where every action is
    used the indices are shared with the MDP.
    """
    rows, weights, first = mdp.transitions, pi.ravel(), np.arange(mdp.n_states + 1) * mdp.n_actions
    used = weights > 0
    if not used.all():
        rows, weights = rows[np.flatnonzero(used)], weights[used]
        first = np.concatenate([[0], np.cumsum(used.reshape(pi.shape).sum(axis=1))])
    data = rows.data * np.repeat(weights, np.diff(rows.indptr))
    shape = (mdp.n_states, mdp.n_states)
    matrix = sparse.csr_array((data, rows.indices, rows.indptr[first]), shape=shape, copy=False)
    live = ~mdp.terminal
    modulus = contraction(matrix, live, live, mdp.gamma, mdp.rewards, mdp.n_actions)
    return Chain(matrix, average(pi, mdp.rewards), mdp.gamma, modulus)


def action_chain(mdp: FiniteMDP, actions: Any, modulus: Contraction) -> Chain:
    """The chain of a deterministic policy, given as one action per state (any in terminal states).

    The modulus of the MDP holds for each of its deterministic policies.
    """
    pairs = np.arange(mdp.n_states) * mdp.n_actions + actions
    return Chain(mdp.transitions[pairs], mdp.rewards.ravel()[pairs], mdp.gamma, modulus)


def solve(chain: Chain, method: str, tol: float, start: Array | None = None) -> Solution:
    """The values of the chain by `direct` or `krylov`, or whichever suits (`auto`).

    Where BiCGSTAB stalls, the chain is factorised or swept, whichever is less work.
    """
    v = np.zeros_like(chain.rewards) if start is None else start
    small = v.size <= DIRECT_STATES
    if method == "direct" or (method == "auto" and small):
        return _direct(chain, v, tol)
    solution = _krylov(chain, v, tol)
    if solution.solved:
        return solution
    sweeps = chain.modulus.enough_sweeps(solution.residual, chain.target(solution.v, tol))
    fallback = _direct if small or _factors_pay(chain, sweeps) else _sweeps
    final = fallback(chain, solution.v, tol)
    return replace(final, iterations=solution.iterations + final.iterations)


def _direct(chain: Chain, v: Array, tol: float) -> Solution:
    r"""LU factors and iterative refinement.

    The rows of :math:`I - \gamma P^\pi` as columns make its transpose, which is diagonally dominant by columns:
    elimination needs no pivots then, and the order may be chosen for little fill alone.
    """
    matrix = chain.matrix.copy()
    matrix.sum_duplicates()
    system = sparse.csr_array(sparse.eye_array(v.size, format="csr") - chain.gamma * matrix)
    transposed = sparse.csc_array((system.data, system.indices, system.indptr), shape=system.shape)
    factors = splu(transposed, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})

    def correction(residual: Array, target: float) -> tuple[Array, int]:
        return factors.solve(residual, trans="T"), 1

    return _refine(chain, v, tol, correction, "direct")


def _krylov(chain: Chain, v: Array, tol: float) -> Solution:
    def product(x: Array) -> Array:
        image: Array = chain.matrix @ x
        image *= -chain.gamma
        image += x
        return image

    def correction(residual: Array, target: float) -> tuple[Array, int]:
        return bicgstab(product, residual, 0.5 * target, KRYLOV_ITERATIONS)

    return _refine(chain, v, tol, correction, "krylov")


def _refine(
    chain: Chain, v: Array, tol: float, correction: Callable[[Array, float], tuple[Array, int]], method: str
) -> Solution:
    """Add corrections for the true residual until it is small enough, or until one gains less than sweeps would."""
    difference = chain.residual(v)
    residual, iterations = sup(difference), 0
    while not residual <= (target := chain.target(v, tol)):
        step, cost = correction(difference, target)
        iterations += cost
        step += v
        difference = chain.residual(step)
        before, now = residual, sup(difference)
        if not now < before:  # also when it is not a number
            return Solution(v, before, False, iterations, method)
        v, residual = step, now
        if now > before * min(0.5, chain.modulus.high**cost) and now > chain.target(v, tol):
            return Solution(v, residual, False, iterations, method)
    return Solution(v, residual, True, iterations, method)


def _sweeps(chain: Chain, v: Array, tol: float) -> Solution:
    difference = chain.residual(v)
    residual = sup(difference)
    least = min(chain.target(v, tol), chain.target(np.zeros(1), tol))  # the floor sinks if the values do
    limit = chain.modulus.enough_sweeps(residual, least)
    for count in range(limit + 1):
        if residual <= chain.target(v, tol):
            return Solution(v, residual, True, count, "sweeps")
        v = v + difference
        difference = chain.residual(v)
        residual = sup(difference)
    return Solution(v, residual, residual <= chain.target(v, tol), limit + 1, "sweeps")


def _factors_pay(chain: Chain, sweeps: int) -> bool:
    """Whether factors cost less than so many sweeps, by the envelope of the chain in a narrow order of its states."""
    n, matrix = chain.rewards.size, chain.matrix
    pattern = sparse.csr_array((np.ones(matrix.nnz, np.bool_), matrix.indices, matrix.indptr), shape=(n, n))
    graph = sparse.csr_array(pattern + pattern.T)
    place = np.empty(n, dtype=np.int64)
    place[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(n)
    rows = np.repeat(np.arange(n), np.diff(graph.indptr))
    width = np.zeros(n, dtype=np.int64)
    np.maximum.at(width, place[rows], place[rows] - place[graph.indices])
    return int(width.sum()) <= ENVELOPE_ENTRIES and int((width**2).sum()) <= sweeps * (matrix.nnz + 8 * n)
