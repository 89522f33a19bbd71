"""Every policy update in the network: its gradient against automatic differentiation of the loss that it states.

On the C library's products and on XLA's. The losses are written with jax.nn and scipy, and not with `ipe.updates`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from ipe.deep import learner, networks
from ipe.deep.acting import functions
from ipe.deep.environments import make_environment
from ipe.deep.learner import Sample
from ipe.deep.loop import Loop
from ipe.deep.programs import Program, program_of
from ipe.deep.replay import CONTINUES, TERMINATED, TRUNCATED
from ipe.deep.returns import Later, mixed, summed
from ipe.deep.settings import read_settings
from ipe.errors import InputError
from ipe.inverse import maximum_entropy_lift
from tests.deep_helpers import DRIFT, advance, result, run, small
from tests.tiers import tiered

SEEDS, BATCH = 2, 6
GAMMA = 0.9
PRODUCTS = ("xla", "native")

Loss = Callable[[Any], Any]
"""A loss of the outputs of the policy network, one number for each row of the minibatch."""

TAU = 0.3


def policy_of(theta: Any) -> Any:
    return jax.nn.softmax(theta, axis=-1)


def entropy_of(theta: Any) -> Any:
    return -(policy_of(theta) * jax.nn.log_softmax(theta, axis=-1)).sum(-1)


def delta_of(theta: Any, data: dict[str, Any]) -> Any:
    v = (policy_of(theta) * data["q_next"]).sum(-1)
    return data["reward"] + data["gamma"] * v - data["q_sa"]


# Each function takes the present outputs, which are numbers, and the minibatch, and returns a loss.


def paper(now: Any, data: dict[str, Any]) -> Loss:
    return lambda theta: delta_of(theta, data) ** 2 - TAU * entropy_of(theta)


def absolute(now: Any, data: dict[str, Any]) -> Loss:
    return lambda theta: jnp.abs(delta_of(theta, data)) - TAU * entropy_of(theta)


def natural(now: Any, data: dict[str, Any]) -> Loss:
    """The direction by the pseudo-inverse of the Fisher matrix; then the surrogate loss."""
    slope = np.asarray(jax.grad(lambda theta: paper(now, data)(theta).sum())(now), np.float64)
    pi = np.asarray(policy_of(now), np.float64)
    pi /= pi.sum(-1, keepdims=True)  # exactly, or the matrix would have an inverse
    fisher = pi[..., None] * np.eye(pi.shape[-1]) - pi[..., None] * pi[..., None, :]
    direction = np.einsum("...ij,...j->...i", np.linalg.pinv(fisher, rcond=1e-10), slope)
    return lambda theta: (direction * theta).sum(-1)


def kl_proximal(now: Any, data: dict[str, Any], alpha: float = 2.5) -> Loss:
    """The target logits by scipy's root finder; then the surrogate loss."""
    before = np.asarray(now, np.float64)
    reward, gamma, q_sa = (np.broadcast_to(data[name], before.shape[:2]) for name in ("reward", "gamma", "q_sa"))
    aim = np.zeros_like(before)
    for at in np.ndindex(*before.shape[:2]):
        q, scale = np.asarray(data["q_next"][at], np.float64), 1 + alpha * TAU

        def excess(kappa: float, q: Any = q, at: Any = at, scale: float = scale) -> float:
            z = (before[at] - kappa * q) / scale
            pi = np.exp(z - z.max())
            return float(kappa - 2 * alpha * gamma[at] * (reward[at] + gamma[at] * (pi @ q) / pi.sum() - q_sa[at]))

        aim[at] = (before[at] - brentq(excess, -1e3, 1e3, xtol=1e-13) * q) / scale
    aim += (before - aim).mean(-1, keepdims=True)
    return lambda theta: ((theta - aim) ** 2).sum(-1) / (2 * alpha)


def cross_entropy(now: Any, data: dict[str, Any]) -> Loss:
    q = np.asarray(data["q_next"], np.float64).reshape(-1, now.shape[-1])
    promise = np.asarray((data["q_sa"] - data["reward"]) / data["gamma"], np.float64)
    lifted, _ = maximum_entropy_lift(q, promise.ravel(), np.ones(q.shape, bool))
    lifted = lifted.reshape(now.shape)
    return lambda theta: -(lifted * jax.nn.log_softmax(theta, axis=-1)).sum(-1) - TAU * entropy_of(theta)


