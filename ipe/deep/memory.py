"""How much memory a training takes, known from its settings before anything is allocated."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ipe.base.memory import check_memory
from ipe.deep.environments import EnvironmentSpec
from ipe.deep.networks import Architecture
from ipe.deep.programs import architecture, form_of
from ipe.deep.replay import Format, slots_of
from ipe.deep.settings import TrainingSettings

_NODE_BYTES = 8
_STEP_BYTES = 3 * 4  # action, reward and end, as float32
_PLACE_BYTES = 8


def seed_bytes(settings: TrainingSettings, net: Architecture, form: Format) -> int:
    """Return the bytes that the networks, the optimisers, a gradient and the replay of one seed take."""
    (shape, dtype) = form.stored
    slots = settings.environments * slots_of(settings.replay // settings.environments, form.stack)
    replay = slots * (math.prod(shape) * np.dtype(dtype).itemsize + _STEP_BYTES) + settings.replay * _PLACE_BYTES
    if settings.priority.exponent > 0.0:
        replay += 2 * _NODE_BYTES * (1 << max(settings.replay - 1, 1).bit_length())
    q, policy = (4 * sum(i * o + o for i, o in net.of(name).layers) for name in ("q", "policy"))
    moments = 2 if settings.optimiser.kind == "adam" else 1
    copies = 1 + moments if settings.learns_policy else 0
    copies += settings.acts.distils is not None  # the policy network when it was last copied
    return replay + (2 + moments + 1) * q + copies * policy  # network, target, moments; a gradient


def check_training_memory(settings: TrainingSettings, spec: EnvironmentSpec, batches: Iterable[int]) -> None:
    """Refuse a training whose batches, of so many seeds at the same time, do not fit into the memory that is available;
    the error says how much the training takes, and how much there is."""
    net = architecture(settings, spec)
    seeds, each = sum(batches), seed_bytes(settings, net, form_of(spec))
    at_once = f" ({seeds} at the same time)" if seeds > 1 else ""
    what = f"a seed with a replay of {settings.replay} transitions and a network of width {net.width}{at_once}"
    check_memory(seeds * each, what)
