"""What epsilon-IPE costs per frame in Stable-Baselines3, beside its plain DQN.

    python benchmarks/sb3_overhead.py

Both learners train in turn in one process with one thread, on the same environment with the same settings, past their
warm-up; the best of several rounds of each counts. The plain DQN is at its final epsilon of 0.05, where most actions
cost it a forward pass. Processor time, so that other programs disturb it little; a ratio of 1.5 is half as long again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from importlib.metadata import version
from typing import Any, NamedTuple

from side_by_side import SINGLE_THREAD

WARM_UP = 400
"""Frames before the first round; updates begin at half of them."""


class Case(NamedTuple):
    """A setting that is measured."""

    environment: str
    environments: int
    """stepped together"""
    train_freq: int
    """steps between updates; with k environments k updates follow, so that the updates per frame stay the same"""
    width: int


CASES = [
    Case("CartPole-v1", 1, 4, 64),
    Case("CartPole-v1", 1, 1, 64),
    Case("LunarLander-v3", 1, 4, 64),
    Case("LunarLander-v3", 1, 1, 64),
    Case("LunarLander-v3", 8, 1, 64),
    Case("LunarLander-v3", 1, 1, 256),
]


def learner(case: Case, ours: bool) -> Any:
    """The model, warm."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env

    from ipe.integrations.stable_baselines3 import EpsilonIPEDQN

    settings: dict[str, Any] = {
        "env": make_vec_env(case.environment, case.environments, seed=0),
        "train_freq": case.train_freq,
        "gradient_steps": case.environments,
        "buffer_size": 50_000,
        "learning_starts": WARM_UP // 2,
        "target_update_interval": 500,
        "policy_kwargs": {"net_arch": [case.width, case.width]},
        "seed": 0,
        "device": "cpu",
    }
    model = EpsilonIPEDQN("MlpPolicy", **settings) if ours else DQN("MlpPolicy", exploration_fraction=1e-9, **settings)
    return model.learn(WARM_UP)


def seconds_per_frame(model: Any, frames: int) -> float:
    """Of one more round."""
    before, start = model.num_timesteps, time.process_time()
    model.learn(frames, reset_num_timesteps=False)
    return (time.process_time() - start) / int(model.num_timesteps - before)


def measure(case: Case, frames: int, rounds: int) -> dict[str, Any]:
    models = {"dqn": learner(case, ours=False), "epsilon_ipe": learner(case, ours=True)}
    best = dict.fromkeys(models, float("inf"))
    for _ in range(rounds):
        for name, model in models.items():
            best[name] = min(best[name], seconds_per_frame(model, frames))
    microseconds = {name: round(1e6 * seconds, 1) for name, seconds in best.items()}
    return case._asdict() | microseconds | {"ratio": round(best["epsilon_ipe"] / best["dqn"], 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=1000, help="per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", type=int, nargs="+", help=f"which, from 0 to {len(CASES) - 1}; by default all")
    parser.add_argument("--json", action="store_true", help="one line of JSON per case instead of the table")
    options = parser.parse_args()
    os.environ.update(SINGLE_THREAD)  # before anything that reads it is imported
    import torch

    torch.set_num_threads(1)
    if not options.json:
        names = ("stable_baselines3", "torch", "numpy")
        print(", ".join(f"{name} {version(name)}" for name in names))
        print(
            f"{'environment':16}{'copies':>7}{'train_freq':>11}{'width':>6}{'DQN us':>9}{'eps-IPE us':>11}{'ratio':>7}"
        )
    for case in [CASES[i] for i in options.cases] if options.cases else CASES:
        found = measure(case, options.frames, options.rounds)
        line = f"{case.environment:16}{case.environments:7d}{case.train_freq:11d}{case.width:6d}"
        line += f"{found['dqn']:9.0f}{found['epsilon_ipe']:11.0f}{found['ratio']:7.2f}"
        print(json.dumps(found) if options.json else line, flush=True)


if __name__ == "__main__":
    main()
