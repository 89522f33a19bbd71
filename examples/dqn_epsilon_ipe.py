"""Deep epsilon-IPE in one file: a DQN whose epsilon nobody schedules.

    python examples/dqn_epsilon_ipe.py
    python examples/dqn_epsilon_ipe.py --env-id Acrobot-v1 --frames 100000

Beside ipe it needs Gymnasium and tyro (`pip install gymnasium tyro`).

A DQN acts greedily on its values Q, but with probability epsilon at random. Here epsilon comes from Q itself. A second
network learns the evaluation policy pi of the values: the policy whose value they are, or come nearest to being. In
every state, epsilon is chosen so that epsilon-greedy is as random as pi is there. The way round is

    values -> evaluation policy -> behaviour -> experience -> values

and each arrow is a few lines below. The mathematics of the middle ones is the library's: `ipe.updates` has the gradient
of pi, `ipe.entropy` finds epsilon, `ipe.behaviours` makes probabilities of it and draws actions. `ipe train` does the
same for many seeds at once, with checkpoints; this file is to be read, and changed.

From Chan, De Asis and Sutton, Inverse Policy Evaluation for Value-based Sequential Decision-making (2020).
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import tyro

from ipe.behaviours import epsilon_greedy, sample
from ipe.entropy import epsilon_from_logits
from ipe.errors import InputError
from ipe.updates import Transition, paper_gradient


@dataclass(frozen=True)
class Args:
    """Deep epsilon-IPE on an environment with vectors for observations and discrete actions."""

    env_id: str = "CartPole-v1"
    """the Gymnasium id of the environment"""
    seed: int = 0
    """of the networks, the environment, the replay and the behaviour"""
    frames: int = 50_000
    """steps in the environment"""
    gamma: float = 0.98
    """the discount rate"""
    width: int = 64
    """of the two hidden layers of both networks"""
    value_step_size: float = 3e-4
    """of the Q-network"""
    policy_step_size: float = 1e-3
    """of the policy network; the one new number, in the place of epsilon's first value, last value and duration"""
    target_period: int = 20
    """frames between copies of the Q-network to the target network"""
    batch: int = 64
    """transitions in a minibatch"""
    replay: int = 50_000
    """transitions kept"""
    report_every: int = 2_000
    """frames between lines of progress"""
    test_episodes: int = 20
    """episodes of greedy behaviour at the end"""


# Networks: two ReLU layers, as a list of weights and biases. Both have this shape; one gives Q(s, .), the other the
# logits theta(s, .) of the policy pi.


def new_network(key: Any, sizes: list[int]) -> Any:
    """Weights and biases, uniform on +-1/sqrt(fan-in)."""
    layers = []
    for n_in, n_out in pairwise(sizes):
        key, one, two = jax.random.split(key, 3)
        bound = n_in**-0.5
        weights = jax.random.uniform(one, (n_in, n_out), minval=-bound, maxval=bound)
        layers.append((weights, jax.random.uniform(two, (n_out,), minval=-bound, maxval=bound)))
    return layers


def network(layers: Any, x: Any) -> Any:
    """One number per action."""
    for weights, bias in layers[:-1]:
        x = jax.nn.relu(x @ weights + bias)
    weights, bias = layers[-1]
    return x @ weights + bias


# The optimiser: Adam.


class Moments(NamedTuple):
    """Adam's memory of a network's gradients: their mean, their mean square, and how many there were."""

    mean: Any
    square: Any
    steps: Any


def new_moments(layers: Any) -> Moments:
    """No gradient seen."""
    zeros = jax.tree.map(jnp.zeros_like, layers)
    return Moments(zeros, zeros, jnp.zeros(()))


