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

from frame_cost import frame_seconds
from side_by_side import SINGLE_THREAD

FIRST = "epsilon-ipe"


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor time per frame of behaviours, beside epsilon-IPE's.")
    parser.add_argument("--environment", default="LunarLander-v3")
    parser.add_argument("--behaviours", nargs="+", default=["tau-ipe"], help="names, or all")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=14)
    arguments = parser.parse_args()
    os.environ.update(SINGLE_THREAD)  # before JAX is imported

    from ipe.deep import paper_settings
    from ipe.deep.settings import deep_behaviours

    chosen = list(deep_behaviours()) if arguments.behaviours == ["all"] else arguments.behaviours
    names = [FIRST, *(name for name in chosen if name != FIRST)]
    settings = {
        name: paper_settings(arguments.environment, name, frames=2**31 - 1, width=arguments.width) for name in names
    }
    found = frame_seconds(settings, arguments.seeds, arguments.rounds)
    print(f"{arguments.environment}, width {arguments.width}, {arguments.seeds} seeds in a batch")
    print(f"{'behaviour':20} {'microseconds per frame':>24} {'ratio to epsilon-IPE':>22}")
    for name, seconds in found.items():
        print(f"{name:20} {1e6 * seconds:24.0f} {seconds / found[FIRST]:22.3f}")


if __name__ == "__main__":
    main()
