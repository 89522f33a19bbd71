"""`simulate`: what is asked of its arguments, and the runs dealt to lanes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from ipe.base.arrays import Array, numeric
from ipe.base.cores import available_cores
from ipe.base.numbers import seed_number, whole_number
from ipe.base.words import one_of
from ipe.behaviours import Behaviour
from ipe.behaviours.functions import find_behaviour
from ipe.checks import check_mdp, check_q
from ipe.entropy.arrays import AnyArray
from ipe.errors import InputError, NotSolvedError
from ipe.mdp import FiniteMDP
from ipe.planning import OptimalValues, optimal_values
from ipe.tabular.lanes import lane_count, lane_runner
from ipe.tabular.model import looks, model_of
from ipe.tabular.parameters import NO_UPDATE, settings_of
from ipe.tabular.results import Store, TabularRuns
from ipe.tabular.returns import Returns, Source, Traces, check_returns
from ipe.tabular.state import Algorithm, Order, Ties
from ipe.updates import UPDATES, PolicyUpdate
from ipe.updates.functions import find_update


def simulate(
    mdp: FiniteMDP,
    behaviour: str | Behaviour | Callable[..., AnyArray],
    *,
    steps: int = 500,
    runs: int = 1000,
    seed: int = 0,
    sweep: Mapping[str, Sequence[float]] | None = None,
    update: str | PolicyUpdate | Callable[..., AnyArray] = "paper",
    order: Order = "q-first",
    record: Literal["summary", "trajectory"] = "summary",
    ties: Ties = "random",
    n_steps: int = 1,
    traces: Traces = "none",
    trace_decay_from: Source = "number",
    discount_from: Source = "number",
    initial_q: ArrayLike = 0.0,
    initial_theta: ArrayLike = 0.0,
    start: ArrayLike | None = None,
    progress: Callable[[int, int], None] | None = None,
    first_run: int = 0,
    threads: int | None = None,
    **parameters: float,
) -> TabularRuns:
    r"""Q-learning interleaved with a policy update (the paper's Algorithm 1), many runs at once.

    One step in state s: draw an action from the behaviour, observe r and s', then

    .. math:: Q(s,a) \leftarrow Q(s,a) + \alpha_Q \big(r + \gamma \max_b Q(s',b) - Q(s,a)\big),

    then update the logits :math:`\theta(s',\cdot)` of the policy, with the updated Q. A terminal s' has the
    value 0, and the next step is in a start state.

    `ipe.behaviours.BEHAVIOURS` and `ipe.updates.UPDATES` are the tables of behaviours and of policy updates, with
    their parameters. All runs have the parameters alpha_q (.5) and gamma (that of the MDP). With the update "none"
    there is no policy to learn.

    Float64 throughout. The random numbers of run i come from the key `fold_in(key(seed), i)` and nothing else (see
    `ipe.tabular.numbers`): a run is the same to the byte alone or among others, and all settings of a sweep see the
    same numbers, which makes their differences less noisy. A shorter run is the beginning of a longer one.

    Args:
        mdp: any finite MDP, continuing or with terminal states.
        behaviour: the name of a behaviour (of one in a module of your own: `package.module:name`), a `Behaviour`, or a
            function `f(q, ...)` of arrays that returns probabilities (`ipe.behaviours.find_behaviour`).
        steps, runs: the length and the number of runs.
        seed: whole number, >= 0.
        sweep: a list of values for a parameter, each a setting; lists of several parameters go in step.
        update: the name of a policy update, or "none"; a `PolicyUpdate`, or a function `f(theta, transition, alpha)`
            of arrays that returns the new logits.
        order: "q-first", or "policy-first" to update theta before Q.
        record: "summary", or "trajectory" for tables and behaviour at every step.
        ties: among greedy actions "random" (shared equally) or "first".
        n_steps: how many steps the policy update's target spans.
        traces: "watkins" or "peng" for the returns of :math:`Q(\lambda)` in Q-learning, with the parameter trace_decay,
            which is :math:`\lambda`; "none": the target spans one step (`ipe.tabular.returns`).
        trace_decay_from: what sets :math:`\lambda` of each state: "number" (the parameter), or the entropy of the
            evaluation policy, over "actions" or as a "coin" (`ipe.entropy.distrust`): long returns where the values
            are not to be trusted.
        discount_from: what sets the discount of Q-learning's target, in the same words: the parameter learning_gamma,
            or shorter horizons where the values are not to be trusted, never below the parameter least_gamma. The
            policy update and `rmse` keep gamma.
        initial_q, initial_theta: a number, or a table of shape (S, A). With the update "lift" the latter are promises,
            and the largest number of a state counts.
        start: a state or a distribution over states, in place of `mdp.start`. If both are None: uniform.
        progress: is called with the number of runs done and of all, over all settings, after every batch.
        first_run: the index of the first run, to go on where other runs ended, or on another machine.
        threads: how many batches run at a time. Default: one per core.
        **parameters: values of parameters that are not swept.

    Example:
        >>> from ipe.zoo import switch_stay
        >>> runs = simulate(switch_stay(), "epsilon-ipe", runs=20, sweep={"alpha_pi": [0.01, 0.05]})
        >>> runs.reward.shape, runs.q.shape
        ((2, 20), (2, 20, 2, 2))
        >>> bool((runs.rmse[0] < 1e-3).all())     # Q-learning found the optimal values
        True
    """
    check_mdp(mdp)
    for field, value, known in (
        ("order", order, ("q-first", "policy-first")),
        ("record", record, ("summary", "trajectory")),
        ("ties", ties, ("random", "first")),
    ):
        one_of(value, known, field)
    acting = find_behaviour(behaviour)
    if isinstance(update, str) and ":" not in update:
        one_of(update, (*UPDATES, NO_UPDATE), "update")
    updating = None if isinstance(update, str) and update == NO_UPDATE else find_update(update)
    seed, steps = seed_number(seed), whole_number(steps, "steps", 1, 2**31 - 1)
    first_run = whole_number(first_run, "first_run", 0, 2**32 - 1)
    runs = whole_number(runs, "runs", 1, 2**32 - first_run - 1)
    n_steps = whole_number(n_steps, "n_steps", 1, 2**31 - 1)
    if n_steps > 1 and updating is None:
        raise InputError(f"n_steps = {n_steps} has no effect with update 'none'")
    workers = available_cores() if threads is None else whole_number(threads, "threads", 1)
    returns = check_returns(Returns(traces, trace_decay_from, discount_from), acting, updating)
    settings = settings_of(acting, updating, mdp.gamma, parameters, sweep, returns)
    tables = (_table(mdp, initial_q, "initial_q"), _table(mdp, initial_theta, "initial_theta"))
    model = model_of(mdp, start)
    recorded = record == "trajectory"
    sizes = looks(model.transitions), looks(model.start)
    algorithm = Algorithm(acting, updating, order, ties, n_steps, *sizes, recorded, returns)
    shown = tables
    if updating is not None and updating.logits is not None:
        shown = (tables[0], np.asarray(updating.logits(tables[1], tables[0], mdp.allowed)))
    store = Store(mdp, settings, _optimal(mdp, settings["gamma"]), runs, steps, shown, recorded)
    data = {name: values for name, values in settings.items() if not _left_out(name, values, updating, sweep)}
    lanes = lane_count(mdp.n_states, mdp.n_actions, steps, recorded)
    run_lanes = lane_runner(algorithm, steps, lanes, model, tables, seed, data)

    def batch(first: int) -> int:
        """The lanes from `first` on; those beyond the last run it again, and are dropped."""
        pairs = np.minimum(np.arange(first, first + lanes), store.count - 1)
        setting, run = np.divmod(pairs, runs)
        numbers = {name: values[setting] for name, values in data.items()}
        store.put(first, *run_lanes((first_run + run).astype(np.uint32), numbers))
        return min(first + lanes, store.count)

    pool = ThreadPoolExecutor(workers)
    try:
        for done in pool.map(batch, range(0, store.count, lanes)):
            if progress is not None:
                progress(done, store.count)
    finally:
        pool.shutdown(cancel_futures=True)
    return store.result(acting.name, NO_UPDATE if updating is None else updating.name)


def _left_out(name: str, values: Array, update: PolicyUpdate | None, sweep: Mapping[str, Any] | None) -> bool:
    """Whether a number is a 0 whose term the compiled program goes without."""
    switches = () if update is None else [each.name for each in update.hyperparameters if each.switch]
    return name in switches and name not in (sweep or {}) and not values.any()


def _table(mdp: FiniteMDP, value: Any, name: str) -> Array:
    table = numeric(value, name)
    if table.ndim == 0:
        return check_q(mdp, np.where(mdp.allowed, table, 0.0), name)
    if name == "initial_theta" and table.shape == mdp.allowed.shape:
        table = np.where(mdp.allowed, table, 0.0)  # logits of -inf, as the results have them
    return check_q(mdp, table, name)


def _optimal(mdp: FiniteMDP, gammas: Array) -> Array:
    """The optimal values for each setting's discount, shape (settings, S), to 1e-8 or as near as float64 comes."""
    distinct, place = np.unique(gammas, return_inverse=True)
    return np.stack([_optimal_values(mdp.with_gamma(gamma)) for gamma in distinct])[place]


def _optimal_values(mdp: FiniteMDP) -> Array:
    try:
        return optimal_values(mdp).v
    except NotSolvedError as error:  # they only serve the errors of the records, which are no nearer to them
        result: OptimalValues = error.result
        return result.v
