r"""One step of Algorithm 1 in one run: act, Q-learning, policy update.

Everything here is written for a single run; `ipe.tabular.lanes` batches it.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ipe.behaviours import Acting, Experience, Outcome, View
from ipe.tabular.model import Model, choose, locate
from ipe.tabular.numbers import Streams, pair
from ipe.tabular.returns import decay, discount, traced
from ipe.tabular.state import Algorithm, Move, Run, Step
from ipe.updates import Transition, n_step_target

Numbers = dict[str, Any]


def begin(algorithm: Algorithm, model: Model, numbers: Numbers, random: Streams, q: Any, theta: Any) -> Run:
    """A run before its first step."""
    n = algorithm.n_steps
    indices = jnp.zeros(n, jnp.int32)
    memory = algorithm.behaviour.memory
    state = _start(algorithm, model, random, jnp.int32(0))
    looked_at = state if _of_agent(algorithm) else None
    view = View(*(_row(table, looked_at) for table in (q, theta, model.allowed)))
    return Run(
        q=q,
        theta=theta,
        state=state,
        total=jnp.zeros(()),
        episodes=jnp.int32(0),
        estimates=_first_estimates(algorithm, q),
        memory={} if memory is None else memory.initial(view, numbers),
        window=Move(indices, indices, jnp.zeros(n), jnp.zeros(n, bool)) if n > 1 else None,
        traces=None if algorithm.returns.traces == "none" else jnp.zeros_like(q),
    )


def _first_estimates(algorithm: Algorithm, q: Any) -> Any:
    """The estimates of the policy update before the first step."""
    if algorithm.update is None or not algorithm.update.estimates:
        return None
    return jnp.zeros(()) if algorithm.update.shared else jnp.zeros_like(q)


def advance(
    algorithm: Algorithm, model: Model, numbers: Numbers, random: Streams, run: Run, t: Any
) -> tuple[Run, Step | None]:
    """One step: act, update Q, then theta with the updated Q; or theta first."""
    s = run.state
    to_act, to_move = pair(random.steps, t)
    # All states' probabilities are worked out only where they are recorded.
    acting = algorithm.behaviour.act(_view(algorithm, model, run, t, None if algorithm.record else s), numbers)
    pi_s = acting.probabilities[s] if algorithm.record else acting.probabilities
    a = choose(pi_s, to_act, _row(model.allowed, s))
    entry = locate(model.transitions, s * run.q.shape[1] + a, to_move, algorithm.looks)
    following, reward = model.transitions.outcomes[entry], model.rewards[entry]
    ended = False if model.terminal is None else model.terminal[following]
    move = Move(s, a, reward, ended)
    before = run

    if algorithm.order == "policy-first":
        run = _update_policy(algorithm, model, numbers, run, move, following, t)
    run, delta = _update_q(algorithm, model, numbers, run, move, following)
    if algorithm.order == "q-first":
        run = _update_policy(algorithm, model, numbers, run, move, following, t)
    if algorithm.behaviour.memory is not None:
        experience = Experience(
            probabilities=pi_s,
            epsilon=_epsilon_at(acting, s if algorithm.record else None),
            action=a,
            reward=reward,
            discount=jnp.where(ended, 0.0, numbers["gamma"]),
            following=_view(algorithm, model, before, t, following),
            ended=ended,
            chance=pair(random.chances, t)[0],
            delta=delta,
            step_size=numbers["alpha_q"],
        )
        run = _remember(algorithm, model, numbers, run, experience, s, t)

    restarted = following
    if model.terminal is not None:
        restarted = jnp.where(ended, _start(algorithm, model, random, t + 1), following)
        run = run._replace(episodes=run.episodes + jnp.asarray(ended, jnp.int32))
    run = run._replace(state=restarted, total=run.total + reward)
    if not algorithm.record:
        return run, None
    return run, Step(
        probabilities=acting.probabilities,
        epsilon=None if acting.epsilon is None else jnp.broadcast_to(acting.epsilon, run.q.shape[:1]),
        state=s,
        action=a,
        reward=reward,
        next_state=following,
        q=run.q,
        theta=logits_of(algorithm, model, run),
    )


def _update_q(
    algorithm: Algorithm, model: Model, numbers: Numbers, run: Run, move: Move, following: Any
) -> tuple[Run, Any]:
    """Q-learning, and its TD error."""
    s, a, reward, ended = move
    if algorithm.behaviour.target is not None:
        here, there = (View(run.q[x], allowed=_row(model.allowed, x)) for x in (s, following))
        outcome = Outcome(here, jnp.arange(run.q.shape[1]) == a, there)
        bonus, best = algorithm.behaviour.target(outcome, numbers)
        reward = reward + bonus
    else:
        best = _best(model, run, following)
    if model.terminal is not None:
        best = jnp.where(ended, 0.0, best)
    returns = algorithm.returns
    policy = [(logits_of(algorithm, model, run, x), _row(model.allowed, x)) for x in (s, following)]
    target = reward + discount(returns, numbers, *policy[1]) * best
    delta = target - run.q[s, a]
    if run.traces is None:
        return run._replace(q=run.q.at[s, a].add(numbers["alpha_q"] * delta)), delta
    kept = discount(returns, numbers, *policy[0]) * decay(returns, numbers, *policy[0])
    value = _best(model, run, s)
    q, traces = traced(returns, numbers["alpha_q"], run.q, run.traces, (s, a), kept, (target, value))
    return run._replace(q=q, traces=jnp.where(ended, 0.0, traces)), delta


def _best(model: Model, run: Run, s: Any) -> Any:
    """The largest of the values of a state's allowed actions."""
    q = run.q[s]
    return jnp.max(q if model.allowed is None else jnp.where(model.allowed[s], q, -jnp.inf))


