"""The solvers of the box problem, one by one: against scipy, stopped early, and where the numbers are hard."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import ipe.inverse.l2 as l2_module
import ipe.inverse.rows as rows_module
from ipe.base.arrays import Array
from ipe.inverse.closed_forms import clip_values, separable
from ipe.inverse.duality import lower_bound, project_dual
from ipe.inverse.interior_point import solve_interior_point
from ipe.inverse.l2 import certificate, solve_l2
from ipe.inverse.least_squares import solve_l2_interior_point, solve_least_squares
from ipe.inverse.lp import solve_lp
from ipe.inverse.pdhg import solve_pdhg
from ipe.inverse.problem import BoxProblem, BoxSolution, Norm, q_problem, v_problem
from ipe.mdp import FiniteMDP
from ipe.planning.operators import backup
from ipe.zoo import garnet
from tests.oracles import box_problem, least_in_box, policy_value
from tests.strategies import generators, mdps, random_mdp, random_pi, random_q, random_v
from tests.tiers import examples

STOCHASTIC = mdps(deterministic=False, gammas=(0.3, 0.9, 0.99), min_states=2)


def middle(problem: BoxProblem) -> Array:
    return 0.5 * (problem.lo + problem.hi)


def floor_of(problem: BoxProblem) -> float:
    """The norm below which `evaluation_policy` asks for no proof."""
    return problem.norm_of(np.full_like(problem.b, problem.achieved))


SOLVERS: dict[str, tuple[Norm, Callable[[BoxProblem], BoxSolution], float]] = {
    "l2": ("l2", solve_l2, 1e-8),
    "l2 interior point": ("l2", lambda p: solve_l2_interior_point(p, middle(p)), 1e-8),
    "l1 highs": ("l1", lambda p: solve_lp(p, middle(p), atol=floor_of(p)), 1e-8),
    "linf highs": ("linf", lambda p: solve_lp(p, middle(p), atol=floor_of(p)), 1e-8),
    "l1 pdhg": ("l1", lambda p: solve_pdhg(p, middle(p), atol=floor_of(p)), 1e-4),
    "linf pdhg": ("linf", lambda p: solve_pdhg(p, middle(p), atol=floor_of(p)), 1e-4),
    "linf interior point": ("linf", lambda p: solve_interior_point(p, middle(p), atol=floor_of(p)), 1e-6),
}


def draw_weights(rng: np.random.Generator, mdp: FiniteMDP) -> Array | None:
    """None, even, uneven, or with rows of weight zero."""
    kind = rng.integers(4)
    if kind == 0:
        return None
    weights: Array = rng.random(mdp.allowed.shape)
    if kind == 2:
        weights = np.exp(3 * rng.normal(size=mdp.allowed.shape))
    if kind == 3:
        weights = weights * (rng.random(mdp.allowed.shape) < 0.6)
    weights = np.where(mdp.allowed, weights, 0.0)
    return weights if weights.any() else None


def check_against_oracle(
    mdp: FiniteMDP, q: Array, weights: Array | None, problem: BoxProblem, solution: BoxSolution, rtol: float = np.inf
) -> None:
    """In the box; the objective is what it says; the gap bounds the distance to scipy's minimum, both ways."""
    affine, bounds = box_problem(mdp, "q", q, problem.norm, weights)
    least, _ = least_in_box(affine, bounds)
    size = problem.scale * float(affine.d.max())
    v = solution.v
    assert ((problem.lo <= v) & (v <= problem.hi)).all()
    norm = affine.value(v[~mdp.terminal])
    squared = problem.norm == "l2"
    objective, minimum = (0.5 * norm**2, 0.5 * least**2) if squared else (norm, least)
    unit = size**2 if squared else size
    assert_allclose(solution.objective, objective, rtol=1e-10, atol=1e-14 * unit)
    assert solution.gap >= 0
    assert objective - minimum <= solution.gap + 1e-13 * unit  # what the gap promises
    assert minimum >= objective - solution.gap - 1e-13 * unit
    assert least <= norm + 1e-9 * size  # the oracle found no less than the best
    if solution.converged:
        assert norm <= least * (1 + rtol) + 1e-7 * size


@pytest.mark.parametrize("name", SOLVERS)
@given(mdp=STOCHASTIC, rng=generators())
@examples(25)
def test_objective_and_gap(name: str, mdp: FiniteMDP, rng: np.random.Generator) -> None:
    norm, solve, rtol = SOLVERS[name]
    q, weights = random_q(rng, mdp, scale=float(rng.choice([0.1, 3.0, 100.0]))), draw_weights(rng, mdp)
    if rng.random() < 0.3:  # near the values of a policy, where residuals are small
        q = policy_value(mdp, random_pi(rng, mdp))[1] + 1e-4 * q * mdp.allowed
    problem = q_problem(mdp, q, norm, weights)
    if not problem.free.any():
        return
    solution = solve(problem)
    assert solution.converged
    check_against_oracle(mdp, q, weights, problem, solution, rtol)


