"""Deep training: frames x seeds per second on all cores, beside Stable-Baselines3 and sbx, and beside the machine.

    python benchmarks/training.py                      # all of it: about 15 minutes, and some to install the peers
    python benchmarks/training.py --no-peers --seconds 5
    python benchmarks/training.py --growth             # time against the number of seeds and of frames

Same networks, minibatches of 32, one update per frame. Every side gets all cores, one process on each, their timed
phases together: this library with its seeds in batches; the peers with one environment each, as in the paper, and with
eight (then eight updates), which is faster. Of every side the best second of the rounds counts, all its processes
together. `peak` is the best matrix product that NumPy or XLA does on all cores at once, measured in the same run; the
fraction of it counts multiplications and additions of the networks' matrix products alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

from matrix_peak import peak
from peers import DEFAULT_FOLDER, FASTEST, NAMES, SAME_ALGORITHM, PeersError, Task, measure_peer, peers_environment
from side_by_side import (
    SINGLE_THREAD,
    Stopwatch,
    available_cores,
    best_together,
    pin,
    side_by_side,
    wait_for_the_others,
)

TASKS: dict[str, tuple[str, int]] = {
    "lunar-lander 128": ("LunarLander-v3", 128),
    "lunar-lander 256": ("LunarLander-v3", 256),
    "freeway": ("minatar/Freeway", 128),
}
SIDES = {"DQN": "epsilon-greedy", "epsilon-IPE": "epsilon-ipe"}
REQUIRED = {"DQN": (16.0, 5.0, 2.3), "epsilon-IPE": (9.0, 2.7, 1.2)}
WARM = 300
FRAMES = {task: [250, 500, 1000, 2000] if task == "freeway" else [1000, 2000, 4000, 8000] for task in TASKS}


def operations(net: Any, batch: int, policy: bool) -> float:
    """Multiplications and additions in the matrix products of one frame of one seed."""
    forward = net.multiplications
    inputs, outputs = net.layers[0]
    backward = 2 * forward - net.applied[0] * inputs * outputs  # no gradient in the observation
    q = batch * (forward + forward + backward) + forward  # target at s', Q at s, and Q to act
    pi = batch * (forward + forward + backward) + forward  # target at s, policy at s', and policy to act
    return 2.0 * float(q + pi if policy else q)


def measure(
    environment: str, behaviour: str, width: int, seeds: int, seconds: float, precision: str, marks: list[int]
) -> dict[str, Any]:
    """In a child: frames x seeds per second of the whole loop, and of the compiled frame alone; seconds to marks."""
    import numpy as np

    from ipe.deep.learner import advance
    from ipe.deep.loop import Loop
    from ipe.deep.settings import paper_settings

    began = time.perf_counter()
    own = paper_settings(environment, behaviour, frames=2**31 - 1, width=width, precision=precision)
    loop = Loop([own] * seeds, list(range(seeds)))
    loop.advance()
    set_up = time.perf_counter() - began
    for _ in range(WARM):
        loop.advance()
    wait_for_the_others()
    begin, times = time.perf_counter(), {}
    for count in range(1, max(marks, default=0) + 1):
        loop.advance()
        if count in marks:
            times[count] = time.perf_counter() - begin
    whole = Stopwatch(seconds)
    while whole.count(seeds):
        loop.advance()
    alone = Stopwatch(seconds / 2)
    while alone.count(loop.lanes):
        frame = loop._frame
        loop._state, loop._spare, actions = advance(loop.program, "all", loop._state, loop._spare, loop._numbers, frame)
        np.asarray(actions)
    work = operations(loop.program.architecture, own.batch, loop.program.learns_policy)
    facts = {"operations": work, "set_up": set_up, "memory": loop.memory, "times": times}
    return {"rates": whole.rates, "alone": alone.rates, **facts}


def ours(
    task: str, side: str, options: argparse.Namespace, cores: list[int], seeds: int, marks: str = ""
) -> list[dict[str, Any]]:
    environment, width = TASKS[task]
    words = [environment, SIDES[side], str(width), str(seeds), str(options.seconds), options.precision, marks]
    command = [sys.executable, os.path.abspath(__file__), "--child", *words, "--core"]
    return side_by_side([[*command, str(core)] for core in cores], measurement=4 * options.seconds + 300.0)


def seeds_of(task: str) -> int:
    """Seeds per process: the library's default."""
    from ipe.deep.batches import seeds_per_batch
    from ipe.deep.settings import paper_settings

    environment, width = TASKS[task]
    return seeds_per_batch(paper_settings(environment, width=width), environment.startswith("minatar/"))


