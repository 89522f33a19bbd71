"""Deep epsilon-IPE once more: one seed, in plain NumPy and double precision, after MATHEMATICS.md section 8.

Nothing of `ipe.deep.networks`, `optimisers`, `replay`, `schedules` or `learner`, of `ipe.behaviours`, `ipe.updates` or
`ipe.entropy` is used here. The replay is a list of transitions; convolutions are sums over shifted images; epsilon is
left to scipy's root finder. Only the initial networks and the uniform numbers are the library's own, which the
specification leaves open: of n kept transitions, oldest first, the number u draws the one at index floor(u n).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import t as student

from ipe.deep.environments import make_environment
from ipe.deep.randomness import FrameDraws
from ipe.deep.settings import TrainingSettings
from tests.tabular_oracle import lifted

Array = NDArray[np.float64]
Network = list[Array]
"""Weights and biases of the three layers: W, b, W, b, W, b; a dueling network has two last layers."""


def forward(network: Network, x: Array) -> tuple[Array, list[Array]]:
    """Outputs for a batch of vectors (b, n) or images (b, height, width, channels), and the two hidden layers."""
    w0, b0, w1, b1, w2, b2 = network[:6]
    if x.ndim == 4:
        height, width = x.shape[1] - 2, x.shape[2] - 2
        kernel = w0.reshape(3, 3, x.shape[3], -1)
        shifts = [(i, j) for i in range(3) for j in range(3)]
        first = b0 + sum(x[:, i : i + height, j : j + width] @ kernel[i, j] for i, j in shifts)
        first = np.maximum(first, 0.0).reshape(len(x), -1)
    else:
        first = np.maximum(x @ w0 + b0, 0.0)
    second = np.maximum(first @ w1 + b1, 0.0)
    if len(network) == 8:  # dueling: w2 and b2 are the value's, and the advantages' come after them
        half = second.shape[1] // 2
        advantage = second[:, half:] @ network[6] + network[7]
        return second[:, :half] @ w2 + b2 + advantage - advantage.mean(axis=1, keepdims=True), [first, second]
    return second @ w2 + b2, [first, second]


def gradient(network: Network, x: Array, hidden: list[Array], error: Array) -> Network:
    """Of a loss whose gradient in the outputs is `error`, by the chain rule."""
    first, second = hidden
    if len(network) == 8:
        half = second.shape[1] // 2
        of_value = error.sum(axis=1, keepdims=True)
        of_advantage = error - error.mean(axis=1, keepdims=True)
        slopes = np.concatenate([of_value @ network[4].T, of_advantage @ network[6].T], axis=1)
        last = [second[:, :half].T @ of_value, of_value.sum(axis=0)]
        last += [second[:, half:].T @ of_advantage, of_advantage.sum(axis=0)]
    else:
        slopes, last = error @ network[4].T, [second.T @ error, error.sum(axis=0)]
    before_second = slopes * (second > 0)
    before_first = (before_second @ network[2].T) * (first > 0)
    if x.ndim == 4:
        height, width = x.shape[1] - 2, x.shape[2] - 2
        maps = before_first.reshape(len(x), height, width, -1)
        windows = [x[:, i : i + height, j : j + width] for i in range(3) for j in range(3)]
        w0 = np.concatenate([np.einsum("byxc,byxk->ck", window, maps) for window in windows])
        b0 = maps.sum(axis=(0, 1, 2))
    else:
        w0, b0 = x.T @ before_first, before_first.sum(axis=0)
    return [w0, b0, first.T @ before_second, before_second.sum(axis=0), *last]


def softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    normalised: Array = powers / powers.sum(axis=-1, keepdims=True)
    return normalised


def entropy(pi: Array) -> Any:
    return -(pi * np.log(np.maximum(pi, 1e-300))).sum(axis=-1)


def matched_epsilon(pi: Array) -> float:
    """The epsilon at which epsilon-greedy has the entropy of a policy."""
    n, wanted = len(pi), float(entropy(pi))

    def excess(epsilon: float) -> float:
        return float(entropy(np.array([1 - epsilon + epsilon / n, *[epsilon / n] * (n - 1)]))) - wanted

    if excess(1.0) <= 0.0:
        return 1.0
    return float(brentq(excess, 0.0, 1.0, xtol=1e-14))


def epsilon_greedy(q: Array, epsilon: float) -> Array:
    best = (q == q.max()).astype(np.float64)
    found: Array = (1 - epsilon) * best / best.sum() + epsilon / len(q)
    return found


@dataclass(frozen=True)
class Transition:
    """One step: from s by action a to `after`, with reward r; `end` is "", "terminated" or "truncated"."""

    s: Array
    a: int
    r: float
    after: Array
    end: str


def kept(history: list[Transition], capacity: int) -> int:
    """How many transitions a replay holds: the last `capacity`, fewer if truncated ones take up the room.

    A transition takes one place and a truncated one two, and the current observation has one too.
    """
    places, count = 1, 0
    for transition in reversed(history):
        places += 2 if transition.end == "truncated" else 1
        if places > capacity + capacity // 16 + 2 or count == capacity:
            break
        count += 1
    return count


@dataclass
class Optimiser:
    """RMSprop or Adam over one network, in the textbook's form."""

    settings: TrainingSettings
    step_size: float
    square: Network
    mean: Network
    count: int = 0

    def step(self, network: Network, slope: Network) -> Network:
        own = self.settings.optimiser
        norm = math.sqrt(sum(float((g * g).sum()) for g in slope))
        if own.clip > 0.0 and norm > own.clip:
            slope = [g * own.clip / norm for g in slope]
        self.count += 1
        self.square = [own.decay * v + (1 - own.decay) * g**2 for v, g in zip(self.square, slope, strict=True)]
        if own.kind == "rmsprop":
            ratios = [g / (np.sqrt(v) + own.epsilon) for g, v in zip(slope, self.square, strict=True)]
        else:
            self.mean = [own.momentum * m + (1 - own.momentum) * g for m, g in zip(self.mean, slope, strict=True)]
            means = [m / (1 - own.momentum**self.count) for m in self.mean]
            squares = [v / (1 - own.decay**self.count) for v in self.square]
            ratios = [m / (np.sqrt(v) + own.epsilon) for m, v in zip(means, squares, strict=True)]
        return [w - self.step_size * ratio for w, ratio in zip(network, ratios, strict=True)]