@given(STOCHASTIC, generators(), st.integers(1, 6))
@examples(60)
def test_the_gap_holds_when_l2_is_stopped_early(mdp: FiniteMDP, rng: np.random.Generator, products: int) -> None:
    q, weights = random_q(rng, mdp), draw_weights(rng, mdp)
    problem = q_problem(mdp, q, "l2", weights)
    if not problem.free.any():
        return
    for solution in (
        solve_l2(problem, rtol=1e-14, max_iterations=products),
        solve_l2_interior_point(problem, middle(problem), rtol=1e-14, max_iterations=products),
    ):
        check_against_oracle(mdp, q, weights, problem, solution)
        if solution.gap > problem.gap_rounding and solution.gap > 1e-14 * solution.objective:
            assert not solution.converged


@pytest.mark.parametrize("norm", ["l1", "linf"])
@given(mdp=STOCHASTIC, rng=generators(), iterations=st.integers(1, 50))
@examples(40)
def test_the_gap_holds_when_pdhg_and_interior_points_are_stopped_early(
    norm: Norm, mdp: FiniteMDP, rng: np.random.Generator, iterations: int
) -> None:
    q, weights = random_q(rng, mdp), draw_weights(rng, mdp)
    problem = q_problem(mdp, q, norm, weights)
    if not problem.free.any():
        return
    solutions = [solve_pdhg(problem, middle(problem), rtol=1e-14, max_iterations=iterations)]
    if norm == "linf":
        steps = 1 + iterations // 5
        solutions.append(solve_interior_point(problem, middle(problem), rtol=1e-14, max_iterations=steps))
    for solution in solutions:
        check_against_oracle(mdp, q, weights, problem, solution)
        assert solution.iterations <= iterations
        if solution.gap > 1e-14 * solution.objective:
            assert not solution.converged


