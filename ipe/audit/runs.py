"""The audit of a trained run of this library: its networks, and transitions that its behaviour makes."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.audit.auditing import audit
from ipe.audit.fitting import Fit, logits
from ipe.audit.result import Audit, SampleAudit
from ipe.audit.transitions import Transitions
from ipe.base.numbers import seed_number, whole_number
from ipe.deep.environments import EnvironmentFailure, make_environment
from ipe.deep.evaluation import choose_seeds
from ipe.deep.loop import architecture
from ipe.deep.playing import Trained, agent, evaluation_seed, read_trained
from ipe.entropy import softmax
from ipe.errors import InputError

FRAMES = 5000


def audit_run(
    run: str | os.PathLike[str],
    *,
    seed: int | None = None,
    transitions: Transitions | None = None,
    frames: int = FRAMES,
    draws: int = 0,
    fit: Fit | None = None,
    refit: bool = False,
    deterministic: bool | None = None,
    worst: int = 10,
    tolerance: float | None = None,
) -> Audit:
    """Audit the Q-network of a trained run.

    The transitions are new ones, in episodes that training has not seen, by the run's behaviour as at the end of
    training; or those given. The evaluation policy is the run's policy network, or is fitted if it has none. Where
    observations are one-hot (an environment with numbered states), the Q-network is a table, and audited as one.

    Args:
        run: its folder.
        seed: which trained seed. Default: the first whose training neither failed nor diverged.
        transitions: the batch. Default: collected.
        frames: how many to collect.
        draws: the seed of the episodes.
        fit: how a policy is fitted.
        refit: fit a policy even if the run has a policy network; refused for a table.
        deterministic, worst, tolerance: as for `ipe.audit.audit`.

    Raises:
        InputError: naming the argument, or the file of the run that is missing, damaged or does not fit.
    """
    trained = read_trained(Path(run))
    unusable = trained.unusable()
    chosen = choose_seeds(trained, unusable, None if seed is None else [seed])[0]
    batch = collect_run(trained, chosen, frames, draws) if transitions is None else _fitting(trained, transitions)
    q, pi = _networks(trained, chosen)
    gamma = trained.run.settings.gamma
    options: dict[str, Any] = {"deterministic": deterministic, "worst": worst, "tolerance": tolerance}
    if (states := numbered(batch, trained)) is not None:
        refuse_refit(refit)
        eye = np.eye(trained.spec.observation_shape[0], dtype=np.float32)
        return audit(states, q=q(eye), gamma=gamma, policy=None if pi is None else _rows(pi(eye)), **options)
    here, there = np.asarray(batch.observation), np.asarray(batch.next_observation)
    own = None if pi is None or refit else _rows(pi(there))
    result = audit(batch, q=q(here), q_next=q(there), gamma=gamma, policy_next=own, fit=fit, **options)
    return (
        result if own is None or not isinstance(result, SampleAudit) else dataclasses.replace(result, source="network")
    )


def collect_run(trained: Trained, seed: int, frames: int = FRAMES, draws: int = 0) -> Transitions:
    """Transitions that a trained seed's behaviour makes, in episodes that training has not seen.

    Args:
        trained: the run.
        seed: the trained seed.
        frames: how many.
        draws: the seed of the episodes and of the behaviour.
    """
    check_frames(frames)
    check_draws(draws)
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
    return stacked(rows)


def stacked(rows: list[tuple[Any, int, float, Any, bool]]) -> Transitions:
    """Transitions from rows (s, a, r, s', terminated)."""
    here, action, reward, there, terminated = zip(*rows, strict=True)
    return Transitions(
        np.stack(here), np.array(action, np.intp), np.array(reward, np.float64), np.stack(there), np.array(terminated)
    )


def check_frames(frames: int) -> None:
    """That a number of frames to collect is one."""
    whole_number(frames, "frames", 1)


def check_draws(draws: int) -> None:
    """That a seed of the episodes to collect is one."""
    seed_number(draws, "draws")


def refuse_refit(refit: bool) -> None:
    """That nobody asks for a fitted policy where Q is a table."""
    if refit:
        raise InputError(
            "refit is not for numbered states: there Q is a table, whose evaluation policy is solved for and not "
            "fitted; leave it out"
        )


def numbered(batch: Transitions, trained: Trained) -> Transitions | None:
    """The same transitions between numbered states, if all observations are one-hot vectors."""
    here, there = np.asarray(batch.observation), np.asarray(batch.next_observation)
    if trained.spec.image or not trained.spec.binary:
        return None
    if any(((x != 0) & (x != 1)).any() or (x.sum(axis=1) != 1).any() for x in (here, there)):
        return None
    return dataclasses.replace(batch, observation=here.argmax(axis=1), next_observation=there.argmax(axis=1))


def _fitting(trained: Trained, batch: Transitions) -> Transitions:
    """A given batch in the form that the networks take."""
    shape = trained.spec.observation_shape
    if batch.observation is None or batch.next_observation is None:
        raise InputError("observation is missing: the Q-network needs it")
    if batch.discrete and len(shape) == 1 and trained.spec.binary:
        for name, states in (("state", batch.observation), ("next_state", batch.next_observation)):
            if (wrong := states >= shape[0]).any():
                i = int(np.argmax(wrong))
                raise InputError(f"{name}[{i}] = {states[i]}, but the run's environment has {shape[0]} states")
        eye = np.eye(shape[0], dtype=np.uint8)
        return dataclasses.replace(
            batch, observation=eye[batch.observation], next_observation=eye[batch.next_observation]
        )
    here, there = batch.observation, batch.next_observation
    if here.ndim == 3 and len(shape) == 3:
        here, there = here[..., None], there[..., None]
    if here.shape[1:] != shape:
        raise InputError(f"observation has the shape {here.shape[1:]} per transition, the run's networks take {shape}")
    return dataclasses.replace(batch, observation=here, next_observation=there)


def _networks(trained: Trained, seed: int) -> tuple[Any, Any]:
    """The Q-network and the policy network, if there is one, as functions of observations."""
    net = architecture(trained.run.settings, trained.spec)
    parameters = trained.parameters(seed)

    def outputs(name: str) -> Any:
        return lambda observations: logits(net, parameters[name], observations, trained.spec.scale)

    return outputs("q"), outputs("policy") if "policy" in parameters else None


def _rows(theta: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.asarray(softmax(theta.astype(np.float64)))