def adam(layers: Any, gradient: Any, moments: Moments, step_size: float) -> tuple[Any, Moments]:
    """One step down the gradient."""
    t = moments.steps + 1.0
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments.mean, gradient)
    square = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, moments.square, gradient)

    def stepped(w: Any, m: Any, v: Any) -> Any:
        return w - step_size * (m / (1.0 - 0.9**t)) / (jnp.sqrt(v / (1.0 - 0.999**t)) + 1e-8)

    return jax.tree.map(stepped, layers, mean, square), Moments(mean, square, t)


# Experience.


class Transitions(NamedTuple):
    """(s, a, r, s') and whether s' is terminal; first axis: transitions."""

    s: Any
    a: Any
    r: Any
    s_next: Any
    terminal: Any


class Replay:
    """The last transitions, and minibatches of them, drawn with replacement."""

    def __init__(self, size: int, observation: tuple[int, ...], rng: np.random.Generator) -> None:
        self.kept = Transitions(
            np.zeros((size, *observation), np.float32), np.zeros(size, np.int32), np.zeros(size, np.float32),
            np.zeros((size, *observation), np.float32), np.zeros(size, bool),
        )  # fmt: skip
        self.size, self.added, self.rng = size, 0, rng

    def add(self, *transition: Any) -> None:
        """One more, in the place of the oldest."""
        for column, value in zip(self.kept, transition, strict=True):
            column[self.added % self.size] = value
        self.added += 1

    def minibatch(self, n: int) -> Transitions:
        """So many of them."""
        rows = self.rng.integers(0, min(self.added, self.size), n)
        return Transitions(*(column[rows] for column in self.kept))


# The learner: values -> evaluation policy -> behaviour.


class Learner(NamedTuple):
    """Everything that is learned."""

    q: Any
    target: Any
    policy: Any
    q_moments: Moments
    policy_moments: Moments


def new_learner(key: Any, n_inputs: int, n_actions: int, width: int) -> Learner:
    """Fresh networks; the target network is the Q-network."""
    one, two = jax.random.split(key)
    sizes = [n_inputs, width, width, n_actions]
    q, policy = new_network(one, sizes), new_network(two, sizes)
    return Learner(q, q, policy, new_moments(q), new_moments(policy))


@partial(jax.jit, static_argnums=0)
def update(args: Args, learner: Learner, batch: Transitions) -> Learner:
    """One step of both networks on one minibatch."""
    q_next = network(learner.target, batch.s_next)

    # Experience -> values. DQN: Q(s, a) moves towards r + gamma max_b Q-(s', b), with Q- the target network.
    def loss(q: Any) -> Any:
        q_sa = jnp.take_along_axis(network(q, batch.s), batch.a[:, None], axis=1)[:, 0]
        target = batch.r + args.gamma * jnp.where(batch.terminal, 0.0, q_next.max(axis=1))
        return jnp.mean((q_sa - target) ** 2)

    q, q_moments = adam(learner.q, jax.grad(loss)(learner.q), learner.q_moments, args.value_step_size)

    # Values -> evaluation policy. If pi had the values Q-, then delta = r + gamma sum_b pi(b|s') Q-(s', b) - Q-(s, a)
    # would be 0 on average. So pi descends delta^2, in its logits theta at s', with Q- as it is. The library gives
    # the gradient in the logits, and JAX carries it back through the network.
    q_sa = jnp.take_along_axis(network(learner.target, batch.s), batch.a[:, None], axis=1)[:, 0]
    theta, back = jax.vjp(lambda policy: network(policy, batch.s_next), learner.policy)
    slope, _ = paper_gradient(theta, Transition(q_sa, batch.r, args.gamma, batch.terminal, q_next))
    (gradient,) = back(slope / len(slope))
    policy, policy_moments = adam(learner.policy, gradient, learner.policy_moments, args.policy_step_size)
    return Learner(q, learner.target, policy, q_moments, policy_moments)