@given(STOCHASTIC, generators())
@examples(60)
def test_certificate_of_any_point(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    q, weights = random_q(rng, mdp), draw_weights(rng, mdp)
    problem = q_problem(mdp, q, "l2", weights)
    v = problem.clip(problem.lo + rng.choice([0.0, 0.3, 1.0], size=mdp.n_states) * (problem.hi - problem.lo))
    f, gap = certificate(problem, v)
    check_against_oracle(mdp, q, weights, problem, BoxSolution(v, f, gap, 0, False, "none"))
    # the formula of the specification, where it says more than f >= 0
    g = problem.gamma * problem.rows.matrix.T @ (problem.d * problem.residuals(v))
    bound = np.maximum(g * (v - problem.lo), g * (v - problem.hi)).sum()
    assert_allclose(gap, min(bound, f), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@given(mdp=STOCHASTIC, rng=generators(), size=st.sampled_from([1e-6, 1.0, 1e9]))
@examples(60)
def test_any_multipliers_prove_a_bound(norm: Norm, mdp: FiniteMDP, rng: np.random.Generator, size: float) -> None:
    q, weights = random_q(rng, mdp), draw_weights(rng, mdp)
    problem = q_problem(mdp, q, norm, weights)
    least, _ = least_in_box(*box_problem(mdp, "q", q, norm, weights))
    y = size * rng.normal(size=problem.b.shape)
    for multipliers in (y, project_dual(problem, y)):
        assert 0 <= lower_bound(problem, multipliers) <= least + 1e-9 * problem.scale * problem.d.max()


@pytest.mark.parametrize("norm", ["l1", "linf"])
@given(mdp=STOCHASTIC, rng=generators(), size=st.sampled_from([1e-3, 1.0, 1e3]))
@examples(60)
def test_projection_on_the_dual_ball(norm: Norm, mdp: FiniteMDP, rng: np.random.Generator, size: float) -> None:
    problem = q_problem(mdp, random_q(rng, mdp), norm, draw_weights(rng, mdp))
    d, rows = problem.d, problem.d > 0
    y = size * rng.normal(size=problem.b.shape)
    p = project_dual(problem, y)
    assert (p[~rows] == 0).all()
    inside = np.abs(p[rows]) / d[rows]
    assert inside.max() <= 1 + 1e-12 if norm == "l1" else inside.sum() <= 1 + 1e-9
    # Nearest: the angle between y - p and any other point of the ball seen from p is obtuse.
    for _ in range(20):
        other = rng.normal(size=p.shape)
        other[~rows] = 0.0
        sizes = np.abs(other[rows]) / d[rows]
        other /= sizes.max() if norm == "l1" else sizes.sum()
        assert np.dot((y - p)[rows], (other - p)[rows]) <= 1e-9 * max(1.0, float(np.abs(y).max())) * float(d.max())


def test_projection_of_multipliers_beside_which_the_ball_is_a_point() -> None:
    mdp = random_mdp(np.random.default_rng(0), 3, 2)
    problem = q_problem(mdp, random_q(np.random.default_rng(1), mdp), "linf")
    y = np.zeros(6)
    y[2], y[4] = -1e20, 3.0
    assert_array_equal(project_dual(problem, y), [0, 0, -1, 0, 0, 0])


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
@given(mdp=mdps(deterministic=True, gammas=(0.3, 0.9, 0.99)), rng=generators())
@examples(60)
def test_separable_closed_form(norm: Norm, mdp: FiniteMDP, rng: np.random.Generator) -> None:
    q, weights = random_q(rng, mdp), draw_weights(rng, mdp)
    if rng.random() < 0.3:
        q = np.round(q)  # equal targets, half weights
    problem = q_problem(mdp, q, norm, weights)
    if problem.constrained.any():
        solution = separable(problem)
        assert solution.gap == 0
        check_against_oracle(mdp, q, weights, problem, solution, rtol=1e-12)


@pytest.mark.parametrize("norm", ["l2", "l1", "linf"])
@given(mdp=mdps(), rng=generators())
@examples(40)
def test_clip_closed_form(norm: Norm, mdp: FiniteMDP, rng: np.random.Generator) -> None:
    v = random_v(rng, mdp)
    weights = None if rng.random() < 0.5 else np.where(mdp.terminal, 0.0, rng.random(mdp.n_states))
    problem = v_problem(mdp, v, backup(mdp, v), norm, weights)
    solution = clip_values(problem)
    least, _ = least_in_box(*box_problem(mdp, "v", v, norm, weights))
    norm_found = np.sqrt(2 * solution.objective) if norm == "l2" else solution.objective
    assert_allclose(norm_found, least, rtol=1e-9, atol=1e-12)
    assert solution.gap == 0


def smooth_mdp(n: int, noise: float, seed: int, gamma: float = 0.95) -> FiniteMDP:
    """A walk on a fine grid of [0, 1] with Gaussian noise: the singular values of P fall below rounding."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(0.0, 1.0, n)
    towards = np.clip(grid[:, None] + np.array([-0.1, 0.0, 0.1]), 0.0, 1.0)
    kernel = np.exp(-0.5 * ((grid - towards[..., None]) / noise) ** 2)
    return FiniteMDP(kernel / kernel.sum(axis=2, keepdims=True), rng.normal(size=(n, 3)), gamma)


@pytest.mark.parametrize(("n", "noise", "seed"), [(30, 0.1, 0), (45, 0.05, 1), (60, 0.1, 2), (76, 0.02, 3)])
def test_least_squares_of_smooth_dynamics(n: int, noise: float, seed: int) -> None:
    mdp = smooth_mdp(n, noise, seed)
    rng = np.random.default_rng(seed)
    exact = policy_value(mdp, random_pi(rng, mdp))[1]
    for q in (exact, exact + 1e-3 * rng.normal(size=exact.shape)):
        problem = q_problem(mdp, q, "l2")
        solution = solve_least_squares(problem)
        assert solution.converged
        check_against_oracle(mdp, q, None, problem, solution, rtol=1e-8)
    assert solve_least_squares(q_problem(mdp, exact, "l2")).objective <= 0.5 * (1e-11 * np.abs(exact).max()) ** 2


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_linear_programs_of_smooth_dynamics(norm: Norm) -> None:
    mdp = smooth_mdp(45, 0.05, 0)
    rng = np.random.default_rng(0)
    q = policy_value(mdp, random_pi(rng, mdp))[1]
    q = q + 1e-3 * rng.normal(size=q.shape)
    problem = q_problem(mdp, q, norm)
    solution = solve_lp(problem, solve_least_squares(problem.in_l2()).v)
    assert solution.converged
    assert solution.gap <= 1e-8 * solution.objective
    least, _ = least_in_box(*box_problem(mdp, "q", q, norm, None))  # the textbook program loses small coefficients
    assert solution.objective <= least * (1 + 1e-9)
    assert_allclose(solution.objective, least, rtol=1e-5)


@pytest.mark.parametrize("gamma", [1e-8, 0.5])
@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_linear_programs_with_tiny_coefficients(norm: Norm, gamma: float) -> None:
    """HiGHS drops coefficients below 1e-9: a small gamma or nearly certain transitions must not be lost."""
    rng = np.random.default_rng(3)
    sure = np.eye(6)[rng.integers(6, size=(6, 3))]
    P = (1 - 1e-9) * sure + 1e-9 * rng.dirichlet(np.ones(6), size=(6, 3))
    mdp = FiniteMDP(P / P.sum(axis=2, keepdims=True), rng.normal(size=(6, 3)), gamma)
    q = policy_value(mdp, random_pi(rng, mdp))[1]
    q = q + 1e-7 * gamma * rng.normal(size=q.shape)
    problem = q_problem(mdp, q, norm)
    solution = solve_lp(problem, middle(problem), atol=floor_of(problem))
    assert solution.converged
    assert solution.gap <= 1e-3 * solution.objective


def test_pdhg_survives_a_primal_weight_that_collapses() -> None:
    """The first step moves the multipliers by a rounding error only; this used to end all progress."""
    rng = np.random.default_rng(204)
    mdp = random_mdp(rng, 6, 3, gamma=0.99, terminals=True)
    for _ in range(20):
        q, weights = 1000 * random_q(rng, mdp), np.where(mdp.allowed, rng.random((6, 3)), 0.0)
        problem = q_problem(mdp, q, "linf", weights)
        solution = solve_pdhg(problem, solve_l2(problem.in_l2()).v)
        assert solution.converged
        check_against_oracle(mdp, q, weights, problem, solution, rtol=1e-4)


@pytest.mark.parametrize("seed", range(25))
def test_l2_with_steps_in_single_precision(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """As for large matrices: the steps are rounded, the solution is not."""
    monkeypatch.setattr(rows_module, "THREADED_FROM", 1)
    monkeypatch.setattr(l2_module, "THREADED_FROM", 1)
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng, 12, 3, successors=4, gamma=0.95, masks=True, terminals=True)
    q, weights = random_q(rng, mdp), draw_weights(rng, mdp)
    if seed % 2:
        q = policy_value(mdp, random_pi(rng, mdp))[1] + (seed % 3) * 1e-6 * q
    problem = q_problem(mdp, q, "l2", weights)
    solution = solve_l2(problem)
    assert solution.converged
    check_against_oracle(mdp, q, weights, problem, solution, rtol=1e-8)


@pytest.mark.parametrize("smallest", [1e-8, 1e-22, 1e-100])
def test_tiny_probabilities_do_not_overflow_single_precision(monkeypatch: pytest.MonkeyPatch, smallest: float) -> None:
    monkeypatch.setattr(rows_module, "THREADED_FROM", 1)
    monkeypatch.setattr(l2_module, "THREADED_FROM", 1)
    rng = np.random.default_rng(0)
    P = np.zeros((4, 2, 4))
    P[..., :3] = rng.dirichlet(np.ones(3), size=(4, 2))
    P[..., 3] = smallest
    P[..., 0] -= smallest
    mdp = FiniteMDP(P, rng.normal(size=(4, 2)), 0.9)
    q = random_q(rng, mdp)
    problem = q_problem(mdp, q, "l2")
    solution = solve_l2(problem)
    assert solution.converged
    check_against_oracle(mdp, q, None, problem, solution, rtol=1e-8)


def test_products_in_threads_are_the_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of rows on several threads, as for large matrices, against scipy's own products."""
    mdp = garnet(50, 3, 4, seed=2)
    rng = np.random.default_rng(0)
    v, y = rng.normal(size=50), rng.normal(size=150)
    d = rng.random(150)
    P = mdp.transitions.toarray()
    for threshold in (1, 10**6):
        monkeypatch.setattr(rows_module, "THREADED_FROM", threshold)
        rows = rows_module.Rows(mdp.transitions)
        assert_allclose(rows.times(v), P @ v, rtol=1e-13, atol=1e-14)
        assert_allclose(rows.transposed_times(y), P.T @ y, rtol=1e-12, atol=1e-14)
        assert_allclose(rows.normal_times(d, v), P.T @ (d * (P @ v)), rtol=1e-12, atol=1e-14)
        assert_allclose(rows.squared_transposed_times(d), (P * P).T @ d, rtol=1e-12, atol=1e-14)


def test_solvers_accept_a_start_that_is_already_exact() -> None:
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, 4, 2, successors=1)
    q = np.zeros((4, 2))
    problem = q_problem(FiniteMDP(mdp.transitions, np.zeros((4, 2)), 0.9), q, "linf")
    start = np.zeros(4)
    assert solve_lp(problem, start).objective == 0
    assert solve_interior_point(problem, start).objective == 0
    assert solve_pdhg(problem, start).objective == 0


@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_accept_a_box_that_is_a_point(name: str) -> None:
    norm, solve, _ = SOLVERS[name]
    mdp = random_mdp(np.random.default_rng(1), 4, 1)
    problem = q_problem(mdp, np.ones((4, 1)), norm)
    solution = solve(problem)
    assert_array_equal(solution.v, np.ones(4))
    assert solution.converged
    assert_allclose(solution.gap, 0.0, atol=1e-14)
