"""What epsilon-IPE costs per frame in Stable-Baselines3, beside its plain DQN.

    python benchmarks/sb3_overhead.py

Both learners train in turn in one process, on the same environment with the same settings, past their warm-up. What is
printed of each is its best window of 16 steps, then the ratio of both best windows, and the ratio of both medians:
large networks ask for new memory now and then, which the best windows do not show. The plain DQN is at its final
epsilon of 0.05, where most actions cost it a forward pass. With one thread the time is the processor's, so that other
programs disturb it little; with `--threads 2`, as many as torch takes by itself on two cores, it is the clock's. A
ratio of 1.5 is half as long again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from itertools import pairwise
from statistics import median
from typing import Any, NamedTuple

from side_by_side import SINGLE_THREAD

WARM_UP = 400
"""Frames before the first round; updates begin at half of them."""
WINDOW = 16
"""Steps of the environments; every fourth, or every one, is followed by updates."""


class Case(NamedTuple):
    """A setting that is measured."""

    environment: str
    """an id, or "images": four channels of 84 by 84 pixels at random, for Nature's convolutional network"""
    environments: int
    """stepped together"""
    train_freq: int
    """steps between updates"""
    updates: int
    """how many follow one another then"""
    width: int
    """of both hidden layers; for images 512, that of Nature's network"""


CASES = [
    Case("CartPole-v1", 1, 4, 1, 64),
    Case("CartPole-v1", 1, 1, 1, 64),
    Case("LunarLander-v3", 1, 4, 1, 64),
    Case("LunarLander-v3", 1, 1, 1, 64),
    Case("LunarLander-v3", 8, 1, 8, 64),
    Case("LunarLander-v3", 1, 1, 1, 256),
    Case("images", 1, 4, 1, 512),
    Case("images", 8, 1, 2, 512),
    Case("images", 1, 1, 1, 512),
]


def learner(case: Case, delta_q: Any) -> Any:
    """The model, warm: ours with this Q in delta; for None the plain DQN."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.envs import FakeImageEnv

    from ipe.integrations.stable_baselines3 import EpsilonIPEDQN

    images = case.environment == "images"
    pixels: dict[str, Any] = {"action_dim": 6, "screen_height": 84, "screen_width": 84, "n_channels": 4}
    environment = make_vec_env(
        FakeImageEnv if images else case.environment,
        case.environments,
        seed=0,
        env_kwargs=pixels if images else None,
    )
    settings: dict[str, Any] = {
        "env": environment,
        "train_freq": case.train_freq,
        "gradient_steps": case.updates,
        "buffer_size": 1_000 if images else 50_000,
        "learning_starts": WARM_UP // 2,
        "target_update_interval": 500,
        "policy_kwargs": {} if images else {"net_arch": [case.width, case.width]},
        "seed": 0,
        "device": "cpu",
    }
    policy = "CnnPolicy" if images else "MlpPolicy"
    if delta_q is None:
        return DQN(policy, exploration_fraction=1e-9, **settings).learn(WARM_UP)
    return EpsilonIPEDQN(policy, delta_q=delta_q, **settings).learn(WARM_UP)


def seconds_per_frame(model: Any, frames: int, clock: Callable[[], float]) -> list[float]:
    """Of each window of one more round."""
    times: list[float] = []

    def note(seen: dict[str, Any], _: dict[str, Any]) -> bool:
        if (seen["self"].num_timesteps // seen["self"].n_envs) % WINDOW == 0:
            times.append(clock())
        return True

    model.learn(frames, callback=note, reset_num_timesteps=False)
    return [(after - before) / (WINDOW * int(model.n_envs)) for before, after in pairwise(times)]


def measure(case: Case, delta_q: str, frames: int, rounds: int, clock: Callable[[], float]) -> dict[str, Any]:
    frames = (frames // 5 if case.environment == "images" else frames) * max(1, case.environments // 2)
    models = {"dqn": learner(case, None), "epsilon_ipe": learner(case, delta_q)}
    windows: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            windows[name] += seconds_per_frame(model, frames, clock)
    microseconds = {name: round(1e6 * min(seconds), 1) for name, seconds in windows.items()}
    ratios = {
        name: round(function(windows["epsilon_ipe"]) / function(windows["dqn"]), 3)
        for name, function in (("ratio", min), ("median_ratio", median))
    }
    return case._asdict() | microseconds | ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1000, help="per round; of images a fifth")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", type=int, nargs="+", help=f"which, from 0 to {len(CASES) - 1}; by default all")
    parser.add_argument("--delta-q", default="target", choices=["target", "online", "dqn"])
    parser.add_argument("--threads", type=int, default=1, help="torch's; more than one take the clock's time")
    parser.add_argument("--json", action="store_true", help="one line of JSON per case instead of the table")
    options = parser.parse_args()
    if options.threads == 1:
        os.environ.update(SINGLE_THREAD)  # before anything that reads it is imported
    clock = time.process_time if options.threads == 1 else time.perf_counter
    import torch

    torch.set_num_threads(options.threads)
    if not options.json:
        names = ("stable_baselines3", "torch", "numpy")
        print(", ".join(f"{name} {version(name)}" for name in names))
        print(
            f"{'environment':16}{'copies':>7}{'train_freq':>11}{'updates':>8}{'width':>6}{'DQN us':>9}"
            f"{'eps-IPE us':>11}{'ratio':>7}{'median':>7}"
        )
    for case in [CASES[i] for i in options.cases] if options.cases else CASES:
        found = measure(case, options.delta_q, options.frames, options.rounds, clock)
        line = f"{case.environment:16}{case.environments:7d}{case.train_freq:11d}{case.updates:8d}{case.width:6d}"
        line += f"{found['dqn']:9.0f}{found['epsilon_ipe']:11.0f}{found['ratio']:7.2f}{found['median_ratio']:7.2f}"
        print(json.dumps(found) if options.json else line, flush=True)


if __name__ == "__main__":
    main()