@jax.jit
def act(learner: Learner, key: Any, frame: int, s: Any) -> tuple[Any, Any]:
    """Evaluation policy -> behaviour: epsilon-greedy on Q, with the entropy of pi(.|s). An action, and epsilon."""
    epsilon = epsilon_from_logits(network(learner.policy, s))
    probabilities = epsilon_greedy(network(learner.q, s), epsilon)
    return sample(jax.random.fold_in(key, frame), probabilities), epsilon


@jax.jit
def greedy_action(learner: Learner, s: Any) -> Any:
    """What Q holds best."""
    return jnp.argmax(network(learner.q, s))


# The loop: behaviour -> experience.


class Result(NamedTuple):
    """What a run gave."""

    returns: list[float]
    """of every episode, in order"""
    epsilons: list[float]
    """in the state of every frame"""
    test_returns: list[float]
    """of episodes of greedy behaviour at the end"""


def train(args: Args) -> Result:
    """Learn for so many frames, then test."""
    env = make(args.env_id)
    env_key, network_key, behaviour_key = jax.random.split(jax.random.key(args.seed), 3)
    seeds = np.random.default_rng(np.asarray(jax.random.key_data(env_key)))
    if args.replay < 1:
        raise InputError(f"replay must be 1 or more, found {args.replay}")
    replay = Replay(args.replay, env.observation_space.shape, seeds.spawn(1)[0])
    learner = new_learner(network_key, env.observation_space.shape[0], int(env.action_space.n), args.width)

    returns: list[float] = []
    epsilons: list[float] = []
    so_far, began = 0.0, time.perf_counter()
    s, _ = env.reset(seed=int(seeds.integers(2**31)))
    for frame in range(1, args.frames + 1):
        a, epsilon = act(learner, behaviour_key, frame, np.float32(s))
        epsilons.append(float(epsilon))
        s_next, r, terminal, truncated, _ = env.step(int(a))
        replay.add(s, a, r, s_next, terminal)  # a time limit is no terminal state: it bootstraps
        so_far += float(r)
        s = s_next
        if terminal or truncated:
            returns.append(so_far)
            so_far = 0.0
            s, _ = env.reset()

        learner = update(args, learner, replay.minibatch(args.batch))
        if frame % args.target_period == 0:
            learner = learner._replace(target=learner.q)
        if frame % args.report_every == 0:
            recent, epsilon = np.mean(returns[-20:] or np.nan), np.mean(epsilons[-args.report_every :])
            speed = frame / (time.perf_counter() - began)
            print(f"frame {frame:7d}  return {recent:7.1f}  epsilon {epsilon:.3f}  {speed:.0f} frames/s", flush=True)
    return Result(returns, epsilons, [play(env, learner, seeds) for _ in range(args.test_episodes)])


def play(env: Any, learner: Learner, seeds: np.random.Generator) -> float:
    """The return of one greedy episode."""
    s, _ = env.reset(seed=int(seeds.integers(2**31)))
    total, ended = 0.0, False
    while not ended:
        s, r, terminal, truncated, _ = env.step(int(greedy_action(learner, np.float32(s))))
        total, ended = total + float(r), terminal or truncated
    return total


def make(env_id: str) -> Any:
    """The environment, if it is of the kind that this file is for."""
    env = gymnasium.make(env_id)
    observation, action = env.observation_space, env.action_space
    if not (isinstance(observation, gymnasium.spaces.Box) and len(observation.shape) == 1):
        raise InputError(f"env_id: the observations of {env_id} are {observation}, not vectors")
    if not (isinstance(action, gymnasium.spaces.Discrete) and action.start == 0):
        raise InputError(f"env_id: the actions of {env_id} are {action}, not discrete and numbered from 0")
    return env


if __name__ == "__main__":
    try:
        tests = train(tyro.cli(Args)).test_returns
    except (InputError, gymnasium.error.Error) as error:
        sys.exit(f"dqn_epsilon_ipe.py: {error}")
    if tests:
        print(f"greedy, {len(tests)} episodes: mean return {np.mean(tests):.1f}, least {min(tests):.0f}")
