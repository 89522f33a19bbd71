"""Epsilon-IPE in Stable-Baselines3: how it acts and what it learns, against independent arithmetic."""

from __future__ import annotations

import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import log_softmax, softmax
from scipy.stats import chi2_contingency, chisquare

pytest.importorskip("stable_baselines3", reason="stable-baselines3 (and torch) is not installed")

import torch as th
from stable_baselines3 import DQN
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.envs import FakeImageEnv, IdentityEnv
from stable_baselines3.common.logger import configure
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.dqn.policies import CnnPolicy, DQNPolicy, MlpPolicy

from ipe.behaviours import epsilon_ipe, ipe, tau_ipe
from ipe.errors import InputError
from ipe.integrations.stable_baselines3 import (
    EpsilonIPECnnPolicy,
    EpsilonIPEDQN,
    EpsilonIPEPolicy,
    stepping,
)
from ipe.updates import Transition
from tests.tiers import tiered

N = 4
"""States and actions of the table that stands for a network."""


def table_model(n_envs: int = 1, n: int = N, **settings: Any) -> EpsilonIPEDQN:
    """A model whose networks are tables: one linear layer on one-hot states."""
    env = DummyVecEnv([lambda: IdentityEnv(n, ep_length=7)] * n_envs)
    values: dict[str, Any] = {"policy_kwargs": {"net_arch": []}, "buffer_size": 1000, "learning_starts": 0, "seed": 0}
    return EpsilonIPEDQN("MlpPolicy", env, **values | settings)


def write(network: Any, table: Any) -> None:
    with th.no_grad():
        network.q_net[0].weight.copy_(th.as_tensor(table, dtype=th.float32).T)
        network.q_net[0].bias.zero_()


def matched(logits: Any) -> float:
    """Epsilon by bisection on the entropy itself."""
    pi = softmax(logits)
    n = len(pi)

    def entropy(p: Any) -> float:
        p = p[p > 0]
        return float(-(p * np.log(p)).sum())

    def gap(epsilon: float) -> float:
        x = epsilon * (n - 1) / n
        return entropy(np.array([1 - x] + [x / (n - 1)] * (n - 1))) - entropy(pi)

    return float(brentq(gap, 0.0, 1.0, xtol=1e-13))


# How it acts


def test_epsilon_is_matched_in_every_state_and_environment() -> None:
    model = table_model(n_envs=3)
    q = np.array([[0.0, 1, 2, 3], [5, 1, 1, 1], [0, -1, 4, 4], [1, 0, 0, 0]])
    theta = np.array([[0.0, 0.5, 1, 2], [3, 0, 0, 0], [0.1, 0, 0, 0], [0, 6, 0, 0]])
    write(model.policy.q_net, q)
    write(model.policy.policy_net, theta)
    seen = model.behaviour(np.array([0, 1, 2]))
    for s in range(3):
        epsilon = matched(theta[s])
        best = q[s] == q[s].max()
        np.testing.assert_allclose(seen.epsilon[s], epsilon, atol=1e-6)
        np.testing.assert_allclose(seen.pi[s], (1 - epsilon) * best / best.sum() + epsilon / N, atol=1e-6)
        p = softmax(theta[s])
        np.testing.assert_allclose(seen.entropy[s], -(p * np.log(p)).sum(), rtol=1e-6)
    assert len(set(seen.epsilon.round(6))) == 3


@pytest.mark.parametrize("name", tiered(["epsilon-ipe", "tau-ipe", "ipe"], "epsilon-ipe"))
def test_behaviours_of_the_table_act_by_their_names(name: str) -> None:
    model = table_model(n_envs=3, behaviour=name)
    rng = np.random.default_rng(1)
    q, theta = rng.normal(size=(2, N, N))
    write(model.policy.q_net, q)
    write(model.policy.policy_net, theta)
    seen = model.behaviour(np.arange(3))
    expected = {
        "epsilon-ipe": epsilon_ipe(q[:3], theta[:3]), "tau-ipe": tau_ipe(q[:3], theta[:3]), "ipe": ipe(theta[:3]),
    }[name]  # fmt: skip
    np.testing.assert_allclose(seen.pi, expected, atol=1e-5)
    for s in range(3):  # with each, the epsilon that stands for its entropy
        np.testing.assert_allclose(seen.epsilon[s], matched(theta[s]), atol=1e-6)
    model.learn(30)
    assert 0 < model.exploration_rate < 1


