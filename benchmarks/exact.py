"""The exact evaluation policy on Garnet MDPs, beside a generic conic solver on the same problem.

    python benchmarks/exact.py                       # everything, some 40 minutes on two cores
    python benchmarks/exact.py --max-states 10000 --limit 20

One table: time (best of several, without building the MDP and without the true values, which are computed
when asked for), peak memory of the process (the MDP included), relative gap, and the growth between sizes.
Every row runs in a process of its own. The values are those of 20 sweeps of value iteration from zero: close to
the value of a policy and not one. cvxpy with Clarabel gets the box form and the simplex form (one variable per
state and action), at its default accuracy, as far as `--limit` seconds reach.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np

import ipe
from ipe.base.arrays import Array
from ipe.mdp import FiniteMDP

SOLVERS = ("ipe", "clarabel-box", "clarabel-simplex")


def values_of(mdp: FiniteMDP, kind: str, sweeps: int = 20) -> Array:
    """Action values to invert: some sweeps of value iteration, or normal noise."""
    if kind == "noise":
        return 3.0 * np.random.default_rng(0).normal(size=mdp.rewards.shape)
    q = np.zeros(mdp.rewards.shape)
    for _ in range(sweeps):
        q = mdp.rewards + mdp.gamma * (mdp.transitions @ q.max(axis=1)).reshape(q.shape)
    return q


def solve_ipe(mdp: FiniteMDP, q: Array, norm: Any, rtol: float | None) -> dict[str, Any]:
    result = ipe.evaluation_policy(mdp, q=q, norm=norm, rtol=rtol, on_miss="flag")
    return {"residual": result.residual, "gap": result.relative_gap, "method": result.method, "met": result.converged}


def solve_clarabel(mdp: FiniteMDP, q: Array, norm: str, form: str, limit: float) -> dict[str, Any]:
    import cvxpy as cp

    a, b = mdp.gamma * mdp.transitions, (q - mdp.rewards).ravel()
    if form == "box":
        v: Any = cp.Variable(mdp.n_states)
        constraints = [v >= q.min(axis=1), v <= q.max(axis=1)]
    else:
        pi = cp.Variable(q.shape, nonneg=True)
        v = cp.sum(cp.multiply(pi, q), axis=1)
        constraints = [cp.sum(pi, axis=1) == 1]
    size = b.size
    residual = a @ v - b
    objective = {
        "l2": lambda: cp.sum_squares(residual) / size,
        "l1": lambda: cp.norm1(residual) / size,
        "linf": lambda: cp.norm_inf(residual),
    }[norm]()
    problem = cp.Problem(cp.Minimize(objective), constraints)
    problem.solve(solver=cp.CLARABEL, time_limit=limit)
    value = math.nan if problem.value is None else float(problem.value)
    residual_norm = math.sqrt(max(value, 0.0)) if norm == "l2" else value
    solved = problem.status in ("optimal", "optimal_inaccurate")
    return {"residual": residual_norm, "gap": math.nan, "method": f"Clarabel: {problem.status}", "met": solved}


def run_row(options: argparse.Namespace) -> None:
    """One row, in this process; prints it as JSON."""
    mdp = ipe.zoo.garnet(options.states, 4, 5, seed=0, gamma=0.95)
    q = values_of(mdp, options.values)
    if options.solver != "ipe":
        import cvxpy  # noqa: F401 (its import is not part of the time)
    times: list[float] = []
    row: dict[str, Any] = {}
    while len(times) < options.repeats and sum(times) < 10.0:
        start = time.perf_counter()
        if options.solver == "ipe":
            row = solve_ipe(mdp, q, options.norm, options.rtol)
        else:
            row = solve_clarabel(mdp, q, options.norm, options.solver.removeprefix("clarabel-"), options.limit)
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(json.dumps({**row, "seconds": min(times), "gigabytes": peak}))


def start_row(solver: str, norm: str, states: int, options: argparse.Namespace) -> dict[str, Any] | None:
    """One row in a fresh process; None when it passes the limit."""
    command = [sys.executable, __file__, "--row", "--solver", solver, "--norm", norm, "--states", str(states)]
    command += ["--values", options.values, "--limit", str(options.limit), "--repeats", str(options.repeats)]
    if solver == "ipe" and norm == "linf" and states > 12_000:
        command += ["--rtol", "1e-2"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * options.limit + 60, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-states", type=int, default=1_000_000)
    parser.add_argument("--norms", nargs="+", choices=("l2", "l1", "linf"), default=("l2", "l1", "linf"))
    parser.add_argument("--values", choices=("value-iteration", "noise"), default="value-iteration")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one solve of Clarabel")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--no-clarabel", action="store_true", help="this library alone")
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=SOLVERS)
    for name, kind in (("states", int), ("rtol", float), ("norm", str), ("solver", str)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    parser.add_argument("--row", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        run_row(options)
        return
    columns = f"{'seconds':>10}{'GB':>7}{'residual':>14}{'rel. gap':>10}{'growth':>8}"
    header = f"{'norm':5}{'states':>9}  {'solver':17}{columns}  method"
    print(header, "-" * len(header), sep="\n", flush=True)
    sizes = [n for n in (10**2, 10**3, 10**4, 10**5, 10**6) if n <= options.max_states]
    times: dict[tuple[str, str, int], float] = {}
    for norm in options.norms:
        for solver in options.solvers if not options.no_clarabel else SOLVERS[:1]:
            for n in sizes:
                if solver == "clarabel-simplex" and norm != "l2":
                    continue
                if norm == "linf" and n > 10**5:
                    continue
                previous = times.get((norm, solver, n // 10))
                if solver != "ipe" and previous is not None and 10 * previous > options.limit:
                    print(f"{norm:5}{n:9d}  {solver:17}  not tried: ten times {previous:.0f} s is past the limit")
                    break
                row = start_row(solver, norm, n, options)
                if row is None or (solver != "ipe" and not row["met"]):
                    ended = "out of time or memory" if row is None else f"{row['method']} after {row['seconds']:.0f} s"
                    print(f"{norm:5}{n:9d}  {solver:17}  {ended}", flush=True)
                    break
                times[norm, solver, n] = row["seconds"]
                growth = f"{math.log10(row['seconds'] / previous):8.2f}" if previous else " " * 8
                note = row["method"] + ("" if row["met"] else " (tolerance missed)")
                print(
                    f"{norm:5}{n:9d}  {solver:17}{row['seconds']:10.4f}{row['gigabytes']:7.2f}{row['residual']:14.7g}"
                    f"{row['gap']:10.1e}{growth}  {note}",
                    flush=True,
                )
    summary(times)


def summary(times: dict[tuple[str, str, int], float]) -> None:
    """The ratios that the numbers above are for."""
    print()
    for norm in ("l2", "l1", "linf"):
        ours = {n: t for (which, solver, n), t in times.items() if which == norm and solver == "ipe"}
        if 10**4 in ours and 10**6 in ours:
            exponent = math.log(ours[10**6] / ours[10**4]) / math.log(100)
            print(f"{norm}: growth exponent between 10^4 and 10^6 states {exponent:.2f}")
        for solver in SOLVERS[1:]:
            for n, t in ours.items():
                if (norm, solver, n) in times:
                    print(f"{norm}: {times[norm, solver, n] / t:10.0f} times as fast as {solver} at {n} states")


if __name__ == "__main__":
    main()
