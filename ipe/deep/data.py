r"""A data set of transitions that a training learns from, or that a training has left behind.

`Data` holds each observation once, in the order of the steps, as the replay does (`ipe.deep.replay`): the observation
in place p, and the step that was taken from it, which leads to the observation in place p + 1. Where an episode ends,
its last observation has a place from which no step starts. So a data set is a replay that is never written to again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load

from ipe.base.files import naming, read_bytes
from ipe.deep.environments import EnvironmentFailure, EnvironmentSpec
from ipe.deep.environments.environment import Interface
from ipe.deep.frame import ACTION, END, REWARD
from ipe.deep.replay import CONTINUES, TERMINATED, TRUNCATED, Format
from ipe.deep.settings import TrainingSettings, read_settings
from ipe.deep.tensors import write_tensors
from ipe.deep.transitions import Transitions, check_below
from ipe.errors import InputError

FIELDS = ("observation", "start", "action", "reward", "end")
"""The arrays of a data set, by the names that they have in files."""


@dataclass(frozen=True, eq=False)
class Data:
    """A data set of n transitions in m places."""

    observation: NDArray[Any]
    """The observations as the networks see them, shape (m, ...): float32, or uint8."""
    start: NDArray[np.int64]
    """The place of each transition's s, shape (n,); its s' is in the next place."""
    action: NDArray[np.int32]
    """The actions, shape (n,)."""
    reward: NDArray[np.float32]
    """The rewards, shape (n,)."""
    end: NDArray[np.uint8]
    """How each step ended, shape (n,): it went on (0), terminated (1), or was cut off (2)."""

    def __len__(self) -> int:
        return len(self.action)

    @property
    def places(self) -> int:
        """The number m of places."""
        return len(self.observation)

    @cached_property
    def sha256(self) -> str:
        """The checksum of the arrays, by which a run knows its data set again."""
        digest = hashlib.sha256()
        for name in FIELDS:
            array = np.ascontiguousarray(getattr(self, name))
            digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
            digest.update(array.reshape(-1).view(np.uint8).data)
        return digest.hexdigest()

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name, for a file."""
        return {name: getattr(self, name) for name in FIELDS}

    def transitions(self) -> Transitions:
        """The transitions with s and s' side by side, as `ipe.audit` takes them."""
        return Transitions(
            self.observation[self.start],
            self.action.astype(np.intp),
            self.reward.astype(np.float64),
            self.observation[self.start + 1],
            self.end == TERMINATED,
            self.end == TRUNCATED,
        )

    def replay(self, form: Format) -> dict[str, NDArray[Any]]:
        """The arrays of a replay that holds the data set, as `ipe.deep.replay.empty` makes them."""
        flat = self.observation.reshape(self.places, -1)
        step = np.zeros((self.places, 3), np.float32)
        for column, values in ((ACTION, self.action), (REWARD, self.reward), (END, self.end)):
            step[self.start, column] = values
        return {"observation": np.packbits(flat, axis=1, bitorder="little") if form.binary else flat, "step": step}

    def save(self, path: Path) -> None:
        """Write the data set to a file, which appears whole or not at all."""
        write_tensors(path, self.arrays())

    @classmethod
    def load(cls, path: Path, sha256: str) -> Self:
        """Read what `save` wrote; a file of other transitions than those of the checksum is refused."""
        if not path.exists():
            raise InputError(f"{path} is missing: the data set that the run learns from")
        with naming(path):
            try:
                data = cls(**load(read_bytes(path)))
            except (SafetensorError, TypeError, ValueError):
                raise InputError("it holds no data set of transitions") from None
            if data.sha256 != sha256:
                raise InputError("it holds other transitions than those that the run was begun with")
        return data


def joined(parts: Sequence[Data]) -> Data:
    """Several data sets, one after the other."""
    before = np.cumsum([0, *(part.places for part in parts)])
    starts = [part.start + offset for part, offset in zip(parts, before, strict=False)]
    others = {name: np.concatenate([getattr(part, name) for part in parts]) for name in FIELDS if name != "start"}
    return Data(start=np.concatenate(starts), **others)


