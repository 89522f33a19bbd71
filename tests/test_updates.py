"""Each update against automatic differentiation of its objective, or the problem it claims to solve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

from ipe import updates as up
from ipe.entropy import entropy, softmax
from ipe.errors import InputError
from tests.tiers import tiered

GRADIENT = (up.paper_update, up.absolute_update, up.natural_update)
ALL = (*GRADIENT, up.kl_proximal_update, up.cross_entropy_update)


def transitions(count: int, n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "theta": rng.standard_normal((count, n)) * 2,
        "q_next": rng.standard_normal((count, n)) * 3 + 5,
        "q_sa": rng.standard_normal(count) * 3 + 4,
        "reward": rng.standard_normal(count),
        "gamma": rng.uniform(0.3, 0.99, count),
        "terminal": np.zeros(count, bool),
    }


def applied(function: Callable[..., Any], *, theta: Any, y: Any = None, **others: Any) -> Any:
    """An update, or another function of a transition, with the transition's parts among its arguments."""
    parts = {name: others.pop(name) for name in up.Transition._fields if name in others}
    before = (theta,) if y is None else (theta, y)
    return function(*before, up.Transition(**parts), **others)


def delta_of(theta: Any, one: dict[str, Any]) -> Any:
    """The TD error as the paper writes it, by another softmax."""
    return one["reward"] + one["gamma"] * jnp.sum(jax.nn.softmax(theta) * one["q_next"]) - one["q_sa"]


def entropy_of(theta: Any) -> Any:
    logs = jax.nn.log_softmax(theta)
    return -jnp.sum(jnp.exp(logs) * logs)


def gradients(objective: Callable[[Any, Any], Any], batch: dict[str, Any]) -> np.ndarray[Any, Any]:
    with jax.enable_x64(True):
        rows = {name: jnp.asarray(value) for name, value in batch.items()}
        return np.asarray(jax.vmap(jax.grad(objective))(rows["theta"], rows))


TAU = 0.3