def bold(q: Any, logits: Any, share: float = 0.25) -> Any:
    """A behaviour of a user's: the evaluation policy, mixed with the first action."""
    xp = q.__array_namespace__()
    return (1 - share) * ipe(logits) + share * (xp.arange(q.shape[-1]) == 0)


def timid(q: Any) -> Any:
    """A behaviour that looks at no evaluation policy."""
    return ipe(q)


@pytest.mark.slow
def test_a_behaviour_of_ones_own() -> None:
    model = table_model(behaviour=f"{__name__}:bold")
    write(model.policy.policy_net, np.zeros((N, N)))
    np.testing.assert_allclose(model.behaviour(np.array([1])).pi, [[0.4375, 0.1875, 0.1875, 0.1875]], atol=1e-6)
    with pytest.raises(InputError, match=r"behaviour: .*:timid does not look at an evaluation policy"):
        table_model(behaviour=f"{__name__}:timid")


def test_each_environment_has_its_own_coin() -> None:
    """With DQN's one coin the two environments would explore in the same frames."""
    model = table_model(n_envs=2, n=2)
    write(model.policy.q_net, np.eye(2))
    write(model.policy.policy_net, np.array([[1.0, 0], [1.5, 0]]))
    model._setup_learn(10)
    model._last_obs = np.array([0, 1])
    drawn = np.array([model._sample_action(0, n_envs=2)[0] for _ in range(2000)])
    pi = model.behaviour(np.array([0, 1])).pi.astype(float)
    np.testing.assert_allclose(pi[:, ::-1].diagonal(), 1 / (1 + np.exp([1.0, 1.5])), rtol=1e-5)
    for env in range(2):
        assert chisquare(np.bincount(drawn[:, env], minlength=2), pi[env] / pi[env].sum() * 2000).pvalue > 1e-3
    together = np.histogram2d(drawn[:, 0], drawn[:, 1], bins=2)[0]
    assert chi2_contingency(together).pvalue > 1e-3


def test_a_decided_state_is_greedy_beside_an_undecided_one() -> None:
    model = table_model(n_envs=2, n=2)
    write(model.policy.q_net, np.eye(2))
    write(model.policy.policy_net, np.array([[60.0, 0], [0, 0]]))
    drawn = np.array([model.predict(np.array([0, 1]))[0] for _ in range(400)])
    assert (drawn[:, 0] == 0).all()
    assert chisquare(np.bincount(drawn[:, 1], minlength=2)).pvalue > 1e-3


def test_deterministic_is_greedy_whatever_the_policy_says() -> None:
    model = table_model(n_envs=2)
    write(model.policy.q_net, np.fliplr(np.eye(N)).copy())
    write(model.policy.policy_net, np.zeros((N, N)))
    for _ in range(20):
        actions, state = model.predict(np.array([0, 3]), deterministic=True)
        assert actions.tolist() == [3, 0]
        assert state is None
    action, _ = model.predict(np.array(1), deterministic=True)
    assert action.shape == ()
    assert action == 2
    action, _ = model.predict(np.array(1), deterministic=False)
    assert action.shape == ()


