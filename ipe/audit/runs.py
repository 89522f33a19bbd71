"""The audit of a trained run of this library: of its networks, on transitions that its behaviour makes."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.audit.auditing import Networks, audit_networks
from ipe.audit.fitting import Fit, logits
from ipe.audit.result import Audit
from ipe.audit.support import support_of
from ipe.deep.collecting import FRAMES, collect_run
from ipe.deep.data import encoded
from ipe.deep.playing import Trained
from ipe.deep.programs import architecture, policy_architecture
from ipe.deep.transitions import Transitions
from ipe.entropy import softmax
from ipe.experiments.data_sets import read_run_data
from ipe.experiments.evaluation import choose_seeds
from ipe.experiments.trained import read_trained


def audit_run(
    run: str | os.PathLike[str],
    *,
    seed: int | None = None,
    setting: str | None = None,
    transitions: Transitions | None = None,
    frames: int | None = None,
    draws: int = 0,
    fit: Fit | None = None,
    refit: bool = False,
    deterministic: bool | None = None,
    worst: int = 10,
    tolerance: float | None = None,
) -> Audit:
    """Audit the Q-network of a trained run.

    A run that learned from a data set is audited on that data set, and the audit says how much of Q is beyond the
    data's support (`ipe.audit.Support`). Of other runs, unless transitions are given, they are collected in new
    episodes, which training has not seen, by the behaviour that the run had at the end of training. The evaluation
    policy is the run's policy network; a run without one gets a fitted policy. Where observations are one-hot vectors
    (an environment with numbered states), the Q-network is a table and is audited as one.

    Args:
        run: the folder of a training run, or of a sweep that keeps networks.
        seed: which trained seed. Default: the first whose training neither failed nor diverged.
        setting: the name of a setting, for a sweep of several.
        transitions: the batch. Default: the data set that the run learned from, or transitions that are collected.
        frames: how many transitions to collect, also for a run that learned from a data set. Default: 5000.
        draws: the seed of the episodes that are collected.
        fit: how a policy is fitted.
        refit: fit a policy even if the run has a policy network; refused for a table.
        deterministic, worst, tolerance: as for `ipe.audit.audit`.

    Raises:
        InputError: naming the argument, or the file of the run that is missing, damaged or does not fit.
    """
    trained = read_trained(run, setting=setting)
    chosen = choose_seeds(trained, trained.unusable(), None if seed is None else [seed])[0]
    data = None
    if transitions is not None:
        batch = encoded(transitions, trained.spec)
    elif frames is None and (data := read_run_data(run, trained.settings)) is not None:
        batch = data.transitions()
    else:
        batch = collect_run(trained, chosen, FRAMES if frames is None else frames, draws)
    every_state = None
    if (numbered := _numbered(batch, trained)) is not None:
        batch, every_state = numbered, np.eye(trained.spec.observation_shape[0], dtype=np.float32)
    networks = _networks(trained, chosen)
    support = None
    if data is not None:
        support = support_of(batch, networks.q(np.asarray(data.transitions().next_observation)).astype(np.float64))
    found = audit_networks(
        networks,
        batch,
        every_state=every_state,
        fit=fit,
        refit=refit,
        deterministic=deterministic,
        worst=worst,
        tolerance=tolerance,
    )
    return dataclasses.replace(found, support=support)


def _numbered(batch: Transitions, trained: Trained) -> Transitions | None:
    """The same transitions between numbered states, if all observations are one-hot vectors; else None."""
    here, there = np.asarray(batch.observation), np.asarray(batch.next_observation)
    if trained.spec.image or not trained.spec.binary:
        return None
    if any(((x != 0) & (x != 1)).any() or (x.sum(axis=1) != 1).any() for x in (here, there)):
        return None
    return dataclasses.replace(batch, observation=here.argmax(axis=1), next_observation=there.argmax(axis=1))


def _networks(trained: Trained, seed: int) -> Networks:
    """The networks of one trained seed."""
    net = architecture(trained.settings, trained.spec)
    parameters, update = trained.networks[seed], trained.settings.updates_policy

    def q(observations: NDArray[Any]) -> NDArray[np.float32]:
        return logits(net, parameters["q"], observations, trained.spec.scale)

    def pi(observations: NDArray[Any]) -> NDArray[np.float64]:
        assert update is not None
        learned = logits(policy_architecture(net, update), parameters["policy"], observations, trained.spec.scale)
        theta = update.policy(learned.astype(np.float64), q(observations).astype(np.float64))
        return np.asarray(softmax(theta))

    return Networks(q, None if update is None else pi, trained.settings.gamma)
