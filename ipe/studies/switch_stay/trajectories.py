"""Figure 2a and 2b: single runs on the value polytope, and what many such runs have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import curve_fit

from ipe.analysis import Claim, verdict
from ipe.base.arrays import Array, Mask
from ipe.entropy import epsilon_greedy_entropy, epsilon_table
from ipe.mdp import FiniteMDP
from ipe.planning.evaluation import many_policy_values
from ipe.polytope import value_polytope
from ipe.studies.parts import Progress, Table, Tables, labelled, prefixed, rows_with, stacked
from ipe.studies.switch_stay.settings import Case, SwitchStaySettings
from ipe.tabular import TabularRuns, simulate
from ipe.zoo import switch_stay

OUTSIDE = {"outside": 1e-9, "far_outside": 1e-2}
"""Residuals of V = max_a Q from which it counts as outside of the polytope: at all, and visibly."""
STRETCH = 10
"""Steps without a switch from which a path is looked at for its shape."""
BENT = 0.02
"""The sagitta from which the eye sees an arc."""


def run_behaviour(settings: SwitchStaySettings, behaviour: Case) -> TabularRuns:
    """All trajectories of one behaviour."""
    return simulate(
        switch_stay(settings.gamma), behaviour.name, steps=settings.steps, runs=settings.trajectory_runs,
        seed=settings.seed, record="trajectory", alpha_q=settings.alpha_q, **behaviour.arguments,
    )  # fmt: skip


def representative(runs: TabularRuns) -> int:
    """The run whose average reward is nearest to the median: what the paper calls a representative run."""
    reward = runs.reward[0]
    return int(np.argmin(np.abs(reward - np.median(reward))))


def compute_paths(settings: SwitchStaySettings, progress: Progress) -> Tables:
    """Figure 2a: estimates and behaviour values of the representative run, and measures of every run."""
    mdp = switch_stay(settings.gamma)
    path: list[dict[str, Any]] = []
    measures: list[Table] = []
    for k, behaviour in enumerate(settings.trajectories):
        progress(behaviour.label, k, len(settings.trajectories))
        runs = run_behaviour(settings, behaviour)
        estimates = runs.q[0, :, :-1].max(axis=-1)
        values = many_policy_values(mdp, runs.probabilities[0])
        chosen = representative(runs)
        path.append(
            {
                **labelled(settings.steps, behaviour=behaviour.name),
                "step": np.arange(settings.steps),
                **{f"estimate{s}": estimates[chosen, :, s] for s in (0, 1)},
                **{f"value{s}": values[chosen, :, s] for s in (0, 1)},
            }
        )
        measures.append(_measures(mdp, behaviour, runs, estimates, values))
    return {"figure-2a": stacked(path), "figure-2a-runs": stacked(measures)}


def _measures(mdp: FiniteMDP, behaviour: Case, runs: TabularRuns, estimates: Array, values: Array) -> Table:
    residual = value_polytope(mdp).residual(estimates)
    jumps = np.linalg.norm(np.diff(values, axis=1), axis=-1)
    q = runs.q[0, :, :-1]
    greedy = q >= q.max(axis=-1, keepdims=True)
    switched = (greedy[:, 1:] != greedy[:, :-1]).any(axis=(2, 3))
    largest = jumps.argmax(axis=1)
    count = np.arange(len(jumps))
    annealed = int(behaviour.options.get("anneal_steps", 0))
    return {
        **labelled(len(jumps), behaviour=behaviour.name),
        "run": count,
        "reward": runs.reward[0],
        **{name: (residual > tolerance).mean(axis=1) for name, tolerance in OUTSIDE.items()},
        "largest_jump": jumps[count, largest],
        "largest_jump_at_switch": switched[count, largest],
        "largest_jump_without_switch": np.where(switched, 0.0, jumps).max(axis=1),
        "total_variation": jumps.sum(axis=1),
        "arc": np.array([_most_bent(v, s, annealed) for v, s in zip(values, switched, strict=True)]),
    }


def _most_bent(values: Array, switched: Mask, steps: int) -> float:
    """The largest sagitta of the stretches of annealing between two switches of the greedy actions."""
    cuts = np.flatnonzero(switched[: max(0, steps - 1)]) + 1
    stretches = np.split(values[:steps], cuts)
    return max((sagitta(part) for part in stretches if len(part) >= STRETCH), default=np.nan)


def sagitta(arc: Array) -> float:
    """How far a path bends away from its chord, over the chord's length: 0 for a line, 1/2 for a half circle."""
    chord, offsets = arc[-1] - arc[0], arc - arc[0]
    length = float(np.linalg.norm(chord))
    if length < 1e-9:
        return 0.0
    return float(np.abs(chord[0] * offsets[:, 1] - chord[1] * offsets[:, 0]).max() / length**2)


