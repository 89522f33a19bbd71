"""What a policy update costs: processor time per frame of deep training, as a ratio to that of the paper's update.

    python benchmarks/updates.py                        # every update, each two minutes or less
    python benchmarks/updates.py --only natural lift
    python benchmarks/updates.py --environment CartPole-v1 --width 64 --batch 128

All updates train in one process, in turn, on eight seeds in one batch, with epsilon-IPE behaviour; the best of the
rounds counts. Processor time does not count other programs' turns on the same core. `conservative` is a behaviour and
no update: its policy network imitates an average of greedy policies. The last five are returns of the value update.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

from frame_cost import frame_seconds
from side_by_side import SINGLE_THREAD

CORRECTED = {"delta_steps": 3, "delta_correction": "tree-backup"}
CASES: dict[str, dict[str, Any]] = {
    "paper": {},
    "absolute": {"policy_update": "absolute"},
    "entropy bonus": {"entropy_bonus": 0.01},
    "natural": {"policy_update": "natural"},
    "kl-proximal": {"policy_update": "kl-proximal"},
    "scale-free": {"policy_update": "scale-free"},
    "fenchel": {"policy_update": "fenchel"},
    "cross-entropy": {"policy_update": "cross-entropy"},
    "lift": {"policy_update": "lift"},
    "3 steps": {"delta_steps": 3},
    "3 steps, corrected": CORRECTED,
    "as DQN's": {"delta_q": "dqn"},
    "conservative": {"behaviour": "conservative"},
    "return of 3 steps": {"n_step": 3},
    "1 to 3 mixed": {"n_step": 3, "traces": {"kind": "peng"}},
    "mixed by entropy": {"n_step": 3, "traces": {"kind": "peng", "decay_from": "actions"}},
    "1 to 8 mixed": {"n_step": 8, "traces": {"kind": "peng"}},
    "8 mixed by entropy": {"n_step": 8, "traces": {"kind": "peng", "decay_from": "actions"}},
}
FIRST = "paper"


def main() -> None:
    parser = argparse.ArgumentParser(description="Processor time per frame of policy updates, beside the paper's.")
    parser.add_argument("--environment", default="LunarLander-v3")
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), metavar="UPDATE")
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    os.environ.update(SINGLE_THREAD)  # before JAX is imported

    from ipe.deep import paper_settings

    cases = [FIRST, *(name for name in arguments.only if name != FIRST)]
    sizes = {"width": arguments.width, "batch": arguments.batch}
    settings = {
        name: paper_settings(
            arguments.environment, frames=2**31 - 1, **{"behaviour": "epsilon-ipe", **CASES[name], **sizes}
        )
        for name in cases
    }
    found = frame_seconds(settings, arguments.seeds, arguments.rounds)
    print(f"{arguments.environment}, width {arguments.width}, {arguments.seeds} seeds in a batch of {arguments.batch}")
    print(f"{'update':20} {'microseconds per frame':>24} {'ratio to the paper':>20}")
    for name, seconds in found.items():
        print(f"{name:20} {1e6 * seconds:24.0f} {seconds / found[FIRST]:20.3f}")


if __name__ == "__main__":
    main()
