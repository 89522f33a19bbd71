"""Exact solves on every structure: against an oracle, to their certificate, within their time, by the right method."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import ipe
from ipe import zoo
from ipe.base.arrays import Array
from ipe.cli import main
from ipe.cli.solve import GapDisplay
from ipe.errors import InputError, SolveInterrupted
from ipe.inverse import cholesky as dense
from ipe.inverse import normal_equations
from ipe.inverse.cholesky import cholesky, mirror
from ipe.inverse.interior_point import solve_interior_point
from ipe.inverse.l2 import certificate, solve_l2
from ipe.inverse.least_squares import solve_l2_interior_point
from ipe.inverse.lp import solve_lp
from ipe.inverse.normal_equations import NormalEquations, predicted_work
from ipe.inverse.problem import Norm, q_problem
from ipe.inverse.watch import SolveProgress, TimeOverError, Watch
from ipe.mdp import FiniteMDP
from tests.oracles import box_problem, least_in_box
from tests.tiers import examples

NORMS: tuple[Norm, ...] = ("l2", "l1", "linf")


def star(n: int, hubs: int, seed: int) -> FiniteMDP:
    """Every pair leads to one of a few hubs, or to a neighbour on a line."""
    rng = np.random.default_rng(seed)
    P = np.zeros((n, 3, n))
    for s, a in itertools.product(range(n), range(3)):
        p = rng.uniform(0.1, 0.9)
        P[s, a, rng.integers(hubs)] += p
        P[s, a, min(n - 1, max(0, s + int(rng.integers(-3, 4))))] += 1.0 - p
    return FiniteMDP(P, rng.normal(size=(n, 3)), 0.95)


def box_grid(sides: tuple[int, ...], seed: int, torus: bool = False, gamma: float = 0.95) -> FiniteMDP:
    """A grid of any number of dimensions: two moves in each, which slip along the other dimensions."""
    n, d = int(np.prod(sides)), len(sides)
    at = np.array(np.unravel_index(np.arange(n), sides))
    P = np.zeros((n, 2 * d, n))
    for a, b in itertools.product(range(2 * d), repeat=2):
        if a // 2 == b // 2 and a != b:
            continue
        to = at.copy()
        to[b // 2] += 1 if b % 2 else -1
        places = np.ravel_multi_index(tuple(to), sides, mode="wrap" if torus else "clip")
        P[np.arange(n), a, places] += 0.8 if a == b else 0.2 / (2 * d - 2)
    return FiniteMDP(P, np.random.default_rng(seed).normal(size=(n, 2 * d)), gamma)


def nearly_decomposable(seed: int) -> FiniteMDP:
    """Four rooms of six states that hardly ever lead to one another."""
    rng = np.random.default_rng(seed)
    P = np.kron(np.eye(4), np.ones((6, 6)))[:, None, :] * rng.exponential(size=(24, 3, 24))
    P = (1.0 - 1e-2) * P / P.sum(axis=2, keepdims=True) + 1e-2 / 24
    return FiniteMDP(P, rng.normal(size=(24, 3)), 0.99)


def masked(seed: int) -> FiniteMDP:
    """A random graph with action sets and terminal states."""
    rng, given = np.random.default_rng(seed), zoo.garnet(20, 4, 3, seed=seed)
    ended = np.arange(20) % 7 == 3
    allowed = rng.random((20, 4)) < 0.6
    allowed[:, 0] |= ~allowed.any(axis=1)
    P = given.transitions.toarray().reshape(20, 4, 20) * ~ended[:, None, None]
    return FiniteMDP(P, np.where(ended[:, None], 0.0, given.rewards), 0.95, allowed=allowed, terminal=ended)


SMALL = {
    "grid": lambda seed: zoo.slippery_grid(5, seed=seed),
    "queue": lambda seed: zoo.queue(20, arrival=0.2 + 0.01 * (seed % 30)),
    "walk": lambda seed: zoo.ring_walk(20, seed=seed),
    "smooth": lambda seed: zoo.smooth_line(20, width=0.05 + 0.001 * (seed % 30)),
    "garnet": lambda seed: zoo.garnet(20, 3, 3, seed=seed),
    "two successors": lambda seed: zoo.garnet(20, 3, 2, seed=seed, gamma=0.5),
    "tall grid": lambda seed: box_grid((2, 12), seed),
    "three dimensions": lambda seed: box_grid((3, 3, 3), seed),
    "torus": lambda seed: box_grid((5, 5), seed, torus=True, gamma=0.9999),
    "star": lambda seed: star(24, 1, seed),
    "hubs": lambda seed: star(24, 4, seed),
    "nearly decomposable": nearly_decomposable,
    "masked": masked,
}
DATA = Path(__file__).parent / "data"


def swept(mdp: FiniteMDP, sweeps: int = 20) -> Array:
    q = np.zeros(mdp.rewards.shape)
    for _ in range(sweeps):
        v = np.where(mdp.terminal, 0.0, np.where(mdp.allowed, q, -np.inf).max(axis=1))
        q = mdp.rewards + mdp.gamma * (mdp.transitions @ v).reshape(q.shape)
    return np.where(mdp.allowed, q, 0.0)


def noisy(mdp: FiniteMDP, amount: float, seed: int = 0) -> Array:
    q = np.where(mdp.allowed, ipe.planning.policy_values(mdp, ipe.planning.random_policy(mdp, seed)).q, 0.0)
    noise: Array = np.random.default_rng(seed).normal(size=q.shape)
    return np.where(mdp.allowed, q + amount * float(np.abs(q).max()) * noise, 0.0)


@pytest.mark.parametrize("structure", SMALL)
@pytest.mark.parametrize("norm", NORMS)
@given(seed=st.integers(0, 2**31), amount=st.sampled_from([1e-3, 1e-2, 1.0]), values=st.booleans())
@examples(16)
def test_every_structure_in_every_norm_against_an_oracle(
    structure: str, norm: Norm, seed: int, amount: float, values: bool
) -> None:
    mdp = SMALL[structure](seed)
    q = swept(mdp) if values else noisy(mdp, amount, seed)
    result = ipe.evaluation_policy(mdp, q=q, norm=norm)
    best, _ = least_in_box(*box_problem(mdp, "q", q, norm, None))
    size = np.abs(q).max()
    assert result.residual_lower_bound <= best + 1e-9 * size
    assert best <= result.residual + 1e-9 * size
    assert result.residual == pytest.approx(best, rel=1e-6, abs=1e-9 * size)


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("structure", ["grid", "queue", "walk", "garnet"])
def test_interior_points_and_highs_agree(structure: str, norm: Norm) -> None:
    mdp = SMALL[structure](3)
    problem = q_problem(mdp, noisy(mdp, 0.1), norm)
    start = 0.5 * (problem.lo + problem.hi)
    one, other = solve_interior_point(problem, start, rtol=1e-8), solve_lp(problem, start, rtol=1e-8)
    assert one.converged
    assert other.converged
    assert one.objective == pytest.approx(other.objective, rel=1e-7)


def test_a_case_on_which_highs_went_on_without_end() -> None:
    case = np.load(DATA / "l1_without_an_answer.npz")
    mdp = FiniteMDP(
        case["P"].reshape(9, 3, 9), case["r"], float(case["gamma"]), allowed=case["al"], terminal=case["term"]
    )
    started = time.process_time()
    for method in ("auto", "highs"):
        result = ipe.evaluation_policy(mdp, q=case["q"], norm="l1", method=method)
        assert result.converged
        assert result.residual < 1e-10
    assert time.process_time() - started < 10.0


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_highs_solves_a_grid_of_50_by_50(norm: Norm) -> None:
    mdp = zoo.slippery_grid(50)
    result = ipe.evaluation_policy(mdp, q=swept(mdp), norm=norm, method="highs")
    assert result.relative_gap <= 1e-8
    assert result.method == "HiGHS, interior point"


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_a_large_grid_has_sparse_factors(norm: Norm) -> None:
    mdp = zoo.slippery_grid(60)
    result = ipe.evaluation_policy(mdp, q=swept(mdp), norm=norm)
    assert result.method == "interior point"
    assert result.relative_gap <= 1e-6


def test_a_smooth_kernel_in_l2_above_a_thousand_states() -> None:
    mdp = zoo.smooth_line(1500, width=0.002)
    result = ipe.evaluation_policy(mdp, q=noisy(mdp, 0.01))
    assert result.method == "interior point"
    assert result.relative_gap <= 1e-6


def test_dense_factors_of_a_smooth_kernel() -> None:
    mdp = zoo.smooth_line(1050, width=0.1)
    problem = q_problem(mdp, noisy(mdp, 0.01), "l2")
    solution = solve_l2_interior_point(problem, 0.5 * (problem.lo + problem.hi), rtol=1e-6)
    assert solution.converged
    assert certificate(problem, solution.v)[1] <= 1e-6 * solution.objective


def test_the_work_of_factors_is_predicted_by_the_structure() -> None:
    grid, walk, random = zoo.slippery_grid(70), zoo.ring_walk(5000), zoo.garnet(5000, 4, 5)
    assert predicted_work(grid.transitions).worthwhile(4900)
    assert predicted_work(walk.transitions).flops < 1e6
    assert not predicted_work(random.transitions).worthwhile(5000)
    assert predicted_work(sparse.csr_array((3, 2))).entries >= 2


def test_hubs_are_set_aside_when_the_work_of_factors_is_predicted() -> None:
    n, rng = 3000, np.random.default_rng(0)
    for hubs in (1, 50):
        columns = np.stack([rng.integers(hubs, size=n), np.arange(n)], axis=1).ravel()
        star = sparse.csr_array((np.full(2 * n, 0.5), columns, np.arange(0, 2 * n + 1, 2)), shape=(n, n))
        work = predicted_work(star)
        assert work.hubs
        assert work.worthwhile(n)
        assert work.entries < 10 * n + 2 * hubs * n
    assert not predicted_work(zoo.garnet(3000, 3, 3).transitions).hubs


@pytest.mark.parametrize("norm", ["l1", "linf"])
def test_a_star_is_solved_with_sparse_factors(norm: Norm) -> None:
    mdp = star(1100, 1, 0)
    result = ipe.evaluation_policy(mdp, q=noisy(mdp, 0.01), norm=norm)
    assert result.method == "HiGHS, interior point"
    assert result.relative_gap <= 1e-6


def test_interior_points_leave_a_start_far_from_their_path() -> None:
    """Swept values have few large residuals: the first steps are short, and prove nothing yet."""
    mdp = zoo.garnet(400, 4, 5, seed=0)
    problem = q_problem(mdp, swept(mdp), "l1")
    start = solve_l2(problem.in_l2()).v
    assert solve_interior_point(problem, start, rtol=1e-6).converged


@pytest.mark.parametrize("mdp", [zoo.slippery_grid(30), zoo.garnet(60, 3, 4), zoo.smooth_line(60, width=0.2)])
def test_systems_are_solved_whichever_factors_are_used(mdp: FiniteMDP) -> None:
    rng = np.random.default_rng(0)
    A = mdp.transitions
    theta, e = rng.exponential(size=A.shape[0]), rng.exponential(size=A.shape[1])
    g, b = A.T @ (theta * rng.uniform(-0.5, 0.5, size=A.shape[0])), rng.normal(size=A.shape[1])
    total = float(theta.sum())
    dense = A.toarray()
    full = dense.T @ (theta[:, None] * dense) + np.diag(e)
    for way in (True, False):
        equations = NormalEquations(A)
        equations.__dict__["sparse"] = way
        for direct in (True, False):
            equations.direct = direct
            np.testing.assert_allclose(full @ equations.solver(theta, e)(b), b, rtol=1e-5, atol=1e-5)
            less = full - np.outer(g, g) / total
            np.testing.assert_allclose(less @ equations.solver(theta, e, g, total)(b), b, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("norm", NORMS)
def test_a_time_limit_flags_the_best_point_with_its_proven_gap(norm: Norm) -> None:
    mdp = zoo.slippery_grid(40)
    q = swept(mdp)
    exact = ipe.evaluation_policy(mdp, q=q, norm=norm)
    early = ipe.evaluation_policy(mdp, q=q, norm=norm, time_limit=1e-9)
    assert not early.converged
    assert early.stopped == "time limit"
    assert "time limit" in str(early)
    assert early.residual_lower_bound <= exact.residual <= early.residual * (1 + 1e-9)
    assert exact.stopped == ""


@pytest.mark.parametrize(
    ("norm", "method"),
    [("l2", "projected-cg"), ("l2", "interior-point"), ("l1", "highs"), ("l1", "interior-point"), ("l1", "pdhg"),
     ("linf", "highs"), ("linf", "interior-point"), ("linf", "pdhg")],
)  # fmt: skip
def test_every_method_ends_when_the_time_is_over(norm: Norm, method: Any) -> None:
    mdp = zoo.garnet(1600, 4, 5)
    q = swept(mdp)
    early = ipe.evaluation_policy(mdp, q=q, norm=norm, method=method, time_limit=0.001, rtol=1e-12, on_miss="flag")
    assert early.stopped == "time limit"
    assert not early.converged
    problem = q_problem(mdp, q, norm)
    another = problem.norm_of(problem.residuals(solve_l2(problem.in_l2()).v))  # no policy is below the proven bound
    assert 0.0 <= early.residual_lower_bound <= min(early.residual, another) * (1 + 1e-9)


def test_a_long_call_is_left_alone_when_the_time_is_over() -> None:
    released = threading.Event()
    watch = Watch(time_limit=0.05)
    with pytest.raises(TimeOverError):
        watch.run(lambda: released.wait(20.0))
    released.set()
    assert Watch().run(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        Watch().run(lambda: 1 // 0)


def test_what_there_is_of_a_step_is_taken_when_the_time_is_over() -> None:
    """A round of conjugate gradients takes a minute on ten million states: its products are not thrown away."""

    class Clock(Watch):
        """Its time is over after so many looks at it."""

        looks = 0

        @property
        def remaining(self) -> float:
            self.looks += 1
            return 0.0 if self.looks > 20 else 1.0

    mdp = zoo.smooth_line(300, width=0.02)
    problem = q_problem(mdp, noisy(mdp, 0.01), "l2")
    watch, gaps = Clock(), list[float]()
    watch.callback = lambda progress: gaps.append(progress.gap)
    with pytest.raises(TimeOverError):
        solve_l2(problem, rtol=1e-14, watch=watch)
    assert len(gaps) == 2, "the first round was not over by then"
    assert watch.v is not None
    assert certificate(problem, watch.v)[1] == pytest.approx(gaps[1])
    assert gaps[1] < gaps[0]


def test_a_solve_that_ends_with_its_time_is_not_called_stopped() -> None:
    watch = Watch(time_limit=1e-9)
    watch.note("a method", 1, np.zeros(2), objective=1.0, gap=1e-9, target=1e-8)
    with pytest.raises(TimeOverError):
        watch.note("a method", 2, np.zeros(2), objective=1.0, gap=1e-7, target=1e-8)


@pytest.mark.parametrize("n", [1, 5, 300])
@pytest.mark.parametrize("at_once", [300, 0])
def test_cholesky(n: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "AT_ONCE", at_once)
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n + 3))
    matrix, b = root @ root.T, rng.normal(size=n)
    copy = matrix.copy()
    x = cholesky(copy, Watch())(b)
    np.testing.assert_allclose(matrix @ x, b, rtol=1e-6, atol=1e-6 * np.abs(b).max())
    np.testing.assert_allclose(np.tril(copy), np.linalg.cholesky(matrix), rtol=1e-8, atol=1e-8)
    np.testing.assert_array_equal(np.triu(copy, 1), np.triu(matrix, 1))


def test_sparse_factors_are_dropped_in_the_thread_that_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """SuperLU gives its memory back only then: a solve of 10^5 states would keep 3 GB."""
    made, dropped = [], []

    class Factor:
        def __init__(self, matrix: sparse.csc_array) -> None:
            self.matrix = matrix
            made.append(threading.get_ident())

        def solve(self, b: Array) -> Array:
            return np.linalg.solve(self.matrix.toarray(), b)

        def __del__(self) -> None:
            dropped.append(threading.get_ident())

    monkeypatch.setattr(normal_equations, "splu", lambda matrix, **options: Factor(matrix))
    monkeypatch.setattr(normal_equations, "LONG_FLOPS", 0.0)
    problem = q_problem(zoo.queue(40), np.random.default_rng(0).normal(size=(40, 3)), "l1")
    solve_interior_point(problem, problem.lo)
    for _ in range(100):
        if len(dropped) == len(made):
            break
        time.sleep(0.02)
    assert len(made) > 2
    assert dropped == made
    assert threading.get_ident() not in made


def test_a_long_factor_ends_with_the_time() -> None:
    watch = Watch(time_limit=0.05)
    started = time.monotonic()
    with pytest.raises(TimeOverError):
        cholesky(np.eye(3000) + 1.0, watch)
    assert time.monotonic() - started < 5.0


def test_what_a_failed_factor_overwrote_is_restored() -> None:
    rng = np.random.default_rng(0)
    root = rng.normal(size=(200, 200))
    matrix = root @ root.T
    matrix[150, 150] = -1.0
    copy = matrix.copy()
    with pytest.raises(np.linalg.LinAlgError):
        cholesky(copy, Watch())
    mirror(copy)
    copy[np.diag_indices(200)] = matrix.diagonal()
    np.testing.assert_array_equal(copy, np.triu(matrix) + np.triu(matrix, 1).T)


def test_wrong_time_limits_are_refused() -> None:
    for wrong in (0.0, -1.0, np.nan, "1"):
        with pytest.raises(InputError, match="time_limit must be a finite number > 0"):
            ipe.evaluation_policy(zoo.garnet(9, 2, 2), q=np.zeros((9, 2)), time_limit=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("norm", NORMS)
def test_progress_tells_how_the_gap_falls(norm: Norm) -> None:
    told: list[SolveProgress] = []
    mdp = zoo.garnet(300, 3, 4)
    result = ipe.evaluation_policy(mdp, q=noisy(mdp, 0.5), norm=norm, progress=told.append)
    assert told[-1].gap <= told[-1].target
    assert told[-1].method == result.method
    assert all(one.seconds <= other.seconds for one, other in itertools.pairwise(told))
    assert all(one.gap >= 0 for one in told)


@pytest.mark.parametrize("norm", NORMS)
def test_ctrl_c_leaves_the_best_so_far(norm: Norm) -> None:
    def press(progress: SolveProgress) -> None:
        signal.raise_signal(signal.SIGINT)

    mdp: Any = zoo.slippery_grid(40)
    with pytest.raises(SolveInterrupted) as caught:
        ipe.evaluation_policy(mdp, q=swept(mdp), norm=norm, progress=press)
    result = caught.value.result
    assert isinstance(caught.value, KeyboardInterrupt)
    assert result.stopped == "interrupted"
    assert not result.converged
    np.testing.assert_allclose(result.policy.sum(axis=1), 1.0)


def test_the_command_line_takes_a_time_limit_and_says_that_it_is_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = tmp_path / "q.npy"
    np.save(values, swept(zoo.slippery_grid(40)))
    words = ["solve", "slippery-grid:n=40", "--values", str(values), "--norm", "linf"]
    assert main([*words, "--time-limit", "0.000001"]) == 0
    assert "NOT CONVERGED to the tolerance asked for (time limit)" in capsys.readouterr().out
    assert main([*words, "--time-limit", "0"]) == 2
    assert "time_limit must be a finite number > 0" in capsys.readouterr().err


def test_ctrl_c_on_the_command_line_prints_the_best_so_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    values = tmp_path / "q.npy"
    np.save(values, swept(zoo.slippery_grid(40)))
    monkeypatch.setattr(GapDisplay, "__call__", lambda self, progress: signal.raise_signal(signal.SIGINT))
    assert main(["solve", "slippery-grid:n=40", "--values", str(values), "--norm", "l1"]) == 130
    out, err = capsys.readouterr()
    assert "(interrupted)" in out
    assert "interrupted" in err
