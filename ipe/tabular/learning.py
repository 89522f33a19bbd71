r"""One step of Algorithm 1 in one run: act, Q-learning, policy update.

Everything here is written for a single run; `ipe.tabular.program` batches it.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ipe.behaviours import conservative_update, vdbe_update
from ipe.entropy import uniform
from ipe.tabular.acting import View, epsilon_of, preference, probabilities
from ipe.tabular.model import Model, choose, locate
from ipe.tabular.numbers import Streams, pair
from ipe.tabular.state import Program, Run, Step, Transition
from ipe.updates import (
    absolute_update,
    fenchel_update,
    kl_proximal_update,
    n_step_target,
    natural_update,
    paper_update,
)

Parameters = dict[str, Any]

_UPDATES = {
    "paper": paper_update,
    "natural": natural_update,
    "kl-proximal": kl_proximal_update,
    "absolute": absolute_update,
}


def begin(program: Program, model: Model, parameters: Parameters, random: Streams, q: Any, theta: Any) -> Run:
    """A run before its first step."""
    n = program.n_steps
    indices = jnp.zeros(n, jnp.int32)
    conservative, vdbe = program.behaviour == "conservative", program.behaviour == "vdbe"
    return Run(
        q=q,
        theta=theta,
        state=_start(program, model, random, jnp.int32(0)),
        total=jnp.zeros(()),
        y=jnp.zeros_like(q) if program.update == "fenchel" else None,
        average=uniform(q, model.allowed) if conservative else None,
        visited=jnp.zeros(q.shape[0], jnp.int32) if conservative else None,
        epsilon=jnp.full(q.shape[0], parameters["initial_epsilon"]) if vdbe else None,
        window=Transition(indices, indices, jnp.zeros(n), jnp.zeros(n, bool)) if n > 1 else None,
    )


def advance(
    program: Program, model: Model, parameters: Parameters, random: Streams, run: Run, t: Any
) -> tuple[Run, Step | None]:
    """One step: act, update Q, then theta with the updated Q; or theta first."""
    s = run.state
    to_act, to_move = pair(random.steps, t)
    # All states' probabilities are worked out only where they are recorded.
    view = _tables(run, model) if program.record else View(*(_row(table, s) for table in _tables(run, model)))
    pi = probabilities(program.behaviour, program.ties, view, t, parameters)
    pi_s = pi[s] if program.record else pi
    a = choose(pi_s, to_act, _row(model.allowed, s))
    entry = locate(model.transitions, s * run.q.shape[1] + a, to_move, program.looks)
    following, reward = model.transitions.outcomes[entry], model.rewards[entry]
    ended = False if model.terminal is None else model.terminal[following]
    transition = Transition(s, a, reward, ended)

    if program.order == "policy-first":
        run = _update_policy(program, model, parameters, run, transition, following, t)
    run, delta = _update_q(model, parameters, run, transition, following)
    if program.order == "q-first":
        run = _update_policy(program, model, parameters, run, transition, following, t)
    run = _update_behaviour(program, model, parameters, run, s, pi_s, delta, t)

    restarted = following
    if model.terminal is not None:
        restarted = jnp.where(ended, _start(program, model, random, t + 1), following)
    run = run._replace(state=restarted, total=run.total + reward)
    if not program.record:
        return run, None
    epsilon = epsilon_of(program.behaviour, view, t, parameters)
    return run, Step(
        probabilities=pi,
        epsilon=None if epsilon is None else jnp.broadcast_to(epsilon, run.q.shape[:1]),
        state=s,
        action=a,
        reward=reward,
        next_state=following,
        q=run.q,
        theta=run.theta,
    )


def _update_q(
    model: Model, parameters: Parameters, run: Run, transition: Transition, following: Any
) -> tuple[Run, Any]:
    """Q-learning, and its TD error."""
    s, a, reward, ended = transition
    q_next = run.q[following]
    if model.allowed is not None:
        q_next = jnp.where(model.allowed[following], q_next, -jnp.inf)
    best = jnp.max(q_next)
    if model.terminal is not None:
        best = jnp.where(ended, 0.0, best)
    delta = reward + parameters["gamma"] * best - run.q[s, a]
    return run._replace(q=run.q.at[s, a].add(parameters["alpha_q"] * delta)), delta


def _update_policy(
    program: Program,
    model: Model,
    parameters: Parameters,
    run: Run,
    transition: Transition,
    following: Any,
    t: Any,
) -> Run:
    """The policy of the next state, from the transition that led there; or from n of them."""
    if program.update == "none":
        return run
    s, a, reward, ended = transition
    gamma: Any = parameters["gamma"]
    size: Any = 1.0
    if run.window is not None:
        window = Transition(*(jnp.append(old[1:], new) for old, new in zip(run.window, transition, strict=True)))
        run = run._replace(window=window)
        s, a = window.state[0], window.action[0]
        reward, gamma, ended = n_step_target(window.reward, gamma, window.ended)
        size = jnp.where(t >= program.n_steps - 1, 1.0, 0.0)  # before that, nothing happened n steps ago
    data = (run.q[following], run.q[s, a], reward, gamma, ended, size * parameters["alpha_pi"])
    options = {"tau": parameters.get("tau", 0.0), "allowed": _row(model.allowed, following)}
    logits = run.theta[following]
    if program.update == "fenchel":
        logits, _, y = fenchel_update(logits, run.y[s, a], *data, size * parameters["beta"], **options)
        run = run._replace(y=run.y.at[s, a].set(y))
    else:
        logits, _ = _UPDATES[program.update](logits, *data, **options)
    return run._replace(theta=run.theta.at[following].set(logits))


def _update_behaviour(
    program: Program, model: Model, parameters: Parameters, run: Run, s: Any, pi_s: Any, delta: Any, t: Any
) -> Run:
    """The behaviours that remember: the conservative policy and VDBE's epsilon follow the updated Q."""
    if program.behaviour == "conservative":
        allowed = _row(model.allowed, s)
        mixed = conservative_update(pi_s, preference(run.q[s], program.ties, allowed), parameters["rate"], allowed)
        # Added to the old count, and not set: what does not depend on it, XLA may do first, on a copy of the table.
        visited = run.visited.at[s].add(t + 1 - run.visited[s])
        return run._replace(average=run.average.at[s].set(mixed), visited=visited)
    if program.behaviour == "vdbe":
        n = run.q.shape[1] if model.allowed is None else jnp.sum(model.allowed[s])
        rule = (parameters["alpha_q"], parameters["sigma"], n, parameters.get("rate"))
        return run._replace(epsilon=run.epsilon.at[s].set(vdbe_update(run.epsilon[s], delta, *rule)))
    return run


def _start(program: Program, model: Model, random: Streams, n: Any) -> Any:
    number, _ = pair(random.starts, n)
    return model.start.outcomes[locate(model.start, 0, number, program.start_looks)]


def _tables(run: Run, model: Model) -> View:
    return View(run.q, run.theta, run.average, run.visited, run.epsilon, model.allowed)


def _row(table: Any, s: Any) -> Any:
    return None if table is None else table[s]
