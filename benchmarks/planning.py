"""Planning on Garnet MDPs (4 actions, 5 successors, gamma .95): time, memory and growth, QuantEcon beside it.

    python benchmarks/planning.py --max-states 10000

From 10^5 states on, every row runs in a process of its own, so that its peak memory is its own (it includes the MDP,
whose making has a row too); below, where the interpreter outweighs all, ours share one and QuantEcon's another.
Times are the best of several repeats and hold the solve only: neither the making of the MDP nor, for
QuantEcon, that of its DiscreteDP from it, nor its compilation.

What is compared: optimal values to an absolute error of 1e-6 in the sup norm. Ours states a bound of that size which
counts float64's rounding; QuantEcon's epsilon = 2e-6 promises 1e-6 for value iteration and for modified policy
iteration without it. Its policy iteration is exact and factorises, hence only to 1000 states. `apart` is the
largest difference to the first row of the same size over a thousand states. QuantEcon has no values of a
stochastic policy; ours are those of a random one.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from ipe import planning, zoo
from ipe.mdp import FiniteMDP

TOL = 1e-6
BUILD = "making the MDP"
OURS = ("auto", "value-iteration", "modified-policy-iteration", "policy-iteration")
THEIRS = ("value_iteration", "modified_policy_iteration", "policy_iteration")
EVALUATIONS = {"policy values": TOL, "policy values, 1e-10": 1e-10}
THEIR_FACTORS = 1000  # states: beyond, the factors of a random graph fill up
SHARED = 10_000  # states to which rows share a process
LONG = 20.0  # seconds after which a row is not repeated
WIDTHS = {"seconds": 9, "growth": 8, "peak MB": 9, "iterations": 12, "bound": 9, "apart": 9}

Solved = tuple[Any, float | None, int]
Solve = Callable[[], Solved]


def main() -> None:
    parser = argparse.ArgumentParser(description="Time planning on Garnet MDPs.")
    parser.add_argument("--max-states", type=int, default=1_000_000, help="the largest MDP, from 1000 by tens")
    parser.add_argument("--repeats", type=int, default=3, help="the best of so many is shown")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds that a process may take")
    parser.add_argument("--child", nargs="+", metavar="STATES SOLVER", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        states, *solvers = arguments.child
        _measure(int(states), solvers, arguments.repeats)
        return
    if arguments.max_states < 1000:
        parser.error("--max-states must be at least 1000")
    if importlib.util.find_spec("quantecon") is None:
        print("quantecon is not installed: its rows are left out", file=sys.stderr)
    _table(arguments.max_states, arguments.repeats, arguments.timeout)


def _table(max_states: int, repeats: int, timeout: float) -> None:
    numbers = "".join(f"{name:>{width}}" for name, width in WIDTHS.items())
    print(f"{'states':>8}  {'solver':<38}{numbers}")
    before: dict[str, float] = {}
    for n in (10**k for k in range(3, int(math.log10(max_states) + 1e-9) + 1)):
        reference: list[float] | None = None
        for solver, row in (pair for solvers in _processes(n) for pair in _run(n, solvers, repeats, timeout)):
            if "failure" in row:
                print(f"{n:>8}  {solver:<38}{row['failure']:>9}", flush=True)
                continue
            growth = math.log10(row["seconds"] / before[solver]) if solver in before else None
            before[solver] = row["seconds"]
            apart = None
            if solver not in EVALUATIONS and row["probe"]:
                reference = reference or row["probe"]
                apart = max(abs(x - y) for x, y in zip(row["probe"], reference, strict=True))
            cells = (row["seconds"], growth, row["megabytes"], row["iterations"], row["bound"], apart)
            forms = (".4f", ".2f", ".0f", "d", ".0e", ".0e")
            numbers = "".join(
                f"{'' if cell is None else format(cell, form):>{width}}"
                for cell, form, width in zip(cells, forms, WIDTHS.values(), strict=True)
            )
            print(f"{n:>8}  {solver:<38}{numbers}", flush=True)


def _processes(n: int) -> list[list[str]]:
    """The solvers for `n` states, those in a list sharing a process."""
    ours = [BUILD, *EVALUATIONS, *OURS]
    theirs = [f"QuantEcon {method}" for method in THEIRS if n <= THEIR_FACTORS or method != "policy_iteration"]
    if importlib.util.find_spec("quantecon") is None:
        theirs = []
    return [ours, theirs] if n <= SHARED else [[solver] for solver in ours + theirs]


def _run(n: int, solvers: list[str], repeats: int, timeout: float) -> list[tuple[str, dict[str, Any]]]:
    if not solvers:
        return []
    command = [sys.executable, __file__, "--repeats", str(repeats), "--child", str(n), *solvers]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired:
        return [(solver, {"failure": f"> {timeout:g}"}) for solver in solvers]
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return [(solver, {"failure": "failed"}) for solver in solvers]
    return [(solver, json.loads(line)) for solver, line in zip(solvers, done.stdout.splitlines(), strict=True)]


def _measure(n: int, solvers: list[str], repeats: int) -> None:
    """Run by each child: the best time of each solver, and the peak memory of this process so far, as JSON lines."""
    start = time.perf_counter()
    mdp = zoo.garnet(n)
    building = time.perf_counter() - start
    for solver in solvers:
        row = {"seconds": building} if solver == BUILD else _best(_solve(solver, mdp), repeats)
        unit = 1e6 if sys.platform == "darwin" else 1e3  # of ru_maxrss: bytes there, kilobytes elsewhere
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
        print(json.dumps({"megabytes": peak, "bound": None, "iterations": None, "probe": []} | row))


def _best(solve: Solve, repeats: int) -> dict[str, Any]:
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < LONG:
        start = time.perf_counter()
        v, bound, iterations = solve()
        seconds.append(time.perf_counter() - start)
    probe = v[:: max(1, v.size // 1000)].tolist()
    return {"seconds": min(seconds), "bound": bound, "iterations": iterations, "probe": probe}


def _solve(solver: str, mdp: FiniteMDP) -> Solve:
    if solver in EVALUATIONS:
        pi = planning.random_policy(mdp, seed=0)

        def evaluate() -> Solved:
            values = planning.policy_values(mdp, pi, tol=EVALUATIONS[solver])
            return values.v, values.error_bound, values.iterations

        return evaluate
    if solver.startswith("QuantEcon "):
        return _quantecon(solver.removeprefix("QuantEcon "), mdp)
    method: Any = solver

    def optimise() -> Solved:
        result = planning.optimal_values(mdp, method=method, tol=TOL)
        return result.v, result.error_bound, result.iterations

    return optimise


def _quantecon(method: str, mdp: FiniteMDP) -> Solve:
    """QuantEcon's DiscreteDP in its sparse form, one row per pair (s, a); compiled on a small MDP first."""
    import numpy as np
    from quantecon.markov import DiscreteDP
    from scipy import sparse

    def make(model: FiniteMDP) -> Any:
        pairs = np.arange(model.n_states * model.n_actions)
        states, actions = np.divmod(pairs, model.n_actions)
        return DiscreteDP(model.rewards.ravel(), sparse.csr_matrix(model.transitions), model.gamma, states, actions)

    def solve(problem: Any) -> Solved:
        result = problem.solve(method=method, epsilon=2 * TOL, max_iter=100_000)
        return result.v, None, int(result.num_iter)

    solve(make(zoo.garnet(10)))
    problem = make(mdp)
    return lambda: solve(problem)


if __name__ == "__main__":
    main()