def annealing_arcs(mdp: FiniteMDP) -> dict[str, float]:
    """The sagitta of annealing epsilon from 1 to 0.1 around each deterministic policy."""
    epsilon = np.linspace(1.0, 0.1, 101)[:, None, None]
    arcs = {}
    for actions in value_polytope(mdp).deterministic_policies:
        policies = (1 - epsilon) * np.eye(2)[actions] + epsilon / 2
        arcs["/".join(mdp.action_name(int(a)) for a in actions)] = sagitta(many_policy_values(mdp, policies))
    return arcs


def compute_epsilon(settings: SwitchStaySettings, progress: Progress) -> Tables:
    """Figure 2b: the epsilon used at each step of the representative run, exact and by table; and its median."""
    progress("ε-IPE", 0, 1)
    behaviour = next(b for b in settings.trajectories if b.name == "epsilon-ipe")
    runs = run_behaviour(settings, behaviour)
    used = np.take_along_axis(runs.epsilon[0], runs.states[0][..., None], axis=-1)[..., 0]
    chosen = representative(runs)
    steps = np.arange(settings.steps)
    exact = used[chosen]
    table = np.asarray(epsilon_table(epsilon_greedy_entropy(exact, 2), 2, settings.table_size))
    quartiles = np.quantile(used, [0.25, 0.5, 0.75], axis=0)
    return {
        "figure-2b": {
            "step": steps,
            "state": runs.states[0, chosen].astype(np.int64),
            "epsilon": exact,
            "epsilon_table": table,
        },
        "figure-2b-median": {
            "step": steps,
            "lower": quartiles[0],
            "median": quartiles[1],
            "upper": quartiles[2],
        },
    }


def judge_paths(settings: SwitchStaySettings, tables: Tables) -> Sequence[Claim]:
    """The paper's sentences on Figure 2a."""
    runs = tables["figure-2a-runs"]

    def mean(column: str, name: str) -> float:
        return float(np.nanmean(runs[column][rows_with(runs, behaviour=name)].astype(float)))

    def median(column: str, name: str) -> float:
        return float(np.nanmedian(runs[column][rows_with(runs, behaviour=name)].astype(float)))

    names = [b.name for b in settings.trajectories]
    others = [name for name in names if name != "epsilon-greedy"]
    outside = {name: mean("outside", name) for name in names}
    far = {name: mean("far_outside", name) for name in names}
    greedy_kinds, smooth_kinds = ("epsilon-greedy", "linear"), ("ipe", "epsilon-ipe")
    jump = {name: median("largest_jump", name) for name in names}
    variation = {name: median("total_variation", name) for name in names}
    at_switch = {name: mean("largest_jump_at_switch", name) for name in greedy_kinds}
    rest = {name: median("largest_jump_without_switch", name) for name in greedy_kinds}
    typical = {name: mean("largest_jump", name) for name in names}
    arc, arcs = median("arc", "linear"), annealing_arcs(switch_stay(settings.gamma))
    return [
        Claim(
            "estimates-leave-polytope", "figure-2a",
            "Q-learning's value estimates can leave the polytope: i.e., the values don't correspond to any policy.",
            verdict(min(outside.values()) > 0),
            "Share of steps outside, " + _each(outside, "{:.0%}") + ".",
            prefixed(outside=outside),
        ),
        Claim(
            "fixed-epsilon-leaves-most", "figure-2a",
            "ε-greedy with a fixed, small ε suffered more from this problem.",
            verdict(
                all(outside["epsilon-greedy"] > outside[n] for n in others),
                all(far["epsilon-greedy"] > far[n] for n in others),
            ),
            f"Outside by any amount (residual > 1e-9): {_each(outside, '{:.0%}')}; visibly (> 1e-2): "
            f"{_each(far, '{:.0%}')}. Fixed ε creeps along the boundary.",
            prefixed(outside=outside, far_outside=far),
        ),
        Claim(
            "annealing-draws-arcs", "figure-2a",
            "Linearly annealing ε produces arc-shaped paths in the behavior policy values.",
            verdict(*(bend > BENT for bend in arcs.values())),
            f"It depends on the greedy policy: a path bends away from its chord by {_each(arcs, '{:.1%}')} of the "
            f"chord's length (a line: 0, a half circle: 50%); the most bent stretch of a run, median, by {arc:.1%}.",
            {"arc": arc, **prefixed(arc=arcs)},
        ),
        Claim(
            "jumps-are-greedy-switches", "figure-2a",
            "In both the fixed and linearly annealing ε cases, we notice large jumps in the behavior policy values, "
            "representing switches in the value estimates' greedy actions.",
            verdict(*(at_switch[n] > 0.95 and rest[n] < 0.5 * jump[n] for n in greedy_kinds)),
            f"The largest jump comes with a switch in {_each(at_switch, '{:.0%}')} of runs; it is "
            f"{_each({n: jump[n] for n in greedy_kinds}, '{:.1f}')} (median), without a switch "
            f"{_each(rest, '{:.1f}')}.",
            prefixed(at_switch=at_switch, jump={name: jump[name] for name in greedy_kinds}),
        ),
        Claim(
            "ipe-path-is-smoother", "figure-2a",
            "With the IPE approaches, the values of the behavior policy followed a much smoother path.",
            verdict(
                max(typical[n] for n in smooth_kinds) < min(typical[n] for n in greedy_kinds),
                max(variation[n] for n in smooth_kinds) < min(variation[n] for n in greedy_kinds),
            ),
            f"Largest jump, mean: {_each(typical, '{:.1f}')} (median: {_each(jump, '{:.1f}')}); total variation, "
            f"median: {_each(variation, '{:.0f}')}.",
            prefixed(mean_jump=typical, jump=jump, variation=variation),
        ),
        Claim(
            "epsilon-ipe-comparably-smooth", "figure-2a",
            "Adapting an ε-greedy policy based on IPE exhibited comparable smoothness.",
            verdict(jump["epsilon-ipe"] < 2 * jump["ipe"], variation["epsilon-ipe"] < 2 * variation["ipe"]),
            f"Against IPE, ε-IPE's largest jump is {jump['epsilon-ipe'] / jump['ipe']:.2f} times and its total "
            f"variation {variation['epsilon-ipe'] / variation['ipe']:.2f} times as large (medians; comparable: "
            "below 2).",
            {
                "jump_ratio": jump["epsilon-ipe"] / jump["ipe"],
                "variation_ratio": variation["epsilon-ipe"] / variation["ipe"],
            },
        ),
    ]  # fmt: skip