def lift(now: Any, data: dict[str, Any]) -> Loss:
    return lambda theta: 0.5 * (theta[..., 0] - (data["q_sa"] - data["reward"]) / data["gamma"]) ** 2


def scale_free(now: Any, data: dict[str, Any]) -> Loss:
    d = 4.0 + 0.25 * (mean_square(now, data) - 4.0)  # the estimate before is 4, the memory a quarter
    return lambda theta: delta_of(theta, data) ** 2 / d[:, None] - TAU * entropy_of(theta)


def mean_square(now: Any, data: dict[str, Any]) -> Any:
    squares = np.where(data["terminal"], 0.0, np.asarray(delta_of(now, data)) ** 2)
    return squares.sum(-1) / (~np.asarray(data["terminal"])).sum(-1)


LOSSES: dict[str, Callable[[Any, dict[str, Any]], Loss]] = {
    "paper": paper,
    "absolute": absolute,
    "natural": natural,
    "kl-proximal": kl_proximal,
    "cross-entropy": cross_entropy,
    "lift": lift,
    "scale-free": scale_free,
}
NUMBERS: dict[str, dict[str, float]] = {"kl-proximal": {"kl_step": 2.5}, "scale-free": {"error_memory": 0.25}}


def program(update: str, products: str, **changes: Any) -> tuple[Program, dict[str, Any]]:
    """The program of an update and its numbers, one for each seed."""
    bonus = {} if update == "lift" else {"entropy_bonus": TAU}
    chosen = {"gamma": GAMMA, "policy_update": update, **bonus, **NUMBERS.get(update, {}), **changes}
    settings = small(DRIFT, **chosen)
    environment = make_environment(settings.environment, 0)
    environment.close()
    hyper = {name: jnp.full(SEEDS, value, jnp.float32) for name, value in settings.numbers.items()}
    return program_of(settings, environment.spec, products), hyper


def state_of(made: Program) -> dict[str, Any]:
    generators = [np.random.default_rng(seed) for seed in range(SEEDS)]
    shapes = {"q": made.architecture, "target": made.architecture, "policy": made.policy_architecture}
    state = {name: networks.initial_parameters(shape, generators) for name, shape in shapes.items()}
    return state | {
        "estimate": jnp.full(SEEDS, 4.0),
        "policy_target": networks.initial_parameters(made.architecture, generators),
    }


def sample_of(made: Program, later: int = 0, states: int = 0) -> Sample:
    """A minibatch of noise: one transition is terminal; of the later steps, some are not there and one terminates."""
    rng = np.random.default_rng(7)
    size = made.architecture.inputs

    def normal(*shape: int) -> Any:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    end = np.full((SEEDS, BATCH), CONTINUES, np.float32)
    end[:, 0] = TERMINATED
    alive = end == CONTINUES
    steps = []
    for k in range(later):
        alive = alive & (np.arange(BATCH) != k + 1)
        ends = np.where(np.arange(BATCH) == 4, TERMINATED, CONTINUES) * np.ones((SEEDS, 1))
        action = jnp.asarray(rng.integers(0, made.architecture.actions, (SEEDS, BATCH)))
        steps.append(Later(jnp.asarray(alive), action, 3.0 * normal(SEEDS, BATCH), jnp.asarray(ends)))
        alive = alive & (ends == CONTINUES)
    reward = 2.0 * normal(SEEDS, BATCH)
    return Sample(
        inputs=2.0 * normal(SEEDS, 2 * BATCH, *size),
        action=jnp.asarray(rng.integers(0, made.architecture.actions, (SEEDS, BATCH))),
        reward=reward,
        terminal=jnp.asarray(end == TERMINATED),
        target_reward=reward,
        target_discount=jnp.where(jnp.asarray(end) == TERMINATED, 0.0, jnp.float32(GAMMA)),
        later=steps,
        last=2.0 * normal(SEEDS, states * BATCH, *size) if states else None,
        end=jnp.asarray(end),
    )


