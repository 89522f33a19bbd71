"""The closed forms of deterministic MDPs against their formulas and the general solvers; and what `unique` claims."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

from ipe import evaluation_policy
from ipe.base.arrays import Array
from ipe.inverse.choice import METHODS_OF
from ipe.inverse.problem import Norm
from ipe.mdp import FiniteMDP
from tests.cases import ALL_METHODS, NORMS, RTOL, Case, cases
from tests.oracles import (
    box_problem,
    spread,
)
from tests.tiers import examples


@pytest.mark.parametrize("norm", NORMS)
@given(case=cases(max_states=5, max_actions=3, gammas=(0.3, 0.9)))
@examples(40)
def test_unique_is_what_it_claims(norm: Norm, case: Case) -> None:
    if case.kind in ("near", "optimal", "policy") and norm != "l2":
        return  # the oracle's tolerance is as wide as these optimal faces
    result = case.solve(norm)
    problem, bounds = box_problem(case.mdp, case.form, case.values, norm, case.weights)
    width = spread(problem, bounds)
    if result.unique is True:
        assert width <= 1e-5 * case.size
    if result.unique is False:
        assert width >= 1e-11 * case.size
    if case.closed:
        assert result.unique is not None


def test_dependent_columns_are_not_unique() -> None:
    """Every row leads to both states with probability 1/2: only v(0) + v(1) is determined."""
    mdp = FiniteMDP(np.full((2, 2, 2), 0.5), [[0.0, 4.0], [1.0, 5.0]], 0.9)
    q = mdp.rewards + 0.9 * 20.0
    for method in METHODS_OF["l2"][1:]:
        result = evaluation_policy(mdp, q=q, method=method)  # type: ignore[arg-type]
        assert result.unique is False
        assert result.achievable
    other = result.v + np.array([0.05, -0.05])
    assert ((q.min(axis=1) < other) & (other < q.max(axis=1))).all()
    assert_allclose(0.9 * mdp.transitions @ other - (q - mdp.rewards).ravel(), 0.0, atol=1e-9)


def test_dependent_columns_that_the_box_decides_are_not_called_dependent() -> None:
    """As above, but the sum asked for is beyond what there is: one point, at a corner of the box."""
    mdp = FiniteMDP(np.full((2, 2, 2), 0.5), [[0.0, 1.0], [2.0, 3.0]], 0.9)
    for q, end in ((mdp.rewards + 50.0, np.max), (mdp.rewards - 50.0, np.min)):
        result = evaluation_policy(mdp, q=q)
        assert_allclose(result.v, end(q, axis=1))
        assert result.unique is not False


def test_sup_norm_of_the_v_form_is_not_unique() -> None:
    """One state is off by 2 whatever is done; the other has room."""
    mdp = FiniteMDP(np.eye(2)[[[0, 0], [1, 1]]], [[0.0, 0.0], [0.0, 2.0]], 0.5)
    v = [4.0, 1.0]
    assert evaluation_policy(mdp, v=v, norm="linf").unique is False
    assert evaluation_policy(mdp, v=v, norm="l2").unique is True
    assert evaluation_policy(mdp, v=v, norm="l1").unique is True
    achievable = evaluation_policy(mdp, v=[0.0, 1.0], norm="linf")
    assert achievable.achievable
    assert achievable.unique is True
    # in the states that the norm sees
    wide = FiniteMDP(mdp.transitions, [[0.0, -1.0], [0.0, 2.0]], 0.5)
    assert evaluation_policy(wide, v=v, norm="linf").unique is False
    assert evaluation_policy(wide, v=v, norm="linf", weights=[1.0, 0.0]).unique is True
    assert evaluation_policy(wide, v=[0.0, 1.0], norm="linf", weights=[1.0, 0.0]).unique is True


DETERMINISTIC_METHODS = [(norm, m) for norm, m in ALL_METHODS if m != "closed-form"]


@pytest.mark.parametrize(("norm", "method"), DETERMINISTIC_METHODS)
@given(case=cases(form="q", deterministic=True, gammas=(0.3, 0.9, 0.99)))
@examples(25)
def test_closed_form_equals_the_general_solver(norm: Norm, method: str, case: Case) -> None:
    closed, general = case.solve(norm, method="closed-form"), case.solve(norm, method=method)
    size = case.size * float(case.least(norm)[1].max())
    assert closed.gap == 0
    assert closed.residual <= general.residual + 1e-11 * size
    assert_allclose(general.residual, closed.residual, rtol=RTOL.get(method, 1e-8), atol=1e-8 * size)
    if norm == "l2" and case.kind in ("any", "ties"):
        assert_allclose(general.v, closed.v, rtol=0, atol=1e-4 * case.size)


def merging(rewards: list[float], gamma: float = 0.5) -> FiniteMDP:
    """States 1, 2, ... all lead to state 0, which leads to itself by two actions of wide values."""
    n = len(rewards)
    P = np.zeros((n + 1, 2, n + 1))
    P[:, :, 0] = 1.0
    allowed = np.ones((n + 1, 2), dtype=bool)
    allowed[1:, 1] = False
    table = np.zeros((n + 1, 2))
    table[1:, 0] = rewards
    return FiniteMDP(P, table, gamma, allowed=allowed)


def merging_q(mdp: FiniteMDP, targets: list[float]) -> tuple[Array, Array]:
    """Q whose targets (Q - r) / gamma for v(0) are as given, and weights that leave out state 0's own rows."""
    q = np.zeros((mdp.n_states, 2))
    q[0] = [-100.0, 100.0]
    q[1:, 0] = mdp.rewards[1:, 0] + mdp.gamma * np.array(targets)
    weights = np.zeros(q.shape)
    weights[1:, 0] = 1.0
    return q, weights


