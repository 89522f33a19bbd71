"""Evaluation while training: what greedy episodes cost, as a ratio of the training's time per frame, on one core.

    python benchmarks/evaluating.py                        # three tasks, about three minutes
    python benchmarks/evaluating.py --tasks cart-pole --every 2000

A batch of seeds trains as in a process of `ipe train`, and is evaluated now and then. The time of a frame with an
evaluation, less that of a usual frame, is the evaluation's. The ratio is the time of all frames over the time of the
frames without evaluations; the same loop gives both, so that nothing else differs. How long greedy episodes are depends
on what was learned by then, so that the table has their mean length too, and the time of one greedy frame beside that
of one training frame, from which other choices of `--evaluate-every` and `--evaluate-episodes` can be reckoned.
"""

from __future__ import annotations

import argparse
import statistics
import time

from side_by_side import SINGLE_THREAD, available_cores, pin

TASKS: dict[str, tuple[str, dict[str, int]]] = {
    "cart-pole": ("CartPole-v1", {"width": 64}),
    "lunar-lander": ("LunarLander-v3", {"width": 128}),
    "freeway": ("minatar/Freeway", {}),
}


def measure(task: str, every: int, episodes: int, evaluations: int) -> list[str]:
    """Train a batch of seeds through so many evaluations; returns a row of the table."""
    from ipe.deep.batches import seeds_per_batch
    from ipe.deep.evaluating import Evaluating
    from ipe.deep.loop import Loop
    from ipe.deep.settings import paper_settings

    environment, changes = TASKS[task]
    settings = paper_settings(environment, "epsilon-ipe", frames=2**31 - 1, **changes)
    seeds = seeds_per_batch(settings, environment.startswith("minatar/"))
    loop = Loop([settings] * seeds, list(range(seeds)), evaluating=Evaluating(every, episodes))
    for _ in range(every):  # both programs are compiled here
        loop.advance()
    usual: list[float] = []
    with_evaluation: list[float] = []
    for _ in range(every * evaluations):
        begin = time.perf_counter()
        loop.advance()
        spent = time.perf_counter() - begin
        (with_evaluation if loop.frame % every == 0 else usual).append(spent)
    frame = statistics.fmean(usual)
    cost = sum(with_evaluation) - evaluations * frame
    rows = [row for row in loop.records.evaluations_table().to_pylist() if row["frame"] > every]
    played = sum(sum(row["lengths"]) for row in rows)
    ratio = 1.0 + cost / (every * evaluations * frame)
    greedy, training = cost / played, frame / seeds
    return [
        task,
        str(seeds),
        str(every),
        str(episodes),
        f"{played / len(rows) / episodes:.0f}",
        f"{1e6 * training:.0f}",
        f"{1e6 * greedy:.0f}",
        f"{greedy / training:.2f}",
        f"{ratio:.3f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--every", type=int, default=5000, help="frames between evaluations")
    parser.add_argument("--episodes", type=int, default=10, help="episodes of an evaluation")
    parser.add_argument("--evaluations", type=int, default=2, help="how many evaluations are measured, after the first")
    options = parser.parse_args()
    pin(available_cores()[0])
    heads = ["task", "seeds", "every", "episodes", "mean length", "us/frame", "us/greedy frame", "of a frame", "ratio"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|")
    for task in options.tasks:
        print("| " + " | ".join(measure(task, options.every, options.episodes, options.evaluations)) + " |", flush=True)


if __name__ == "__main__":
    import os

    os.environ.update(SINGLE_THREAD)
    main()