@pytest.fixture
def gradients(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the backward pass makes of the errors in the outputs, by the network's name."""
    found: dict[str, Any] = {}

    def caught(made: Program, name: str, state: Any, seen: Any, error: Any, *others: Any) -> dict[str, Any]:
        net = made.policy_architecture if name == "policy" else made.architecture
        found[name] = functions(made).backward(net, state[name], seen, error)
        return {name: state[name]}

    monkeypatch.setattr(learner, "_stepped", caught)
    return found


def judged(made: Program, state: dict[str, Any], x: Any) -> Any:
    return networks.forward(made.architecture, state["target"], x)[0]


def data_of(made: Program, state: dict[str, Any], sample: Sample) -> dict[str, Any]:
    q = judged(made, state, sample.inputs)
    q_sa = jnp.take_along_axis(q[:, :BATCH], sample.action[..., None], axis=-1)[..., 0]
    gamma = jnp.full((SEEDS, 1), GAMMA, jnp.float32)
    return {"q_sa": q_sa, "q_next": q[:, BATCH:], "reward": sample.reward, "gamma": gamma, "terminal": sample.terminal}


def same(found: Any, expected: Any) -> None:
    for part in ("matrix", "rest"):
        a, b = np.asarray(found[part]), np.asarray(expected[part])
        np.testing.assert_allclose(a, b, atol=2e-5 * max(1.0, float(abs(b).max())))
        assert abs(b).max() > 1e-3


def expected_gradient(made: Program, state: dict[str, Any], x: Any, loss: Loss, terminal: Any) -> Any:
    """The gradient of the mean loss, in which terminal transitions are left out, by automatic differentiation."""

    def total(parameters: Any) -> Any:
        theta = networks.forward(made.policy_architecture, parameters, x)[0]
        return jnp.where(terminal, 0.0, loss(theta)).sum() / BATCH

    return jax.grad(total)(state["policy"])


def policy_outputs(made: Program, state: dict[str, Any], x: Any) -> Any:
    return networks.forward(made.policy_architecture, state["policy"], x)[0]


@pytest.mark.parametrize("products", tiered(PRODUCTS, "native"))
@pytest.mark.parametrize("update", tiered(LOSSES, "lift"))
def test_the_gradient_is_that_of_the_stated_loss(update: str, products: str, gradients: dict[str, Any]) -> None:
    made, hyper = program(update, products)
    state, sample = state_of(made), sample_of(made)
    new, seen = learner._update(made, state, hyper, sample, jnp.zeros(SEEDS))
    data, there = data_of(made, state, sample), sample.inputs[:, BATCH:]
    now = policy_outputs(made, state, there)
    same(gradients["policy"], expected_gradient(made, state, there, LOSSES[update](now, data), data["terminal"]))
    if update != "lift":
        delta = jnp.where(data["terminal"], data["reward"] - data["q_sa"], delta_of(now, data))
        np.testing.assert_allclose(seen["ipe_error"], abs(delta).mean(-1), rtol=1e-5)
    if update == "scale-free":
        np.testing.assert_allclose(new["estimate"], 4.0 + 0.25 * (mean_square(now, data) - 4.0), rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("products", PRODUCTS)
def test_fenchels_second_estimate_is_learned_by_regression(products: str, gradients: dict[str, Any]) -> None:
    made, hyper = program("fenchel", products)
    state, sample = state_of(made), sample_of(made)
    n = made.architecture.actions
    assert made.policy_architecture.actions == 2 * n
    learner._update(made, state, hyper, sample, jnp.zeros(SEEDS))
    data = data_of(made, state, sample)
    outputs = policy_outputs(made, state, sample.inputs)
    delta = delta_of(outputs[:, BATCH:, :n], data)
    delta = jnp.where(data["terminal"], data["reward"] - data["q_sa"], delta)

    def estimate(outputs: Any) -> Any:
        return jnp.take_along_axis(outputs[:, :BATCH, n:], sample.action[..., None], axis=-1)[..., 0]

    y = estimate(outputs)

    def total(parameters: Any) -> Any:
        found = networks.forward(made.policy_architecture, parameters, sample.inputs)[0]
        theta = found[:, BATCH:, :n]
        of_policy = 2.0 * y * delta_of(theta, data) - TAU * entropy_of(theta)
        regression = (estimate(found) - delta) ** 2  # terminal transitions too
        return (jnp.where(data["terminal"], 0.0, of_policy) + regression).sum() / BATCH

    same(gradients["policy"], jax.grad(total)(state["policy"]))


@pytest.mark.parametrize("products", PRODUCTS)
@pytest.mark.parametrize("update", ["paper", "natural", "lift"])
def test_an_uncorrected_error_of_three_steps(update: str, products: str, gradients: dict[str, Any]) -> None:
    made, hyper = program(update, products, delta_steps=3)
    state, sample = state_of(made), sample_of(made, later=2, states=1)
    learner._update(made, state, hyper, sample, jnp.zeros(SEEDS))
    data = data_of(made, state, sample)
    reward, gamma = np.asarray(sample.reward).copy(), np.full((SEEDS, BATCH), GAMMA)
    terminal = np.asarray(sample.terminal).copy()
    for step in sample.later:
        reward += np.where(step.alive, gamma * np.asarray(step.reward), 0.0)
        gamma *= np.where(step.alive, GAMMA, 1.0)
        terminal |= np.asarray(step.alive) & (np.asarray(step.end) == TERMINATED)
    assert terminal[:, 4].all()
    assert set(gamma[0].round(4)) == {0.9, 0.81, 0.729}
    data |= {"reward": reward, "gamma": gamma, "terminal": terminal, "q_next": judged(made, state, sample.last)}
    loss = LOSSES[update](policy_outputs(made, state, sample.last), data)
    same(gradients["policy"], expected_gradient(made, state, sample.last, loss, terminal))


@pytest.mark.slow
@pytest.mark.parametrize("products", PRODUCTS)
@pytest.mark.parametrize("update", ["paper", "natural", "kl-proximal"])
def test_a_corrected_error_is_the_sum_of_errors_by_their_traces(
    update: str, products: str, gradients: dict[str, Any]
) -> None:
    """The tree backup as the sum of gamma^k pi(a_1|s_1) ... pi(a_k|s_k) delta_k, which the library does not compute."""
    made, hyper = program(update, products, delta_steps=3, delta_correction="tree-backup")
    state, sample = state_of(made), sample_of(made, later=2, states=2)
    _, seen = learner._update(made, state, hyper, sample, jnp.zeros(SEEDS))
    data, there = data_of(made, state, sample), sample.inputs[:, BATCH:]
    states = [there, *jnp.split(sample.last, 2, axis=1)]
    theta, q = [policy_outputs(made, state, x) for x in states], [judged(made, state, x) for x in states]
    pi = [policy_of(x) for x in theta]
    value = [(a * b).sum(-1) for a, b in zip(pi, q, strict=True)]
    ahead, weight = jnp.zeros((SEEDS, BATCH)), jnp.ones((SEEDS, BATCH))
    for k, step in enumerate(sample.later):
        pick = step.action[..., None]
        if k:
            weight = weight * jnp.take_along_axis(pi[k], pick, axis=-1)[..., 0]
        goes_on = jnp.where(step.end == TERMINATED, 0.0, GAMMA)
        error = step.reward + goes_on * value[k + 1] - jnp.take_along_axis(q[k], pick, axis=-1)[..., 0]
        ahead = ahead + jnp.where(step.alive, weight * error, 0.0)
        weight = weight * goes_on
    taken = jax.nn.one_hot(sample.later[0].action, made.architecture.actions)
    total = delta_of(theta[0], data) + GAMMA * (pi[0] * taken).sum(-1) * ahead
    total = jnp.where(data["terminal"], data["reward"] - data["q_sa"], total)
    np.testing.assert_allclose(seen["ipe_error"], abs(total).mean(-1), rtol=1e-5)
    # In s_1, where the policy is updated, the action that was taken is worth what followed.
    data["q_next"] = data["q_next"] + ahead[..., None] * taken
    loss = LOSSES[update](theta[0], data)
    same(gradients["policy"], expected_gradient(made, state, there, loss, data["terminal"]))


@pytest.mark.parametrize("products", PRODUCTS)
def test_the_conservative_network_descends_the_cross_entropy_to_the_average(
    products: str, gradients: dict[str, Any]
) -> None:
    made, hyper = program("paper", products, behaviour="conservative", rate=0.3)
    assert made.policy_update is None
    assert not made.remembers
    state, sample = state_of(made), sample_of(made)
    learner._update(made, state, hyper, sample, jnp.zeros(SEEDS))
    here = sample.inputs[:, :BATCH]
    q = judged(made, state, here)
    before = policy_of(networks.forward(made.architecture, state["policy_target"], here)[0])
    aim = 0.7 * before + 0.3 * jax.nn.one_hot(q.argmax(-1), q.shape[-1])
    everywhere = jnp.zeros((SEEDS, BATCH), bool)

    def loss(theta: Any) -> Any:
        return -(aim * jax.nn.log_softmax(theta, axis=-1)).sum(-1)

    same(gradients["policy"], expected_gradient(made, state, here, loss, everywhere))


UPDATES = [*LOSSES, "fenchel"]
CASES: dict[str, dict[str, Any]] = {update: {"policy_update": update} for update in UPDATES}
CASES |= {
    "three steps": {"delta_steps": 3},
    "three steps, corrected": {"delta_steps": 3, "delta_correction": "tree-backup"},
    "three steps with Fenchel, corrected": {
        "delta_steps": 3,
        "delta_correction": "tree-backup",
        "policy_update": "fenchel",
    },
    "conservative": {"behaviour": "conservative"},
}
QUICK = ("fenchel", "lift", "scale-free", "three steps, corrected", "conservative")


@pytest.mark.slow
@pytest.mark.parametrize("case", tiered(CASES, *QUICK))
def test_a_seed_does_not_notice_its_batch_and_goes_on_from_a_checkpoint(case: str) -> None:
    settings = small(DRIFT, **CASES[case])
    together, alone = run(settings, [0, 1, 2], 40), run(settings, [1], 40)
    assert result(together, 1) == result(alone, 0)
    halfway = run(settings, [1], 20)
    resumed = Loop([settings], [1], halfway.checkpoint())
    advance(resumed, 20)
    assert result(resumed, 0) == result(alone, 0)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_frame_moves_the_policy_down_its_gradient(case: str) -> None:
    """RMSprop's first step is ten times the step size against the sign of the gradient, whatever its size."""
    settings = small(DRIFT, policy_step_size=1e-3, **CASES[case])
    loop = Loop([settings] * 2, [0, 1])
    before = loop.networks()
    loop.advance()
    moved = loop.networks()["policy.rest"] - before["policy.rest"]
    assert abs(moved).max() == pytest.approx(1e-2, rel=1e-2)
    assert np.isfinite(moved).all()


def test_the_conservative_policy_is_copied_with_the_target_network() -> None:
    settings = small(DRIFT, "conservative", target_period=5)
    loop = run([settings] * 2, [0, 1], 5)
    for part in ("matrix", "rest"):
        assert bool((loop._state["policy_target"][part] == loop._state["policy"][part]).all())
    loop.advance()
    assert not bool((loop._state["policy_target"]["rest"] == loop._state["policy"]["rest"]).all())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"policy_update": "lift", "delta_steps": 3, "delta_correction": "tree-backup"}, "correction has no effect"),
        ({"delta_correction": "tree-backup"}, "there are no steps to correct"),
        ({"policy_update": "lift", "entropy_bonus": 0.1}, "entropy_bonus has no effect with the policy update lift"),
        ({"kl_step": 1.0}, "kl_step has no effect with the policy update paper; it is for kl-proximal"),
        ({"policy_update": "kl-proximal", "kl_step": 0.0}, "kl_step"),
        ({"behaviour": "boltzmann", "kl_step": 1.0}, "kl_step has no effect with the behaviour boltzmann"),
        ({"traces": {"kind": "peng"}}, "traces.kind peng has no effect with n_step 1"),
        ({"traces": {"decay": 0.5}}, "traces: decay has no effect while traces.kind is none"),
        (
            {"n_step": 3, "traces": {"kind": "peng", "decay_from": "coin", "decay": 0.5}},
            "traces: decay has no effect with traces.decay_from coin, which sets lambda",
        ),
        (
            {"n_step": 3, "traces": {"kind": "peng", "decay_from": "coin"}, "behaviour": "epsilon-greedy"},
            "traces.decay_from coin needs an evaluation policy, and the behaviour epsilon-greedy learns none",
        ),
        (
            {"n_step": 3, "traces": {"kind": "watkins"}, "behaviour": "munchausen"},
            "the behaviour munchausen has a value target of its own",
        ),
        ({"behaviour": "epsilon-ipe", "rate": 0.1}, "rate has no effect with the behaviour epsilon-ipe"),
    ],
)
def test_settings_without_an_effect_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        small(DRIFT, **changes)