def compare(options: argparse.Namespace) -> None:
    cores = available_cores()
    python = None if options.no_peers else peers_environment(options.peers)
    best: dict[tuple[str, str], float] = {}
    facts: dict[tuple[str, str], dict[str, Any]] = {}
    top = 0.0

    def keep(task: str, who: str, rate: float) -> None:
        best[task, who] = max(best.get((task, who), 0.0), rate)

    for _ in range(options.rounds):
        top = max(top, peak(cores, options.seconds))
        for task in options.tasks:
            for side in SIDES:
                results = ours(task, side, options, cores, options.seeds or seeds_of(task))
                keep(task, side, best_together([result["rates"] for result in results]))
                keep(task, f"{side} alone", best_together([result["alone"] for result in results]))
                facts[task, side] = results[0]
            if python is None:
                continue
            for library in NAMES:
                for environments in (SAME_ALGORITHM, FASTEST):
                    name: Task = "freeway" if task == "freeway" else "lunar-lander"
                    found = measure_peer(
                        library, name, TASKS[task][1], options.seconds, cores, python=python, environments=environments
                    )
                    if found.reason is not None:
                        print(f"{NAMES[library]}, {task}: {found.reason}", file=sys.stderr)
                    keep(task, f"{library} {environments}", found.frames_per_second)
    show(options, top, best, facts, len(cores))


def show(
    options: argparse.Namespace,
    top: float,
    best: dict[tuple[str, str], float],
    facts: dict[tuple[str, str], dict[str, Any]],
    cores: int,
) -> None:
    print(f"peak of matrix products: {top / 1e9:.1f} GFLOP/s on {cores} cores, float32\n")
    print(f"{'':<18}{'':<13}{'seeds x':>9}{'of peak':>9}{'of peak,':>10}{'SB3':>9}{'SB3':>9}{'sbx':>9}{'sbx':>9}")
    heads = ("frames/s", "", "alone", "times", "x8 times", "times", "x8 times")
    print(
        f"{'':<18}{'':<13}{heads[0]:>9}{heads[1]:>9}"
        + "".join(f"{head:>{10 - (i > 0)}}" for i, head in enumerate(heads[2:]))
    )
    for i, task in enumerate(TASKS):
        if task not in options.tasks:
            continue
        for side in SIDES:
            rate, fact = best[task, side], facts[task, side]
            share, alone = (best[task, who] * fact["operations"] / top for who in (side, f"{side} alone"))
            peers = [f"{library} {environments}" for library in NAMES for environments in (SAME_ALGORITHM, FASTEST)]
            ratios = [rate / best[task, who] if best.get((task, who)) else float("nan") for who in peers]
            print(
                f"{task:<18}{side:<13}{rate:>9.0f}{share:>9.0%}{alone:>10.0%}"
                + "".join(f"{ratio:>9.1f}" for ratio in ratios)
                + f"   set-up {fact['set_up']:.1f} s, {fact['memory'] / 1e6:.1f} MB per seed"
                + f"; required of SB3: {REQUIRED[side][i]:g}"
            )
        for library, name in NAMES.items():
            rates = [best.get((task, f"{library} {k}"), float("nan")) for k in (SAME_ALGORITHM, FASTEST)]
            print(f"{'':<18}{name:<18}{rates[0]:>6.0f} frames/s with one environment, {rates[1]:.0f} with {FASTEST}")


def growth(options: argparse.Namespace) -> None:
    """Time per frame against the number of seeds in a process, and of a run against its frames."""
    cores = available_cores()
    for task in options.tasks:
        for seeds in (1,) if task == "freeway" else (2, 4, 8, 16):
            results = ours(task, "epsilon-IPE", options, cores, seeds)
            rate = best_together([result["rates"] for result in results])
            print(f"{task:<18} epsilon-IPE, {seeds:>2} seeds per process: {rate:>8.0f} seeds x frames/s")
        marks = FRAMES[task]
        results = ours(task, "epsilon-IPE", options, cores, seeds_of(task), ",".join(map(str, marks)))
        times = [max(result["times"][str(mark)] for result in results) for mark in marks]
        shown = ", ".join(f"{mark}: {seconds:.2f}" for mark, seconds in zip(marks, times, strict=True))
        power = math.log(times[-1] / times[0]) / math.log(marks[-1] / marks[0])
        print(f"{task:<18} epsilon-IPE, seconds by frames: {shown}; grows with their power {power:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Frames x seeds per second of deep training, beside its peers.")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=2, help="of everything; the best counts")
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--seeds", type=int, help="per process; default: the library's")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--peers", type=Path, default=DEFAULT_FOLDER, help="where the peers are installed")
    parser.add_argument("--no-peers", action="store_true", help="only this library")
    parser.add_argument("--growth", action="store_true", help="time against seeds instead")
    parser.add_argument("--child", nargs=7, help=argparse.SUPPRESS)
    parser.add_argument("--core", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        os.environ.update(SINGLE_THREAD)
        pin(options.core)
        environment, behaviour, width, seeds, seconds, precision, marks = options.child
        numbers = [int(mark) for mark in marks.split(",") if mark]
        result = measure(environment, behaviour, int(width), int(seeds), float(seconds), precision, numbers)
        print(json.dumps(result), flush=True)
        return
    try:
        growth(options) if options.growth else compare(options)
    except PeersError as error:
        sys.exit(f"training.py: {error}; without them: --no-peers")


if __name__ == "__main__":
    main()