@pytest.mark.parametrize("tau", tiered([0.0, TAU], TAU))
def test_the_papers_update_is_gradient_descent_on_the_squared_error(tau: float) -> None:
    batch = transitions(20, 4)
    new, delta = applied(up.paper_update, **batch, alpha=0.1, tau=tau)
    gradient = gradients(lambda theta, one: delta_of(theta, one) ** 2 - tau * entropy_of(theta), batch)
    np.testing.assert_allclose(new, batch["theta"] - 0.1 * gradient, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(new.sum(-1), batch["theta"].sum(-1), atol=1e-12)
    expected = [float(delta_of(batch["theta"][i], {k: v[i] for k, v in batch.items()})) for i in range(20)]
    np.testing.assert_allclose(delta, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(applied(up.td_error, **batch), delta)


@pytest.mark.parametrize("tau", [0.0, TAU])
def test_the_absolute_update_is_gradient_descent_on_the_absolute_error(tau: float) -> None:
    batch = transitions(20, 3)
    new, _ = applied(up.absolute_update, **batch, alpha=0.1, tau=tau)
    gradient = gradients(lambda theta, one: jnp.abs(delta_of(theta, one)) - tau * entropy_of(theta), batch)
    np.testing.assert_allclose(new, batch["theta"] - 0.1 * gradient, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("tau", [0.0, TAU])
def test_the_natural_update_is_the_gradient_times_the_inverse_fisher_matrix(tau: float) -> None:
    batch = transitions(20, 4)
    new, _ = applied(up.natural_update, **batch, alpha=0.1, tau=tau)
    gradient = gradients(lambda theta, one: delta_of(theta, one) ** 2 - tau * entropy_of(theta), batch)
    for i, pi in enumerate(softmax(batch["theta"])):
        fisher = np.diag(pi) - np.outer(pi, pi)
        expected = batch["theta"][i] - 0.1 * np.linalg.pinv(fisher) @ gradient[i]
        np.testing.assert_allclose(new[i], expected - expected.max(), rtol=1e-9, atol=1e-10)


def test_the_entropy_bonus_is_the_gradient_of_the_entropy() -> None:
    batch = transitions(20, 5)
    gradient = gradients(lambda theta, one: -TAU * entropy_of(theta), batch)
    np.testing.assert_allclose(up.entropy_bonus(batch["theta"], TAU), gradient, rtol=1e-12, atol=1e-14)


def test_fenchel_steps_along_both_gradients_of_its_saddle() -> None:
    batch = transitions(20, 3)
    y = np.linspace(-2, 2, 20)
    new, delta, y_new = applied(up.fenchel_update, y=y, **batch, alpha=0.1, beta=0.2)
    np.testing.assert_allclose(y_new, y + 0.2 * (delta - y), rtol=1e-14)
    # max over y of 2 y delta - y^2: its gradient in y is 2 (delta - y), in theta 2 y times that of delta
    gradient = gradients(lambda theta, one: 2 * one["y"] * delta_of(theta, one) - one["y"] ** 2, {**batch, "y": y_new})
    np.testing.assert_allclose(new, batch["theta"] - 0.1 * gradient, rtol=1e-12, atol=1e-13)


def test_fenchel_removes_most_of_the_bias_of_the_sampled_bound() -> None:
    """One pair (s, a) leads to either of two states. Q is optimal: v' = 2 and 0, Q(s, a) = gamma * 1.

    The sampled bound wants v' = 1 in both. With y its minimiser is where
    beta (v'_1 - 1) + (1 - beta) (v'_1 + v'_2 - 2) / 2 = 0: v'_1 = 1 / .55 for beta = .1.
    """
    q_next = jnp.array([[2.0, 0.0], [0.0, -2.0]])
    start = jnp.array([[3.0, 0.0], [3.0, 0.0]])

    def step(carry: Any, s: Any) -> Any:
        paper, fenchel, y = carry
        transition = up.Transition(0.9, 0.0, 0.9, False, q_next[s])
        paper = paper.at[s].set(up.paper_update(paper[s], transition, 0.02).theta)
        theta, _, y = up.fenchel_update(fenchel[s], y, transition, 0.02, beta=0.1)
        fenchel = fenchel.at[s].set(theta)
        return (paper, fenchel, y), [softmax(theta[0]) @ q_next[0] for theta in (paper, fenchel)]

    states = jax.random.randint(jax.random.key(0), (40_000,), 0, 2)
    _, (paper_path, fenchel_path) = jax.lax.scan(step, (start, start, jnp.float32(0.0)), states)
    v_paper, v_fenchel = float(paper_path[-20_000:].mean()), float(fenchel_path[-20_000:].mean())
    assert v_paper == pytest.approx(1.0, abs=0.05)
    assert v_fenchel == pytest.approx(1 / 0.55, abs=0.05)


def proximal_objective(pi: Any, one: dict[str, Any], alpha: float, tau: float) -> float:
    old = softmax(one["theta"])
    delta = one["reward"] + one["gamma"] * pi @ one["q_next"] - one["q_sa"]
    return float(delta**2 - tau * entropy(pi) + special.rel_entr(pi, old).sum() / alpha)


@pytest.mark.parametrize("tau", [0.0, TAU])
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_the_proximal_update_minimises_its_objective(alpha: float, tau: float) -> None:
    batch = transitions(12, 3, seed=4)
    new, _ = applied(up.kl_proximal_update, **batch, alpha=alpha, tau=tau)
    for i, theta in enumerate(new):
        one = {name: value[i] for name, value in batch.items()}

        def objective(z: Any, one: dict[str, Any] = one) -> float:
            return proximal_objective(softmax(np.append(z, 0.0)), one, alpha, tau)

        found = objective(theta[:-1] - theta[-1])
        scipys = optimize.minimize(objective, one["theta"][:-1] - one["theta"][-1], method="Nelder-Mead",
                                   options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000})  # fmt: skip
        assert found <= scipys.fun + 1e-9 * max(1, abs(scipys.fun))
        assert found == pytest.approx(scipys.fun, rel=1e-5, abs=1e-7)


def proximal_residual(batch: dict[str, Any], new: Any, alpha: Any, tau: Any) -> tuple[Any, Any]:
    """The kappa that the new logits stand for, and how far it is from its defining equation."""
    scale = 1 + alpha * tau
    moved = batch["theta"] - scale[:, None] * new  # = kappa Q + constant
    q = batch["q_next"]
    best, worst = q.argmax(-1)[:, None], q.argmin(-1)[:, None]
    spread = np.take_along_axis(q, best, 1) - np.take_along_axis(q, worst, 1)
    kappa = ((np.take_along_axis(moved, best, 1) - np.take_along_axis(moved, worst, 1)) / spread)[:, 0]
    delta = batch["reward"] + batch["gamma"] * (softmax(new) * q).sum(-1) - batch["q_sa"]
    return kappa, kappa - 2 * alpha * batch["gamma"] * delta


def test_the_proximal_update_holds_from_corners_and_for_huge_steps() -> None:
    rng = np.random.default_rng(9)
    count = 3000
    batch = transitions(count, 4, seed=8)
    batch["theta"] = batch["theta"] * np.geomspace(0.01, 200, count)[:, None]
    batch["q_next"] = rng.permuted(batch["q_next"] * np.geomspace(0.01, 20, count)[:, None], axis=0)
    alpha = rng.permuted(np.geomspace(1e-4, 1e4, count))
    tau = np.where(rng.random(count) < 0.5, 0.0, 0.2)
    new, delta = applied(up.kl_proximal_update, **batch, alpha=alpha, tau=tau)
    assert np.isfinite(new).all()
    assert (new.max(-1) == 0).all()
    kappa, residual = proximal_residual(batch, new, alpha, tau)
    # Rounding the logits moves v' by 1e-13 or so of their size times the spread of Q, and kappa by 2 alpha of that.
    spread = 1 + np.abs(batch["q_next"]).max(-1)
    noise = 2 * alpha * spread**2 * (1 + np.abs(new).max(-1)) * 1e-13
    assert (np.abs(residual) <= 1e-9 * np.abs(kappa) + noise + 1e-9).all()
    without = tau == 0
    after = applied(up.td_error, **{**batch, "theta": new})
    assert (np.abs(after[without]) <= np.abs(delta[without]) + 1e-9).all()


def steps_from_the_corner(update: Callable[..., Any], theta: Any, limit: int = 20_000) -> tuple[int, Any]:
    """Two actions, Q(s', .) = (1, 0), gamma .9, alpha 1, until v' is within .01 of .5, as one compiled loop."""
    q_next = jnp.asarray([1.0, 0.0], theta.dtype)

    def far(carry: Any) -> Any:
        return (jnp.abs(jax.nn.softmax(carry[0])[0] - 0.5) >= 0.01) & (carry[1] < limit)

    def step(carry: Any) -> Any:
        return update(carry[0], up.Transition(0.45, 0.0, 0.9, False, q_next), 1.0).theta, carry[1] + 1

    theta, count = jax.lax.while_loop(far, step, (theta, jnp.int32(0)))
    return int(count), theta


@pytest.mark.slow
def test_the_papers_update_is_slow_to_leave_a_corner_and_the_natural_one_is_not() -> None:
    with jax.enable_x64(True):
        corner = jnp.array([10.0, 0.0], jnp.float64)
        assert steps_from_the_corner(up.paper_update, corner)[0] == 13_639
        assert steps_from_the_corner(up.natural_update, corner)[0] == 19
        assert steps_from_the_corner(up.kl_proximal_update, corner)[0] < 30
    count, _ = steps_from_the_corner(up.paper_update, jnp.array([0.0, -10.0], jnp.float32))
    assert count == pytest.approx(13_639, abs=30)


def test_nothing_is_lost_next_to_a_corner_in_float32() -> None:
    """Both logits move by the same small amount, though 1 - pi is below float32's resolution at 1."""
    theta = np.array([0.0, -20.0], np.float32)
    new, _ = up.paper_update(theta, up.Transition(0.0, 0.0, 0.9, False, [1.0, 0.0]), 1.0)
    pi = np.exp(-20.0) / (1 + np.exp(-20.0))
    expected = -2 * 0.9 * 0.9 * pi * (1 - pi)
    assert new[0] == pytest.approx(expected, rel=1e-5)


def test_natural_logits_do_not_drift_however_large_the_step() -> None:
    def step(theta: Any, s: Any) -> Any:
        q = jnp.array([[10.0, -10.0], [-10.0, 10.0]])[s]
        return up.natural_update(theta, up.Transition(0.0, 1.0, 0.9, False, q), 1000.0)

    theta, delta = jax.lax.scan(step, jnp.zeros(2), jnp.arange(20_000) % 2)
    assert float(theta.max()) == 0.0
    assert float(-theta.min()) < 1e6
    assert jnp.isfinite(delta).all()


@pytest.mark.parametrize("update", ALL)
def test_a_terminal_transition_leaves_theta_as_it_is(update: Callable[..., Any]) -> None:
    batch = transitions(6, 3)
    batch["terminal"] = np.arange(6) % 2 == 0
    batch["q_next"][0] = np.nan  # a terminal state has no values
    new, delta = applied(update, **batch, alpha=0.3, tau=0.1)
    ends = batch["terminal"]
    np.testing.assert_array_equal(new[ends], batch["theta"][ends])
    np.testing.assert_array_equal(delta[ends], (batch["reward"] - batch["q_sa"])[ends])
    assert (new[~ends] != batch["theta"][~ends]).any(-1).all()


GRADIENTS = (up.paper_gradient, up.absolute_gradient, up.natural_gradient, up.kl_proximal_gradient,
             up.cross_entropy_gradient)  # fmt: skip


@pytest.mark.parametrize("tau", [0.0, TAU])
@pytest.mark.parametrize("index", range(len(GRADIENTS)))
def test_a_small_step_down_a_gradient_is_the_update(index: int, tau: float) -> None:
    """Of the policy: the logits themselves may differ by a constant. Masked actions and terminal states have none."""
    gradient, update = GRADIENTS[index], ALL[index]
    batch = transitions(6, 4)
    batch["terminal"] = np.arange(6) == 2
    batch["allowed"] = np.array([[True] * 4, [True, False, True, True]] * 3)
    size = 1e-4 if update is up.kl_proximal_update else 0.1
    more = {"kl_step": size} if update is up.kl_proximal_update else {}
    found = applied(gradient, **batch, tau=tau, **more)
    expected = applied(update, **batch, alpha=size, tau=tau)
    moved = batch["theta"] - size * found.theta
    for a, b, allowed in zip(moved, expected.theta, batch["allowed"], strict=True):
        np.testing.assert_allclose(softmax(a[allowed]), softmax(b[allowed]), rtol=1e-10)
    assert (found.theta[~batch["allowed"]] == 0.0).all()
    assert (found.theta[2] == 0.0).all()
    np.testing.assert_allclose(found.theta.sum(-1), 0.0, atol=1e-11)
    np.testing.assert_array_equal(found.delta, expected.delta)


def test_the_proximal_direction_of_a_small_step_is_the_natural_one() -> None:
    batch = transitions(20, 4)
    near = applied(up.kl_proximal_gradient, **batch, kl_step=1e-9).theta
    np.testing.assert_allclose(near, applied(up.natural_gradient, **batch).theta, rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match="kl_step = 0 must be > 0"):
        applied(up.kl_proximal_gradient, **batch, kl_step=0.0)


def test_the_cross_entropy_update_by_hand() -> None:
    # The lift of (0.6 - 0.1) / 0.5 = 1 in Q = (2, 0) is uniform; of 4 it is greedy, of -1 the worst action.
    theta = np.log([3.0, 1.0])
    transition = up.Transition(0.6, 0.1, 0.5, False, [2.0, 0.0])
    np.testing.assert_allclose(up.cross_entropy_update(theta, transition, 2.0).theta - theta, [-0.5, 0.5])
    above, below = (up.cross_entropy_gradient(theta, transition._replace(q_sa=q)).theta for q in (2.1, -0.4))
    np.testing.assert_allclose([above, below], [[-0.25, 0.25], [0.75, -0.75]])
    with jax.enable_x64(True):
        found = jax.grad(lambda t: -jnp.sum(jnp.array([0.5, 0.5]) * jax.nn.log_softmax(t)))(jnp.asarray(theta))
        np.testing.assert_allclose(up.cross_entropy_gradient(theta, transition).theta, found, atol=1e-15)


def test_the_lift_update_by_hand() -> None:
    # (1 - 0.4) / 0.5 = 1.2 is asked for; the promise 3 is clipped to 2 in delta = 0.4 + 0.5 * 2 - 1
    transition = up.Transition(1.0, 0.4, 0.5, False, [2.0, 0.0])
    promise, delta = up.lift_update(3.0, transition, 0.5)
    np.testing.assert_allclose([promise, delta], [2.1, 0.4])
    np.testing.assert_allclose(softmax(up.lift_logits(np.array([1.5]), np.array([2.0, 0.0]))), [0.75, 0.25])
    for still in (transition._replace(terminal=True), transition._replace(gamma=0.0)):
        assert float(up.lift_update(3.0, still, 0.5).promise) == 3.0
        assert up.lift_gradient(np.array([3.0]), still).theta.tolist() == [0.0]
    assert float(up.lift_update(3.0, transition._replace(terminal=True), 0.5).delta) == pytest.approx(-0.6)
    masked = transition._replace(q_next=[2.0, np.nan], allowed=[True, False])
    assert float(up.lift_update(-1.0, masked, 0.5).delta) == pytest.approx(0.4)
    np.testing.assert_array_equal(
        softmax(up.lift_logits(np.array([9.0, 0.0]), np.array([2.0, 1.0]), np.array([True, False])), [True, False]),
        [1.0, 0.0],
    )


def test_the_tree_backup_by_hand() -> None:
    # s_2 ends the return with U = 4; in s_1 action 1 was taken: 0.5 + 0.5 * 4; not where there is no such step.
    q = np.array([[1.0, 5.0], [1.0, 5.0]])
    taken = np.array([[False, True], [False, True]])
    found = up.tree_backup(q, taken, 0.5, 0.5, 4.0, np.array([True, False]))
    np.testing.assert_array_equal(found, [[1.0, 2.5], [1.0, 5.0]])
    delta = up.td_error(np.zeros(2), up.Transition(1.0, 1.0, 0.5, False, found[0]))
    # By traces: delta_0 = 1 + .5 * 3 - 1, then .5 * pi(1) = .25 times delta_1 = .5 + .5 * 4 - 5
    assert float(delta) == pytest.approx(1.5 + 0.25 * -2.5)


def test_a_terminal_transition_updates_fenchels_estimate() -> None:
    new, delta, y = up.fenchel_update(
        np.array([1.0, 2.0]), 0.5, up.Transition(2.0, 1.0, 0.9, True, [np.nan, 0.0]), 0.3, beta=0.1
    )
    assert new.tolist() == [1.0, 2.0]
    assert delta == -1.0
    assert y == pytest.approx(0.5 + 0.1 * (-1.0 - 0.5))


@pytest.mark.parametrize("update", ALL)
def test_gamma_zero_constrains_nothing(update: Callable[..., Any]) -> None:
    batch = {**transitions(5, 3), "gamma": 0.0}
    new, _ = applied(update, **batch, alpha=0.3)
    np.testing.assert_allclose(softmax(new), softmax(batch["theta"]), rtol=1e-14)


@pytest.mark.parametrize("tau", [0.0, TAU])
@pytest.mark.parametrize("update", ALL)
def test_a_mask_is_the_same_as_leaving_the_actions_out(update: Callable[..., Any], tau: float) -> None:
    batch = transitions(4, 5)
    allowed = np.array([[1, 1, 1, 1, 1], [1, 0, 1, 0, 1], [0, 1, 0, 1, 0], [0, 0, 0, 0, 1]]) == 1
    hidden = {**batch, "q_next": np.where(allowed, batch["q_next"], np.nan)}
    new, delta = applied(update, **hidden, alpha=0.3, tau=tau, allowed=allowed)
    for i, keep in enumerate(allowed):
        one = {name: value[i] for name, value in batch.items()}
        one["theta"], one["q_next"] = one["theta"][keep], one["q_next"][keep]
        expected = applied(update, **one, alpha=0.3, tau=tau)
        np.testing.assert_allclose(new[i][keep], expected.theta, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(delta[i], expected.delta, rtol=1e-12)
    np.testing.assert_array_equal(new[~allowed], batch["theta"][~allowed])


def test_a_state_without_actions_is_left_alone() -> None:
    for update in ALL:
        new, delta = update(
            np.ones(2), up.Transition(1.0, 3.0, 0.9, True, [np.nan, np.nan], [False, False]), 0.5, tau=0.1
        )
        assert new.tolist() == [1.0, 1.0]
        assert delta == 2.0


def test_a_baseline_changes_nothing() -> None:
    batch = transitions(5, 3)
    shifted = {**batch, "q_next": batch["q_next"] + 7.0, "reward": batch["reward"] - 7.0 * batch["gamma"]}
    for update in ALL:
        found = applied(update, **shifted, alpha=0.3).theta
        np.testing.assert_allclose(found, applied(update, **batch, alpha=0.3).theta, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("dtype", tiered(["float32", "float64"], "float32"))
def test_the_libraries_agree_and_keep_the_dtype(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    batch = transitions(7, 3)
    batch = {name: value.astype(dtype) if value.dtype != bool else value for name, value in batch.items()}
    tolerance = 2e-5 if dtype == "float32" else 1e-11
    for update in (*ALL, up.fenchel_update):
        given = {**batch, "y": np.full(7, 0.2, dtype)} if update is up.fenchel_update else batch
        expected = applied(update, **given, alpha=0.3, tau=0.1)
        by_torch = applied(update, **{name: torch.tensor(value) for name, value in given.items()}, alpha=0.3, tau=0.1)

        def sweep(alpha: Any, rows: Any, update: Callable[..., Any] = update) -> Any:
            return jax.vmap(lambda one: applied(update, **one, alpha=alpha, tau=0.1))(rows)

        with jax.enable_x64(True):
            rows = {name: jnp.asarray(value) for name, value in given.items()}
            by_jax = jax.jit(jax.vmap(sweep, (0, None)))(jnp.asarray([0.3, 0.6], dtype), rows)
        for k, name in enumerate(expected._fields):
            assert str(expected[k].dtype) == str(by_jax[k].dtype) == dtype, name
            np.testing.assert_allclose(np.asarray(by_torch[k]), expected[k], rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(np.asarray(by_jax[k][0]), expected[k], rtol=tolerance, atol=tolerance)


def test_n_step_targets() -> None:
    rewards = np.array([[1.0, 2.0, 4.0], [1.0, 2.0, 4.0], [1.0, 2.0, 4.0]])
    terminals = np.array([[False, False, False], [False, True, False], [False, False, True]])
    reward, gamma, terminal = up.n_step_target(rewards, 0.5, terminals)
    np.testing.assert_array_equal(reward, [3.0, 2.0, 3.0])
    np.testing.assert_array_equal(gamma, [0.125] * 3)
    np.testing.assert_array_equal(terminal, [False, True, True])
    one = up.n_step_target(rewards[:, :1], np.array([0.9, 0.8, 0.7]))
    np.testing.assert_array_equal(one.reward, rewards[:, 0])
    np.testing.assert_array_equal(one.gamma, [0.9, 0.8, 0.7])

    theta, q_next = np.zeros((3, 2)), np.array([1.0, 3.0])
    new, delta = up.paper_update(theta, up.Transition(0.5, reward, gamma, terminal, q_next), 1.0)
    np.testing.assert_allclose(delta, [3.0 + 0.125 * 2.0 - 0.5, 1.5, 2.5])
    np.testing.assert_array_equal(new[1:], theta[1:])
    np.testing.assert_allclose(new[0], -2 * delta[0] * 0.125 * 0.5 * (q_next - 2.0))
    compiled = jax.jit(lambda r, g, t: up.n_step_target(r, g, t))(jnp.asarray(rewards, jnp.float32), 0.5, terminals)
    np.testing.assert_allclose(compiled.reward, reward)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"theta": 0.0}, r"theta must have one entry per action on its last axis; found shape \(\)"),
        ({"q_next": np.zeros(3)}, r"q_next has shape \(3,\), which does not broadcast to \(2,\)"),
        ({"q_sa": np.zeros(3)}, r"q_sa has shape \(3,\), which does not broadcast to \(\)"),
        ({"gamma": 1.1}, r"gamma = 1.1 must be in \[0, 1\]"),
        ({"alpha": -0.1}, "alpha = -0.1 must be >= 0"),
        ({"tau": -0.1}, "tau = -0.1 must be >= 0"),
        ({"allowed": [1, 0]}, "allowed must be boolean"),
    ],
)
def test_wrong_input_is_named(change: dict[str, Any], message: str) -> None:
    good = {"theta": np.zeros(2), "q_next": np.zeros(2), "q_sa": 0.0, "reward": 0.0, "gamma": 0.9}
    good |= {"terminal": False, "alpha": 0.1, "tau": 0.1}
    for update in ALL:
        with pytest.raises(InputError, match=message):
            applied(update, **{**good, **change})
    with pytest.raises(InputError, match=r"beta = 2 must be in \[0, 1\]"):
        applied(up.fenchel_update, y=0.0, beta=2.0, **good)
    with pytest.raises(InputError, match=r"terminals has shape \(2,\)"):
        up.n_step_target([1.0, 2.0, 3.0], 0.9, [False, True])


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 1e3, 1e12])
def test_the_scale_free_update_does_not_see_the_rewards_scale(scale: float) -> None:
    rng = np.random.default_rng(0)
    gamma, shift = 0.9, 0.3
    theta, other, square, scaled = rng.normal(size=(2, 3)), np.zeros((2, 3)), 0.0, 0.0
    other[:] = theta
    for _ in range(50):
        q, q_sa, reward = rng.normal(size=3), rng.normal(), rng.normal()
        s = int(rng.integers(2))
        plain = up.Transition(q_sa, reward, gamma, False, q)
        moved = up.Transition(
            scale * (q_sa + shift), scale * (reward + (1 - gamma) * shift), gamma, False, scale * (q + shift)
        )
        theta[s], _, square = up.scale_free_update(theta[s], square, plain, 2.0, tau=0.1)
        other[s], _, scaled = up.scale_free_update(other[s], scaled, moved, 2.0, tau=0.1)
        np.testing.assert_allclose(other, theta, rtol=1e-9, atol=1e-9)
        assert scaled == pytest.approx(scale**2 * square, rel=1e-9)
    assert np.ptp(theta) > 0.5


def test_the_scale_free_update_by_hand() -> None:
    transition = up.Transition(q_sa=0.0, reward=0.0, gamma=0.5, terminal=False, q_next=[1.0, 0.0])
    # delta = 1/4; D = 1 + 0.2 (1/16 - 1) = 13/16; the gradient 2 (1/4) (1/2) (1/2) (1/2) / D
    theta, delta, square = up.scale_free_update(np.zeros(2), 1.0, transition, 1.0, memory=0.2)
    assert float(delta) == 0.25
    assert float(square) == pytest.approx(13 / 16)
    np.testing.assert_allclose(theta, [-1 / 13, 1 / 13])
    ended = up.scale_free_update(np.ones(2), 3.0, transition._replace(terminal=True), 1.0)
    assert float(ended.square) == 3.0
    np.testing.assert_array_equal(ended.theta, np.ones(2))
    level = up.scale_free_update(np.zeros(2), 0.0, transition._replace(q_next=[0.0, 0.0]), 1.0)  # no error yet
    assert (level.theta.tolist(), float(level.square)) == ([0.0, 0.0], 0.0)
