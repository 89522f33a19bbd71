"""What products in bfloat16 do to learning: the same runs with either precision.

    python benchmarks/precision.py
    python benchmarks/precision.py --environment LunarLander-v3 --frames 100000

Seeds are the same on both sides, and so are the initial networks; after that the runs are different ones. The products
are those that training uses on this machine (`IPE_PRODUCTS` chooses others). Printed: the areas under the learning
curves and the returns of the last 20 episodes, mean and standard error over runs, and the interval of their difference.
`training.py --precision` has the speed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ipe.analysis import aucs, curves, difference_interval, frame_grid, standard_error
from ipe.deep import paper_settings, train
from ipe.errors import InputError

PRECISIONS = ("float32", "bfloat16")


def scores(options: argparse.Namespace, precision: str, folder: Path) -> dict[str, Any]:
    """The areas and ends of all runs with one precision."""
    own = paper_settings(options.environment, "epsilon-ipe", frames=options.frames, precision=precision)
    seeds = list(range(options.seeds))
    result = train(own, seeds=seeds, out=folder)
    if wrong := [outcome for outcome in result.outcomes if outcome.status != "done"]:
        raise InputError(f"{precision}, seed {wrong[0].seed}: {wrong[0].status}, {wrong[0].reason}")
    ends = curves(result.episodes, frame_grid(options.frames, 200), seeds)[:, -1]
    return {"area": aucs(result.episodes, options.frames, seeds), "end": ends}


def show(options: argparse.Namespace, found: dict[str, dict[str, Any]]) -> None:
    print(f"{options.environment}, epsilon-IPE, {options.seeds} runs of {options.frames} frames")
    for precision, own in found.items():
        cells = [f"{name} {np.mean(own[name]):7.1f} +- {standard_error(own[name]):.1f}" for name in ("area", "end")]
        print(f"{precision:<10}{'   '.join(cells)}")
    exact, rough = (found[precision] for precision in PRECISIONS)
    for name in ("area", "end"):
        print(f"bfloat16 less float32, {name}: {difference_interval(rough[name], exact[name], seed=0)} (95% interval)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", default="CartPole-v1")
    parser.add_argument("--seeds", type=int, default=16)
    parser.add_argument("--frames", type=int, default=30_000)
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as folder:
            show(options, {precision: scores(options, precision, Path(folder) / precision) for precision in PRECISIONS})
    except InputError as wrong:
        sys.exit(str(wrong))


if __name__ == "__main__":
    main()
