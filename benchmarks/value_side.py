"""What dueling heads, prioritised replay and several environments cost: seconds per frame beside the plain agent's.

    python benchmarks/value_side.py                 # all of it: about three minutes
    python benchmarks/value_side.py --seconds 0.2   # for a first look

The settings are the paper's. All variants of a task are trained in one process with one thread, in turns: in each round
every variant trains for some moments, from where it was. What counts is the least time per frame and seed of all
rounds; the ratio is to the same of the plain agent. The replay is filled to the same part in all of them.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

from ipe.deep.compilation import keep_memory, training_environment

os.environ.update(training_environment(os.environ))  # before JAX is imported

TASKS: dict[str, tuple[str, int]] = {"LunarLander-v3": ("LunarLander-v3", 8), "Freeway": ("minatar/Freeway", 1)}
"""The environment and the seeds of each task."""
BEHAVIOURS = ("epsilon-greedy", "epsilon-ipe")
PRIORITY = {"exponent": 0.6}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "dueling": {"dueling": True},
    "prioritised": {"priority": PRIORITY},
    "2 environments": {"environments": 2},
    "8 environments": {"environments": 8},
    "all, 8 environments": {"dueling": True, "priority": PRIORITY, "environments": 8},
}
WARM = 400


def measure(environment: str, seeds: int, behaviour: str, seconds: float, rounds: int) -> dict[str, tuple[float, str]]:
    """Return the least microseconds per frame and seed of each variant, and whose matrix products it used."""
    from ipe.deep.loop import Loop
    from ipe.deep.settings import paper_settings

    loops = {}
    for name, changes in VARIANTS.items():
        settings = paper_settings(environment, behaviour, width=128, frames=2**31 - 8, **changes)
        loops[name] = Loop([settings] * seeds, range(seeds))
        while loops[name].frame < WARM:
            loops[name].advance()
    best = dict.fromkeys(loops, float("inf"))
    for _ in range(rounds):
        for name, loop in loops.items():
            first, begin = loop.frame, time.perf_counter()
            while (spent := time.perf_counter() - begin) < seconds:
                for _ in range(8 // loop.program.environments):
                    loop.advance()
            best[name] = min(best[name], spent / (loop.frame - first) / seeds * 1e6)
    return {name: (best[name], loop.program.products) for name, loop in loops.items()}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="how long a variant trains in a round (default: 0.5)"
    )
    parser.add_argument("--rounds", type=int, default=8, help="how many rounds there are (default: 8)")
    parser.add_argument(
        "--tasks", nargs="+", choices=list(TASKS), default=list(TASKS), help="which tasks (default: all)"
    )
    options = parser.parse_args()
    keep_memory()
    print("| task | variant | microseconds per frame and seed | ratio | products |\n|---|---|---|---|---|")
    for task in options.tasks:
        environment, seeds = TASKS[task]
        for behaviour in BEHAVIOURS:
            found = measure(environment, seeds, behaviour, options.seconds, options.rounds)
            for name, (least, products) in found.items():
                title = f"{task}, {behaviour}, {seeds} seed{'s' * (seeds > 1)}"
                print(f"| {title} | {name} | {least:.1f} | {least / found['plain'][0]:.2f} | {products} |", flush=True)


if __name__ == "__main__":
    main()
