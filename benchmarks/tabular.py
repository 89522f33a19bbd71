"""Figure 4's simulation compiled, beside a plain Python loop of the same algorithm.

    python benchmarks/tabular.py                 # about half a minute on two cores
    python benchmarks/tabular.py --runs 200 --plain-runs 2

First table: steps per second of the four behaviours over their whole grids (500 steps per run), compilation apart,
and the same algorithm as one would write it without a library: lists, `math` and `random`, one step after the other
on one core. Both columns of rewards are means over the grid; they agree up to noise, since both do the same.
Second table: the time for 100, 1000 and 10000 runs per setting, and its growth.
Every time is the best of several, each with another seed, from the call to the results in NumPy arrays.
"""

from __future__ import annotations

import argparse
import itertools
import math
import random
import time
from collections.abc import Callable, Sequence

import numpy as np

from ipe.mdp import FiniteMDP
from ipe.tabular import simulate
from ipe.zoo import switch_stay

STEPS = 500
WANTED = 200
STEP_SIZES = (*(m * 10.0**k for k in (-3, -2, -1) for m in (1, 2, 5)), 1.0)
GRIDS: dict[str, tuple[str, Sequence[float]]] = {
    "epsilon-greedy": ("epsilon", (0.01, 0.05, *(k / 10 for k in range(1, 11)))),
    "linear": ("anneal_steps", (1, 25, *range(50, 501, 50))),
    "ipe": ("alpha_pi", STEP_SIZES),
    "epsilon-ipe": ("alpha_pi", STEP_SIZES),
}


def softmax(logits: list[float]) -> list[float]:
    largest = max(logits)
    powers = [math.exp(x - largest) for x in logits]
    total = sum(powers)
    return [x / total for x in powers]


def draw(rng: random.Random, weights: list[float]) -> int:
    number, total = rng.random(), 0.0
    for i, weight in enumerate(weights):
        total += weight
        if number < total:
            return i
    return len(weights) - 1


def epsilon_greedy(rng: random.Random, q: list[float], epsilon: float) -> int:
    if rng.random() < epsilon:
        return rng.randrange(len(q))
    best = max(q)
    return rng.choice([a for a, x in enumerate(q) if x == best])


def plain_run(mdp: FiniteMDP, behaviour: str, value: float, steps: int, seed: int, alpha_q: float = 0.5) -> float:
    """One run of Algorithm 1 on an MDP of two actions; its average reward."""
    rng = random.Random(seed)
    rows = [[mdp.transitions[[s * 2 + a]].toarray()[0].tolist() for a in (0, 1)] for s in range(mdp.n_states)]
    rewards, gamma = mdp.rewards.tolist(), mdp.gamma
    alpha_pi = value if behaviour in ("ipe", "epsilon-ipe") else 0.05
    q = [[0.0, 0.0] for _ in range(mdp.n_states)]
    theta = [[0.0, 0.0] for _ in range(mdp.n_states)]
    s, total = 0, 0.0
    for t in range(steps):
        if behaviour == "ipe":
            a = draw(rng, softmax(theta[s]))
        elif behaviour == "epsilon-ipe":
            a = epsilon_greedy(rng, q[s], 2.0 * min(softmax(theta[s])))
        elif behaviour == "linear":
            a = epsilon_greedy(rng, q[s], max(0.1, 1.0 - 0.9 * t / value))
        else:
            a = epsilon_greedy(rng, q[s], value)
        following, reward = draw(rng, rows[s][a]), rewards[s][a]
        q[s][a] += alpha_q * (reward + gamma * max(q[following]) - q[s][a])
        pi = softmax(theta[following])
        v = sum(p * x for p, x in zip(pi, q[following], strict=True))
        delta = reward + gamma * v - q[s][a]
        theta[following] = [
            logit - 2.0 * alpha_pi * delta * gamma * p * (x - v)
            for logit, p, x in zip(theta[following], pi, q[following], strict=True)
        ]
        s, total = following, total + reward
    return total / steps


def seconds(call: Callable[[int], None], seed: int) -> float:
    start = time.perf_counter()
    call(seed)
    return time.perf_counter() - start


def compare(mdp: FiniteMDP, runs: int, plain_runs: int, repeats: int) -> float:
    print(f"{'':16}{'compile':>9}{'compiled':>13}{'plain':>13}{'':>8}{'reward':>10}{'reward':>8}")
    print(f"{'behaviour':16}{'s':>9}{'steps/s':>13}{'steps/s':>13}{'ratio':>8}{'compiled':>10}{'plain':>8}")
    spent = {"compiled": 0.0, "plain": 0.0}
    for behaviour, (name, grid) in GRIDS.items():
        reward: dict[str, float] = {}

        def compiled(seed: int, behaviour: str = behaviour, name: str = name, grid: Sequence[float] = grid) -> None:
            result = simulate(mdp, behaviour, sweep={name: grid}, runs=runs, steps=STEPS, seed=seed)
            reward["compiled"] = float(result.reward.mean())  # noqa: B023

        def plain(seed: int, behaviour: str = behaviour, grid: Sequence[float] = grid) -> None:
            seeds = itertools.count(seed * len(grid) * plain_runs)
            each = [plain_run(mdp, behaviour, x, STEPS, next(seeds)) for x in grid for _ in range(plain_runs)]
            reward["plain"] = float(np.mean(each))  # noqa: B023

        first = seconds(compiled, 0)
        # In turns, so that both meet the same weather on the machine.
        fast, slow = zip(*((seconds(compiled, k), seconds(plain, k)) for k in range(repeats)), strict=True)
        per_step = {
            "compiled": min(fast) / (len(grid) * runs * STEPS),
            "plain": min(slow) / (len(grid) * plain_runs * STEPS),
        }
        for kind in spent:
            spent[kind] += per_step[kind] * len(grid)
        print(
            f"{behaviour:16}{first - min(fast):9.2f}{1 / per_step['compiled']:13,.0f}{1 / per_step['plain']:13,.0f}"
            f"{per_step['plain'] / per_step['compiled']:8.0f}{reward['compiled']:10.3f}{reward['plain']:8.3f}"
        )
    ratio = spent["plain"] / spent["compiled"]
    print(f"Figure 4 as a whole: {ratio:.0f} times as fast per step (wanted: {WANTED})\n")
    return ratio


def growth(mdp: FiniteMDP, repeats: int) -> None:
    name, grid = GRIDS["epsilon-ipe"]
    print(f"{'runs':>8}{'seconds':>10}{'ns per step':>13}{'exponent':>10}")
    before: tuple[int, float] | None = None
    for runs in (100, 1000, 10_000):

        def call(seed: int, runs: int = runs) -> None:
            simulate(mdp, "epsilon-ipe", sweep={name: grid}, runs=runs, steps=STEPS, seed=seed)

        call(0)
        least = min(seconds(call, seed) for seed in range(repeats))
        exponent = f"{math.log(least / before[1]) / math.log(runs / before[0]):10.2f}" if before else ""
        print(f"{runs:8}{least:10.3f}{least / (runs * STEPS * len(grid)) * 1e9:13.1f}{exponent}")
        before = (runs, least)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="runs per setting, compiled")
    parser.add_argument("--plain-runs", type=int, default=20, help="runs per setting, plain")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    mdp = switch_stay()
    compare(mdp, arguments.runs, arguments.plain_runs, arguments.repeats)
    growth(mdp, arguments.repeats)


if __name__ == "__main__":
    main()