def test_the_warm_up_is_random_and_says_so(tmp_path: Path) -> None:
    model = table_model(learning_starts=30, gradient_steps=0)
    write(model.policy.policy_net, np.array([[60.0, 0, 0, 0]] * N))
    rates: list[float] = []

    class Watch(BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            rates.append(self.model.exploration_rate)
            return True

    model.learn(40, callback=Watch())
    assert rates[:30] == [1.0] * 30
    assert max(rates[30:]) < 1e-12


def test_the_logger_shows_mean_epsilon_and_entropy(tmp_path: Path) -> None:
    model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", learning_starts=20, seed=1, buffer_size=500)
    model.set_logger(configure(str(tmp_path), ["csv"]))
    rates: list[float] = []

    class Watch(BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            rates.append(self.model.exploration_rate)
            return True

    model.learn(120, callback=Watch(), log_interval=1)
    model.logger.close()
    rows = np.genfromtxt(tmp_path / "progress.csv", delimiter=",", names=True, deletechars="")
    ends = rows["time/total_timesteps"].astype(int)
    assert len(ends) >= 2
    for start, end, row in zip([0, *ends], ends, rows, strict=False):
        np.testing.assert_allclose(row["rollout/epsilon"], np.mean(rates[start:end]), rtol=1e-6)
        np.testing.assert_allclose(row["rollout/exploration_rate"], rates[end - 1], rtol=1e-6)
    assert (rows["rollout/entropy"] <= np.log(2) + 1e-9).all()
    assert (rows["rollout/entropy"] > 0).all()
    assert rows["train/ipe_error"][-1] > 0
    assert rows["train/policy_learning_rate"][-1] == pytest.approx(1e-3)


# What it learns


def filled(model: Any, frames: int = 60) -> Any:
    """The model with its replay filled, and nothing learned."""
    before = model.gradient_steps
    model.gradient_steps = 0
    model.learn(frames)
    model.gradient_steps = before
    return model


def expected_gradient(model: EpsilonIPEDQN, before: Any, batch: Any, discounts: Any) -> list[Any]:
    """By automatic differentiation of the loss itself, in the network's parameters. `before` is the Q-network before
    its update."""
    here, there = {
        "target": (model.q_net_target, model.q_net_target),
        "online": (model.q_net, model.q_net),
        "dqn": (before, model.q_net_target),
    }[model.delta_q]
    with th.no_grad():
        q_sa = here(batch.observations).gather(1, batch.actions.long())[:, 0]
        q_next = there(batch.next_observations)
    logs = th.log_softmax(model.policy.policy_net(batch.next_observations), dim=1)
    v = (logs.exp() * q_next).sum(1)
    going = 1 - batch.dones[:, 0]
    delta = batch.rewards[:, 0] + discounts * going * v - q_sa
    if model.policy_update == "natural":
        centred = [(x - x.mean(1, keepdim=True)).detach() for x in (q_next, logs)]
        slope = 2 * discounts * delta.detach()
        direction = going[:, None] * (slope[:, None] * centred[0] + model.entropy_bonus * centred[1])
        loss = (direction * logs).sum(1)  # the direction has no mean, so that the normaliser does not count
        return list(th.autograd.grad(loss.mean(), list(model.policy.policy_net.parameters())))
    error = delta**2 if model.policy_update == "paper" else delta.abs()
    loss = error + model.entropy_bonus * (going * (logs.exp() * logs).sum(1))
    return list(th.autograd.grad(loss.mean(), list(model.policy.policy_net.parameters())))


@pytest.mark.parametrize("policy_update", ["paper", "absolute", "natural"])
@pytest.mark.parametrize("delta_q", ["target", "online", "dqn"])
@pytest.mark.parametrize(("entropy_bonus", "n_steps"), [(0.0, 1), (0.3, 1), (0.1, 3)])
def test_the_policy_update_descends_its_loss(
    policy_update: Any, delta_q: Any, entropy_bonus: float, n_steps: int
) -> None:
    model = EpsilonIPEDQN(
        "MlpPolicy", "CartPole-v1", policy_update=policy_update, delta_q=delta_q, entropy_bonus=entropy_bonus,
        n_steps=n_steps, max_grad_norm=float("inf"), buffer_size=500, learning_starts=0, seed=3, learning_rate=1e-2,
        policy_learning_rate=0.0,
    )  # fmt: skip
    filled(model, 300)
    with th.no_grad():
        for parameter in model.q_net.parameters():  # the online and the target network differ
            parameter.add_(0.05 * th.randn_like(parameter))
    batch = model.replay_buffer.sample(256)
    assert batch.dones.any()
    discounts = model.gamma if batch.discounts is None else batch.discounts[:, 0]
    assert (n_steps > 1) == (batch.discounts is not None)
    before = deepcopy(model.q_net)
    train_on(model, batch)
    # Now: the online network is the updated one, and the policy network stayed what it was.
    expected = expected_gradient(model, before, batch, discounts)
    for parameter, gradient in zip(model.policy.policy_net.parameters(), expected, strict=True):
        np.testing.assert_allclose(parameter.grad.numpy(), gradient.numpy(), rtol=1e-4, atol=1e-6)


def train_on(model: EpsilonIPEDQN, batch: Any, steps: int = 1) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(model.replay_buffer, "sample", lambda *_, **__: batch)
        model.train(steps, len(batch.rewards))


@pytest.mark.parametrize("tau", [0.0, 0.2])
@pytest.mark.parametrize("update", ["paper", "absolute"])
def test_the_slope_is_that_of_the_library(update: str, tau: float) -> None:
    """Compiled, from one packed table, against the library's function on arrays of NumPy in float64."""
    rng = np.random.default_rng(0)
    q_sa, reward, gamma = rng.normal(size=(3, 20))
    terminal, gamma = rng.random(20) < 0.3, np.abs(gamma) / (1 + np.abs(gamma))
    q_next, theta = rng.normal(size=(2, 20, 5))
    transition = Transition(q_sa, reward, gamma, terminal, q_next)
    gradient, delta = stepping.GRADIENTS[update](theta, transition, tau=tau)
    tensors = Transition(*(th.as_tensor(np.asarray(part, np.float32)) for part in transition[:5]))
    slope, error = stepping.policy_slope(update, th.as_tensor(theta, dtype=th.float32), tensors, tau)
    np.testing.assert_allclose(slope.numpy(), gradient / 20, rtol=1e-4, atol=1e-7)
    assert error == pytest.approx(np.abs(delta).mean(), rel=1e-5)


@pytest.mark.parametrize("most", [0.1, 10.0, float("inf"), float("nan")])
def test_clipping_is_torchs_to_the_byte(most: float) -> None:
    th.manual_seed(0)
    ours, theirs = ([th.nn.Parameter(th.zeros(3, k)) for k in (1, 4, 7)] for _ in range(2))
    for one, two in zip(ours[:2], theirs[:2], strict=True):  # the third has no gradient
        one.grad = th.randn_like(one)
        two.grad = one.grad.clone()
    stepping.clip(ours, most)
    th.nn.utils.clip_grad_norm_(theirs, most)
    for one, two in zip(ours[:2], theirs[:2], strict=True):
        assert one.grad.numpy().tobytes() == two.grad.numpy().tobytes()


@pytest.mark.parametrize("broken", [False, True])
def test_it_finds_the_evaluation_policy(broken: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rewards under which the values are those of a known policy: its state values are found, and not if uphill."""
    if broken:
        right = stepping.GRADIENTS["paper"]

        def uphill(*arguments: Any, **others: Any) -> Any:
            found = right(*arguments, **others)
            return found._replace(theta=-found.theta)

        monkeypatch.setitem(stepping.GRADIENTS, "paper", uphill)
        stepping._compiled.cache_clear()
    rng = np.random.default_rng(0)
    q, pi = rng.normal(size=(N, N)), rng.dirichlet(np.ones(N), size=N)
    v = (pi * q).sum(1)
    s, a = np.divmod(np.arange(N * N), N)
    s_next = (s + a) % N
    rewards = q[s, a] - 0.9 * v[s_next]
    model = table_model(policy_learning_rate=0.05, gamma=0.9, learning_rate=0.0)
    model._setup_learn(1)
    write(model.policy.q_net_target, q)
    columns = (s, a, s_next, np.zeros(N * N), rewards)
    types = (th.int64, th.int64, th.int64, th.float32, th.float32)
    batch = ReplayBufferSamples(*(th.as_tensor(c, dtype=d)[:, None] for c, d in zip(columns, types, strict=True)))
    train_on(model, batch, 399)
    train_on(model, batch)
    error = model.logger.name_to_value["train/ipe_error"]
    stepping._compiled.cache_clear()
    learned = (softmax(logits_of(model), axis=1) * q).sum(1)
    if broken:
        assert np.abs(learned - v).max() > 0.3
    else:
        np.testing.assert_allclose(learned, v, atol=0.01)
        assert error < 0.01


def logits_of(model: EpsilonIPEDQN) -> Any:
    with th.no_grad():
        return model.policy.policy_net(th.arange(N)).numpy()


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("delta_q", ["target", "online", "dqn"])
def test_the_value_update_is_dqns_own(delta_q: Any, fused: bool) -> None:
    """Same seed, same replay: the Q-networks are the same bytes, whatever the policy network does."""
    settings: dict[str, Any] = {"seed": 5, "buffer_size": 500, "learning_starts": 0, "learning_rate": 1e-2}
    settings["policy_kwargs"] = {"optimizer_kwargs": {"fused": fused}}
    ours = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", delta_q=delta_q, **settings)
    theirs = DQN("MlpPolicy", "CartPole-v1", **settings)
    filled(theirs, 120)
    for model in (ours, theirs):
        model._setup_learn(10)
        model.replay_buffer = theirs.replay_buffer
        model.set_random_seed(1)
        model.train(gradient_steps=15, batch_size=16)
    for a, b in zip(ours.q_net.parameters(), theirs.q_net.parameters(), strict=True):
        assert th.equal(a, b)
    assert ours.logger.name_to_value["train/loss"] == theirs.logger.name_to_value["train/loss"]


def test_networks_share_a_shape_and_no_parameter() -> None:
    kwargs = {"net_arch": [5, 6], "optimizer_class": th.optim.RMSprop, "optimizer_kwargs": {"alpha": 0.9}}
    model = EpsilonIPEDQN("MlpPolicy", "CartPole-v1", policy_kwargs=kwargs, policy_learning_rate=0.02, buffer_size=10)
    policy = model.policy
    assert [p.shape for p in policy.q_net.parameters()] == [p.shape for p in policy.policy_net.parameters()]
    assert not {id(p) for p in policy.q_net.parameters()} & {id(p) for p in policy.policy_net.parameters()}
    for optimizer, rate in ((policy.optimizer, 1e-4), (policy.policy_optimizer, 0.02)):
        assert isinstance(optimizer, th.optim.RMSprop)
        assert optimizer.param_groups[0]["alpha"] == 0.9
        assert optimizer.param_groups[0]["lr"] == rate


def test_the_policys_step_size_may_follow_a_schedule() -> None:
    rates: list[float] = []

    class Watch(BaseCallback):  # type: ignore[misc]
        def _on_step(self) -> bool:
            rates.append(self.model.policy.policy_optimizer.param_groups[0]["lr"])
            return True

    model = EpsilonIPEDQN(
        "MlpPolicy", "CartPole-v1", policy_learning_rate=lambda left: 1e-2 * left, buffer_size=99, learning_starts=10
    )
    model.learn(100, callback=Watch())
    np.testing.assert_allclose(rates[::4][3:], 1e-2 * (1 - np.arange(12, 100, 4) / 100))
    assert model.policy.optimizer.param_groups[0]["lr"] == 1e-4


# What it refuses


@pytest.mark.parametrize("space", ["box", "multi-discrete", "multi-binary"])
def test_other_action_spaces_are_refused_as_dqn_does(space: str) -> None:
    spaces = gymnasium.spaces
    kinds = {"box": spaces.Box(-1, 1, (2,)), "multi-discrete": spaces.MultiDiscrete([2, 2])}
    env = IdentityEnv(space=kinds.get(space, spaces.MultiBinary(2)))
    with pytest.raises(AssertionError, match=r"The algorithm only supports .*Discrete.* as action spaces"):
        EpsilonIPEDQN("MlpPolicy", env)


def test_dictionaries_need_their_policy() -> None:
    env = gymnasium.make("CartPole-v1")
    env.observation_space = gymnasium.spaces.Dict({"a": env.observation_space})
    with pytest.raises(ValueError, match="You must use `MultiInputPolicy`"):
        EpsilonIPEDQN("MlpPolicy", env)


class FromOne(IdentityEnv):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__(3)
        self.action_space = gymnasium.spaces.Discrete(3, start=1)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"exploration_fraction": 0.1}, "exploration_fraction: epsilon-IPE has no schedule"),
        ({"exploration_final_eps": 0.1}, "exploration_final_eps: epsilon-IPE has no schedule"),
        ({"behaviour": "ez-epsilon-ipe"}, r"behaviour must be one of epsilon-ipe, ipe.*; found 'ez-epsilon-ipe'"),
        ({"behaviour": "boltzmann"}, r"behaviour must be one of epsilon-ipe, ipe.*tau-ipe.*; found 'boltzmann'"),
        ({"behaviour": 3}, r"behaviour must be one of .*; found 3"),
        ({"policy_update": "fenchel"}, "policy_update must be one of absolute, .*, paper; found 'fenchel'"),
        ({"delta_q": "both"}, "delta_q must be one of target, online, dqn; found 'both'"),
        ({"entropy_bonus": -0.1}, "entropy_bonus must be a finite number >= 0, found -0.1"),
        ({"policy_learning_rate": float("nan")}, "policy_learning_rate must be a finite number >= 0, found nan"),
        ({"policy_learning_rate": "1e-3"}, "policy_learning_rate must be a finite number >= 0, found '1e-3'"),
        ({"env": FromOne()}, "env: its actions are numbered from 1"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    values: dict[str, Any] = {"env": "CartPole-v1", "buffer_size": 10}
    with pytest.raises(InputError, match=sentence):
        EpsilonIPEDQN("MlpPolicy", **values | settings)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(TypeError, match="policy_learning_rat"):
        EpsilonIPEDQN("MlpPolicy", "CartPole-v1", policy_learning_rat=1e-3)


def test_policy_classes() -> None:
    class Own(EpsilonIPEPolicy):
        pass

    class Foreign(DQNPolicy):  # type: ignore[misc]
        pass

    assert EpsilonIPEDQN(Own, "CartPole-v1", buffer_size=10).policy_class is Own
    assert EpsilonIPEDQN(MlpPolicy, "CartPole-v1", buffer_size=10).policy_class is EpsilonIPEPolicy
    image = FakeImageEnv(screen_height=40, screen_width=40)
    assert EpsilonIPEDQN(CnnPolicy, image, buffer_size=10).policy_class is EpsilonIPECnnPolicy
    with pytest.raises(InputError, match="policy: Foreign has no policy network; derive it from EpsilonIPEPolicy"):
        EpsilonIPEDQN(Foreign, "CartPole-v1")


def test_values_that_are_not_finite_end_training_with_a_sentence() -> None:
    model = table_model(n_envs=2)
    write(model.policy.q_net, np.where(np.eye(N)[[1]] > 0, np.nan, 0.0) * np.eye(N)[:, [1]])
    with pytest.raises(InputError, match=r"the Q-network's output for observation .* is not finite"):
        model.learn(20)
    model = table_model()
    write(model.policy.policy_net, np.full((N, N), np.inf))
    with pytest.raises(InputError, match=r"policy network's output for observation 0 .* smaller policy_learning_rate"):
        model.behaviour(np.array([0]))


def test_dqns_own_warnings_stay() -> None:
    with pytest.warns(UserWarning, match="number of environments used is greater than the target network"):
        EpsilonIPEDQN("MlpPolicy", make_vec_env("CartPole-v1", 3), target_update_interval=2, buffer_size=10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EpsilonIPEDQN("MlpPolicy", "CartPole-v1", buffer_size=100, learning_starts=10).learn(50)


def test_softmax_of_scipy_is_what_the_oracle_thinks() -> None:
    np.testing.assert_allclose(np.exp(log_softmax([0.0, 1.0])), softmax([0.0, 1.0]))
    assert matched(np.zeros(4)) == pytest.approx(1.0, abs=1e-6)
    assert matched(np.log([7.0, 1.0, 1.0, 1.0])) == pytest.approx(0.4, abs=1e-9)