def judge_epsilon(settings: SwitchStaySettings, tables: Tables) -> Sequence[Claim]:
    """The paper's sentences on Figure 2b."""
    single, median = tables["figure-2b"], tables["figure-2b-median"]
    sigmoid, line = (fit(median["step"], median["median"]) for fit in (fit_sigmoid, fit_schedule))
    alone, alone_line = (fit(single["step"], single["epsilon"]) for fit in (fit_sigmoid, fit_schedule))
    exact, table = len(np.unique(single["epsilon"])), len(np.unique(single["epsilon_table"]))
    return [
        Claim(
            "epsilon-is-sigmoidal", "figure-2b",
            "A seemingly sigmoidal annealing schedule was adapted.",
            verdict(sigmoid > 0.95 and sigmoid > line),
            f"The median over runs follows a sigmoid with R² = {sigmoid:.3f}, the best linear schedule with "
            f"{line:.3f}; the run drawn with {alone:.3f} and {alone_line:.3f}.",
            {"r2_sigmoid": sigmoid, "r2_linear": line, "r2_sigmoid_run": alone, "r2_linear_run": alone_line},
        ),
        Claim(
            "steps-come-from-the-table", "figure-2b",
            "The apparent value discretization is due to a pre-computed lookup-table approach.",
            verdict(table < exact),
            f"Solved, the run has {exact} different values of ε; by a table of {settings.table_size}, {table}.",
            {"values_exact": exact, "values_table": table},
        ),
    ]  # fmt: skip


def fit_sigmoid(step: Array, epsilon: Array) -> float:
    r"""R² of the best :math:`c + h / (1 + e^{(t - m)/w})`."""
    t, y = np.asarray(step, dtype=float), np.asarray(epsilon, dtype=float)

    def sigmoid(t: Array, low: float, height: float, middle: float, width: float) -> Array:
        return low + height * 0.5 * (1.0 - np.tanh((t - middle) / (2.0 * width)))

    half = float(t[np.argmin(np.abs(y - (y.max() + y.min()) / 2))])
    guess = (float(y.min()), float(np.ptp(y)), half, 0.1 * float(np.ptp(t)))
    limits = ([-1.0, -2.0, t.min() - np.ptp(t), 0.5], [2.0, 2.0, t.max() + np.ptp(t), 10 * np.ptp(t)])
    found, _ = curve_fit(sigmoid, t, y, p0=np.clip(guess, *limits), bounds=limits, max_nfev=20_000)
    return _r2(y, sigmoid(t, *found))


def fit_schedule(step: Array, epsilon: Array) -> float:
    r"""R² of the best linear schedule, :math:`\max(c, h - (h - c)\, t/N)`, for the best N of a fine grid."""
    t, y = np.asarray(step, dtype=float), np.asarray(epsilon, dtype=float)
    fits = []
    for end in np.linspace(1.0, 2.0 * max(1.0, float(t.max())), 2000):
        ramp = np.maximum(0.0, 1.0 - t / end)
        columns = np.stack([np.ones_like(t), ramp], axis=1)
        fits.append(_r2(y, columns @ np.linalg.lstsq(columns, y)[0]))
    return max(fits)


def _r2(y: Array, fitted: Array) -> float:
    total = float(((y - y.mean()) ** 2).sum())
    return 1.0 - float(((y - fitted) ** 2).sum()) / total if total > 0 else 1.0


def _each(numbers: dict[str, float], form: str) -> str:
    return ", ".join(f"{name} {form.format(value)}" for name, value in numbers.items())
