"""What a behaviour costs: processor time per frame of deep training, as a ratio to that of epsilon-IPE.

    python benchmarks/behaviours.py                       # tau-IPE beside epsilon-IPE, half a minute
    python benchmarks/behaviours.py --behaviours all      # every behaviour of the deep agent
    python benchmarks/behaviours.py --environment CartPole-v1 --seeds 4

All behaviours train in one process, in turn, on eight seeds in one batch; the best of the rounds counts. Processor time
does not count other programs' turns on the same core.
"""

from __future__ import annotations

import argparse
import os
import time

ONE_THREAD = {
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "OMP_NUM_THREADS": "1",
    "NPROC": "1",
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0",
}
FIRST = "epsilon-ipe"
WARM, FRAMES = 150, 60


def measure(environment: str, behaviours: list[str], width: int, seeds: int, rounds: int) -> dict[str, float]:
    """The processor seconds of one frame of all seeds, by behaviour."""
    from ipe.deep import paper_settings
    from ipe.deep.loop import Loop

    loops = {}
    for name in behaviours:
        settings = paper_settings(environment, name, frames=2**31 - 1, width=width)
        loops[name] = Loop([settings] * seeds, list(range(seeds)))
        for _ in range(WARM):
            loops[name].advance()
    best = dict.fromkeys(behaviours, float("inf"))
    for _ in range(rounds):
        for name, loop in loops.items():
            begin = time.process_time()
            for _ in range(FRAMES):
                loop.advance()
            best[name] = min(best[name], (time.process_time() - begin) / FRAMES)
    for loop in loops.values():
        loop.close()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor time per frame of behaviours, beside epsilon-IPE's.")
    parser.add_argument("--environment", default="LunarLander-v3")
    parser.add_argument("--behaviours", nargs="+", default=["tau-ipe"], help="names, or all")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=14)
    arguments = parser.parse_args()
    os.environ.update(ONE_THREAD)  # before JAX is imported

    from ipe.deep.settings import deep_behaviours

    chosen = list(deep_behaviours()) if arguments.behaviours == ["all"] else arguments.behaviours
    names = [FIRST, *(name for name in chosen if name != FIRST)]
    found = measure(arguments.environment, names, arguments.width, arguments.seeds, arguments.rounds)
    print(f"{arguments.environment}, width {arguments.width}, {arguments.seeds} seeds in a batch")
    print(f"{'behaviour':20} {'microseconds per frame':>24} {'ratio to epsilon-IPE':>22}")
    for name, seconds in found.items():
        print(f"{name:20} {1e6 * seconds:24.0f} {seconds / found[FIRST]:22.3f}")


if __name__ == "__main__":
    main()
