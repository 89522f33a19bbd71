"""The machine's single-precision matrix-product peak: one process per core, all at the same time.

    python benchmarks/matrix_peak.py --seconds 8

Squares of 512, 1024 and 2048, by NumPy's BLAS and by XLA, one thread each. Every way is timed at the same time on all
cores, product by product; its rate is that of the best product on each core, summed. The peak is the best way's.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from side_by_side import SINGLE_THREAD, available_cores, pin, side_by_side, wait_for_the_others

SIZES = (512, 1024, 2048)
LEAST = 3  # products of each way, however short the time


def peak(cores: Sequence[int], seconds: float) -> float:
    """The peak over the given cores together.

    Args:
        cores: numbers of the cores, one process on each.
        seconds: for all ways together.

    Returns:
        Floating-point operations per second: 2 n^3 for a product of n x n matrices.
    """
    return max(peaks(cores, seconds).values())


def peaks(cores: Sequence[int], seconds: float) -> dict[str, float]:
    """The same per way: NumPy's and XLA's product, for each size."""
    command = [sys.executable, os.path.abspath(__file__), "--seconds", str(seconds), "--core"]
    rates = side_by_side([[*command, str(core)] for core in cores], measurement=seconds + 60.0)
    return {way: sum(rate[way] for rate in rates) for way in rates[0]}


def products() -> dict[str, tuple[int, Callable[[], Any]]]:
    """By name: the size, and a function that multiplies and waits for the result."""
    import jax
    import numpy as np

    multiply = jax.jit(jax.numpy.matmul)

    def finished(a: jax.Array, b: jax.Array) -> Any:
        return multiply(a, b).block_until_ready()

    found: dict[str, tuple[int, Callable[[], Any]]] = {}
    for n in SIZES:
        rng = np.random.default_rng(n)
        a, b = rng.random((2, n, n), dtype=np.float32)
        out = np.empty_like(a)
        found[f"NumPy {n}"] = n, partial(np.matmul, a, b, out)
        found[f"XLA {n}"] = n, partial(finished, *jax.device_put((a, b)))
    return found


def measure(seconds: float) -> dict[str, float]:
    """In a child: the best rate of each way, in operations per second."""
    ways = products()
    for _, multiply in ways.values():  # compile, and touch every page
        multiply()
    wait_for_the_others()
    began = time.perf_counter()
    rates: dict[str, float] = {}
    for i, (way, (n, multiply)) in enumerate(ways.items(), 1):
        best, count = float("inf"), 0
        while count < LEAST or time.perf_counter() < began + seconds * i / len(ways):
            start = time.perf_counter()
            multiply()
            best, count = min(best, time.perf_counter() - start), count + 1
        rates[way] = 2.0 * n**3 / best
    return rates


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the single-precision matrix-product peak.")
    parser.add_argument("--seconds", type=float, default=8.0, help="for all ways together")
    parser.add_argument("--core", type=int, help=argparse.SUPPRESS)  # a child's
    options = parser.parse_args()
    if options.core is not None:
        os.environ.update(SINGLE_THREAD)
        pin(options.core)
        print(json.dumps(measure(options.seconds)), flush=True)
        return
    cores = available_cores()
    rates = peaks(cores, options.seconds)
    for way, rate in rates.items():
        print(f"{way:<12}{rate / 1e9:>9.1f} GFLOP/s")
    print(f"{'peak':<12}{max(rates.values()) / 1e9:>9.1f} GFLOP/s on {len(cores)} cores, float32")


if __name__ == "__main__":
    main()