def data_from(transitions: Transitions, spec: EnvironmentSpec, interface: Interface | None = None) -> Data:
    r"""Transitions as a data set for an environment.

    A step goes on with the next one if it neither terminated nor was cut off, and if its s' is the next one's s to the
    byte. Elsewhere an episode is taken to be cut off, which matters to returns of several steps alone.

    Args:
        transitions: the transitions, in order.
        spec: the spaces of the environment.
        interface: how the environment's own observations become those of a network, for transitions that have those.

    Raises:
        InputError: the transitions are of another environment.
    """
    found = encoded(transitions, spec, interface)
    here, there = np.asarray(found.observation), np.asarray(found.next_observation)
    check_below("action", found.action, spec.actions, f"{spec.id} has {spec.actions} actions")
    n = len(found)
    with np.errstate(over="ignore"):
        reward = found.reward.astype(np.float32)
    if not np.isfinite(reward).all():
        raise InputError(f"reward[{int(np.argmin(np.isfinite(reward)))}] is no finite number of single precision")
    follows = np.zeros(n, bool)
    follows[:-1] = (there[:-1].reshape(n - 1, -1) == here[1:].reshape(n - 1, -1)).all(axis=1)
    cut = ~follows if found.truncated is None else ~follows | found.truncated
    end = np.where(found.terminated, TERMINATED, np.where(cut, TRUNCATED, CONTINUES)).astype(np.uint8)
    start = np.arange(n, dtype=np.int64)
    start[1:] += np.cumsum(end[:-1] != CONTINUES)
    observation = np.zeros((int(start[-1]) + 2, *spec.observation_shape), spec.dtype)
    observation[start], observation[start + 1] = here, there
    return Data(observation, start, found.action.astype(np.int32), reward, end)


def encoded(transitions: Transitions, spec: EnvironmentSpec, interface: Interface | None = None) -> Transitions:
    """Transitions with observations in the form that the networks of an environment take: numbered states as one-hot
    vectors; arguments and errors as for `data_from`."""
    here, there = transitions.observation, transitions.next_observation
    if here is None or there is None:
        raise InputError("observation is missing: the networks need it")
    shape = spec.observation_shape
    if transitions.discrete:
        if len(shape) != 1 or not spec.binary:
            raise InputError(f"state holds numbered states, and {spec.id} shows observations of the shape {shape}")
        known = f"{spec.id} has {shape[0]} states"
        check_below("state", here, shape[0], known)
        check_below("next_state", there, shape[0], known)
        one_hot = np.eye(shape[0], dtype=np.uint8)
        return replace(transitions, observation=one_hot[here], next_observation=one_hot[there])
    if here.ndim == 3 and len(shape) == 3 and interface is None:
        here, there = here[..., None], there[..., None]
    if here.shape[1:] != shape:
        if interface is None or here.ndim - 1 != interface.axes:
            raise InputError(f"observation has the shape {here.shape[1:]} per transition, {spec.id} shows {shape}")
        try:
            here, there = (np.stack([interface.encode(each) for each in array]) for array in (here, there))
        except EnvironmentFailure as failure:
            raise InputError(f"observation does not fit {spec.id}: {failure}") from None
    plain = [_of_type(name, array, spec) for name, array in (("observation", here), ("next_observation", there))]
    return replace(transitions, observation=plain[0], next_observation=plain[1])


def _of_type(name: str, array: NDArray[Any], spec: EnvironmentSpec) -> NDArray[Any]:
    """Observations of the spec's type, if they can be."""
    if spec.dtype == np.uint8:
        largest = 1 if spec.binary else 255
        wrong = ~((array >= 0) & (array <= largest) & (array == np.round(array)))
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            index = ", ".join(map(str, at))
            raise InputError(f"{name}[{index}] = {array[at]:g}; {spec.id} shows whole numbers from 0 to {largest}")
    with np.errstate(over="ignore"):
        out = array.astype(spec.dtype)
    if not np.isfinite(out).all():
        raise InputError(f"{name} holds numbers that are too large for single precision")
    return out


def learning_from(settings: TrainingSettings, data: Data) -> TrainingSettings:
    """Settings that learn from a data set: with its checksum and a replay that holds it, every frame is an update, and
    there is no warm-up.

    Raises:
        InputError: the settings have something that learning from a data set has not.
    """
    changes = {"data": data.sha256, "replay": len(data), "warm_up": 0, "update_every": 1}
    return read_settings(settings.model_dump() | changes)
