"""Independent answers to compare the exact solvers with: dense arrays, plain loops, and scipy's solvers.

Nothing of `ipe.inverse` or `ipe.planning` is used here. Two routes lead to the minimal residual:

- the box problem, written out anew and given to `lsq_linear` (l2) or to a textbook linear program (l1, l-inf);
- the problem over the policies themselves, without the reduction to one unknown per state: the residual is
  affine in :math:`\\pi`, so l1 and l-inf are linear programs over the simplices, and l2 goes to SLSQP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog, lsq_linear, minimize

from ipe.base.arrays import Array
from ipe.checks import Form
from ipe.inverse.problem import Norm
from ipe.mdp import FiniteMDP

TIGHT = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def dense_transitions(mdp: FiniteMDP) -> Array:
    """P as an array of shape (S, A, S)."""
    table: Array = mdp.transitions.toarray().reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    return table


def norm_of(x: Array, d: Array, norm: Norm) -> float:
    """The weighted norm, in extended precision."""
    wide, weights = np.abs(x.astype(np.longdouble)), d.astype(np.longdouble)
    if norm == "l2":
        return float(np.sqrt((weights * wide * wide).sum()))
    return float((weights * wide).sum() if norm == "l1" else (weights * wide).max(initial=0.0))


@dataclass(frozen=True)
class Affine:
    """The residual `matrix @ x - target` of some unknowns x, with the weights of the norm."""

    matrix: Array
    target: Array
    d: Array
    norm: Norm

    def value(self, x: Array) -> float:
        return norm_of(self.matrix @ x - self.target, self.d, self.norm)


def weights_of(norm: Norm, weights: Array | None, count: int) -> Array:
    """d for the rows that exist: normalised for l1 and l2, one each by default."""
    d = np.ones(count) if weights is None else np.asarray(weights, dtype=float)
    return d if norm == "linf" else d / d.sum()


def look_ahead(mdp: FiniteMDP, v: Array) -> Array:
    """q_V by its definition, NaN where an action is not allowed."""
    P, q = dense_transitions(mdp), np.full((mdp.n_states, mdp.n_actions), np.nan)
    for s, a in np.argwhere(mdp.allowed):
        q[s, a] = mdp.rewards[s, a] + mdp.gamma * sum(P[s, a, t] * v[t] for t in range(mdp.n_states))
    return q


def box_problem(mdp: FiniteMDP, form: Form, values: Array, norm: Norm, weights: Array | None) -> tuple[Affine, Array]:
    """The box problem over the live states, and its bounds, shape (live, 2)."""
    live = np.flatnonzero(~mdp.terminal)
    q = look_ahead(mdp, values) if form == "v" else np.where(mdp.allowed, values, np.nan)
    bounds = np.array([[np.nanmin(q[s]), np.nanmax(q[s])] for s in live])
    if form == "v":
        d = weights_of(norm, None if weights is None else weights[live], len(live))
        return Affine(np.eye(len(live)), values[live], d, norm), bounds
    P, pairs = dense_transitions(mdp), np.argwhere(mdp.allowed)
    matrix = np.array([mdp.gamma * P[s, a, live] for s, a in pairs])
    target = np.array([values[s, a] - mdp.rewards[s, a] for s, a in pairs])
    d = weights_of(norm, None if weights is None else weights[mdp.allowed], len(pairs))
    return Affine(matrix, target, d, norm), bounds


def least_in_box(problem: Affine, bounds: Array) -> tuple[float, Array]:
    """The least norm over the box, and where: `lsq_linear` for l2, the textbook program for l1 and l-inf."""
    lo, hi = bounds.T
    x = lo.copy()
    room = hi > lo
    fixed = problem.matrix[:, ~room] @ lo[~room]
    rest = Affine(problem.matrix[:, room], problem.target - fixed, problem.d, problem.norm)
    if room.any():
        solve = _least_squares if problem.norm == "l2" else _linear_program
        x[room] = np.clip(solve(rest, bounds[room]), lo[room], hi[room])
    return problem.value(x), x


def _least_squares(problem: Affine, bounds: Array) -> Array:
    root = np.sqrt(problem.d)
    matrix, target = root[:, None] * problem.matrix, root * problem.target
    found = lsq_linear(matrix, target, bounds=(bounds[:, 0], bounds[:, 1]), method="bvls", tol=1e-15, max_iter=2000)
    x: Array = found.x
    return x


def _linear_program(problem: Affine, bounds: Any, A_eq: Array | None = None, b_eq: Array | None = None) -> Array:
    """l1: one error variable per row; l-inf: one for all rows. Rows of weight zero are left out."""
    rows = problem.d > 0
    A, b, d = problem.matrix[rows], problem.target[rows], problem.d[rows]
    n, m = A.shape[1], len(b)
    errors = np.eye(m) if problem.norm == "l1" else (d.max() / d)[:, None]
    k = errors.shape[1]
    found = linprog(
        np.concatenate([np.zeros(n), d / d.max() if problem.norm == "l1" else np.ones(1)]),
        A_ub=np.block([[A, -errors], [-A, -errors]]),
        b_ub=np.concatenate([b, -b]),
        A_eq=None if A_eq is None else np.hstack([A_eq, np.zeros((len(A_eq), k))]),
        b_eq=b_eq,
        bounds=[*bounds, *([(0.0, None)] * k)],
        method="highs-ds",
        options=TIGHT,
    )
    assert found.x is not None, found.message
    x: Array = found.x[:n]
    return x


def over_policies(mdp: FiniteMDP, form: Form, values: Array, norm: Norm, weights: Array | None) -> tuple[Affine, Array]:
    """The residual as a function of the policy's entries at the allowed pairs, and the matrix that sums per state."""
    P, pairs, live = dense_transitions(mdp), np.argwhere(mdp.allowed), np.flatnonzero(~mdp.terminal)
    sums = np.array([[float(s == state) for s, _ in pairs] for state in live])
    if form == "v":
        q = look_ahead(mdp, values)
        matrix = np.array([[q[s, a] if s == state else 0.0 for s, a in pairs] for state in live])
        d = weights_of(norm, None if weights is None else weights[live], len(live))
        return Affine(matrix, values[live], d, norm), sums
    matrix = np.array([[mdp.gamma * P[s, a, t] * values[t, b] for t, b in pairs] for s, a in pairs])
    target = np.array([values[s, a] - mdp.rewards[s, a] for s, a in pairs])
    d = weights_of(norm, None if weights is None else weights[mdp.allowed], len(pairs))
    return Affine(matrix, target, d, norm), sums


