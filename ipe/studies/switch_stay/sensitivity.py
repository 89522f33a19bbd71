"""Figure 4: how average reward and final error depend on each behaviour's hyperparameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ipe.analysis import Claim, verdict
from ipe.base.arrays import Array
from ipe.mdp import FiniteMDP
from ipe.studies.parts import Progress, Table, Tables, labelled, prefixed, rows_with, stacked
from ipe.studies.switch_stay.reference import judge_reference
from ipe.studies.switch_stay.settings import GridCase, SwitchStaySettings
from ipe.tabular import simulate
from ipe.zoo import switch_stay

LATE = 100
"""The number of last steps, in which a behaviour that has settled no longer changes its greedy actions."""


def run_sweeps(
    mdp: FiniteMDP, sweeps: Sequence[GridCase], progress: Progress, *, alpha_q: float, **options: Any
) -> Table:
    """One row per behaviour, value of its hyperparameter and run: average reward and final RMSE."""
    rows = []
    for k, sweep in enumerate(sweeps):
        progress(sweep.label, k, len(sweeps))
        result = simulate(
            mdp, sweep.name, sweep={sweep.parameter: sweep.grid}, alpha_q=alpha_q, **options, **sweep.arguments
        )
        rows.append(
            {
                **labelled(result.reward.size, behaviour=sweep.name, parameter=sweep.parameter),
                **grid_and_runs("value", sweep.grid, result.reward.shape[1]),
                "reward": result.reward.ravel(),
                "rmse": result.rmse.ravel(),
            }
        )
    return stacked(rows)


def grid_and_runs(name: str, grid: Sequence[float], runs: int) -> Table:
    """The columns that say which value of the grid, and which run, a row is about: run after run of each value."""
    return {name: np.repeat(np.array(grid), runs), "run": np.tile(np.arange(runs), len(grid))}


def compute(settings: SwitchStaySettings, progress: Progress) -> Tables:
    """Figure 4's sweeps, and how often the greedy actions still change late in a run."""
    mdp = switch_stay(settings.gamma)
    table = run_sweeps(
        mdp, settings.sweeps, progress,
        alpha_q=settings.alpha_q, steps=settings.steps, runs=settings.runs, seed=settings.seed,
    )  # fmt: skip
    chatter = [_late_switches(settings, sweep) for sweep in settings.sweeps if sweep.name in ("boltzmann", "ipe")]
    return {"figure-4": table, "figure-4-late-switches": stacked(chatter)}


def _late_switches(settings: SwitchStaySettings, sweep: GridCase) -> Table:
    """How often a greedy action of some state changes in the last steps, per setting and run."""
    runs = min(100, settings.trajectory_runs)
    result = simulate(
        switch_stay(settings.gamma), sweep.name, sweep={sweep.parameter: sweep.grid}, steps=settings.steps, runs=runs,
        seed=settings.seed, record="trajectory", alpha_q=settings.alpha_q, **sweep.arguments,
    )  # fmt: skip
    late = result.q[:, :, -min(LATE, settings.steps) :].argmax(axis=-1)
    switches = (np.diff(late, axis=2) != 0).any(axis=-1).sum(axis=-1)
    return {
        **labelled(switches.size, behaviour=sweep.name),
        **grid_and_runs("value", sweep.grid, runs),
        "switches": switches.ravel(),
    }


def means(table: Table, name: str) -> tuple[Array, Array, Array]:
    """The grid of a behaviour, and mean reward and mean RMSE at each of its values."""
    rows = rows_with(table, behaviour=name)
    grid, place = np.unique(table["value"][rows], return_inverse=True)
    count = np.bincount(place)
    return grid, np.bincount(place, table["reward"][rows]) / count, np.bincount(place, table["rmse"][rows]) / count


def standard_errors(table: Table, name: str, column: str) -> Array:
    """The standard error of a column's mean at each value of a behaviour's grid."""
    rows = rows_with(table, behaviour=name)
    grid, place = np.unique(table["value"][rows], return_inverse=True)
    values = table[column][rows]
    return np.array([values[place == i].std(ddof=1) / np.sqrt((place == i).sum()) for i in range(len(grid))])


