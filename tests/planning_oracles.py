"""Planning in exact rational arithmetic: what the MDP's float64 numbers imply, without any rounding."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from ipe.base.arrays import Array
from ipe.mdp import FiniteMDP

Row = list[Fraction]


def exact_policy_values(mdp: FiniteMDP, pi: Array) -> Row:
    """The solution of v = T^pi v by Gauss-Jordan elimination."""
    n = mdp.n_states
    gamma = Fraction(mdp.gamma)
    dense = mdp.transitions.toarray().reshape(n, mdp.n_actions, n)
    system: list[Row] = []
    for s in range(n):
        row = [Fraction(int(s == t)) for t in range(n)] + [Fraction(0)]
        for a in np.flatnonzero(mdp.allowed[s]):
            p = Fraction(pi[s, a])
            for t in np.flatnonzero(dense[s, a]):
                row[t] -= gamma * p * Fraction(dense[s, a, t])
            row[n] += p * Fraction(mdp.rewards[s, a])
        system.append(row)
    for t in np.flatnonzero(mdp.terminal):  # worth 0, whatever leads there
        for row in system:
            row[t] = Fraction(int(row is system[t]))
    return _eliminate(system)


def exact_optimal_values(mdp: FiniteMDP) -> Row:
    """V* by policy iteration, which ends exactly."""
    actions = np.where(mdp.allowed, mdp.rewards, -np.inf).argmax(axis=1)
    while True:
        values = exact_policy_values(mdp, np.eye(mdp.n_actions)[actions])
        better = False
        for s in np.flatnonzero(~mdp.terminal):
            q = {int(a): exact_q(mdp, values, int(s), int(a)) for a in np.flatnonzero(mdp.allowed[s])}
            best = max(q, key=lambda a: q[a])
            if q[best] > q[int(actions[s])]:
                actions[s], better = best, True
        if not better:
            return values


def exact_q(mdp: FiniteMDP, values: Row, s: int, a: int) -> Fraction:
    """r(s, a) + gamma P v."""
    rows, at = mdp.transitions, s * mdp.n_actions + a
    entries = range(rows.indptr[at], rows.indptr[at + 1])
    mean = sum((Fraction(rows.data[i]) * values[rows.indices[i]] for i in entries), Fraction(0))
    return Fraction(mdp.rewards[s, a]) + Fraction(mdp.gamma) * mean


def distance(values: Row, v: Array) -> Fraction:
    """The sup norm of the difference, exactly."""
    return max((abs(exact - Fraction(x)) for exact, x in zip(values, v, strict=True)), default=Fraction(0))


def _eliminate(system: list[Row]) -> Row:
    for column in range(len(system)):
        pivot = system[column][column]  # not 0: the system is diagonally dominant
        system[column] = [x / pivot for x in system[column]]
        for other in range(len(system)):
            factor = system[other][column]
            if other != column and factor:
                system[other] = [x - factor * y for x, y in zip(system[other], system[column], strict=True)]
    return [row[-1] for row in system]