def least_over_policies(mdp: FiniteMDP, form: Form, values: Array, norm: Norm, weights: Array | None) -> float:
    """The least residual that any policy has, found among the policies themselves."""
    problem, sums = over_policies(mdp, form, values, norm, weights)
    pi = (1.0 / sums.sum(axis=1)) @ sums
    if norm != "l2":
        pi = _linear_program(problem, [(0.0, 1.0)] * len(pi), sums, np.ones(len(sums)))
        return problem.value(pi)
    gram = problem.matrix.T @ (problem.d[:, None] * problem.matrix)
    linear = problem.matrix.T @ (problem.d * problem.target)
    scale = max(float(np.abs(linear).max()), float(np.abs(gram).max()), 1e-300)
    found = minimize(
        lambda x: (0.5 * x @ gram @ x - linear @ x) / scale,
        pi,
        jac=lambda x: (gram @ x - linear) / scale,
        bounds=[(0.0, 1.0)] * len(pi),
        constraints=[{"type": "eq", "fun": lambda x: sums @ x - 1.0, "jac": lambda x: sums}],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    return problem.value(found.x)


def policy_value(mdp: FiniteMDP, pi: Array) -> tuple[Array, Array]:
    """V and Q of a policy, by one dense solve; Q is 0 where an action does not exist."""
    P = dense_transitions(mdp)
    chain, rewards = np.einsum("sa,sat->st", pi, P), np.einsum("sa,sa->s", pi, mdp.rewards)
    v = np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * chain, rewards)
    v = v + np.linalg.solve(np.eye(mdp.n_states) - mdp.gamma * chain, rewards + mdp.gamma * chain @ v - v)
    return v, np.where(mdp.allowed, mdp.rewards + mdp.gamma * P @ v, 0.0)


