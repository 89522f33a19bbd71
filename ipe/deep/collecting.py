"""Transitions that a trained agent makes, in episodes that training has not seen."""

from __future__ import annotations

from typing import Any

from ipe.base.numbers import seed_number, whole_number
from ipe.deep.environments import EnvironmentFailure, make_environment
from ipe.deep.playing import Trained, agent, evaluation_seed
from ipe.deep.transitions import Transitions, stack_transitions
from ipe.errors import InputError

FRAMES = 5000
"""How many transitions are collected unless another number is asked for."""


def collect_run(trained: Trained, seed: int, frames: int = FRAMES, draws: int = 0) -> Transitions:
    """Collect so many transitions by the behaviour of a trained seed, in episodes that training has not seen."""
    check_collection(frames, draws)
    environment = make_environment(trained.environment, evaluation_seed(draws, seed))
    act = agent(trained, seed, draws, behaviour=True)
    rows: list[tuple[Any, int, float, Any, bool]] = []
    try:
        observation = environment.reset()
        while len(rows) < frames:
            action = act(observation).action
            step = environment.step(action)
            rows.append((observation, action, step.reward, step.observation, step.terminated))
            observation = environment.reset() if step.terminated or step.truncated else step.observation
    except EnvironmentFailure as failure:
        raise InputError(f"seed {seed}: the environment failed {failure}") from None
    finally:
        environment.close()
    return stack_transitions(rows)


def check_collection(frames: int, draws: int) -> None:
    """Refuse a wrong number of transitions to collect, or a wrong seed of their episodes."""
    whole_number(frames, "frames", 1)
    seed_number(draws, "draws")
