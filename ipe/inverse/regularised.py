r"""The entropy-regularised form: a policy that leaves uniform only as far as the residual pays for it.

.. math::
    \min_\pi \; \tfrac12 \|\gamma P v - (Q - r)\|_W^2 + \tau \sum_s \mu_s\, \mathrm{KL}(\pi_s \| \mathrm{uniform}),
    \qquad v(s) = \sum_a \pi(a|s) Q(s,a).

Its dual in the residuals :math:`\delta` is smooth and has no constraints: the policy is
:math:`\pi_s \propto e^{\eta_s Q(s,\cdot)}` with :math:`\eta_s = -(\gamma / (\tau \mu_s)) (P^\top W \delta)_s`, and
:math:`\delta` minimises the convex function

.. math:: \varphi(\delta) = \tfrac12 \delta^\top W \delta + \delta^\top W b
    + \tau \sum_s \mu_s \ln \frac{1}{n_s} \sum_a e^{\eta_s Q(s,a)} .

Newton's method solves it. Its linear system is again one in |S| unknowns,
:math:`(K^{-1} + A^\top W A)\, x = A^\top W (A v - b - \delta)` with
:math:`K = \mathrm{diag}(\mathrm{Var}_\pi Q / (\tau \mu))`, for conjugate gradients. For :math:`\tau \to 0` the
solution tends to the point of most entropy among the l2 minimisers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ipe.base.arrays import Array, dot, numeric, refuse_where
from ipe.base.numbers import check_positive
from ipe.errors import InputError, NotSolvedError
from ipe.inverse.l2 import certificate
from ipe.inverse.outcome import make_result
from ipe.inverse.problem import BoxProblem, BoxSolution, pose
from ipe.inverse.result import EvaluationPolicy
from ipe.mdp import FiniteMDP
from ipe.planning.krylov import conjugate_gradients
from ipe.planning.operators import average

MAX_NEWTON_STEPS = 200
MAX_CG_STEPS = 500


@dataclass(frozen=True, eq=False)
class _Point:
    """Residuals delta with everything that follows from them."""

    delta: Array
    eta: Array
    pi: Array
    v: Array
    variance: Array
    divergence: Array
    """KL of each state's policy from uniform."""
    dual: float
    """The dual function, phi(delta): minus a lower bound of the objective."""


def regularised_evaluation_policy(
    mdp: FiniteMDP,
    *,
    v: Any = None,
    q: Any = None,
    tau: float,
    mu: Any = None,
    weights: Any = None,
    rtol: float = 1e-8,
    tolerance: float = 1e-9,
) -> EvaluationPolicy:
    r"""The policy that minimises half the squared residual plus a price for leaving the uniform policy.

    .. math:: \min_\pi \; \tfrac12 \|Q - T^\pi Q\|_d^2 + \tau \sum_s \mu_s\, \mathrm{KL}(\pi_s \| \mathrm{uniform})

    Args:
        mdp: the MDP.
        v: state values, shape (S,); or
        q: action values, shape (S, A). Exactly one of the two.
        tau: the weight of the entropy, > 0.
        mu: the states' weights, shape (S,), > 0 in states that are not terminal. Default: 1 / |S|.
        weights: d of the l2 norm, as in `evaluation_policy`.
        rtol: the gap to reach, relative to the objective.
        tolerance: as in `evaluation_policy`.

    Returns:
        The policy. `objective` and `gap` are those of the regularised problem; `residual`, its lower bound and the
        distance bounds those of the l2 problem without regularisation.

    Raises:
        NotSolvedError: the gap was missed; the error's `result` holds the best policy found.

    Example:
        >>> import ipe
        >>> mdp, q = ipe.zoo.switch_stay(), [[16.3, 17.0], [20.0, 15.3]]
        >>> for tau in (0.001, 1.0, 1000.0):
        ...     print(regularised_evaluation_policy(mdp, q=q, tau=tau).policy.round(3).tolist())
        [[0.011, 0.989], [1.0, 0.0]]
        [[0.455, 0.545], [0.886, 0.114]]
        [[0.5, 0.5], [0.502, 0.498]]
    """
    form, given, q_values, problem = pose(mdp, v, q, "l2", weights)
    tau, rtol = check_positive(tau, "tau"), check_positive(rtol, "rtol")
    tolerance = check_positive(tolerance, "tolerance")
    dual = _Dual(mdp, problem, q_values, tau * _state_weights(mdp, mu))
    point, objective, gap, iterations = dual.minimise(rtol)
    floor = 64 * np.finfo(float).eps * max(problem.scale**2, abs(objective))
    solution = BoxSolution(point.v, objective, gap, iterations, gap <= max(rtol * objective, floor), "dual Newton")
    f, exact_gap = certificate(problem, point.v)
    lower = float(np.sqrt(2.0 * max(0.0, f - exact_gap)))
    result = make_result(
        mdp,
        form,
        given,
        q_values,
        problem,
        solution,
        tolerance=tolerance,
        policy=(point.pi, point.eta),
        lower=lower,
    )
    if not result.converged:
        raise NotSolvedError(
            f"the regularised problem stopped after {iterations} Newton steps with a gap of {gap:.3g} for an "
            f"objective of {objective:.6g}; a larger tau or rtol is easier",
            result,
        )
    return result