def test_late_settings_leave_the_names_of_earlier_runs_alone() -> None:
    plain = small(DRIFT).model_dump()
    assert "delta_steps" not in plain
    assert "delta_correction" not in plain
    assert "traces" not in plain
    assert read_settings(plain) == small(DRIFT)


def test_mixed_returns_by_hand() -> None:
    def row(*numbers: float) -> Any:
        return jnp.array([numbers])

    # Three steps of three transitions: all there; the second step ends the episode; no step after the first.
    later = [
        Later(row(1, 1, 0) > 0, row(0, 0, 0), row(2.0, 2.0, 9.0), row(CONTINUES, TERMINATED, CONTINUES)),
        Later(row(1, 0, 0) > 0, row(0, 0, 0), row(4.0, 9.0, 9.0), row(CONTINUES, CONTINUES, CONTINUES)),
    ]
    best = jnp.array([[[10.0, 10.0, 10.0]], [[20.0, 99.0, 99.0]], [[40.0, 99.0, 99.0]]])
    decay = jnp.array([[[0.5, 0.25, 0.5]], [[0.25, 1.0, 1.0]]])
    # U_2 = .75 * 20 + .25 * (4 + .5 * 40) = 21 and U_1 = .5 * 10 + .5 * (2 + .5 * 21) = 11.25;
    # .75 * 10 + .25 * 2 = 8; 10.
    found = mixed(best, decay, jnp.array([[0.5]]), later)
    assert found.tolist() == [[11.25, 8.0, 10.0]]


