"""The corner cases of the specification's section 1, each for every solver, with answers worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from ipe import EvaluationPolicy, evaluation_policy
from ipe.base.arrays import Array
from ipe.inverse.choice import METHODS_OF
from ipe.inverse.problem import Norm
from ipe.mdp import FiniteMDP
from ipe.planning import uniform_policy
from tests.oracles import norm_of, policy_value
from tests.strategies import random_mdp, random_pi, random_q, random_v

NORMS: tuple[Norm, ...] = ("l2", "l1", "linf")
SOLVERS = [(norm, method) for norm in NORMS for method in ("auto", *METHODS_OF[norm])]
ITERATIVE = [(norm, method) for norm, method in SOLVERS if method != "closed-form"]
LOOSE = {"pdhg": 1e-3, "interior-point": 1e-4}
every_solver = pytest.mark.parametrize(("norm", "method"), SOLVERS)
every_iterative_solver = pytest.mark.parametrize(("norm", "method"), ITERATIVE)


def solve(mdp: FiniteMDP, norm: str, method: str, **given: Any) -> EvaluationPolicy:
    """The result, with what must hold in every corner: it prints, and its policy keeps the conventions."""
    result = evaluation_policy(mdp, norm=norm, method=method, **given)  # type: ignore[arg-type]
    pi = result.policy
    assert np.isfinite(pi).all()
    assert (pi >= 0).all()
    assert (pi[~mdp.allowed] == 0).all()
    assert_allclose(pi.sum(axis=1), (~mdp.terminal).astype(float), atol=1e-14)
    assert (result.v[mdp.terminal] == 0).all()
    assert (result.values[mdp.terminal] == 0).all()
    assert not np.isnan(result.inverse_temperatures).any()
    assert (result.inverse_temperatures[mdp.terminal] == 0).all()
    assert result.converged
    assert str(result)
    return result


def weights_or_equal(count: int, norm: str) -> Array:
    return np.ones(count) if norm == "linf" else np.full(count, 1.0 / count)


def ending() -> FiniteMDP:
    """State 0 goes on to 1 or ends; state 1 goes back to 0 or ends; state 2 is the end."""
    P = np.zeros((3, 2, 3))
    P[0, 0, 1] = P[0, 1, 2] = P[1, 0, 0] = P[1, 1, 2] = 1.0
    return FiniteMDP(P, [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]], 0.5, terminal=[2])


@every_solver
def test_terminal_states(norm: Norm, method: str) -> None:
    """v(0) and v(1) meet their one target each; what ends is off by Q - r whatever the policy."""
    q = np.array([[2.0, 5.0], [4.5, 4.0], [0.0, 0.0]])
    result = solve(ending(), norm, method, q=q)
    # targets (Q - r) / gamma: 2 for v(1), held at 4, the least of its row; 3 for v(0), inside [2, 5]
    expected = np.array([0.5 * 4.0 - 1.0, 2.0 - 5.0, 0.0, 4.0 - 4.0])
    assert_allclose(result.residual, norm_of(expected, weights_or_equal(4, norm), norm), rtol=LOOSE.get(method, 1e-7))
    if norm != "linf":  # where |Q - r| = 3 is the largest, v may be anything
        assert_allclose(result.v, [3.0, 4.0, 0.0], atol=LOOSE.get(method, 1e-7) * 5)
        assert_allclose(result.policy, np.array([[2 / 3, 1 / 3], [0, 1], [0, 0]]), atol=1e-3)
        assert result.inverse_temperatures[1] < 0 or method in ("pdhg", "interior-point")
    assert result.achievable is False


@every_solver
def test_terminal_states_v_form(norm: Norm, method: str) -> None:
    """V(0) = 3 is (2/3) q(0,0) + (1/3) q(0,1) of q_V = (3.5, 2); V(1) = 5 is above q_V = (4.5, 4)."""
    result = solve(ending(), norm, method, v=[3.0, 5.0, 0.0])
    assert_allclose(result.residual, norm_of(np.array([0.0, 0.5]), weights_or_equal(2, norm), norm), rtol=1e-4)
    assert_allclose(result.policy[1], [1, 0], atol=1e-4)
    if norm != "linf" or method in ("auto", "closed-form"):
        assert_allclose(result.policy[0], [2 / 3, 1 / 3], atol=1e-3)
    assert_allclose(result.distance_bounds, (0.5 / 1.5, 0.5 / 0.5), rtol=1e-4)


@every_solver
def test_only_terminal_states(norm: Norm, method: str) -> None:
    mdp = FiniteMDP(np.zeros((2, 2, 2)), np.zeros((2, 2)), 0.9, terminal=[0, 1])
    for given in ({"v": np.zeros(2)}, {"q": np.zeros((2, 2))}):
        result = solve(mdp, norm, method, **given)
        assert (result.residual, result.gap, result.achievable) == (0.0, 0.0, True)
        assert_array_equal(result.policy, np.zeros((2, 2)))
        assert result.distance_bounds == (0.0, 0.0)


@every_solver
def test_every_row_leads_to_an_end(norm: Norm, method: str) -> None:
    """A bandit: no policy changes any residual, so uniform; Q is achievable only if it is r."""
    P = np.zeros((3, 2, 3))
    P[:2, :, 2] = 1.0
    mdp = FiniteMDP(P, [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]], 0.9, terminal=[2])
    result = solve(mdp, norm, method, q=[[1.5, 2.0], [3.0, 4.0], [0.0, 0.0]])
    assert_array_equal(result.policy, [[0.5, 0.5], [0.5, 0.5], [0, 0]])
    assert_allclose(result.residual, norm_of(np.array([0.5, 0, 0, 0]), weights_or_equal(4, norm), norm))
    assert result.achievable is False
    assert result.gap == 0
    assert_allclose(result.distance_bounds, (0.5 / 1.9, 0.5 / 0.1))
    assert solve(mdp, norm, method, q=mdp.rewards).achievable is True
    v_form = solve(mdp, norm, method, v=[1.25, 5.0, 0.0])  # here the policy does matter
    assert_allclose(v_form.policy, np.array([[0.75, 0.25], [0, 1], [0, 0]]), atol=1e-4 if norm != "linf" else 1)
    assert_allclose(v_form.residual, norm_of(np.array([0, 1.0]), weights_or_equal(2, norm), norm), rtol=1e-4)


@every_iterative_solver
def test_masks(norm: Norm, method: str) -> None:
    """What stands at an action that is not allowed has no influence: not NaN, not a value that would fit better."""
    rng = np.random.default_rng(0)
    mdp = random_mdp(rng, 6, 4, successors=3, masks=True, terminals=True)
    assert (~mdp.allowed[~mdp.terminal]).any()
    q = random_q(rng, mdp)
    first = solve(mdp, norm, method, q=q)
    for junk in (np.nan, np.inf, 1e6, -1e6):
        again = solve(mdp, norm, method, q=np.where(mdp.allowed | mdp.terminal[:, None], q, junk))
        assert_array_equal(again.policy, first.policy)
        assert again.residual == first.residual
    weights = rng.random(q.shape)
    first = solve(mdp, norm, method, q=q, weights=weights)
    for junk in (np.nan, -1.0, 1e6):  # a weight of a row that does not exist
        again = solve(mdp, norm, method, q=q, weights=np.where(mdp.allowed, weights, junk))
        assert_array_equal(again.policy, first.policy)


@every_solver
def test_one_action(norm: Norm, method: str) -> None:
    """Nothing to choose: probability 1, eta = 0, H = 0, and the residual of the only policy."""
    mdp = FiniteMDP(np.eye(3)[[[1], [2], [0]]], [[1.0], [2.0], [3.0]], 0.5)
    q = np.array([[3.0], [2.0], [4.0]])
    result = solve(mdp, norm, method, q=q)
    assert_array_equal(result.policy, np.ones((3, 1)))
    assert_array_equal(result.inverse_temperatures, np.zeros(3))
    assert_array_equal(result.entropy, np.zeros(3))
    delta = (mdp.rewards + 0.5 * q[[1, 2, 0]] - q).ravel()
    assert_allclose(result.residual, norm_of(delta, weights_or_equal(3, norm), norm))
    assert result.unique
    v_form = solve(mdp, norm, method, v=q.ravel())
    assert_allclose(v_form.residual, result.residual)
    # one allowed action in one state among others
    masked = FiniteMDP(np.full((2, 2, 2), 0.5), np.ones((2, 2)), 0.5, allowed=np.array([[True, False], [True, True]]))
    if method != "closed-form":
        mixed = solve(masked, norm, method, q=[[1.0, np.nan], [2.0, 3.0]])
        assert_array_equal(mixed.policy[0], [1, 0])
        assert mixed.inverse_temperatures[0] == 0
        assert mixed.entropy[0] == 0


@every_solver
def test_one_state(norm: Norm, method: str) -> None:
    mdp = FiniteMDP(np.ones((1, 2, 1)), [[1.0, 2.0]], 0.5)
    result = solve(mdp, norm, method, q=[[2.5, 3.5]])  # Q - r = 1.5 twice: v = 3, in the middle
    assert result.achievable
    assert_allclose(result.policy, [[0.5, 0.5]], atol=1e-6)
    assert_allclose(result.values, [3.0], atol=1e-6)
    result = solve(mdp, norm, method, v=[9.0])  # q_V = (5.5, 6.5): greedy, 2.5 short
    assert_allclose(result.policy, [[0, 1]], atol=1e-4)
    assert_allclose(result.residual, 2.5, rtol=1e-4)
    only = FiniteMDP(np.ones((1, 1, 1)), [[1.0]], 0.5)
    assert_array_equal(solve(only, norm, method, q=[[2.0]]).policy, [[1.0]])


@every_solver
def test_gamma_zero(norm: Norm, method: str) -> None:
    """Q form: nothing constrains the policy. V form: unchanged, the box is that of r."""
    rng = np.random.default_rng(1)
    mdp = random_mdp(rng, 5, 3, gamma=0.0, masks=True, terminals=True)
    q = random_q(rng, mdp)
    result = solve(mdp, norm, method, q=q)
    assert_array_equal(result.policy, uniform_policy(mdp))
    assert_array_equal(result.inverse_temperatures, np.zeros(5))
    delta = (q - mdp.rewards)[mdp.allowed]
    assert_allclose(result.residual, norm_of(delta, weights_or_equal(len(delta), norm), norm), rtol=1e-12)
    rho = np.abs(delta).max()
    assert_allclose(result.distance_bounds, (rho, rho), rtol=1e-12)
    assert result.achievable is False
    assert solve(mdp, norm, method, q=mdp.rewards).achievable is True
    pi = random_pi(rng, mdp)
    v = policy_value(mdp, pi)[0]
    v_form = solve(mdp, norm, method, v=v)
    assert v_form.achievable
    assert_allclose(v_form.values, v, atol=1e-8)


@every_solver
def test_weight_zero_drops_rows(norm: Norm, method: str) -> None:
    """Dropped rows have no influence on v; states that only they lead to are uniform."""
    P = np.zeros((4, 2, 4))
    P[0, :, 1] = P[1, :, 0] = P[2, :, 0] = P[3, :, 2] = 1.0
    mdp = FiniteMDP(P, np.zeros((4, 2)), 0.5)
    q = np.array([[1.0, 5.0], [-8.0, 8.0], [2.0, 7.0], [30.0, -70.0]])
    weights = np.array([[1.0, 0.0], [0.0, 3.0], [0.0, 0.0], [0.0, 0.0]])
    result = solve(mdp, norm, method, q=q, weights=weights)
    # v(1) meets Q(0,0) / gamma = 2; v(0) is held at 5 by its box for Q(1,1) / gamma = 16
    assert_allclose(result.v[:2], [5.0, 2.0], atol=LOOSE.get(method, 1e-7) * 10 if norm != "linf" else 8)
    assert_array_equal(result.policy[2:], np.full((2, 2), 0.5))
    assert_array_equal(result.inverse_temperatures[2:], [0, 0])
    d = np.array([1.0, 3.0]) if norm == "linf" else np.array([0.25, 0.75])
    assert_allclose(result.residual, norm_of(np.array([0.0, 2.5 - 8.0]), d, norm), rtol=1e-4)
    for other in (1e6, -1e6):  # the value of a dropped row that leads back into the problem
        changed = q.copy()
        changed[3, 1] = other
        again = solve(mdp, norm, method, q=changed, weights=weights)
        assert_allclose(again.residual, result.residual, rtol=1e-4)


@every_solver
def test_weight_zero_in_the_v_form_takes_the_clip(norm: Norm, method: str) -> None:
    """Also where the norm does not look: so the bounds are those of the best policy, whichever the weights."""
    mdp = FiniteMDP(np.eye(2)[[[0, 0], [1, 1]]], [[0.0, 1.0], [0.0, 2.0]], 0.5)
    result = solve(mdp, norm, method, v=[1.0, 3.0], weights=[1.0, 0.0])
    assert_allclose(result.v, [1.0, 3.0], atol=1e-6)  # q_V = (.5, 1.5), (1.5, 3.5)
    assert_allclose(result.policy[1], [0.25, 0.75], atol=1e-6)
    assert result.achievable
    off = solve(mdp, norm, method, v=[1.0, 9.0], weights=[1.0, 0.0])
    assert off.residual <= 1e-6
    assert off.achievable is False
    assert_allclose(off.distance_bounds, (2.5 / 1.5, 2.5 / 0.5), rtol=1e-4)  # 9 - max q_V = 2.5


@every_solver
def test_weights_that_see_no_choice_decide_nothing(norm: Norm, method: str) -> None:
    """Only rows that end are weighted: Q may well be achievable, and nothing false is said about it."""
    mdp = ending()
    q = policy_value(mdp, np.array([[0.1, 0.9], [0.9, 0.1], [0.0, 0.0]]))[1]
    weights = np.zeros((3, 2))
    weights[0, 1] = 1.0
    result = solve(mdp, norm, method, q=q, weights=weights)
    assert result.residual == 0
    assert result.achievable is not False
    assert result.distance_bounds[0] <= 1e-12
    assert_array_equal(result.policy[:2], np.full((2, 2), 0.5))


@every_iterative_solver
def test_states_that_nothing_leads_to(norm: Norm, method: str) -> None:
    """Uniform, with eta = 0, however large their values and however many their actions."""
    rng = np.random.default_rng(2)
    P = np.zeros((5, 3, 5))
    P[:, :, :3] = rng.dirichlet(np.ones(3), size=(5, 3))
    allowed = np.ones((5, 3), dtype=bool)
    allowed[4, 1] = False
    mdp = FiniteMDP(P, rng.normal(size=(5, 3)), 0.9, allowed=allowed)
    q = random_q(rng, mdp)
    q[3] = [1e16, 1e16 + 2, 1e16 + 4]  # whose mean is not the middle, after rounding
    result = solve(mdp, norm, method, q=q)
    assert_array_equal(result.policy[3], np.full(3, 1 / 3))
    assert_array_equal(result.policy[4], [0.5, 0, 0.5])
    assert_array_equal(result.inverse_temperatures[3:], [0, 0])


@every_solver
def test_equal_actions(norm: Norm, method: str) -> None:
    """The box is a point: uniform, eta = 0."""
    P = np.eye(2)[[[0, 1, 0], [1, 0, 0]]]
    mdp = FiniteMDP(P, [[1.0, 2.0, 3.0], [0.0, 0.1, 0.2]], 0.9)
    q = np.repeat([[0.1], [0.7]], 3, axis=1)
    result = solve(mdp, norm, method, q=q)
    assert_allclose(result.policy, np.full((2, 3), 1 / 3), rtol=1e-15)
    assert_array_equal(result.inverse_temperatures, [0, 0])
    assert_allclose(result.v, [0.1, 0.7], rtol=1e-15)
    assert result.unique
    delta = mdp.rewards + 0.9 * (P @ [0.1, 0.7]) - q
    assert_allclose(result.residual, norm_of(delta.ravel(), weights_or_equal(6, norm), norm))
    one_equal = solve(mdp, norm, method, q=np.array([[1.0, 1.0, 1.0], [0.0, 0.5, 2.0]]))
    assert_array_equal(one_equal.policy[0], np.full(3, 1 / 3))


@every_solver
def test_all_zero(norm: Norm, method: str) -> None:
    mdp = FiniteMDP(np.eye(3)[[[0, 1], [1, 2], [2, 0]]], np.zeros((3, 2)), 0.9)
    for given in ({"q": np.zeros((3, 2))}, {"v": np.zeros(3)}):
        result = solve(mdp, norm, method, **given)
        assert_array_equal(result.policy, np.full((3, 2), 0.5))
        assert (result.residual, result.achievable, result.distance_bounds) == (0.0, True, (0.0, 0.0))


@every_iterative_solver
def test_a_box_of_one_rounding_error(norm: Norm, method: str) -> None:
    rng = np.random.default_rng(3)
    mdp = random_mdp(rng, 3, 2)
    q = np.repeat(rng.normal(size=(3, 1)), 2, axis=1)
    q[0, 1] = np.nextafter(q[0, 0], np.inf)
    result = solve(mdp, norm, method, q=q)
    assert q[0, 0] <= result.v[0] <= q[0, 1]


@every_iterative_solver
@pytest.mark.parametrize("smallest", [1e-12, 1e-160, 1e-310])
def test_tiny_probabilities_and_weights(norm: Norm, method: str, smallest: float) -> None:
    """No overflow, no warning, and the residual of the problem without them."""
    rng = np.random.default_rng(4)
    P = np.zeros((4, 2, 4))
    P[..., :3] = rng.dirichlet(np.ones(3), size=(4, 2))
    P[..., 3] = smallest
    P[..., 0] -= smallest
    mdp = FiniteMDP(P, rng.normal(size=(4, 2)), 0.9)
    q = random_q(rng, mdp)
    without = np.where(smallest == P, 0.0, P)
    plain = FiniteMDP(without / without.sum(axis=2, keepdims=True), mdp.rewards, 0.9)
    residual = evaluation_policy(plain, q=q, norm=norm).residual
    assert_allclose(solve(mdp, norm, method, q=q).residual, residual, rtol=LOOSE.get(method, 1e-6), atol=1e-9)
    weights = np.ones((4, 2))
    weights[0] = smallest
    result = solve(mdp, norm, method, q=q, weights=weights)
    dropped = evaluation_policy(mdp, q=q, norm=norm, weights=np.where(weights < 1, 0.0, 1.0))
    assert_allclose(result.residual, dropped.residual, rtol=LOOSE.get(method, 1e-6), atol=1e-9)


@every_iterative_solver
def test_transitions_that_are_certain_but_for_rounding(norm: Norm, method: str) -> None:
    """Rows that sum to 1 - 1e-9 pass as rows, but not as exactly deterministic: the general solver takes over."""
    rng = np.random.default_rng(5)
    P = (1 - 1e-9) * np.eye(4)[rng.integers(4, size=(4, 2))]
    mdp, exact = (FiniteMDP(p, np.ones((4, 2)), 0.9) for p in (P, P / (1 - 1e-9)))
    q = random_q(rng, mdp)
    result = solve(mdp, norm, method, q=q)
    assert result.method != "closed form"
    assert_allclose(result.residual, evaluation_policy(exact, q=q, norm=norm).residual, rtol=LOOSE.get(method, 1e-6))


@every_solver
def test_rewards_that_depend_on_the_next_state(norm: Norm, method: str) -> None:
    """The exact solver sees their expectation only."""
    rng = np.random.default_rng(6)
    deterministic = method == "closed-form"
    base = random_mdp(rng, 4, 2, successors=1 if deterministic else 3)
    per_transition = rng.normal(size=(4, 2, 4))
    P = base.transitions.toarray().reshape(4, 2, 4)
    mdp = FiniteMDP(P, per_transition, 0.9)
    expected = FiniteMDP(P, (P * per_transition).sum(axis=2), 0.9)
    q = random_q(rng, mdp)
    one, other = solve(mdp, norm, method, q=q), solve(expected, norm, method, q=q)
    assert_allclose(one.residual, other.residual, rtol=1e-6)


@every_iterative_solver
def test_lists_integers_and_single_precision_are_numbers(norm: Norm, method: str) -> None:
    rng = np.random.default_rng(7)
    mdp = random_mdp(rng, 3, 2)
    q = np.round(random_q(rng, mdp))
    result = solve(mdp, norm, method, q=q)
    for same in (q.tolist(), q.astype(int), q.astype(np.float32), np.asfortranarray(q)):
        assert_array_equal(solve(mdp, norm, method, q=same).policy, result.policy)
    v = np.round(random_v(rng, mdp))
    assert_array_equal(solve(mdp, norm, method, v=v.tolist()).policy, solve(mdp, norm, method, v=v).policy)


def test_inputs_are_not_changed() -> None:
    rng = np.random.default_rng(8)
    mdp = random_mdp(rng, 4, 3, masks=True, terminals=True)
    q, weights = random_q(rng, mdp), rng.random((4, 3))
    copies = q.copy(), weights.copy()
    for norm in NORMS:
        evaluation_policy(mdp, q=q, norm=norm, weights=weights)
    assert_array_equal(q, copies[0])
    assert_array_equal(weights, copies[1])