class Oracle:
    """One seed in training.

    Args:
        settings, seed: the run.
        q, policy: its initial networks; the policy's is not looked at if the behaviour has none.
    """

    def __init__(self, settings: TrainingSettings, seed: int, q: Network, policy: Network) -> None:
        self.settings = settings
        self.q, self.policy, self.target = q, policy, [w.copy() for w in q]
        self.policy_target = [w.copy() for w in policy]
        self.q_optimiser = self._optimiser(q, settings.value_step_size)
        self.policy_optimiser = self._optimiser(policy, settings.policy_step_size)
        self.environment = make_environment(settings.environment, seed)
        self.draws = FrameDraws([seed], settings.batch)
        self.chances = FrameDraws([seed], 0, 3)
        self.held, self.remaining = 0, 0
        prior = getattr(settings, "bmc_prior", 1.0)
        self.posterior, self.returns = (prior, prior + 0.01), list[float]()
        self.history: list[Transition] = []
        self.powers: list[float] = []  # (|delta| + epsilon)^alpha of each transition
        self.weights = np.ones(settings.batch)
        self.frame = 0
        self.seen: dict[str, float] = {}
        self.observation = self._read(self.environment.reset())
        self.action = self._act()

    def advance(self) -> None:
        """One frame: step, store, update, copy, choose the next action."""
        own = self.settings
        step = self.environment.step(self.action)
        end = "terminated" if step.terminated else "truncated" if step.truncated else ""
        after = self._read(step.observation)
        self.history.append(Transition(self.observation, self.action, step.reward, after, end))
        self.observation = self._read(self.environment.reset()) if end else after
        self.powers.append(self.largest)
        minibatch = self._minibatch()
        self.frame += 1
        self.seen = {}
        beyond = self.frame - own.warm_up
        if beyond > 0 and beyond % own.update_every == 0:
            self._update(minibatch)
        if beyond > 0 and self.frame % own.target_period == 0:
            self.target, self.policy_target = [w.copy() for w in self.q], [w.copy() for w in self.policy]
        if beyond > 0 and own.behaviour == "ez-greedy":
            self._repeat(end)
        if beyond > 0 and own.behaviour == "epsilon-bmc":
            self._combine(self.history[-1])
        self.action = self._act()

    def _repeat(self, end: str) -> None:
        """Ez-greedy: was the action an exploring one, and how often is it taken again?"""
        chance = float(np.float32(self.chances.action(self.frame)[0]))
        if self.remaining > 0:
            self.remaining -= 1
        else:
            n = len(self.probabilities)
            share = self.seen_epsilon / n / self.probabilities[self.action]
            if chance < share:
                longest = int(getattr(self.settings, "longest"))  # noqa: B009
                weights = 1.0 / np.arange(1, longest + 1) ** 2
                duration = 1 + int(np.searchsorted(np.cumsum(weights) / weights.sum(), chance / share, side="right"))
                self.held, self.remaining = self.action, duration - 1
        if end:
            self.remaining = 0

    def _combine(self, last: Transition) -> None:
        """Epsilon-BMC's posterior, by the moments that the paper gives."""
        q = forward(self.q, last.after[None])[0][0]
        discount = 0.0 if last.end == "terminated" else self.settings.gamma
        greedy, even = last.r + discount * q.max(), last.r + discount * q.mean()
        a, b = self.posterior
        epsilon = a / (a + b)
        seen = (1 - epsilon) * greedy + epsilon * even
        self.returns.append(seen)
        t, certainty = len(self.returns), float(getattr(self.settings, "bmc_certainty"))  # noqa: B009
        variance = float(np.var(self.returns, ddof=1)) if t > 1 else 0.0
        shape = certainty + t / 2
        rate = certainty + t / 2 * (variance + np.mean(self.returns) ** 2 / (1 + t))
        e_u, e_q = (student.pdf(seen, 2 * shape, mean, np.sqrt(rate / shape)) for mean in (even, greedy))
        m = a / (a + b + 1) * (e_u * (a + 1) + e_q * b) / (e_u * a + e_q * b)
        s = a / (a + b + 1) * (a + 1) / (a + b + 2) * (e_u * (a + 2) + e_q * b) / (e_u * a + e_q * b)
        r = (m - s) / (s - m**2)
        self.posterior = m * r, (1 - m) * r

    def borders(self) -> set[int]:
        """The places in the history before which something ends."""
        return {len(self.history)}

    def kept(self) -> int:
        """How many transitions the replay holds."""
        return kept(self.history, self.settings.replay)

    def _minibatch(self) -> list[int]:
        n = self.kept()
        numbers = self.draws.batch(self.frame)[0]
        if self.settings.priority.exponent > 0:
            return self._by_priority(list(range(len(self.history) - n, len(self.history))), numbers)
        return [len(self.history) - n + math.floor(u * n) for u in numbers]

    largest = 1.0

    def _by_priority(self, kept: list[int], numbers: Any) -> list[int]:
        """One point in each of equal parts of the line of all kept powers, in the order in which a ring holds them."""
        part = self.settings.priority
        ring = sorted(kept, key=lambda i: i % self.settings.replay)
        powers = np.array([self.powers[i] for i in ring])
        total, batch = powers.sum(), len(numbers)
        found = [int((np.cumsum(powers) <= (j + u) / batch * total).sum()) for j, u in enumerate(numbers)]
        t = max(self.frame - self.settings.warm_up, 0)
        beta = min(1.0, part.correction + (1 - part.correction) * t / part.steps)
        weights = (len(ring) * powers[found] / total) ** -beta
        self.weights = weights / weights.max()
        return [ring[j] for j in found]

    def _update(self, minibatch: list[int]) -> None:
        own = self.settings
        batch = [self.history[i] for i in minibatch]
        actions = np.array([t.a for t in batch])
        rows = np.arange(len(batch))
        here = np.stack([t.s for t in batch])

        if own.traces.kind != "none":
            mixed = np.array([self._mixed(i) for i in minibatch])
        total, discount, ahead = self._targets(minibatch)
        values = forward(self.target, ahead)[0]
        chosen = forward(self.q if own.double_q else self.target, ahead)[0].argmax(axis=1)
        best = values[rows, chosen]
        if own.behaviour.startswith("munchausen"):
            bonus, best = self._munchausen(forward(self.target, here)[0][rows], values, actions)
            total = total + bonus
        target = mixed if own.traces.kind != "none" else total + discount * best
        q, hidden = forward(self.q, here)
        delta = q[rows, actions] - target
        error = np.zeros_like(q)
        # The slope of delta^2, or of Huber's delta^2 / 2 that goes on as c |delta|.
        error[rows, actions] = (np.clip(delta, -own.huber, own.huber) if own.huber else 2 * delta) / len(batch)
        error *= self.weights[:, None]
        for i, size in zip(minibatch, abs(delta), strict=True):
            self.powers[i] = (size + own.priority.epsilon) ** own.priority.exponent
            self.largest = max(self.largest, self.powers[i])
        new = self.q_optimiser.step(self.q, gradient(self.q, here, hidden, error))
        self.seen = {"td_error": float(abs(delta).mean()), "q_mean": float(q[rows, actions].mean())}
        self.q = new
        if own.behaviour == "conservative":
            self._distil(here)
        elif own.learns_policy:
            self._update_policy(minibatch, actions, here, q[rows, actions])

    def _update_policy(self, minibatch: list[int], actions: Any, here: Array, before: Array) -> None:
        """`before` are the Q-network's values of the minibatch before its update."""
        own, n = self.settings, len(minibatch)
        judge = self.q if own.delta_q == "online" else self.target
        q_sa = before if own.delta_q == "dqn" else forward(judge, here)[0][np.arange(n), actions]
        count = self.q[-1].size
        rows = [self._backup(judge, i) for i in minibatch]
        after, q_next = np.stack([row[0] for row in rows]), np.stack([row[1] for row in rows])
        reward, gamma, goes_on = (np.array([row[k] for row in rows]) for k in (2, 3, 4))
        if own.policy_update == "lift":
            outputs, hidden = forward(self.policy, after)
            delta = reward + gamma * goes_on * np.clip(outputs[:, 0], q_next.min(axis=1), q_next.max(axis=1)) - q_sa
            error = outputs - ((q_sa - reward) / gamma)[:, None]
        else:
            # Fenchel's network has more outputs, for the states s.
            inputs = np.concatenate([after, here])
            outputs, hidden = forward(self.policy, inputs)
            pi = softmax(outputs[:n, :count])
            v = (pi * q_next).sum(axis=1)
            delta = reward + gamma * goes_on * v - q_sa
            slope = {"absolute": np.sign(delta)}.get(own.policy_update, 2 * delta)
            if own.policy_update == "fenchel":
                y = outputs[np.arange(n, 2 * n), count + actions]
                slope = 2 * y
            bonus = own.entropy_bonus * (np.log(pi) + entropy(pi)[:, None])
            of_logits = (slope * gamma)[:, None] * (q_next - v[:, None]) + bonus
            of_logits = (
                of_logits - of_logits.mean(axis=1)[:, None] if own.policy_update == "natural" else pi * of_logits
            )
            error = np.zeros_like(outputs)
            error[:n, :count] = of_logits * goes_on[:, None]
            if own.policy_update == "fenchel":
                error[np.arange(n, 2 * n), count + actions] = 2 * (y - delta)
            after = inputs
        if own.policy_update == "lift":
            error = error * goes_on[:, None]
        error = error * np.tile(self.weights, len(error) // n)[:, None]
        self.policy = self.policy_optimiser.step(self.policy, gradient(self.policy, after, hidden, error / n))
        self.seen["ipe_error"] = float(abs(delta).mean())

    def _backup(self, judge: Network, i: int) -> tuple[Array, Array, float, float, float]:
        """The state whose policy is updated, its values, the rewards before it, its discount; 0 if it is terminal."""
        path = [self.history[i]]
        while len(path) < self.settings.delta_steps and not path[-1].end and i + len(path) not in self.borders():
            path.append(self.history[i + len(path)])
        gamma = self.settings.gamma
        if self.settings.delta_correction == "none":
            reward = sum(gamma**k * transition.r for k, transition in enumerate(path))
            last = path[-1]
            values = forward(judge, last.after[None])[0][0]
            return last.after, values, reward, gamma ** len(path), float(last.end != "terminated")
        values = forward(judge, path[-1].after[None])[0][0]
        for transition in reversed(path[1:]):
            pi = softmax(forward(self.policy, transition.after[None])[0][0][: len(values)])
            following = 0.0 if transition.end == "terminated" else float(pi @ values)
            values = forward(judge, transition.s[None])[0][0]
            values[transition.a] = transition.r + gamma * following
        first = path[0]
        return first.after, values, first.r, gamma, float(first.end != "terminated")

    def _distil(self, here: Array) -> None:
        """One step of the network towards the average of greedy policies."""
        rate = float(getattr(self.settings, "rate"))  # noqa: B009
        q = forward(self.target, here)[0]
        aim = (1 - rate) * softmax(forward(self.policy_target, here)[0])
        aim[np.arange(len(q)), q.argmax(axis=1)] += rate
        logits, hidden = forward(self.policy, here)
        error = (softmax(logits) - aim) * self.weights[:, None] / len(here)
        self.policy = self.policy_optimiser.step(self.policy, gradient(self.policy, here, hidden, error))

    def _munchausen(self, q: Array, q_next: Array, actions: Any) -> tuple[Array, Array]:
        """The scaled log-probabilities of the actions, and the soft values of the states ahead."""
        weight, tau, clip = (getattr(self.settings, f"munchausen_{name}") for name in ("weight", "temperature", "clip"))
        log = tau * np.log(softmax(q / tau))[np.arange(len(q)), actions]
        pi = softmax(q_next / tau)
        bonus: Array = weight * np.clip(log, -clip, 0.0)
        soft: Array = (pi * q_next).sum(axis=1) + tau * entropy(pi)
        return bonus, soft

    def _targets(self, minibatch: list[int]) -> tuple[Array, Array, Array]:
        """Sums of discounted rewards, what the bootstrap is multiplied by, and the states that it is taken from."""
        totals, discounts, states = [], [], []
        for i in minibatch:
            total, discount, k = 0.0, 1.0, i
            while True:
                transition = self.history[k]
                total += discount * transition.r
                discount *= self.settings.gamma
                if transition.end or k - i + 1 == self.settings.n_step or k + 1 in self.borders():
                    break
                k += 1
            totals.append(total)
            discounts.append(0.0 if transition.end == "terminated" else discount)
            states.append(transition.after)
        return np.array(totals), np.array(discounts), np.stack(states)

    def _mixed(self, i: int) -> float:
        """The target of a transition: the returns of one step, two, ..., each times its share of lambda."""
        own, path = self.settings, [self.history[i]]
        while len(path) < own.n_step and not path[-1].end and i + len(path) not in self.borders():
            path.append(self.history[i + len(path)])
        total, left, rewards = 0.0, 1.0, 0.0
        for k, transition in enumerate(path):
            rewards += own.gamma**k * transition.r
            q = forward(self.target, transition.after[None])[0][0]
            judge = forward(self.q, transition.after[None])[0][0] if own.double_q else q
            value = 0.0 if transition.end == "terminated" else q[judge.argmax()]
            last = k + 1 == len(path)
            share = 0.0 if last else self._lambda(transition.after, q)
            if not last and own.traces.kind == "watkins" and path[k + 1].a != judge.argmax():
                share = 0.0
            total += left * (1 - share) * (rewards + own.gamma ** (k + 1) * value)
            left *= share
        return total

    def _lambda(self, state: Array, q: Array) -> float:
        source = self.settings.traces.decay_from
        if source == "number":
            return self.settings.traces.decay
        outputs = forward(self.policy, state[None])[0][0]
        pi = lifted(q, float(outputs[0])) if self.settings.policy_update == "lift" else softmax(outputs[: len(q)])
        if source == "actions":
            return matched_epsilon(pi)
        share = float(entropy(pi)) / math.log(len(pi)) * math.log(2.0)
        return float(brentq(lambda u: float(entropy(np.array([1 - u / 2, u / 2]))) - share, 0.0, 1.0, xtol=1e-14))

    def _act(self) -> int:
        own = self.settings
        q = forward(self.q, self.observation[None])[0][0]
        if own.learns_policy:
            outputs = forward(self.policy, self.observation[None])[0][0]
            pi = lifted(q, float(outputs[0])) if own.policy_update == "lift" else softmax(outputs[: len(q)])
            self.seen["entropy"] = float(entropy(pi))
        if own.behaviour == "epsilon-ipe":
            self.seen["epsilon"] = matched_epsilon(pi)
            pi = epsilon_greedy(q, self.seen["epsilon"])
        elif own.behaviour == "epsilon-greedy":
            self.seen["epsilon"] = self._scheduled()
            pi = epsilon_greedy(q, self.seen["epsilon"])
        elif own.behaviour in ("ez-greedy", "munchausen", "epsilon-bmc", "ebe"):
            self.seen["epsilon"] = self._other_epsilon(q)
            pi = epsilon_greedy(q, self.seen["epsilon"])
            if own.behaviour == "ez-greedy" and self.remaining > 0:
                pi = np.eye(len(q))[self.held]
        elif own.behaviour == "boltzmann":
            pi = softmax(q / own.temperature)
        if self.frame < own.warm_up:
            pi = np.full(len(q), 1 / len(q))
        self.probabilities, self.seen_epsilon = pi, self.seen.get("epsilon", 0.0)
        number = float(self.draws.action(self.frame)[0])
        return int(np.searchsorted(np.cumsum(pi), number, side="right"))

    def _other_epsilon(self, q: Array) -> float:
        if self.settings.behaviour == "epsilon-bmc":
            return self.posterior[0] / sum(self.posterior)
        if self.settings.behaviour == "ebe":
            return float(entropy(softmax(q / self.settings.temperature)) / np.log(len(q)))
        return self._scheduled()

    def _scheduled(self) -> float:
        own = self.settings.epsilon
        t = max(self.frame - self.settings.warm_up, 0)
        if own.kind == "exponential":
            return float(max(own.final, own.initial * (own.final / own.initial) ** (t / own.steps)))
        return max(own.final, own.initial - (own.initial - own.final) * t / own.steps)

    def _optimiser(self, network: Network, step_size: float) -> Optimiser:
        zeros = [np.zeros_like(w) for w in network]
        return Optimiser(self.settings, step_size, zeros, [w.copy() for w in zeros])

    def _read(self, observation: NDArray[Any]) -> Array:
        return observation.astype(np.float64) * self.environment.spec.scale