@given(data=st.data(), n=st.integers(2, 6))
def test_mixed_returns_lie_between_one_step_and_all(data: st.DataObject, n: int) -> None:
    """Lambda 0 is the return of one step, lambda 1 that of all steps; the others lie in the span of all lengths."""
    seed = data.draw(st.integers(0, 2**32 - 1))
    draws = np.random.default_rng(seed)
    best, rewards = draws.normal(size=(n, 1, 5)), draws.normal(size=(n - 1, 1, 5))
    ends = draws.choice([CONTINUES, TERMINATED, TRUNCATED], p=[0.7, 0.2, 0.1], size=(n, 1, 5))
    gamma, first = jnp.array([[0.9]]), jnp.array(draws.normal(size=(1, 5)))
    later, alive = [], jnp.ones((1, 5), bool)
    for k in range(1, n):
        alive = alive & jnp.array(ends[k - 1] == CONTINUES)
        later.append(Later(alive, jnp.zeros((1, 5), int), jnp.array(rewards[k - 1]), jnp.array(ends[k])))
    lengths = []
    for most in range(n):
        total, discount, terminal, length = summed(first, jnp.array(ends[0]), gamma, later[:most])
        value = np.take_along_axis(best, np.asarray(length)[None] - 1, axis=0)[0]
        lengths.append(np.asarray(total + jnp.where(terminal, 0.0, discount) * value))

    def target(decay: Any) -> Any:
        value = mixed(jnp.array(best), jnp.broadcast_to(decay, rewards.shape), gamma, later)
        return np.asarray(first + jnp.where(ends[0] == TERMINATED, 0.0, gamma) * value)

    np.testing.assert_allclose(target(0.0), lengths[0], atol=1e-5)
    np.testing.assert_allclose(target(1.0), lengths[-1], atol=1e-5)
    between = target(jnp.array(draws.uniform(size=rewards.shape)))
    assert (between >= np.min(lengths, axis=0) - 1e-5).all()
    assert (between <= np.max(lengths, axis=0) + 1e-5).all()


def test_summed_steps_by_hand() -> None:
    def row(*numbers: float) -> Any:
        return jnp.array([numbers])

    later = [
        Later(row(1, 1, 0) > 0, row(0, 0, 0), row(10.0, 10.0, 99.0), row(CONTINUES, TERMINATED, CONTINUES)),
        Later(row(1, 0, 0) > 0, row(0, 0, 0), row(100.0, 99.0, 99.0), row(CONTINUES, CONTINUES, CONTINUES)),
    ]
    reward, discount, terminal, length = summed(row(1.0, 1.0, 1.0), row(0, 0, 2), 0.5, later)
    np.testing.assert_allclose(reward[0], [1 + 5 + 25, 1 + 5, 1])
    np.testing.assert_allclose(discount[0], [0.125, 0.25, 0.5])
    np.testing.assert_array_equal(terminal[0], [False, True, False])
    np.testing.assert_array_equal(length[0], [3, 2, 1])
