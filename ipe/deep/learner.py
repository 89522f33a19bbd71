r"""One frame of a batch of seeds, as one compiled program.

The order within a frame: the step just taken goes into the replay; a minibatch is drawn; the Q-network is updated
towards the target network's values, then the policy network on the same minibatch; then the next action is chosen from
the updated networks. The step in the environment is the host's work.

Numbers that a setting may change (`TrainingSettings.numbers`) are arguments; what changes the formulas or the shapes
(`Program`) is compiled in. Both networks and the replay are updated in place: the state is donated.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ipe.behaviours import Outcome, View
from ipe.deep.acting import act, features, first_memory, functions, remembered, spread
from ipe.deep.frame import ACTION, END, REWARD, Frame
from ipe.deep.native import calls
from ipe.deep.networks import sum_by_halves
from ipe.deep.optimisers import clipped, step
from ipe.deep.programs import Program
from ipe.deep.replay import TERMINATED
from ipe.deep.returns import Later, corrected, later_steps, mixed, summed
from ipe.entropy import distrust, softmax
from ipe.updates import Transition

COUNTS = ("epsilon", "entropy", "td_error", "ipe_error", "q_mean", "frames", "updates", "sound")
"""What is summed up for each seed over the frames since the sums were last read. `sound` counts the updates before the
first update whose errors were not finite."""

ACTING_NETWORKS = ("q", "policy")
"""The networks that an action is chosen by, as far as a state has them."""
_CHANGED_BY_ACTING = ("replay", "counts", "memory", "chosen_by")


class Sample(NamedTuple):
    """A minibatch. The first two axes of every array are the seeds and the batch."""

    inputs: Any
    """The features of s, of s' and, if they are others, of the states that the target bootstraps from; one after the
    other along axis 1."""
    action: Any
    """The actions a."""
    reward: Any
    """The rewards r."""
    terminal: Any
    """Whether s' is terminal."""
    target_reward: Any
    """The discounted sum of n rewards."""
    target_discount: Any
    """The discount of the value that the target bootstraps from; 0 after a termination."""
    later: list[Later]
    """The steps after the first one that the policy update looks at; none if its error spans one step."""
    last: Any = None
    """The features of the states that these steps lead to, one state after the other along axis 1; of the last one
    alone if the policy update does not correct for its actions."""
    end: Any = None
    """How the first steps ended."""
    mixed: tuple[Later, ...] = ()
    """The steps after the first one whose returns the target mixes; none if it does not."""
    weight: Any = None
    """The importance weights, by which the transitions' parts in both gradients are multiplied; None: all are 1."""