def _epsilon_at(acting: Acting, s: Any) -> Any:
    """The epsilon of state s among the states of an `Acting`; of its only state if s is None."""
    if acting.epsilon is None or s is None:
        return acting.epsilon
    return jnp.broadcast_to(acting.epsilon, acting.probabilities.shape[:-1])[s]


def _remember(
    algorithm: Algorithm, model: Model, numbers: Numbers, run: Run, experience: Experience, s: Any, t: Any
) -> Run:
    """What the behaviour remembers after a step in s: a new row for s, or the agent's new memory."""
    memory = algorithm.behaviour.memory
    assert memory is not None
    new = memory.updated(_view(algorithm, model, run, t, s), experience, numbers)
    if not _of_agent(algorithm):
        new = {name: _with_row(table, s, new[name]) for name, table in run.memory.items()}
    return run._replace(memory=new)


def _update_policy(
    algorithm: Algorithm, model: Model, numbers: Numbers, run: Run, move: Move, following: Any, t: Any
) -> Run:
    """The policy of the next state, from the transition that led there; or from n of them."""
    if (update := algorithm.update) is None:
        return run
    s, a, reward, ended = move
    gamma: Any = numbers["gamma"]
    size: Any = 1.0
    if run.window is not None:
        window = Move(*(jnp.append(old[1:], new) for old, new in zip(run.window, move, strict=True)))
        run = run._replace(window=window)
        s, a = window.state[0], window.action[0]
        reward, gamma, ended = n_step_target(window.reward, gamma, window.ended)
        size = jnp.where(t >= algorithm.n_steps - 1, 1.0, 0.0)  # before that, nothing happened n steps ago
    transition = Transition(run.q[s, a], reward, gamma, ended, run.q[following], _row(model.allowed, following))
    sized = numbers | {each.name: size * numbers[each.name] for each in update.hyperparameters if each.step_size}
    estimate = run.estimates if run.estimates is None or update.shared else run.estimates[s, a]
    logits, estimate = update.step(run.theta[following], estimate, transition, sized)
    if run.estimates is not None:
        run = run._replace(estimates=estimate if update.shared else run.estimates.at[s, a].set(estimate))
    return run._replace(theta=run.theta.at[following].set(logits))


def logits_of(algorithm: Algorithm, model: Model, run: Run, s: Any = None) -> Any:
    """The logits of the policy in state s, or with None in every state."""
    theta, allowed = _row(run.theta, s), _row(model.allowed, s)
    if algorithm.update is None or algorithm.update.logits is None:
        return theta
    return algorithm.update.logits(theta, _row(run.q, s), allowed)


def _start(algorithm: Algorithm, model: Model, random: Streams, n: Any) -> Any:
    number, _ = pair(random.starts, n)
    return model.start.outcomes[locate(model.start, 0, number, algorithm.start_looks)]


def _view(algorithm: Algorithm, model: Model, run: Run, t: Any, s: Any) -> View:
    """What the behaviour may look at: state s alone, or with None every state."""
    memory = run.memory
    if not _of_agent(algorithm):
        memory = {name: _row(table, s) for name, table in memory.items()}
    logits = logits_of(algorithm, model, run, s) if algorithm.behaviour.needs_policy else _row(run.theta, s)
    return View(_row(run.q, s), logits, _row(model.allowed, s), t, memory, algorithm.ties)


def _of_agent(algorithm: Algorithm) -> bool:
    """Whether the behaviour has one memory for the whole agent."""
    memory = algorithm.behaviour.memory
    return memory is not None and memory.scope == "agent"


def _row(table: Any, s: Any) -> Any:
    return table if table is None or s is None else table[s]


def _with_row(table: Any, s: Any, row: Any) -> Any:
    if jnp.issubdtype(table.dtype, jnp.integer):
        # Added to the old number, and not set: a row that does not depend on it XLA may write first, on a copy.
        return table.at[s].add(row - table[s])
    return table.at[s].set(row)
