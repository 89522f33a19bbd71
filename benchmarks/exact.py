"""The exact evaluation policy on MDPs of six structures, beside other solvers of the same problem.

    python benchmarks/exact.py                                  # Garnets in every norm, some 40 minutes on two cores
    python benchmarks/exact.py --structure grid queue smooth --solvers ipe highs-ipx clarabel-box pdlp --peer-limit 60
    python benchmarks/exact.py --structure grid --norms linf --sizes 100000 --solvers ipe highs-ipx
    python benchmarks/exact.py --max-states 10000 --limit 20

One table: seconds (best of several, without building the MDP and without the true values, which are computed when asked
for), seconds of the processor, peak memory of the process (the MDP included), relative gap, and the growth between
sizes. Every row runs in a process of its own. A solver ends its rows when one takes longer than `--limit` (peers:
`--peer-limit`, or ten times the last row would); this library's last row then shows the gap that it had reached.
Clarabel and PDLP prove no gap: theirs is what this library's lower bound of the same run proves for their residual.

Structures: `garnet` (4 actions, 5 random successors), `thin-garnet` (3 and 3), `grid` (slippery, 4 moves), `queue` (3
services), `walk` (on a ring), `smooth` (a line of points, normal noise over some 40 of them). Values: 20 sweeps of
value iteration from zero (`value-iteration`), or those of a random policy with 1% of noise (`noisy`, the default of
queue, walk and smooth, where 20 sweeps are far from converged), or noise alone.

Peers, each where it is installed, at its default accuracy unless said otherwise: HiGHS's interior point without
crossover (`highs-ipx`, to 1e-10, for l1 and l-inf), cvxpy with Clarabel on the box form and on the simplex form (one
variable per state and action), OR-tools' PDLP (`pdlp`, relative gap 1e-6, for l1 and l-inf).
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from scipy import sparse

import ipe
from ipe.base.arrays import Array
from ipe.mdp import FiniteMDP

SOLVERS = ("ipe", "highs-ipx", "clarabel-box", "clarabel-simplex", "pdlp")
STRUCTURES: dict[str, Callable[[int], FiniteMDP]] = {
    "garnet": lambda n: ipe.zoo.garnet(n, 4, 5, seed=0, gamma=0.95),
    "thin-garnet": lambda n: ipe.zoo.garnet(n, 3, 3, seed=0, gamma=0.95),
    "grid": lambda n: ipe.zoo.slippery_grid(max(2, round(math.sqrt(n)))),
    "queue": ipe.zoo.queue,
    "walk": ipe.zoo.ring_walk,
    "smooth": lambda n: ipe.zoo.smooth_line(n, width=5.0 / n),
}
SIZES = (10**2, 10**3, 10**4, 10**5, 10**6)


def values_of(mdp: FiniteMDP, kind: str, sweeps: int = 20) -> Array:
    """Action values to invert: some sweeps of value iteration, those of a policy with noise, or normal noise."""
    rng = np.random.default_rng(0)
    if kind == "noise":
        return 3.0 * rng.normal(size=mdp.rewards.shape)
    if kind == "noisy":
        q = ipe.policy_values(mdp, ipe.planning.random_policy(mdp, 1)).q
        noise: Array = rng.normal(size=q.shape)
        return q + 0.01 * float(np.abs(q).max()) * noise
    q = np.zeros(mdp.rewards.shape)
    for _ in range(sweeps):
        q = mdp.rewards + mdp.gamma * (mdp.transitions @ q.max(axis=1)).reshape(q.shape)
    return q


def solve_ipe(mdp: FiniteMDP, q: Array, norm: Any, rtol: float | None, method: Any, limit: float) -> dict[str, Any]:
    result = ipe.evaluation_policy(mdp, q=q, norm=norm, rtol=rtol, method=method, on_miss="flag", time_limit=limit)
    note = result.method + (f", stopped ({result.stopped})" if result.stopped else "")
    row = {"residual": result.residual, "gap": result.relative_gap, "method": note, "met": result.converged}
    return row | {"lower": result.residual_lower_bound}


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


def solve_pdlp(mdp: FiniteMDP, q: Array, norm: str, limit: float) -> dict[str, Any]:
    from ortools.pdlp import solve_log_pb2, solvers_pb2
    from ortools.pdlp.python import pdlp

    a, b = sparse.csr_array(mdp.gamma * mdp.transitions), (q - mdp.rewards).ravel()
    m, n = a.shape
    errors = sparse.eye_array(m) if norm == "l1" else sparse.csr_array(np.ones((m, 1)))
    k = errors.shape[1]
    program = pdlp.QuadraticProgram()
    program.resize_and_initialize(n + k, 2 * m)
    program.objective_vector = np.concatenate([np.zeros(n), np.full(k, 1.0 / k if norm == "l1" else 1.0)])
    both = sparse.vstack([sparse.hstack([a, -errors]), sparse.hstack([a, errors])], format="csc")
    program.constraint_matrix = sparse.csc_matrix(both)
    program.constraint_lower_bounds = np.concatenate([np.full(m, -np.inf), b])
    program.constraint_upper_bounds = np.concatenate([b, np.full(m, np.inf)])
    program.variable_lower_bounds = np.concatenate([q.min(axis=1), np.zeros(k)])
    program.variable_upper_bounds = np.concatenate([q.max(axis=1), np.full(k, np.inf)])
    parameters = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = parameters.termination_criteria
    criteria.simple_optimality_criteria.eps_optimal_relative = 1e-6
    criteria.simple_optimality_criteria.eps_optimal_absolute = 1e-9
    criteria.time_sec_limit = limit
    solved = pdlp.primal_dual_hybrid_gradient(program, parameters)
    v = np.clip(solved.primal_solution[:n], q.min(axis=1), q.max(axis=1))
    size = np.abs(a @ v - b)
    reason = solve_log_pb2.TerminationReason.Name(solved.solve_log.termination_reason)
    residual = float(size.mean() if norm == "l1" else size.max())
    return {"residual": residual, "gap": math.nan, "method": f"PDLP: {reason}", "met": "OPTIMAL" in reason}


def solve_by(solver: str, mdp: FiniteMDP, q: Array, options: argparse.Namespace) -> dict[str, Any]:
    if solver == "ipe":
        return solve_ipe(mdp, q, options.norm, options.rtol, "auto", options.limit)
    if solver == "highs-ipx":
        return solve_ipe(mdp, q, options.norm, options.rtol, "highs", options.limit)
    if solver == "pdlp":
        return solve_pdlp(mdp, q, options.norm, options.limit)
    return solve_clarabel(mdp, q, options.norm, solver.removeprefix("clarabel-"), options.limit)


def import_solver(solver: str) -> None:
    """Import what a solver needs, which is not part of its time."""
    names = {"ipe": ["ipe.inverse"], "highs-ipx": ["ipe.inverse", "highspy"], "pdlp": ["ortools.pdlp.python.pdlp"]}
    for name in names.get(solver, ["cvxpy"]):
        import_module(name)


def run_row(options: argparse.Namespace) -> None:
    """One row, in this process; prints it as JSON."""
    mdp = STRUCTURES[options.row](options.states)
    usual = "value-iteration" if options.row in ("garnet", "thin-garnet", "grid") else "noisy"
    q = values_of(mdp, options.values or usual)
    import_solver(options.solver)
    times: list[tuple[float, float]] = []
    row: dict[str, Any] = {}
    while len(times) < options.repeats and sum(wall for wall, _ in times) < 10.0:
        start, processor = time.perf_counter(), time.process_time()
        row = solve_by(options.solver, mdp, q, options)
        times.append((time.perf_counter() - start, time.process_time() - processor))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    wall, processor = min(times)
    print(json.dumps({**row, "states": mdp.n_states, "seconds": wall, "processor": processor, "gigabytes": peak}))


def start_row(
    structure: str, solver: str, norm: str, states: int, limit: float, options: argparse.Namespace
) -> dict[str, Any] | None:
    """One row in a fresh process; None when it passes the limit or the solver is not installed."""
    command = [sys.executable, __file__, "--row", structure, "--solver", solver, "--norm", norm]
    command += ["--states", str(states), "--limit", str(limit), "--repeats", str(options.repeats)]
    command += ["--values", options.values] if options.values else []
    command += ["--rtol", str(options.rtol)] if options.rtol else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=2 * limit + 120, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def applies(solver: str, norm: str) -> bool:
    """Whether a solver takes part in a norm's table."""
    if solver in ("highs-ipx", "pdlp"):
        return norm != "l2"
    return solver != "clarabel-simplex" or norm == "l2"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--structure", nargs="+", choices=tuple(STRUCTURES), default=("garnet",))
    parser.add_argument("--max-states", type=int, default=1_000_000)
    parser.add_argument("--sizes", nargs="+", type=int, help="instead of the powers of ten up to --max-states")
    parser.add_argument("--norms", nargs="+", choices=("l2", "l1", "linf"), default=("l2", "l1", "linf"))
    parser.add_argument("--values", choices=("value-iteration", "noisy", "noise"))
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one solve")
    parser.add_argument("--peer-limit", type=float, help="seconds for one solve of a peer; by default --limit")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--rtol", type=float, help="the relative gap asked of this library")
    parser.add_argument("--no-clarabel", action="store_true", help="this library alone")
    parser.add_argument("--solvers", nargs="+", choices=SOLVERS, default=("ipe", "clarabel-box", "clarabel-simplex"))
    for name, kind in (("states", int), ("norm", str), ("solver", str), ("row", str)):
        parser.add_argument(f"--{name}", type=kind, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        run_row(options)
        return
    columns = f"{'seconds':>10}{'CPU':>10}{'GB':>7}{'residual':>14}{'rel. gap':>10}{'growth':>8}"
    header = f"{'structure':9} {'norm':5}{'states':>9}  {'solver':17}{columns}  method"
    print(header, "-" * len(header), sep="\n", flush=True)
    sizes = options.sizes or [n for n in SIZES if n <= options.max_states]
    solvers = ("ipe",) if options.no_clarabel else options.solvers
    for structure in options.structure:
        times: dict[tuple[str, str, int], float] = {}
        lower: dict[tuple[str, int], float] = {}
        for norm in options.norms:
            for solver in solvers:
                if applies(solver, norm):
                    print_rows(structure, norm, solver, sizes, options, times, lower)
        summary(times)


def print_rows(
    structure: str,
    norm: str,
    solver: str,
    sizes: list[int],
    options: argparse.Namespace,
    times: dict[tuple[str, str, int], float],
    lower: dict[tuple[str, int], float],
) -> None:
    """The rows of one solver, from the smallest size on, as far as its limit reaches."""
    limit = options.limit if solver == "ipe" else options.peer_limit or options.limit
    for n in sizes:
        start = f"{structure:9} {norm:5}{n:9d}  {solver:17}"
        previous = times.get((norm, solver, n // 10))
        if solver != "ipe" and previous is not None and 10 * previous > limit:
            print(f"{start}  not tried: ten times {previous:.0f} s is past the limit", flush=True)
            return
        row = start_row(structure, solver, norm, n, limit, options)
        if row is None or (solver != "ipe" and not row["met"]):
            what = "out of time or memory, or not installed"
            print(f"{start}  {what if row is None else row['method']}", flush=True)
            return
        times[norm, solver, n] = row["seconds"]
        if solver == "ipe":
            lower[norm, n] = row["lower"]
        elif math.isnan(row["gap"]) and (norm, n) in lower and row["residual"] > 0:
            row["gap"] = max(0.0, 1.0 - (lower[norm, n] / row["residual"]) ** (2 if norm == "l2" else 1))
        growth = f"{math.log10(row['seconds'] / previous):8.2f}" if previous else " " * 8
        note = row["method"] + ("" if row["met"] else " (tolerance missed)")
        print(
            f"{structure:9} {norm:5}{row['states']:9d}  {solver:17}{row['seconds']:10.4f}{row['processor']:10.4f}"
            f"{row['gigabytes']:7.2f}{row['residual']:14.7g}{row['gap']:10.1e}{growth}  {note}",
            flush=True,
        )
        if not row["met"]:
            return


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
                    print(f"{norm}: {times[norm, solver, n] / t:10.1f} times as fast as {solver} at {n} states")


if __name__ == "__main__":
    main()
