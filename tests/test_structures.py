"""Exact solves on every structure: against an oracle, to their certificate, within their time, by the right method."""

from __future__ import annotations

import itertools
import signal
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
from ipe.cli.solve_progress import GapDisplay
from ipe.errors import InputError, SolveInterrupted
from ipe.inverse.interior_point import solve_interior_point
from ipe.inverse.l2 import certificate
from ipe.inverse.least_squares import solve_l2_interior_point
from ipe.inverse.lp import solve_lp
from ipe.inverse.normal_equations import NormalEquations, predicted_work
from ipe.inverse.problem import Norm, q_problem
from ipe.inverse.watch import SolveProgress
from ipe.mdp import FiniteMDP
from tests.oracles import box_problem, least_in_box
from tests.tiers import examples

NORMS: tuple[Norm, ...] = ("l2", "l1", "linf")
SMALL = {
    "grid": lambda seed: zoo.slippery_grid(5, seed=seed),
    "queue": lambda seed: zoo.queue(20, arrival=0.2 + 0.01 * (seed % 30)),
    "walk": lambda seed: zoo.ring_walk(20, seed=seed),
    "smooth": lambda seed: zoo.smooth_line(20, width=0.05 + 0.001 * (seed % 30)),
    "garnet": lambda seed: zoo.garnet(20, 3, 3, seed=seed),
}
DATA = Path(__file__).parent / "data"


def swept(mdp: FiniteMDP, sweeps: int = 20) -> Array:
    q = np.zeros(mdp.rewards.shape)
    for _ in range(sweeps):
        q = mdp.rewards + mdp.gamma * (mdp.transitions @ q.max(axis=1)).reshape(q.shape)
    return q


def noisy(mdp: FiniteMDP, amount: float, seed: int = 0) -> Array:
    q = ipe.planning.policy_values(mdp, ipe.planning.random_policy(mdp, seed)).q
    noise: Array = np.random.default_rng(seed).normal(size=q.shape)
    return q + amount * float(np.abs(q).max()) * noise


@pytest.mark.parametrize("structure", SMALL)
@pytest.mark.parametrize("norm", NORMS)
@given(seed=st.integers(0, 2**31), amount=st.sampled_from([1e-3, 1e-2, 1.0]), values=st.booleans())
@examples(24)
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
