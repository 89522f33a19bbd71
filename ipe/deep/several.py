"""The frames of seeds that act in several environments, as compiled programs.

All environments of a seed take a step by the same networks. Their transitions are stored together; then there are as
many updates as there were frames, each on a minibatch of its own; then the next actions of all are chosen. With one
environment that is one program (`ipe.deep.learner`); with several it is one for each of the three.

JAX may read the host's arrays after a call has returned. So what is filled anew before anything else is waited for is
waited for here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax

from ipe.deep.frame import Frame
from ipe.deep.learner import ACTING_NETWORKS, choose, counted, learn
from ipe.deep.programs import Program

_READ = (*ACTING_NETWORKS, "counts", "memory", "chosen_by")


def store(program: Program, state: dict[str, Any], rows: Frame) -> dict[str, Any]:
    """The state with a step more of every environment. The replay's arrays cannot be used afterwards."""
    return {**state, "replay": _waited_for(_compiled_store(program)(state["replay"], rows))}


def update(
    program: Program, updating: str, state: dict[str, Any], spare: dict[str, Any], numbers: Any, frame: Frame
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The state and spare arrays after an update. Arguments and what cannot be used afterwards are as for
    `ipe.deep.learner.advance`; the frame is one of `Frame.of_updates`."""
    live = {name: state[name] for name in spare}
    donated = {name: part for name, part in state.items() if name != "replay"} | spare
    new = _waited_for(_compiled_update(program, updating)(donated, live, state["replay"], numbers, frame))
    return {**new, "replay": state["replay"]}, live


def choose_actions(program: Program, state: dict[str, Any], numbers: Any, rows: Frame) -> tuple[dict[str, Any], Any]:
    """The state after the choice of an action for each environment, and the actions."""
    read = {name: state[name] for name in _READ if name in state}
    new, actions = _compiled_choice(program)(read, state["replay"], numbers, rows)
    return {**state, **new}, actions


def _waited_for(arrays: Any) -> Any:
    return jax.block_until_ready(arrays)  # type: ignore[no-untyped-call]


@lru_cache(maxsize=32)
def _compiled_store(program: Program) -> Any:
    def run(replay: dict[str, Any], rows: Frame) -> dict[str, Any]:
        def write(row: Any, arrays: tuple[Any, Any]) -> tuple[Any, Any]:
            observation, steps = arrays
            start, arrival, current = (rows.slots[row, i] + row * program.slots for i in range(3))

            def one(array: Any) -> Any:
                return jax.lax.dynamic_slice_in_dim(array, row, 1)

            steps = jax.lax.dynamic_update_slice(steps, one(rows.step), (start, 0))
            observation = jax.lax.dynamic_update_slice(observation, one(rows.arrived), (arrival, 0))
            return jax.lax.dynamic_update_slice(observation, one(rows.current), (current, 0)), steps

        arrays = (replay["observation"], replay["step"])
        observation, steps = jax.lax.fori_loop(0, rows.whole.shape[0], write, arrays)
        return {"observation": observation, "step": steps}

    return jax.jit(run, donate_argnums=0)


@lru_cache(maxsize=32)
def _compiled_update(program: Program, updating: str) -> Any:
    def run(state: dict[str, Any], live: dict[str, Any], replay: Any, numbers: Any, frame: Frame) -> dict[str, Any]:
        state = {**state, **live, "replay": replay}
        learned, seen = learn(program, updating, state, dict(zip(program.numbers, numbers, strict=True)), frame)
        del state["replay"]
        return {**state, **learned, "counts": counted(state, seen)}

    return jax.jit(run, donate_argnums=0, keep_unused=True)


@lru_cache(maxsize=32)
def _compiled_choice(program: Program) -> Any:
    def run(state: dict[str, Any], replay: Any, numbers: Any, rows: Frame) -> tuple[dict[str, Any], Any]:
        hyper = dict(zip(program.numbers, numbers, strict=True))
        action, seen, choice = choose(program, {**state, "replay": replay}, hyper, rows)
        return {**choice, "counts": counted(state, seen)}, action

    return jax.jit(run)
