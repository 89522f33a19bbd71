"""From settings and an environment's spaces to the program that is compiled for them, and the numbers it reads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ipe.deep import learner
from ipe.deep.environments import EnvironmentSpec
from ipe.deep.learner import Program
from ipe.deep.native import library
from ipe.deep.networks import Architecture
from ipe.deep.replay import Format, Slots
from ipe.deep.settings import TrainingSettings
from ipe.errors import InputError


def check_spec(spec: EnvironmentSpec) -> None:
    """Refuse observations for which there is no network."""
    if spec.image and min(spec.observation_shape[:2]) < 3:
        height, width = spec.observation_shape[:2]
        raise InputError(f"{spec.id}: an image must be at least 3 by 3 for the convolution, found {height} by {width}")


def architecture(settings: TrainingSettings, spec: EnvironmentSpec) -> Architecture:
    """Return the shape of the networks that a setting trains in an environment."""
    return Architecture(spec.observation_shape, settings.width, settings.channels, spec.actions, settings.precision)


def program_of(settings: TrainingSettings, spec: EnvironmentSpec, begun_with: str | None) -> Program:
    """Return the program that trains a setting.

    Args:
        settings: the setting.
        spec: the spaces of its environment.
        begun_with: whose matrix products a run was begun with, native or xla: it goes on with them, to the byte. None
            for a new run, which takes the best that this machine has.
    """
    check_spec(spec)
    net = architecture(settings, spec)
    form = Format(spec.observation_shape, np.dtype(spec.dtype).name, spec.binary, spec.scale)
    return learner.program_of(settings, net, form, Slots(1, settings.replay).size, _products(net, begun_with))


def lanes_of(program: Program, seeds: int) -> int:
    """Return how many lanes a batch of seeds takes.

    XLA rounds a batch of one differently from larger ones, among which it makes no difference: one seed is padded.
    """
    if program.architecture.image and seeds > 1:
        raise InputError(f"images are trained one seed at a time, found {seeds}")
    alone = program.architecture.image or program.products == "native"
    return seeds if alone else max(2, seeds)


def hyperparameters(settings: Sequence[TrainingSettings]) -> NDArray[np.float32]:
    """Return the numbers that the program reads: first axis `Program.numbers`, second axis the seeds."""
    return np.array([list(setting.numbers.values()) for setting in settings], np.float32).T


def _products(net: Architecture, begun_with: str | None) -> str:
    if begun_with is None:
        return library.choose(net)
    if begun_with == "native" and (why := library.reason(net)):
        raise InputError(f"the run was begun with native products, which cannot be used here: {why}")
    return begun_with
