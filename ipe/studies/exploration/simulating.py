"""The tabular part: one contender on one task, every setting and every run at once, as a table."""

from __future__ import annotations

import hashlib
import itertools
import json
from typing import Any

import numpy as np

from ipe.base.arrays import Array
from ipe.mdp import FiniteMDP
from ipe.planning import policy_values
from ipe.planning.evaluation import MAX_STATES, many_policy_values
from ipe.planning.policies import near_best, share
from ipe.studies.exploration.settings import Contender, TabularSettings, Task
from ipe.studies.parts import Table, labelled
from ipe.tabular import simulate


def simulated(contender: Contender, task: Task, settings: TabularSettings) -> Table:
    """Every run of every setting of a contender on a task.

    Returns:
        Columns task, value (of the contender's grid), alpha_q, run, score (`Task.score`), and greedy: the exact value
        of the greedy policy at the end of the run, from the start distribution. Runs below `settings.choosing_runs`
        are those that settings are chosen by.
    """
    mdp = task.mdp()
    points = list(itertools.product(range(len(contender.grid)), settings.value_step_sizes))
    values = contender.values(task.steps)
    result = simulate(
        mdp, contender.behaviour, steps=task.steps, runs=settings.runs, seed=settings.seed, threads=1,
        sweep={contender.parameter: [values[k] for k, _ in points], "alpha_q": [alpha for _, alpha in points]},
        update=contender.policy_update, **contender.options,  # type: ignore[arg-type]
    )  # fmt: skip
    score = result.reward
    if task.score == "return per episode":
        score = score * task.steps / np.maximum(result.episodes, 1)
    return {
        **labelled(score.size, task=task.name),
        "value": np.repeat([contender.grid[k] for k, _ in points], settings.runs),
        "alpha_q": np.repeat([alpha for _, alpha in points], settings.runs),
        "run": np.tile(np.arange(settings.runs, dtype=np.int16), len(points)),
        "score": score.ravel().astype(np.float32),
        "greedy": greedy_values(mdp, result.q.reshape(-1, *result.q.shape[2:])).astype(np.float32),
    }


def greedy_values(mdp: FiniteMDP, q: Array) -> Array:
    """The value, from the start distribution, of the greedy policy of each table of action values.

    Actions that tie share their probability. A table with a value that is not finite has no value (NaN).

    Args:
        mdp: the MDP.
        q: the tables, shape (..., S, A), as `simulate` returns them.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> greedy_values(switch_stay(), np.array([[[1.0, 0.0], [1.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]]])).round(9)
        array([10., 17.])
    """
    tables = np.where(mdp.allowed, q, 0.0).reshape(-1, mdp.n_states, mdp.n_actions)
    whole = np.asarray(np.isfinite(tables).all(axis=(1, 2)))
    best = np.stack([near_best(mdp, table, 0.0) for table in np.where(whole[:, None, None], tables, 0.0)])
    packed = np.packbits(best.reshape(len(best), -1), axis=1)
    _, first, where = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    policies = np.stack([share(best[i]) for i in first])
    if mdp.n_states <= MAX_STATES:
        v = many_policy_values(mdp, policies)
    else:
        v = np.stack([policy_values(mdp, policy).v for policy in policies])
    found = (v @ start_of(mdp))[where.ravel()]
    return np.where(whole, found, np.nan).reshape(q.shape[:-2])


def start_of(mdp: FiniteMDP) -> Array:
    """The start distribution; uniform over the states that are not terminal, if the MDP has none."""
    if mdp.start is not None:
        return mdp.start
    live = ~mdp.terminal
    return np.asarray(live / live.sum())


def declaration(contender: Contender, task: Task, settings: TabularSettings) -> dict[str, Any]:
    """All that the runs of a contender on a task depend on, as plain data; the MDP as a digest of its numbers."""
    mdp = task.mdp()
    digest = hashlib.sha256()
    arrays = [mdp.transitions.indptr, mdp.transitions.indices, mdp.transitions.data, mdp.rewards, mdp.terminal]
    arrays += [start_of(mdp)] + ([] if mdp.transition_rewards is None else [mdp.transition_rewards])
    for array in arrays:
        plain = np.asarray(array)
        digest.update(plain.astype(np.int64 if plain.dtype.kind in "iub" else np.float64).tobytes())
    return {
        "contender": json.loads(contender.model_dump_json(exclude={"label", "ours"})),
        "task": {"name": task.name, "steps": task.steps, "score": task.score, "gamma": mdp.gamma},
        "mdp": digest.hexdigest()[:16],
        "settings": json.loads(settings.model_dump_json()),
    }