def _state_weights(mdp: FiniteMDP, mu: Any) -> Array:
    if mu is None:
        return np.full(mdp.n_states, 1.0 / mdp.n_states)
    given = numeric(mu, "mu")
    if given.shape != (mdp.n_states,):
        raise InputError(f"mu must have shape ({mdp.n_states},), one weight per state; found {given.shape}")
    refuse_where(~(np.isfinite(given) & (given > 0)) & ~mdp.terminal, given, "mu", "not a finite number > 0")
    return np.where(mdp.terminal, 1.0, given)


class _Dual:
    """The dual function of one problem, its derivatives, and Newton's method on it."""

    def __init__(self, mdp: FiniteMDP, problem: BoxProblem, q: Array, weight: Array) -> None:
        self.allowed, self.problem, self.weight = mdp.allowed, problem, weight
        self.count = np.maximum(mdp.allowed.sum(axis=1), 1)
        self.mean = np.where(mdp.allowed, q, 0.0).sum(axis=1) / self.count
        self.q = np.where(mdp.allowed, q - self.mean[:, None], 0.0)
        """Q less each state's mean, which changes no policy: nearly uniform policies then have small exponents."""
        self.live = ~mdp.terminal
        self.diagonal = problem.gamma**2 * problem.rows.squared_transposed_times(problem.d)

    def at(self, delta: Array) -> _Point:
        problem = self.problem
        weighted = problem.d * delta
        slope = np.where(self.live, -problem.transposed(weighted), 0.0)
        eta = slope / self.weight
        exponents = np.where(self.allowed, eta[:, None] * self.q, -np.inf)
        top = np.where(self.live, exponents.max(axis=1, initial=-np.inf), 0.0)
        powers = np.exp(exponents - top[:, None])
        sums = np.where(self.live, powers.sum(axis=1), 1.0)
        pi = powers / sums[:, None]
        above = average(pi, self.q)
        variance = average(pi, np.where(self.allowed, self.q - above[:, None], 0.0) ** 2)
        log_means = np.where(top < 0.5, self._small_log_means(exponents), top + np.log(sums / self.count))
        log_means = np.where(self.live, log_means, 0.0)
        divergence = np.maximum(eta * above - log_means, 0.0)
        dual = 0.5 * dot(weighted, delta) + dot(weighted, problem.b) + dot(slope, self.mean)
        dual += dot(self.weight, log_means)
        v = np.where(self.live, self.mean + above, 0.0)
        return _Point(delta, eta, pi, v, variance, divergence, float(dual))

    def _small_log_means(self, exponents: Array) -> Array:
        """The logarithm of the mean power where exponents are small: exact, since a large tau multiplies it."""
        terms = np.where(self.allowed, np.expm1(np.minimum(exponents, 0.5)), 0.0)
        out: Array = np.log1p(terms.sum(axis=1) / self.count)
        return out

    def objective(self, point: _Point) -> float:
        """Half the squared residual of the point's policy plus its weighted divergence from uniform."""
        delta = self.problem.residuals(point.v)
        return float(0.5 * dot(self.problem.d * delta, delta) + dot(self.weight, point.divergence))

    def minimise(self, rtol: float) -> tuple[_Point, float, float, int]:
        """Damped Newton steps until the duality gap is small, or no step lowers the dual function."""
        point = self.at(self.problem.residuals(self.at(np.zeros_like(self.problem.b)).v))
        for iteration in range(MAX_NEWTON_STEPS):
            objective = self.objective(point)
            gap = max(0.0, objective + point.dual)
            if gap <= rtol * objective:
                return point, objective, gap, iteration
            following = self._step(point)
            if following is None:
                return point, objective, gap, iteration
            point = following
        objective = self.objective(point)
        return point, objective, max(0.0, objective + point.dual), MAX_NEWTON_STEPS

    def _step(self, point: _Point) -> _Point | None:
        problem = self.problem
        rest = problem.residuals(point.v) - point.delta
        change = self._solve(point, problem.transposed(problem.d * rest))
        product = problem.rows.times(change)
        direction = rest - problem.gamma * (product if problem.all_rows else np.where(problem.d > 0, product, 0.0))
        slope = -dot(problem.d * rest, direction)
        size = 1.0
        while size > 1e-10:
            trial = self.at(point.delta + size * direction)
            if trial.dual <= point.dual + 1e-4 * size * slope and trial.dual < point.dual:
                return trial
            size *= 0.5
        return None

    def _solve(self, point: _Point, rhs: Array) -> Array:
        r""":math:`(K^{-1} + A^\top W A) x = rhs`, as a system in u with :math:`x = K^{1/2} u`."""
        root = np.sqrt(point.variance / self.weight)
        scale = 1.0 / (1.0 + root * root * self.diagonal)

        def product(u: Array) -> Array:
            out: Array = u + self.problem.gamma**2 * root * self.problem.rows.normal_times(self.problem.d, root * u)
            return out

        out: Array = (
            root * conjugate_gradients(product, lambda r: scale * r, root * rhs, target=1e-20, limit=MAX_CG_STEPS).x
        )
        return out