@pytest.mark.parametrize(
    ("targets", "weights", "expected", "unique"),
    [
        ([1.0, 2.0, 9.0], [1, 1, 1], 2.0, True),
        ([1.0, 2.0, 9.0, 10.0], [1, 1, 1, 1], 5.5, False),  # the middle of the median interval
        ([9.0, 1.0, 10.0, 2.0], [1, 1, 1, 1], 5.5, False),
        ([1.0, 2.0, 9.0], [1, 1, 2], 5.5, False),
        ([1.0, 2.0, 9.0], [1, 1, 2.001], 9.0, True),
        ([1.0, 2.0, 9.0], [0.1, 0.2, 0.3], 5.5, False),  # half the weight, but for rounding
        ([1.0, 2.0, 9.0], [1, 0, 0], 1.0, True),
        ([3.0, 3.0, 3.0, 7.0], [1, 1, 1, 3], 5.0, False),
        ([300.0, 400.0], [1, 1], 100.0, True),  # beyond the box
    ],
)
def test_weighted_median(targets: list[float], weights: list[float], expected: float, unique: bool) -> None:
    mdp = merging([0.0, 1.0, -2.0, 5.0][: len(targets)])
    q, w = merging_q(mdp, targets)
    w[1:, 0] = weights
    result = evaluation_policy(mdp, q=q, norm="l1", weights=w)
    assert_allclose(result.v[0], expected, rtol=1e-12)
    assert result.unique is unique
    d = np.array(weights) / np.sum(weights)
    assert_allclose(result.residual, 0.5 * np.sum(d * np.abs(expected - np.array(targets))), rtol=1e-12)


@pytest.mark.parametrize(
    ("targets", "weights"),
    [
        ([1.0, 2.0, 9.0], [1, 1, 1]),
        ([1.0, 2.0, 9.0], [5, 1, 1]),
        ([1.0, 2.0, 9.0, 3.0], [1, 7, 1, 2]),
        ([4.0, 4.0], [1, 3]),
        ([4.0], [3]),
        ([-5.0, 6.0, 0.0], [1e-9, 1, 1e9]),
        ([1.0, 2.0], [0, 1]),
    ],
)
def test_minimax_pairs(targets: list[float], weights: list[float]) -> None:
    """The point of the specification: of the pair i, j that maximises d_i d_j (t_i - t_j) / (d_i + d_j)."""
    mdp = merging([0.0, 1.0, -2.0, 5.0][: len(targets)])
    q, w = merging_q(mdp, targets)
    w[1:, 0] = weights
    result = evaluation_policy(mdp, q=q, norm="linf", weights=w)
    pairs = [
        (di * dj * (ti - tj) / (di + dj), (di * ti + dj * tj) / (di + dj))
        for ti, di in zip(targets, weights, strict=True)
        for tj, dj in zip(targets, weights, strict=True)
        if ti >= tj and di + dj > 0
    ]
    height, point = max(pairs)
    if height > 0:
        assert_allclose(result.v[0], point, rtol=1e-12)
    assert_allclose(result.residual, 0.5 * height, rtol=1e-12, atol=1e-15)


def test_weighted_mean() -> None:
    mdp = merging([0.0, 1.0, -2.0])
    q, w = merging_q(mdp, [1.0, 2.0, 9.0])
    w[1:, 0] = [1, 2, 3]
    for method in METHODS_OF["l2"]:
        result = evaluation_policy(mdp, q=q, weights=w, method=method)  # type: ignore[arg-type]
        assert_allclose(result.v[0], (1 + 4 + 27) / 6, rtol=1e-6)
        assert result.unique is True