def advance(
    program: Program, updating: str, state: dict[str, Any], spare: dict[str, Any], numbers: Any, frame: Frame
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """One frame. The arrays of the state and the spare arrays cannot be used afterwards.

    Args:
        program: what is compiled in.
        updating: whether all, some (those of `frame.updates`) or none of the seeds are updated; if none are, the
            minibatch of the frame is not looked at.
        state: networks, moments, replay and counts.
        spare: arrays like those of the networks that learn, into which the new parameters are written.
        numbers: the values of `Program.numbers`, first axis those, second axis the seeds.
        frame: the numbers that the host passes in for this frame.

    Returns:
        The new state, new spare arrays, and an action per seed.
    """
    if updating == "none":
        networks = {name: state[name] for name in ACTING_NETWORKS if name in state}
        changing = {name: state[name] for name in _CHANGED_BY_ACTING if name in state}
        changed, actions = _compiled_acting(program)(changing, networks, numbers, frame)
        return {**state, **changed}, spare, actions
    live = {name: state[name] for name in spare}
    new, actions = compiled(program, updating)(state | spare, live, numbers, frame)
    return new, live, actions


@lru_cache(maxsize=32)
def compiled(program: Program, updating: str) -> Any:
    """The jitted frame, a function of (state, live, numbers, frame).

    The state is donated: the arrays of its networks only receive the new networks, and the present networks are `live`.
    If the new networks were written in place, XLA would copy the present ones first, because it does not see that every
    product that reads them comes before.
    """

    def run(state: dict[str, Any], live: dict[str, Any], numbers: Any, frame: Frame) -> tuple[dict[str, Any], Any]:
        return _frame(program, updating, state | live, dict(zip(program.numbers, numbers, strict=True)), frame)

    return jax.jit(run, donate_argnums=0, keep_unused=True)


@lru_cache(maxsize=32)
def _compiled_acting(program: Program) -> Any:
    """The jitted frame without an update, a function of (changing, networks, numbers, frame).

    It is given only the parts of the state that such a frame reads: every array that is handed to a compiled program
    costs microseconds.
    """

    def run(
        changing: dict[str, Any], networks: dict[str, Any], numbers: Any, frame: Frame
    ) -> tuple[dict[str, Any], Any]:
        hyper = dict(zip(program.numbers, numbers, strict=True))
        new, action = _frame(program, "none", changing | networks, hyper, frame)
        return {name: part for name, part in new.items() if name not in networks}, action

    return jax.jit(run, donate_argnums=0)


@lru_cache(maxsize=32)
def compiled_start(program: Program) -> Any:
    """The jitted start, which stores the first observations and returns (state, actions) like a frame."""

    def run(state: dict[str, Any], numbers: Any, frame: Frame) -> tuple[dict[str, Any], Any]:
        observation = state["replay"]["observation"]
        if program.environments == 1:
            for seed in range(frame.current.shape[0]):
                place = (seed * program.slots, 0)
                observation = jax.lax.dynamic_update_slice(observation, frame.current[seed : seed + 1], place)
        else:
            observation = observation.at[jnp.arange(frame.current.shape[0]) * program.slots].set(frame.current)
        hyper = spread(program, dict(zip(program.numbers, numbers, strict=True)))
        state = {**state, "replay": {**state["replay"], "observation": observation}}
        state = {**state, **first_memory(program, state, hyper, frame)}
        action, _, choice = act(program, state, hyper, frame)
        return {**state, **choice}, action

    return jax.jit(run, donate_argnums=0)


@jax.jit
def _copied(q: Any, target: Any, which: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(which.reshape(-1, *(1,) * (a.ndim - 1)), a, b), q, target)


def copy_targets(state: dict[str, Any], which: Any) -> dict[str, Any]:
    """The state with the Q-networks of some seeds copied to their target networks; policy networks too, where copies of
    them are kept."""
    new = {"target": _copied(state["q"], state["target"], which)}
    if "policy_target" in state:
        new["policy_target"] = _copied(state["policy"], state["policy_target"], which)
    return {**state, **new}


def first_estimates(program: Program, policy: Any) -> dict[str, Any]:
    """What the state has more than others at the start: a copy of the policy network, if the behaviour distils into it;
    the estimate of a policy update that keeps one for the whole run."""
    if program.policy_update is None:
        return {"policy_target": jax.tree.map(jnp.copy, policy)}
    if program.policy_update.estimates and program.policy_update.shared:
        return {"estimate": jnp.zeros(len(policy["matrix"]), jnp.float32)}
    return {}


def _frame(
    program: Program, updating: str, state: dict[str, Any], hyper: dict[str, Any], frame: Frame
) -> tuple[dict[str, Any], Any]:
    new = {**state, "replay": _stored(program, state["replay"], frame)}
    seen: dict[str, Any] = {}
    if updating != "none":
        learned, seen = learn(program, updating, new, hyper, frame)
        new.update(learned)
    action, behaviour, choice = choose(program, new, hyper, frame)
    return {**new, **choice, "counts": counted(state, {**seen, **behaviour})}, action


def counted(state: dict[str, Any], seen: dict[str, Any]) -> Any:
    """The counts, with what a frame has seen of each seed."""
    return jnp.stack([state["counts"][:, i] + seen.get(name, 0.0) for i, name in enumerate(COUNTS)], axis=-1)


def learn(
    program: Program, updating: str, state: dict[str, Any], hyper: dict[str, Any], frame: Frame
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The networks and moments after an update of all or some seeds, and what was seen of it."""
    counts = {name: state["counts"][:, i] for i, name in enumerate(COUNTS)}
    sample = _sample(program, state["replay"], hyper, frame)
    learned, seen = _update(program, state, hyper, sample, frame.updates_before.astype(jnp.float32))
    sound = jnp.isfinite(sum(seen.values())) & (counts["sound"] == counts["updates"])
    seen |= {"updates": jnp.ones_like(counts["updates"]), "sound": sound.astype(jnp.float32)}
    if updating == "some":
        which = frame.updates > 0
        learned = jax.tree.map(
            lambda a, b: jnp.where(which.reshape(-1, *(1,) * (a.ndim - 1)), a, b),
            learned,
            {name: state[name] for name in learned},
        )
        seen = {name: jnp.where(which, value, 0.0) for name, value in seen.items()}
    return learned, seen


def choose(
    program: Program, state: dict[str, Any], hyper: dict[str, Any], frame: Frame
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """An action for each row of the frame; what was seen of the choice, for each seed; and what the state keeps of it,
    if the behaviour remembers."""
    new, kept = state, {}
    hyper = spread(program, hyper)
    if program.remembers:
        kept = {"memory": remembered(program, state, hyper, frame)}
        new = {**state, **kept}
    action, behaviour, choice = act(program, new, hyper, frame)
    behaviour["frames"] = jnp.ones_like(frame.draw)
    if (n := program.environments) > 1:
        behaviour = {name: sum_by_halves(rows.reshape(-1, n)) for name, rows in behaviour.items()}
    return action, behaviour, {**kept, **choice}


def _stored(program: Program, replay: dict[str, Any], frame: Frame) -> dict[str, Any]:
    """The replay with one more step. Slices are written in place, where a scatter would be a loop."""
    observation, steps = replay["observation"], replay["step"]
    for seed in range(frame.whole.shape[0]):
        start, arrival, current = (frame.slots[seed, i] + seed * program.slots for i in range(3))
        steps = jax.lax.dynamic_update_slice(steps, frame.step[seed : seed + 1], (start, 0))
        observation = jax.lax.dynamic_update_slice(observation, frame.arrived[seed : seed + 1], (arrival, 0))
        observation = jax.lax.dynamic_update_slice(observation, frame.current[seed : seed + 1], (current, 0))
    return {"observation": observation, "step": steps}


def _sample(program: Program, replay: dict[str, Any], hyper: dict[str, Any], frame: Frame) -> Sample:
    base = jnp.arange(frame.whole.shape[0], dtype=jnp.int32)[:, None] * program.slots
    first, current = frame.minibatch, frame.slots[:, 2:]
    if program.from_data:
        base = jnp.zeros_like(base)
    if program.environments > 1:  # the rings of a seed's environments lie one after the other
        ring, first = first // program.slots, first % program.slots
        base = program.environments * base + ring * program.slots
        current = jnp.take_along_axis(frame.heads, ring, axis=1)

    def rows(array: Any, slots: Any) -> Any:
        return array.at[slots % program.slots + base].get(mode="promise_in_bounds")

    steps = rows(replay["step"], first)
    action, reward, end = steps[..., ACTION].astype(jnp.int32), steps[..., REWARD], steps[..., END]
    gamma = hyper["gamma"][:, None]
    most = max(program.n_step, program.delta_steps)
    later = later_steps(lambda at: rows(replay["step"], at), first, current, program.slots, end, most)
    after_first, mixes = later[: program.n_step - 1], program.traces_kind != "none"
    target = summed(reward, end, gamma, [] if mixes else after_first)

    def states(places: list[Any]) -> Any:
        bases = base if program.environments == 1 else jnp.tile(base, (1, len(places)))
        found = program.form.read(replay["observation"], jnp.concatenate(places, axis=1), bases, program.slots)
        return features(program, found)

    later, last = later[: program.delta_steps - 1], None
    if later and program.delta_correction == "none":
        last = states([first + summed(reward, end, gamma, later).length])
    elif later:
        last = states([first + k for k in range(2, program.delta_steps + 1)])
    beyond = [first + target.length] if program.n_step > 1 else []
    if mixes:
        beyond = [first + k for k in range(2, program.n_step + 1)]
    return Sample(
        inputs=states([first, first + 1, *beyond]),
        action=action,
        reward=reward,
        terminal=end == TERMINATED,
        target_reward=target.reward,
        target_discount=jnp.where(target.terminal, 0.0, target.discount),
        later=later,
        last=last,
        end=end,
        mixed=tuple(after_first) if mixes else (),
        weight=frame.weights,
    )


def _update(
    program: Program, state: dict[str, Any], hyper: dict[str, Any], sample: Sample, done: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The new networks and moments, and what to add to the counts."""
    net, forward = program.architecture, functions(program).forward
    batch = sample.action.shape[1]
    # The target bootstraps from one state of each transition, or from all states on the way there.
    here, ahead = sample.inputs[:, :batch], sample.inputs[:, batch if sample.mixed else -batch :]
    policy_looks = program.learns_policy and (program.delta_q == "target" or program.policy_update is None)
    everywhere = policy_looks or program.behaviour.target is not None
    looked_at = sample.inputs if everywhere else ahead
    if program.learns_policy and program.delta_q == "dqn" and not everywhere:
        looked_at = sample.inputs[:, batch:]
    values, _ = forward(net, state["target"], looked_at)
    bootstraps = values[:, -ahead.shape[1] :]

    q, layers = forward(net, state["q"], here)
    taken = jax.nn.one_hot(sample.action, q.shape[-1], dtype=q.dtype)
    q_sa = (q * taken).sum(-1)
    reward = sample.target_reward
    if program.behaviour.target is not None:
        outcome = Outcome(View(values[:, :batch]), taken > 0, View(bootstraps))
        bonus, best = program.behaviour.target(outcome, {name: value[:, None] for name, value in hyper.items()})
        reward = reward + bonus
    elif program.double_q:
        judged = forward(net, state["q"], ahead)[0]
        best = jnp.take_along_axis(bootstraps, jnp.argmax(judged, axis=-1)[..., None], axis=-1)[..., 0]
    else:
        judged, best = bootstraps, bootstraps.max(-1)
    if sample.mixed:
        decay = _decay(program, state, hyper, sample, ahead, bootstraps, judged)
        best = mixed(_by_state(best, batch), decay, hyper["gamma"][:, None], list(sample.mixed))
    td_error = q_sa - (reward + sample.target_discount * best)
    limit = hyper["huber"][:, None]
    slope = jnp.clip(td_error, -limit, limit) if program.huber else 2.0 * td_error
    if sample.weight is not None:
        slope = slope * sample.weight
    error = (slope / batch)[..., None] * taken
    if program.conservative_weight:
        beyond = _weighted(sample.weight, (softmax(q) - taken) / batch)
        error = error + hyper["conservative_weight"][:, None, None] * beyond
    new = _stepped(program, "q", state, layers, error, hyper["value_step_size"], hyper, done)
    if program.priority_exponent:
        new["delta"] = td_error
    seen = {"td_error": jnp.abs(td_error).mean(-1), "q_mean": q_sa.mean(-1)}

    if program.policy_update is not None:
        judge = state["target"]
        if program.delta_q == "target":
            q_here, q_next = values[:, :batch], values[:, batch : 2 * batch]
        elif program.delta_q == "dqn":
            q_here, q_next = q, values[:, batch : 2 * batch] if everywhere else values[:, :batch]
        else:
            judge = new["q"]
            both, _ = forward(net, judge, sample.inputs[:, : 2 * batch])
            q_here, q_next = both[:, :batch], both[:, batch:]
        q_sa = (q_here * taken).sum(-1)
        learned, delta = _update_policy(program, state, judge, hyper, sample, q_sa, q_next, taken, done)
        new |= learned
        seen["ipe_error"] = jnp.abs(delta).mean(-1)
    elif program.learns_policy:
        new |= _distil(program, state, hyper, here, values[:, :batch], taken, sample.weight, done)
    return new, seen


def _decay(
    program: Program, state: dict[str, Any], hyper: dict[str, Any], sample: Sample, ahead: Any, values: Any, judged: Any
) -> Any:
    """Lambda in the states after the first ones, by which their returns are mixed, shape (n - 1, seeds, batch). `ahead`
    are the features of these states and the last one's, `values` the target network's values there, and `judged` the
    values by which an action is greedy."""
    batch = sample.action.shape[1]
    if program.traces_decay_from == "number":
        decay = jnp.broadcast_to(hyper["traces_decay"][:, None], (len(sample.mixed), *sample.action.shape))
    else:
        assert program.policy_update is not None
        outputs, _ = functions(program).forward(program.policy_architecture, state["policy"], ahead[:, :-batch])
        logits = program.policy_update.policy(outputs, values[:, :-batch])
        decay = _by_state(distrust(logits, over=program.traces_decay_from), batch)
    if program.traces_kind == "watkins":
        actions = jnp.stack([step.action for step in sample.mixed])
        q = _by_state(judged[:, :-batch], batch)
        of_action = jnp.take_along_axis(q, actions[..., None], axis=-1)[..., 0]
        decay = jnp.where(of_action >= q.max(-1), decay, 0.0)
    return decay


def _by_state(rows: Any, batch: int) -> Any:
    """Rows of several states, one state of the whole minibatch after the other along axis 1, with an axis for them in
    front."""
    return jnp.stack(jnp.split(rows, rows.shape[1] // batch, axis=1))


def _update_policy(
    program: Program,
    state: dict[str, Any],
    judge: Any,
    hyper: dict[str, Any],
    sample: Sample,
    q_sa: Any,
    q_next: Any,
    taken: Any,
    done: Any,
) -> tuple[dict[str, Any], Any]:
    """The policy network and its moments after a step of the policy update, its estimate if it keeps one, and errors.
    `judge` is the network whose Q stands in the errors after s: `q_next` are its values, `q_sa` those of (s, a)."""
    update, net, forward = program.policy_update, program.policy_architecture, functions(program).forward
    assert update is not None
    assert update.gradient is not None
    batch, n = taken.shape[1:]
    gamma = hyper["gamma"][:, None]
    where, reward, terminal = sample.inputs[:, batch : 2 * batch], sample.reward, sample.terminal
    if sample.later and program.delta_correction == "none":
        where = sample.last
        reward, gamma, terminal, _ = summed(reward, sample.end, gamma, sample.later)
        q_next, _ = forward(program.architecture, judge, where)
    elif sample.later:
        # Only the policy after the first step is updated: in the states behind it, it is a constant.
        q_later, _ = forward(program.architecture, judge, sample.last)
        theta_later, _ = forward(net, state["policy"], sample.last)
        q_later, theta_later = (jnp.stack(jnp.split(x, len(sample.later), axis=1)) for x in (q_later, theta_later))
        q_next = corrected(jnp.concatenate([q_next[None], q_later]), theta_later[..., :n], gamma, sample.later)
    rows = batch if update.network_estimates else 0  # the states s come first, where estimates of (s, a) are learned
    inputs = jnp.concatenate([sample.inputs[:, :rows], where], axis=1) if rows else where
    outputs, layers = forward(net, state["policy"], inputs)
    theta = outputs[:, rows:, : outputs.shape[-1] - (n if rows else 0)]
    transition = Transition(q_sa, reward, gamma, terminal, q_next)
    tau: Any = hyper["entropy_bonus"][:, None] if program.entropy_bonus else 0.0
    numbers = {each.name: hyper[each.name] for each in update.network_numbers}
    kept: dict[str, Any] = {}
    if not update.estimates:
        numbers = {name: value[:, None] for name, value in numbers.items()}
        error, delta = update.gradient(theta, transition, tau=tau, **numbers)
    elif update.shared:
        error, delta, kept["estimate"] = update.gradient(theta, state["estimate"], transition, tau=tau, **numbers)
    else:
        y = (outputs[:, :rows, -n:] * taken).sum(-1)
        slope, delta, of_y = update.gradient(theta, y, transition, tau=tau, **numbers)
        error = jnp.zeros_like(outputs).at[:, rows:, :-n].set(slope).at[:, :rows, -n:].set(of_y[..., None] * taken)
    error = _weighted(sample.weight, error)
    new = _stepped(program, "policy", state, layers, error / batch, hyper["policy_step_size"], hyper, done)
    return new | kept, delta


def _weighted(weight: Any, error: Any) -> Any:
    """The gradient in the policy network's outputs, (seeds, n, outputs), times the importance weights, (seeds, batch),
    if there are any; n is a multiple of the minibatch's size."""
    if weight is None:
        return error
    return error * jnp.tile(weight, (1, error.shape[1] // weight.shape[1]))[..., None]


def _distil(
    program: Program,
    state: dict[str, Any],
    hyper: dict[str, Any],
    here: Any,
    q: Any,
    taken: Any,
    weight: Any,
    done: Any,
) -> dict[str, Any]:
    """The policy network and its moments after a step of imitation: down the cross-entropy to what the behaviour
    distils, in the states `here`, whose values are `q`, and in which the actions `taken` were taken."""
    forward, net = functions(program).forward, program.policy_architecture
    distils = program.behaviour.distils
    assert distils is not None
    before, _ = forward(net, state["policy_target"], here)
    aim = distils(View(q, before, taken=taken), {name: value[:, None] for name, value in hyper.items()})
    theta, layers = forward(net, state["policy"], here)
    error = _weighted(weight, (softmax(theta) - aim) / q.shape[1])
    return _stepped(program, "policy", state, layers, error, hyper["policy_step_size"], hyper, done)


def _stepped(
    program: Program,
    name: str,
    state: dict[str, Any],
    seen: list[Any],
    error: Any,
    step_size: Any,
    hyper: dict[str, Any],
    done: Any,
) -> dict[str, Any]:
    """A network and its moments after a step, from the gradient in its outputs."""
    moments = f"{name}_moments"
    net = program.policy_architecture if name == "policy" else program.architecture
    if program.products == "native" and program.optimiser_kind == "rmsprop" and not program.optimiser_clip:
        new, memory = calls.rmsprop(net, state[name], seen, error, state[moments], step_size, hyper)
        return {name: new, moments: memory}
    gradient = functions(program).backward(net, state[name], seen, error)
    if program.optimiser_clip:
        gradient = clipped(gradient, hyper["optimiser_clip"])
    new, memory = step(program.optimiser_kind, state[name], gradient, state[moments], step_size, hyper, done)
    return {name: new, moments: memory}