def judge(settings: SwitchStaySettings, tables: Tables) -> Sequence[Claim]:
    """The paper's sentences on Figure 4."""
    table, late = tables["figure-4"], tables["figure-4-late-switches"]
    grids = {sweep.name: means(table, sweep.name) for sweep in settings.sweeps}
    spread = {name: float(np.ptp(reward)) for name, (_, reward, _) in grids.items()}
    correlation = {n: float(np.corrcoef(reward, rmse)[0, 1]) for n, (_, reward, rmse) in grids.items()}
    grid, reward, rmse = grids["epsilon-greedy"]
    best = int(reward.argmax())
    names = np.unique(late["behaviour"]).tolist()
    chatter = {name: float(late["switches"][rows_with(late, behaviour=name)].mean()) for name in names}
    ours = ("ipe", "epsilon-ipe")
    return [
        Claim(
            "epsilon-is-sensitive", "figure-4",
            "Q-learning with ε-greedy is quite sensitive to ε.",
            verdict(spread["epsilon-greedy"] > 0.5),
            f"Mean reward varies by {spread['epsilon-greedy']:.2f} over the grid of ε (between {reward.min():.2f} and "
            f"{reward.max():.2f}); by {spread['linear']:.2f} over annealing steps.",
            {"spread/epsilon-greedy": spread["epsilon-greedy"], "spread/linear": spread["linear"]},
        ),
        Claim(
            "overexploration", "figure-4",
            "A high ε leads to worse control performance from overexploration.",
            verdict(bool(reward[-1] == reward.min())),
            f"ε = 1 has a mean reward of {reward[-1]:.2f}, the best ε ({grid[best]:g}) {reward[best]:.2f}.",
            {"reward_at_1": float(reward[-1]), "best_reward": float(reward[best])},
        ),
        *(_wide_range(grids[name], name) for name in ours),
        Claim(
            "epsilon-greedy-reward-against-rmse", "figure-4",
            "Both variants of ε-greedy exhibited a negative correlation between the average reward and the value "
            "function RMSE. To attain high average reward, the agent tends to settle for an inaccurate value function.",
            verdict(correlation["epsilon-greedy"] < 0, correlation["linear"] < 0),
            f"Correlation of mean reward and mean RMSE over the grid: {correlation['epsilon-greedy']:+.2f} for fixed "
            f"ε, {correlation['linear']:+.2f} for annealing. The two sentences contradict each other: settling for "
            "inaccurate values means a positive one.",
            {f"correlation/{n}": correlation[n] for n in ("epsilon-greedy", "linear")},
        ),
        Claim(
            "reward-needs-inaccurate-values", "figure-4",
            "To attain high average reward, the agent tends to settle for an inaccurate value function.",
            verdict(bool(rmse[best] > 2 * rmse.min())),
            f"At the best fixed ε ({grid[best]:g}) the mean RMSE is {rmse[best]:.2f}; the least of the grid is "
            f"{rmse.min():.3f}.",
            {"rmse_at_best": float(rmse[best]), "least_rmse": float(rmse.min())},
        ),
        *(_accuracy_goes_with_reward(grids[name], name) for name in ours),
        Claim(
            "high-reward-overlaps-low-rmse", "figure-4",
            "Given the large overlap between the regions of high average reward and low RMSE, there seems to be, "
            "without careful parameter tuning, a natural adequate balance.",
            verdict(*(_overlap(*grids[name][1:]) > 0.5 for name in ours)),
            "Of the half of the grid with the higher reward, the share that is also in the half with the lower RMSE: "
            + ", ".join(f"{name} {_overlap(*grids[name][1:]):.0%}" for name in ours) + ".",
            {f"overlap/{name}": _overlap(*grids[name][1:]) for name in ours},
        ),
        Claim(
            "boltzmann-is-sensitive", "figure-4",
            "Such policies can be sensitive to τ, more so than ε as the scale of Q varies considerably across "
            "problems.",
            verdict(spread["boltzmann"] > spread["epsilon-greedy"]),
            f"Mean reward varies by {spread['boltzmann']:.2f} over the grid of temperatures, by "
            f"{spread['epsilon-greedy']:.2f} over that of ε.",
            {"spread/boltzmann": spread["boltzmann"], "spread/epsilon-greedy": spread["epsilon-greedy"]},
        ),
        Claim(
            "boltzmann-chatters", "figure-4",
            "They may also chatter about multiple fixed-points when τ is fixed.",
            verdict(chatter["boltzmann"] > 1.0),
            f"In the last {min(LATE, settings.steps)} steps the greedy action of some state changes "
            f"{chatter['boltzmann']:.2f} times on average over temperatures and runs (IPE: {chatter['ipe']:.2f}).",
            prefixed(late_switches=chatter),
        ),
        *judge_reference(grids, settings.runs, settings.steps),
    ]  # fmt: skip


def _wide_range(means_of: tuple[Array, Array, Array], name: str) -> Claim:
    grid, reward, rmse = means_of
    good, accurate = reward >= 0.9 * reward.max(), rmse <= 1.0
    decades = {
        what: float(np.log10(grid[ok].max() / grid[ok].min())) if ok.any() else 0.0
        for what, ok in (("reward", good), ("accurate", accurate), ("both", good & accurate))
    }
    return Claim(
        f"{name}-wide-range", "figure-4",
        "Both IPE and ε-IPE learn the optimal policy across a wide range of learning rates.",
        verdict(decades["reward"] >= 1.0, decades["both"] >= 1.0),
        f"{name}: mean reward within 10% of its best over {decades['reward']:.1f} decades of step sizes, RMSE at most "
        f"1 over {decades['accurate']:.1f}, both over {decades['both']:.1f} (wide: a decade or more).",
        prefixed(decades=decades),
    )  # fmt: skip


def _accuracy_goes_with_reward(means_of: tuple[Array, Array, Array], name: str) -> Claim:
    """On the whole grid, and without its lower or upper third: a finding about a grid is about that grid."""
    _, reward, rmse = means_of
    third = len(reward) // 3
    parts = {"whole": slice(None), "upper": slice(third, None), "lower": slice(None, len(reward) - third)}
    numbers = {part: -float(np.corrcoef(reward[at], rmse[at])[0, 1]) for part, at in parts.items()}
    return Claim(
        f"{name}-accuracy-goes-with-reward", "figure-4",
        "IPE and ε-IPE exhibit a positive correlation between the accuracy of the value function and the average "
        "reward obtained.",
        verdict(*(number > 0 for number in numbers.values())),
        f"{name}: correlation of mean reward with minus mean RMSE {numbers['whole']:+.2f} over the grid of step sizes; "
        f"{numbers['upper']:+.2f} without its lower third, {numbers['lower']:+.2f} without its upper third.",
        prefixed(correlation=numbers),
    )  # fmt: skip


def _overlap(reward: Array, rmse: Array) -> float:
    half = len(reward) // 2
    high, low = np.argsort(-reward, kind="stable")[:half], np.argsort(rmse, kind="stable")[:half]
    return len(np.intersect1d(high, low)) / half
