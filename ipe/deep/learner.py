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
from ipe.deep.acting import act, features, first_memory, functions, remembered
from ipe.deep.frame import ACTION, END, REWARD, Frame
from ipe.deep.native import calls
from ipe.deep.optimisers import clipped, step
from ipe.deep.programs import Program
from ipe.deep.replay import CONTINUES, TERMINATED
from ipe.updates import Transition

COUNTS = ("epsilon", "entropy", "td_error", "ipe_error", "q_mean", "frames", "updates", "sound")
"""What is summed up for each seed over the frames since the sums were last read. `sound` counts the updates before the
first update whose errors were not finite."""


class Sample(NamedTuple):
    """A minibatch. The first two axes of every array are the seeds and the batch."""

    inputs: Any
    """The features of s, of s' and, if it is another state, of the state that the target bootstraps from; one after
    the other along axis 1."""
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


def advance(
    program: Program, updating: str, state: dict[str, Any], spare: dict[str, Any], numbers: Any, frame: Frame
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """One frame. The arrays of the state and the spare arrays cannot be used afterwards.

    Args:
        program: what is compiled in.
        updating: whether all, some (those of `frame.updates`) or none of the seeds are updated.
        state: networks, moments, replay and counts.
        spare: arrays like those of the networks that learn, into which the new parameters are written.
        numbers: the values of `Program.numbers`, first axis those, second axis the seeds.
        frame: the numbers that the host passes in for this frame.

    Returns:
        The new state, new spare arrays, and an action per seed.
    """
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
def compiled_start(program: Program) -> Any:
    """The jitted start, which stores the first observations and returns (state, actions) like a frame."""

    def run(state: dict[str, Any], numbers: Any, frame: Frame) -> tuple[dict[str, Any], Any]:
        observation = state["replay"]["observation"]
        for seed in range(frame.current.shape[0]):
            place = (seed * program.slots, 0)
            observation = jax.lax.dynamic_update_slice(observation, frame.current[seed : seed + 1], place)
        hyper = dict(zip(program.numbers, numbers, strict=True))
        state = {**state, "replay": {**state["replay"], "observation": observation}}
        state = {**state, **first_memory(program, state, hyper, frame)}
        action, _, choice = act(program, state, hyper, frame)
        return {**state, **choice}, action

    return jax.jit(run, donate_argnums=0)


@jax.jit
def _copied(q: Any, target: Any, which: Any) -> Any:
    return jax.tree.map(lambda a, b: jnp.where(which.reshape(-1, *(1,) * (a.ndim - 1)), a, b), q, target)


def copy_targets(state: dict[str, Any], which: Any) -> dict[str, Any]:
    """The state with the Q-networks of some seeds copied to their target networks."""
    return {**state, "target": _copied(state["q"], state["target"], which)}


def _frame(
    program: Program, updating: str, state: dict[str, Any], hyper: dict[str, Any], frame: Frame
) -> tuple[dict[str, Any], Any]:
    counts = {name: state["counts"][:, i] for i, name in enumerate(COUNTS)}
    new = {**state, "replay": _stored(program, state["replay"], frame)}
    seen: dict[str, Any] = {}
    if updating != "none":
        sample = _sample(program, new["replay"], hyper, frame)
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
        new.update(learned)
    if program.remembers:
        new["memory"] = remembered(program, new, hyper, frame)
    action, behaviour, choice = act(program, new, hyper, frame)
    new.update(choice)
    seen = {**seen, **behaviour, "frames": jnp.ones_like(counts["frames"])}
    new["counts"] = jnp.stack([count + seen.get(name, 0.0) for name, count in counts.items()], axis=-1)
    return new, action


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

    def rows(array: Any, slots: Any) -> Any:
        return array.at[slots % program.slots + base].get(mode="promise_in_bounds")

    steps = rows(replay["step"], first)
    action, reward, end = steps[..., ACTION].astype(jnp.int32), steps[..., REWARD], steps[..., END]
    gamma = hyper["gamma"][:, None]
    slots = [first, first + 1]
    total, discount, last, length = reward, jnp.broadcast_to(gamma, reward.shape), end, jnp.ones_like(first)
    alive = jnp.ones_like(first, bool)
    for k in range(1, program.n_step):
        later = rows(replay["step"], first + k)
        # No step has been taken from the current observation yet: what lies there is a lap old.
        alive = alive & (last == CONTINUES) & ((first + k) % program.slots != current)
        total = total + jnp.where(alive, discount * later[..., REWARD], 0.0)
        discount = jnp.where(alive, discount * gamma, discount)
        last = jnp.where(alive, later[..., END], last)
        length = length + alive
    if program.n_step > 1:
        slots.append(first + length)
    stored = program.form.read(replay["observation"], jnp.concatenate(slots, axis=1), base, program.slots)
    return Sample(
        inputs=features(program, stored),
        action=action,
        reward=reward,
        terminal=end == TERMINATED,
        target_reward=total,
        target_discount=jnp.where(last == TERMINATED, 0.0, discount),
    )


def _update(
    program: Program, state: dict[str, Any], hyper: dict[str, Any], sample: Sample, done: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The new networks and moments, and what to add to the counts."""
    net, forward = program.architecture, functions(program).forward
    batch = sample.action.shape[1]
    here, next_, ahead = sample.inputs[:, :batch], sample.inputs[:, batch : 2 * batch], sample.inputs[:, -batch:]
    of_target = program.learns_policy and program.delta_q == "target"
    everywhere = of_target or program.behaviour.target is not None
    values, _ = forward(net, state["target"], sample.inputs if everywhere else ahead)

    q, layers = forward(net, state["q"], here)
    taken = jax.nn.one_hot(sample.action, q.shape[-1], dtype=q.dtype)
    q_sa = (q * taken).sum(-1)
    reward = sample.target_reward
    if program.behaviour.target is not None:
        outcome = Outcome(View(values[:, :batch]), taken > 0, View(values[:, -batch:]))
        bonus, best = program.behaviour.target(outcome, {name: value[:, None] for name, value in hyper.items()})
        reward = reward + bonus
    elif program.double_q:
        chosen = jnp.argmax(forward(net, state["q"], ahead)[0], axis=-1)
        best = jnp.take_along_axis(values[:, -batch:], chosen[..., None], axis=-1)[..., 0]
    else:
        best = values[:, -batch:].max(-1)
    td_error = q_sa - (reward + sample.target_discount * best)
    limit = hyper["huber"][:, None]
    slope = jnp.clip(td_error, -limit, limit) if program.huber else 2.0 * td_error
    error = (slope / batch)[..., None] * taken
    new = _stepped(program, "q", state, layers, error, hyper["value_step_size"], hyper, done)
    seen = {"td_error": jnp.abs(td_error).mean(-1), "q_mean": q_sa.mean(-1)}

    if program.learns_policy:
        if of_target:
            q_here, q_next = values[:, :batch], values[:, batch : 2 * batch]
        else:
            both, _ = forward(net, new["q"], sample.inputs[:, : 2 * batch])
            q_here, q_next = both[:, :batch], both[:, batch:]
        theta, layers = forward(net, state["policy"], next_)
        tau: Any = hyper["entropy_bonus"][:, None] if program.entropy_bonus else 0.0
        gamma = hyper["gamma"][:, None]
        transition = Transition((q_here * taken).sum(-1), sample.reward, gamma, sample.terminal, q_next)
        gradient = program.policy_update.gradient
        assert gradient is not None
        error, delta = gradient(theta, transition, tau=tau)
        new |= _stepped(program, "policy", state, layers, error / batch, hyper["policy_step_size"], hyper, done)
        seen["ipe_error"] = jnp.abs(delta).mean(-1)
    return new, seen


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
    if program.products == "native" and program.optimiser_kind == "rmsprop" and not program.optimiser_clip:
        new, memory = calls.rmsprop(program.architecture, state[name], seen, error, state[moments], step_size, hyper)
        return {name: new, moments: memory}
    gradient = functions(program).backward(program.architecture, state[name], seen, error)
    if program.optimiser_clip:
        gradient = clipped(gradient, hyper["optimiser_clip"])
    new, memory = step(program.optimiser_kind, state[name], gradient, state[moments], step_size, hyper, done)
    return {name: new, moments: memory}
