"""Algorithm 1 once more: one run, one step after the other, in plain Python and NumPy.

Nothing of `ipe.tabular`, `ipe.behaviours`, `ipe.updates` or `ipe.entropy` is used here. Softmax and entropies are
written out, what the library solves by Newton's method is left to scipy's root finder, next states are found by going
along the row. The random numbers are those that `ipe.tabular.numbers` documents, computed anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student

from ipe.base.arrays import Array
from ipe.mdp import FiniteMDP
from tests.oracles import dense_transitions

DEFAULTS: dict[str, float] = {
    "alpha_q": 0.5, "alpha_pi": 0.05, "tau": 0.0, "beta": 0.1, "epsilon": 0.1, "anneal_steps": 100.0,
    "initial_epsilon": 1.0, "final_epsilon": 0.1, "temperature": 1.0, "sigma": 1.0, "fixed_epsilon": 0.1,
    "bmc_prior": 5.0, "bmc_certainty": 500.0, "longest": 10_000.0, "munchausen_weight": 0.9,
    "munchausen_temperature": 0.03, "munchausen_clip": 1.0,
}  # fmt: skip


def splitmix64(start: int, count: int) -> list[int]:
    """The generator with a state that moves on and is hashed, the start itself first."""
    words, state = [], start
    for _ in range(count):
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
        words.append(z ^ (z >> 31))
        state = (state + 0x9E3779B97F4A7C15) % 2**64
    return words


def uniform_numbers(seed: int, run: int, steps: int) -> tuple[list[tuple[float, float]], list[float], list[float]]:
    """Two numbers per step, for action and next state; one per start state, the first at index 0; one for memories."""
    key = jax.random.fold_in(jax.random.key(seed, impl="threefry2x32"), run)

    def words(stream: int, count: int) -> list[int]:
        high, low = np.asarray(jax.random.key_data(jax.random.fold_in(key, stream))).tolist()
        return splitmix64(high * 2**32 + low, count)

    moves = [(word // 2**32 / 2**32, word % 2**32 / 2**32) for word in words(0, steps)]
    starts, chances = ([word // 2**32 / 2**32 for word in words(stream, steps + 1)] for stream in (1, 2))
    return moves, starts, chances


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max())
    normalised: Array = powers / powers.sum()
    return normalised


def entropy(pi: Array) -> float:
    positive = pi[pi > 0]
    return float(-(positive * np.log(positive)).sum())


def below_uniform(pi: Array) -> float:
    """How far the entropy of a policy is below that of the uniform one."""
    t = len(pi) * pi - 1.0
    grown = np.where(t > -1.0, (1.0 + t) * np.log1p(np.where(t > -1.0, t, 0.0)), 0.0)
    return float(np.mean(grown - t))


def matched_boltzmann(q: Array, pi: Array) -> Array:
    """softmax(eta q) with the entropy of pi; greedy, with ties shared, where pi has less entropy than the ties."""
    top = (q == q.max()).astype(float)
    goal, spread = below_uniform(pi), np.ptp(q)
    if spread == 0.0 or goal == 0.0:
        return np.full(len(q), 1.0 / len(q))
    if goal >= np.log(len(q) / top.sum()) - 1e-15:
        shared: Array = top / top.sum()
        return shared
    z = (q - q.max()) / spread
    x = brentq(lambda x: below_uniform(softmax(np.exp(x) * z)) - goal, -40.0, 40.0, xtol=1e-15, rtol=1e-15)
    return softmax(np.exp(x) * z)


def lifted(q: Array, v: float) -> Array:
    """The policy of most entropy among those with the mean v; at the ends of the range, uniform over the ties."""
    for end, beyond in ((q.max(), v >= q.max()), (q.min(), v <= q.min())):
        if beyond or q.min() == q.max():
            ties = (q == end).astype(float)
            shared: Array = ties / ties.sum()
            return shared
    z = (q - q.min()) / np.ptp(q)
    goal = (v - q.min()) / np.ptp(q)
    eta = brentq(lambda eta: float(softmax(eta * z) @ z) - goal, -1e6, 1e6, xtol=1e-14, rtol=1e-15)
    return softmax(eta * z)


def matched_epsilon(pi: Array) -> float:
    """The epsilon whose epsilon-greedy policy has the entropy of pi."""
    n, goal = len(pi), entropy(pi)

    def excess(epsilon: float) -> float:
        policy = np.full(n, epsilon / n)
        policy[0] += 1 - epsilon
        return entropy(policy) - goal

    if n == 1:
        return 0.0
    if excess(1.0) <= 0:
        return 1.0
    return float(brentq(excess, 0.0, 1.0, xtol=1e-15))


def pick(weights: Array, number: float) -> int:
    """The first index at which the weights, added up, exceed the number."""
    total = 0.0
    for i, weight in enumerate(weights):
        total += weight
        if total > number:
            return i
    return int(np.flatnonzero(weights)[-1])


@dataclass
class Oracle:
    """One run. `step` does one step; the tables are what they are by then."""

    mdp: FiniteMDP
    behaviour: str
    update: str = "paper"
    order: str = "q-first"
    ties: str = "random"
    n_steps: int = 1
    seed: int = 0
    run: int = 0
    steps: int = 100
    given: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        mdp = self.mdp
        self.parameters = {**DEFAULTS, "gamma": mdp.gamma, **self.given}
        self.p = dense_transitions(mdp)
        self.r = self._rewards()
        self.q, self.theta, self.y = (np.zeros(mdp.rewards.shape) for _ in range(3))
        self.epsilon_table = np.full(mdp.n_states, self.parameters["initial_epsilon"])
        self.average = np.zeros(mdp.rewards.shape)
        for s in range(mdp.n_states):
            self.average[s, self.actions(s)] = 1.0 / max(1, len(self.actions(s)))
        self.held, self.remaining, self.square = 0, 0, 0.0
        self.posterior = (self.parameters["bmc_prior"], self.parameters["bmc_prior"] + 0.01)
        self.returns: list[float] = []
        self.numbers, self.starts, self.chances = uniform_numbers(self.seed, self.run, self.steps)
        self.start = np.where(mdp.terminal, 0.0, 1.0 / (~mdp.terminal).sum()) if mdp.start is None else mdp.start
        self.t, self.state = 0, pick(self.start, self.starts[0])
        self.past: list[tuple[int, int, float, bool]] = []

    def _rewards(self) -> Array:
        mdp = self.mdp
        r = np.repeat(mdp.rewards[:, :, None], mdp.n_states, axis=2)
        if mdp.transition_rewards is not None:
            pairs = np.repeat(np.arange(mdp.rewards.size), np.diff(mdp.transitions.indptr))
            r.reshape(-1, mdp.n_states)[pairs, mdp.transitions.indices] = mdp.transition_rewards
        return r

    def actions(self, s: int) -> Any:
        return np.flatnonzero(self.mdp.allowed[s])

    def policy(self, s: int) -> Array:
        """The evaluation policy over the allowed actions of a state."""
        if self.update == "lift":
            return lifted(self.q[s, self.actions(s)], float(self.theta[s, self.actions(s)[0]]))
        return softmax(self.theta[s, self.actions(s)])

    def epsilon(self, s: int) -> float:
        p, t = self.parameters, self.t
        if self.behaviour == "epsilon-greedy":
            return p["epsilon"]
        if self.behaviour == "linear":
            line = p["initial_epsilon"] + (p["final_epsilon"] - p["initial_epsilon"]) * t / p["anneal_steps"]
            return max(p["final_epsilon"], line)
        if self.behaviour == "exponential":
            factor = (p["final_epsilon"] / p["initial_epsilon"]) ** (1 / p["anneal_steps"])
            return float(max(p["final_epsilon"], p["initial_epsilon"] * factor**t))
        if self.behaviour == "fixed-epsilon":
            return p["fixed_epsilon"]
        if self.behaviour in ("ez-greedy", "munchausen"):
            return p["epsilon"]
        if self.behaviour == "epsilon-bmc":
            return self.posterior[0] / sum(self.posterior)
        if self.behaviour == "ebe":
            q = self.q[s, self.actions(s)]
            return entropy(softmax(q / p["temperature"])) / np.log(len(q)) if len(q) > 1 else 0.0
        if self.behaviour in ("vdbe", "vdbe-softmax"):
            return float(self.epsilon_table[s])
        if self.behaviour in ("epsilon-ipe", "ez-epsilon-ipe"):
            return matched_epsilon(self.policy(s))
        return 0.0

    def greedy(self, s: int) -> Array:
        """Over the allowed actions."""
        q = self.q[s, self.actions(s)]
        best = (q == q.max()).astype(float)
        if self.ties == "first":
            best[np.argmax(q) + 1 :] = 0.0
        shared: Array = best / best.sum()
        return shared

    def probabilities(self, s: int) -> Array:
        """Of the behaviour, over all actions; zeros in a terminal state."""
        here = self.actions(s)
        pi = np.zeros(self.mdp.n_actions)
        if len(here) == 0:
            return pi
        if self.behaviour == "ipe":
            pi[here] = self.policy(s)
        elif self.behaviour == "boltzmann":
            pi[here] = softmax(self.q[s, here] / self.parameters["temperature"])
        elif self.behaviour == "tau-ipe":
            pi[here] = matched_boltzmann(self.q[s, here], self.policy(s))
        elif self.behaviour == "munchausen-softmax":
            pi[here] = softmax(self.q[s, here] / self.parameters["munchausen_temperature"])
        elif self.behaviour == "vdbe-softmax":
            q, epsilon = self.q[s, here], self.epsilon(s)
            scaled = np.interp(q, (q.min(), q.max()), (-1.0, 1.0)) if np.ptp(q) > 0 else np.zeros(len(q))
            pi[here] = (1 - epsilon) * self.greedy(s) + epsilon * softmax(scaled)
        elif self.behaviour.startswith("ez-") and self.remaining > 0 and self.held in here:
            pi[self.held] = 1.0
        elif self.behaviour == "conservative":
            pi[here] = self.average[s, here]
        else:
            epsilon = self.epsilon(s)
            pi[here] = (1 - epsilon) * self.greedy(s) + epsilon / len(here)
        return pi

    def step(self) -> tuple[int, int, float, int]:
        s, (to_act, to_move) = self.state, self.numbers[self.t]
        acted_on, epsilon = self.probabilities(s), self.epsilon(s)
        a = pick(acted_on, to_act)
        following = pick(self.p[s, a], to_move)
        reward, ended = float(self.r[s, a, following]), bool(self.mdp.terminal[following])
        self.past.append((s, a, reward, ended))
        if self.order == "policy-first":
            self._update_policy(following)
        q_next = np.zeros(1) if ended else self.q[following, self.actions(following)]
        best, bonus = float(q_next.max()), 0.0
        if self.behaviour.startswith("munchausen"):
            bonus, best = self._munchausen(s, a, q_next, ended)
        change = self._learn(s, a, reward + bonus, following, best)
        if self.order == "q-first":
            self._update_policy(following)
        self._update_behaviour(s, change)
        if self.behaviour.startswith("ez-"):
            self._repeat(s, a, acted_on[a], epsilon, ended)
        self._combine(reward, q_next)
        self.t += 1
        self.state = pick(self.start, self.starts[self.t]) if ended else following
        return s, a, reward, following

    def _learn(self, s: int, a: int, reward: float, following: int, best: float) -> float:
        """Q-learning; by how much the pair's value changes."""
        change = self.parameters["alpha_q"] * (reward + self.parameters["gamma"] * best - self.q[s, a])
        self.q[s, a] += change
        return float(change)

    def _munchausen(self, s: int, a: int, q_next: Array, ended: bool) -> tuple[float, float]:
        """The scaled log-probability of the action, and the soft value of the next state."""
        weight, tau, clip = (self.parameters[f"munchausen_{name}"] for name in ("weight", "temperature", "clip"))
        here = self.actions(s)
        scaled = self.q[s, here] / tau
        log = float(tau * (scaled - scaled.max() - np.log(np.exp(scaled - scaled.max()).sum()))[list(here).index(a)])
        pi = softmax(q_next / tau)
        return weight * max(log, -clip), 0.0 if ended else float(pi @ q_next) + tau * entropy(pi)

    def _repeat(self, s: int, a: int, probability: float, epsilon: float, ended: bool) -> None:
        """Ez-greedy: was the action an exploring one, and how often is it taken again?"""
        here, chance = self.actions(s), self.chances[self.t]
        if self.remaining > 0 and self.held in here:
            self.remaining -= 1
        else:
            share = epsilon / len(here) / probability
            self.held, self.remaining = a, 0
            if chance < share:
                weights = 1.0 / np.arange(1, int(self.parameters["longest"]) + 1) ** 2
                self.remaining = int(np.searchsorted(np.cumsum(weights) / weights.sum(), chance / share, side="right"))
        if ended:
            self.remaining = 0

    def _combine(self, reward: float, q_next: Array) -> None:
        """Epsilon-BMC's posterior, by the moments that the paper gives."""
        a, b = self.posterior
        greedy, even = (reward + self.parameters["gamma"] * value for value in (q_next.max(), q_next.mean()))
        epsilon = a / (a + b)
        seen = (1 - epsilon) * greedy + epsilon * even
        self.returns.append(seen)
        t, certainty = len(self.returns), self.parameters["bmc_certainty"]
        variance = float(np.var(self.returns, ddof=1)) if t > 1 else 0.0
        shape = certainty + t / 2
        rate = certainty + t / 2 * (variance + np.mean(self.returns) ** 2 / (1 + t))
        e_u, e_q = (student.pdf(seen, 2 * shape, mean, np.sqrt(rate / shape)) for mean in (even, greedy))
        m = a / (a + b + 1) * (e_u * (a + 1) + e_q * b) / (e_u * a + e_q * b)
        s = a / (a + b + 1) * (a + 1) / (a + b + 2) * (e_u * (a + 2) + e_q * b) / (e_u * a + e_q * b)
        r = (m - s) / (s - m**2)
        self.posterior = m * r, (1 - m) * r

    def _update_behaviour(self, s: int, change: float) -> None:
        if self.behaviour == "conservative":
            rate = self.parameters.get("rate", 0.1)
            for x in range(self.mdp.n_states):
                if len(here := self.actions(x)):
                    self.average[x, here] = (1 - rate) * self.average[x, here] + rate * self.greedy(x)
        shrunk = np.exp(-abs(change) / self.parameters["sigma"])
        rate = self.parameters.get("rate", 1 / len(self.actions(s)))
        self.epsilon_table[s] = rate * (1 - shrunk) / (1 + shrunk) + (1 - rate) * self.epsilon_table[s]

    def _update_policy(self, following: int) -> None:
        if self.update == "none" or len(self.past) < self.n_steps:
            return
        window = self.past[-self.n_steps :]
        s, a, *_ = window[0]
        target, discount, ended = 0.0, 1.0, False
        for _, _, reward, last in window:
            if not ended:
                target += discount * reward
            ended = ended or last
            discount *= self.parameters["gamma"]
        here = self.actions(following)
        if ended:
            if self.update == "fenchel":
                self.y[s, a] += self.parameters["beta"] * (target - self.q[s, a] - self.y[s, a])
            return
        self.theta[following, here] = self._new_logits(s, a, target, discount, following, here)

    def _new_logits(self, s: int, a: int, target: float, gamma: float, following: int, here: Any) -> Array:
        alpha, tau = self.parameters["alpha_pi"], self.parameters.get("tau", 0.0)
        theta, q = self.theta[following, here], self.q[following, here]
        promise = (self.q[s, a] - target) / gamma
        if self.update == "lift":
            kept: Array = theta + alpha * (promise - theta)
            return kept
        pi = softmax(theta)
        v = float(pi @ q)
        delta = target + gamma * v - self.q[s, a]
        if self.update == "kl-proximal":
            return self._proximal(theta, q, target - self.q[s, a], gamma)
        bonus = np.log(pi) + entropy(pi)
        if self.update == "cross-entropy":
            imitated: Array = theta - alpha * (pi - lifted(q, promise)) - alpha * tau * pi * bonus
            return imitated
        if self.update == "natural":
            moved: Array = theta - 2 * alpha * delta * gamma * (q - v) - alpha * tau * bonus
            return moved
        error = 2 * delta
        if self.update == "absolute":
            error = np.sign(delta)
        if self.update == "fenchel":
            self.y[s, a] += self.parameters["beta"] * (delta - self.y[s, a])
            error = 2 * self.y[s, a]
        if self.update == "scale-free":
            memory = self.parameters.get("memory", 0.01)
            self.square = (1 - memory) * self.square + memory * delta**2 if self.square else delta**2
            error = 2 * delta / (self.square or 1.0)
        descended: Array = theta - alpha * error * gamma * pi * (q - v) - alpha * tau * pi * bonus
        return descended

    def _proximal(self, theta: Array, q: Array, rest: float, gamma: float) -> Array:
        alpha, scale = self.parameters["alpha_pi"], 1 + self.parameters["alpha_pi"] * self.parameters["tau"]

        def right(kappa: float) -> float:
            return float(2 * alpha * gamma * (rest + gamma * softmax((theta - kappa * q) / scale) @ q))

        ends = sorted((0.0, right(0.0)))
        kappa = brentq(lambda k: k - right(k), ends[0] - 1e-12, ends[1] + 1e-12, xtol=1e-15)
        tilted: Array = (theta - kappa * q) / scale
        return tilted