def optimal_value(mdp: FiniteMDP) -> tuple[Array, Array]:
    """V* and Q* by policy iteration from the first allowed actions."""
    actions = mdp.allowed.argmax(axis=1)
    while True:
        pi = np.zeros(mdp.allowed.shape)
        pi[np.arange(mdp.n_states), actions] = 1.0
        pi[mdp.terminal] = 0.0
        v, q = policy_value(mdp, pi)
        best = np.where(mdp.allowed, q, -np.inf)
        best[mdp.terminal] = 0.0
        better = best.max(axis=1) > v + 1e-12 * max(1.0, float(np.abs(v).max()))
        if not better.any():
            return v, q
        actions = np.where(better, best.argmax(axis=1), actions)


def residual_of(mdp: FiniteMDP, form: Form, values: Array, pi: Array) -> Array:
    r""":math:`T^\pi V - V` over the live states or :math:`T^\pi Q - Q` over the allowed pairs, by the definition."""
    if form == "v":
        q = np.nan_to_num(look_ahead(mdp, values))
        averaged: Array = (pi * q).sum(axis=1) - values
        return averaged[~mdp.terminal]
    v = (pi * np.where(mdp.allowed, values, 0.0)).sum(axis=1)
    return (look_ahead(mdp, v) - values)[mdp.allowed]


def most_entropy(q: Array, v: float) -> Array:
    """The policy of maximum entropy with mean v over one row of action values, by SLSQP."""
    n = len(q)
    lo, width = q.min(), q.max() - q.min()
    u, z = (v - lo) / width, (q - lo) / width
    # A feasible first point: the mixture of the two ends.
    first = np.zeros(n)
    first[z.argmin()] += 1.0 - u
    first[z.argmax()] += u
    found = minimize(
        lambda p: float((p * np.log(np.maximum(p, 1e-300))).sum()),
        0.5 * first + 0.5 * _feasible_interior(z, u),
        jac=lambda p: np.log(np.maximum(p, 1e-300)) + 1.0,
        bounds=[(1e-14, 1.0)] * n,
        constraints=[
            {
                "type": "eq",
                "fun": lambda p: np.array([p.sum() - 1.0, p @ z - u]),
                "jac": lambda p: np.stack([np.ones(n), z]),
            }
        ],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    p: Array = found.x
    return p


def _feasible_interior(z: Array, u: float) -> Array:
    """Uniform, mixed with the end that brings its mean to u."""
    mean = z.mean()
    end = np.zeros(len(z))
    end[z.argmax() if u > mean else z.argmin()] = 1.0
    towards = float(end @ z)
    share = (u - mean) / (towards - mean) if towards != mean else 0.0
    mixed: Array = (1.0 - share) / len(z) + share * end
    return mixed


def entropy_of(p: Array) -> float:
    """The entropy in nats, 0 log 0 = 0."""
    positive = p[p > 0]
    return float(-(positive * np.log(positive)).sum())


def spread(problem: Affine, bounds: Array) -> float:
    """How far apart two optimal points of a box problem can be, in the unknown in which they differ most.

    The optimal points are those with the same residuals (l2) or with a norm that is larger by at most 1e-9.
    Unknowns that no row of positive weight depends on do not count.
    """
    least, x = least_in_box(problem, bounds)
    rows = problem.d > 0
    A, b, d = problem.matrix[rows], problem.target[rows], problem.d[rows]
    n, m = A.shape[1], len(b)
    slack = least + 1e-9 * max(1.0, float(np.abs(b).max(initial=0.0)))
    if problem.norm == "l2":
        k, given = 0, {"A_eq": A, "b_eq": A @ x}
    elif problem.norm == "l1":
        k = m
        errors = np.vstack([np.hstack([A, -np.eye(m)]), np.hstack([-A, -np.eye(m)])])
        given = {"A_ub": np.vstack([errors, np.r_[np.zeros(n), d]]), "b_ub": np.r_[b, -b, slack]}
    else:
        k, given = 0, {"A_ub": np.vstack([A, -A]), "b_ub": np.r_[b + slack / d, -b + slack / d]}
    widest = 0.0
    for s in np.flatnonzero((A != 0).any(axis=0)):
        ends = []
        for sign in (1.0, -1.0):
            cost = np.zeros(n + k)
            cost[s] = sign
            limits = [*map(tuple, bounds), *([(0.0, None)] * k)]
            found = linprog(cost, **given, bounds=limits, method="highs", options=TIGHT)
            ends.append(sign * found.fun if found.x is not None else x[s])
        widest = max(widest, ends[1] - ends[0])
    return widest
