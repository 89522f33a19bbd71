"""Beyond the paper: other updates, transitions that slip, the exact evaluation policy, other MDPs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ipe.analysis import Claim, verdict
from ipe.entropy import entropy
from ipe.inverse import evaluation_policy
from ipe.mdp import FiniteMDP
from ipe.studies.parts import Progress, Table, Tables, labelled, prefixed, rows_with, stacked
from ipe.studies.switch_stay.sensitivity import grid_and_runs, means, run_sweeps
from ipe.studies.switch_stay.settings import SwitchStaySettings
from ipe.tabular import simulate
from ipe.zoo import garnet, river_swim, switch_stay

UPDATES: dict[str, dict[str, Any]] = {
    **{name: {"update": name} for name in ("paper", "natural", "kl-proximal", "absolute", "fenchel")},
    "entropy bonus": {"update": "paper", "tau": 0.1},
}
"""The variants of the policy update by name, with their arguments."""
OURS = ("ipe", "epsilon-ipe")
CHECKPOINTS = 50


def compute_updates(settings: SwitchStaySettings, progress: Progress) -> Tables:
    """Every variant of the policy update over six orders of magnitude of its step size."""
    mdp, rows = switch_stay(settings.gamma), []
    grid = settings.update_grid
    cases = [(behaviour, update) for behaviour in OURS for update in UPDATES]
    for k, (behaviour, update) in enumerate(cases):
        progress(f"{behaviour}, {update}", k, len(cases))
        result = simulate(
            mdp, behaviour, sweep={"alpha_pi": grid}, steps=settings.steps, runs=settings.extra_runs,
            seed=settings.seed, alpha_q=settings.alpha_q, **UPDATES[update],
        )  # fmt: skip
        rows.append(
            {
                **labelled(result.reward.size, behaviour=behaviour, update=update),
                **grid_and_runs("alpha_pi", grid, settings.extra_runs),
                "reward": result.reward.ravel(),
                "rmse": result.rmse.ravel(),
            }
        )
    return {"updates": stacked(rows)}


def judge_updates(settings: SwitchStaySettings, tables: Tables) -> Sequence[Claim]:
    """Which update depends least on its step size."""
    table = tables["updates"]
    grid = np.array(settings.update_grid)
    wide = (grid >= 0.01 * (1 - 1e-9)) & (grid <= 1000 * (1 + 1e-9))
    spread = {}
    for update in UPDATES:
        rows = [rows_with(table, behaviour="epsilon-ipe", update=update, alpha_pi=a) for a in grid]
        mean = np.array([table["reward"][at].mean() for at in rows])
        spread[update] = float(np.ptp(mean[wide]))
    return [
        Claim(
            "proximal-update-is-flattest", "updates",
            "Of all updates, the KL-proximal one depends least on its step size, from .01 to 1000.",
            verdict(spread["kl-proximal"] == min(spread.values())),
            "Spread of mean reward of ε-IPE over those step sizes: "
            + ", ".join(f"{update} {value:.2f}" for update, value in spread.items()) + ".",
            prefixed(spread=spread),
            addition=True,
        )
    ]  # fmt: skip


def compute_slip(settings: SwitchStaySettings, progress: Progress) -> Tables:
    """Slippery Switch-Stay with the paper's update, and with Fenchel's second estimate."""
    mdp, rows = switch_stay(settings.gamma, slip=settings.slip), []
    cases = [(behaviour, update) for behaviour in OURS for update in ("paper", "fenchel")]
    for k, (behaviour, update) in enumerate(cases):
        progress(f"{behaviour}, {update}", k, len(cases))
        result = simulate(
            mdp, behaviour, update=update, steps=settings.slip_steps, runs=settings.extra_runs, seed=settings.seed,
            alpha_q=settings.alpha_q, alpha_pi=0.05,
        )  # fmt: skip
        rows.append(
            {
                **labelled(settings.extra_runs, behaviour=behaviour, update=update),
                "run": np.arange(settings.extra_runs),
                "reward": result.reward[0],
                "rmse": result.rmse[0],
            }
        )
    return {"slip": stacked(rows)}


def judge_slip(settings: SwitchStaySettings, tables: Tables) -> Sequence[Claim]:
    """Whether removing the bias pays."""
    table = tables["slip"]
    mean = {
        (b, u): float(table["reward"][rows_with(table, behaviour=b, update=u)].mean())
        for b in OURS
        for u in ("paper", "fenchel")
    }
    return [
        Claim(
            "fenchel-removes-the-bias", "slip",
            "Where transitions are random, a second estimate of the mean error earns more than the sampled objective.",
            verdict(*(mean[b, "fenchel"] > mean[b, "paper"] for b in OURS)),
            "Mean reward, "
            + "; ".join(f"{b}: {mean[b, 'paper']:.2f} paper, {mean[b, 'fenchel']:.2f} Fenchel" for b in OURS)
            + f" ({settings.slip_steps} steps, slip {settings.slip:g}).",
            {f"{b}/{u}": value for (b, u), value in mean.items()},
            addition=True,
        )
    ]  # fmt: skip


def compute_exact(settings: SwitchStaySettings, progress: Progress) -> Tables:
    """The Bellman error of the learned policy along runs of IPE, beside that of the exact evaluation policy."""
    mdp, rows = switch_stay(settings.gamma), []
    runs = min(20, settings.trajectory_runs)
    steps = np.unique(np.linspace(0, settings.steps - 1, min(CHECKPOINTS, settings.steps)).astype(int))
    for k, behaviour in enumerate(OURS):
        progress(behaviour, k, len(OURS))
        result = simulate(
            mdp, behaviour, steps=settings.steps, runs=runs, seed=settings.seed, record="trajectory",
            alpha_q=settings.alpha_q, alpha_pi=0.05,
        )  # fmt: skip
        for run in range(runs):
            for step in steps:
                q = result.q[0, run, step]
                exact = evaluation_policy(mdp, q=q)
                rows.append(
                    {
                        "behaviour": behaviour,
                        "run": run,
                        "step": step,
                        "learned": _bellman_error(mdp, result.policies[0, run, step], q),
                        "exact": exact.residual,
                        "entropy_learned": float(np.mean(entropy(result.policies[0, run, step]))),
                        "entropy_exact": float(exact.entropy.mean()),
                    }
                )
    return {"exact": stacked(rows)}


def _bellman_error(mdp: FiniteMDP, pi: Any, q: Any) -> float:
    v = (pi * q).sum(axis=-1)
    rows = mdp.rewards + mdp.gamma * (mdp.transitions @ v).reshape(q.shape) - q
    return float(np.sqrt((rows**2).mean()))


def judge_exact(settings: SwitchStaySettings, tables: Tables) -> Sequence[Claim]:
    """How far behind the exact evaluation policy the learned one is."""
    table = tables["exact"]
    late = table["step"] >= settings.steps // 2
    learned, exact = float(np.median(table["learned"][late])), float(np.median(table["exact"][late]))
    return [
        Claim(
            "learned-policy-lags", "exact",
            "The learned policy's Bellman error is above that of the exact evaluation policy of the same values.",
            verdict(bool((table["learned"] >= table["exact"] - 1e-9).all())),
            f"In the second half of the runs the median error is {learned:.3g} learned, {exact:.3g} exact (l2 norm).",
            {"learned": learned, "exact": exact},
            addition=True,
        )
    ]  # fmt: skip


def _others(settings: SwitchStaySettings, progress: Progress, mdp: FiniteMDP) -> Table:
    return run_sweeps(
        mdp, settings.other_sweeps, progress, alpha_q=settings.alpha_q, steps=settings.other_steps,
        runs=max(1, settings.extra_runs // 2), seed=settings.seed,
    )  # fmt: skip


def compute_river_swim(settings: SwitchStaySettings, progress: Progress) -> Tables:
    """Figure 4's sweeps, over wider grids, on river-swim, where the reward is far upstream."""
    return {"river-swim": _others(settings, progress, river_swim())}


def compute_garnet(settings: SwitchStaySettings, progress: Progress) -> Tables:
    """Figure 4's sweeps, over wider grids, on a random MDP of 30 states, 4 actions, 3 successors."""
    return {"garnet": _others(settings, progress, garnet(30, 4, 3, seed=0, gamma=settings.gamma))}


def judge_other(name: str) -> Any:
    """The claims of a sweep on another MDP: which behaviour earns the most at its best setting."""

    def judge(settings: SwitchStaySettings, tables: Tables) -> Sequence[Claim]:
        best = {s.name: float(means(tables[name], s.name)[1].max()) for s in settings.sweeps}
        rival = max(best["epsilon-greedy"], best["linear"])
        return [
            Claim(
                f"epsilon-ipe-competes-on-{name}", name,
                f"On {name} too, ε-IPE at its best step size earns at least what ε-greedy at its best schedule does.",
                verdict(best["epsilon-ipe"] >= rival),
                "Best mean reward: " + ", ".join(f"{k} {v:.4g}" for k, v in best.items()) + ".",
                prefixed(best=best),
                addition=True,
            )
        ]  # fmt: skip

    return judge
