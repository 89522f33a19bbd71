"""How a frame acts: an action per seed from the behaviour, and what a behaviour remembers of it.

Where a seed acts in several environments, the rows of all arrays here are the first seed's environments, then the
second's, and so on; `spread` gives each row the numbers of its seed.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from ipe.behaviours import Experience, View, sample_at
from ipe.deep import networks
from ipe.deep.frame import ACTION, END, REWARD, Frame
from ipe.deep.native import calls
from ipe.deep.programs import Program
from ipe.deep.replay import CONTINUES, TERMINATED
from ipe.entropy import entropy_from_logits, uniform


def spread(program: Program, hyper: dict[str, Any]) -> dict[str, Any]:
    """The numbers of each seed, for each of its environments."""
    if program.environments == 1:
        return hyper
    return {name: jnp.repeat(number, program.environments) for name, number in hyper.items()}


def act(
    program: Program, state: dict[str, Any], hyper: dict[str, Any], frame: Frame
) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """An action per seed; the behaviour's epsilon and the policy's entropy as far as there are such; and what the state
    keeps of the choice, if the behaviour remembers."""
    q, logits = _outputs(program, state, frame.current, frame.slots[:, 2:])
    scheduled = {each.name: frame.epsilon for each in program.behaviour.hyperparameters if each.scheduled}
    view = View(q, logits, step=frame.acting_step, memory=state.get("memory", {}))
    acting = program.behaviour.act(view, hyper | scheduled)
    seen = {} if logits is None else {"entropy": entropy_from_logits(logits)}
    if acting.epsilon is not None:
        seen["epsilon"] = acting.epsilon
    pi = acting.probabilities
    pi = jnp.where(frame.at_random[:, None] > 0, uniform(pi), pi)
    action = sample_at(pi, frame.draw).astype(jnp.int32)
    if not program.remembers:
        return action, seen, {}
    chosen_by = {"q": q, "probabilities": pi, "epsilon": jnp.zeros_like(q[:, 0]) + seen.get("epsilon", 0.0)}
    return action, seen, {"chosen_by": chosen_by}


def first_memory(program: Program, state: dict[str, Any], hyper: dict[str, Any], frame: Frame) -> dict[str, Any]:
    """What the state of a behaviour that remembers has more than others at the start."""
    if program.behaviour.memory is None:
        return {}
    view = View(*_outputs(program, state, frame.current, frame.slots[:, 2:]), step=frame.acting_step)
    return {"memory": program.behaviour.memory.initial(view, hyper)}


def remembered(program: Program, state: dict[str, Any], hyper: dict[str, Any], frame: Frame) -> dict[str, Any]:
    """The behaviour's memory after the step that was just taken; as before, if that was a step of the warm-up."""
    memory = program.behaviour.memory
    assert memory is not None
    chosen_by, end = state["chosen_by"], frame.step[:, END]
    q, logits = _outputs(program, state, frame.arrived, frame.slots[:, 1:2])
    experience = Experience(
        probabilities=chosen_by["probabilities"],
        epsilon=chosen_by["epsilon"],
        action=frame.step[:, ACTION].astype(jnp.int32),
        reward=frame.step[:, REWARD],
        discount=jnp.where(end == TERMINATED, 0.0, hyper["gamma"]),
        following=View(q, logits, step=frame.acting_step, memory=state["memory"]),
        ended=end != CONTINUES,
        chance=frame.chance,
    )
    new = memory.updated(View(chosen_by["q"], memory=state["memory"]), experience, hyper)
    # The next action comes so many frames after the step that was just taken.
    after_warm_up = frame.acting_step > program.environments - 1
    return {name: jnp.where(after_warm_up, new[name], old) for name, old in state["memory"].items()}


def _outputs(program: Program, state: dict[str, Any], observations: Any, slots: Any) -> tuple[Any, Any]:
    """The action values of one stored observation per seed, and the logits of its policy; None if none is learned. The
    replay holds the frames before the newest one of a stack, in the slots, (seeds, 1)."""
    net, of = program.architecture, functions(program)
    base = jnp.arange(slots.shape[0], dtype=jnp.int32)[:, None] * program.slots
    stored = program.form.complete(observations, state["replay"]["observation"], slots, base, program.slots)
    if program.environments > 1:
        stored = stored.reshape(-1, program.environments, *stored.shape[2:])
    inputs = features(program, stored)
    q = _rows(program, of.act(net, state["q"], inputs))
    if not program.learns_policy:
        return q, None
    learned = _rows(program, of.act(program.policy_architecture, state["policy"], inputs))
    return q, learned if program.policy_update is None else program.policy_update.policy(learned, q)


def _rows(program: Program, outputs: Any) -> Any:
    """Outputs (seeds, environments, actions) with a row for each environment of each seed."""
    return outputs[:, 0] if program.environments == 1 else outputs.reshape(-1, outputs.shape[-1])


def features(program: Program, stored: Any) -> Any:
    """Observations as `Format.read` returns them, as the networks' functions want them."""
    form = program.form
    if program.products == "native" and form.binary and form.stack == 1 and program.architecture.image:
        return stored
    return functions(program).features(program.architecture, form.unpack(stored))


def functions(program: Program) -> Any:
    """The module with the networks' functions: features, forward, act and backward."""
    return calls if program.products == "native" else networks
