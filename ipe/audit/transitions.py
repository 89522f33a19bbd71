"""A batch of transitions (s, a, r, s', terminated): as arrays, checked, and in an .npz file."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array, Indices, Mask
from ipe.base.atomic import write_atomic
from ipe.base.files import PathLike, check_keys, naming, read_npz, suffix_of
from ipe.errors import InputError

_REQUIRED = ("action", "reward", "terminated")
_OPTIONAL = ("state", "next_state", "observation", "next_observation", "truncated")


@dataclass(frozen=True, eq=False)
class Transitions:
    """Transitions in order of time, or not: only where a part is held out does the order matter."""

    observation: NDArray[Any] | None
    """Of s: whole numbers of shape (n,), which are states; or vectors or images of shape (n, ...)."""
    action: Indices
    """Shape (n,)."""
    reward: Array
    """Shape (n,)."""
    next_observation: NDArray[Any] | None
    """Of s', in the same form."""
    terminated: Mask
    """Whether s' is terminal, shape (n,). The end of a time limit is none: there is a value beyond it."""

    def __len__(self) -> int:
        return len(self.action)

    @property
    def discrete(self) -> bool:
        """Whether the observations are states: whole numbers."""
        return self.observation is not None and self.observation.ndim == 1 and self.observation.dtype.kind in "iu"


def make_transitions(arrays: Mapping[str, Any]) -> Transitions:
    """Transitions from arrays by name.

    Args:
        arrays: `action`, `reward`, `terminated`, of shape (n,), and of the same length either `state` and
            `next_state`, whole numbers from 0 on; or `observation` and `next_observation`, vectors or images. Without
            any of these, only what per-transition values say can be judged. `truncated` may be there and is not used.

    Raises:
        InputError: naming the array and the index.

    Example:
        >>> steps = {"state": [0, 1], "action": [1, 0], "reward": [0.0, 1.0], "next_state": [1, 0]}
        >>> batch = make_transitions({**steps, "terminated": [False, True]})
        >>> len(batch), batch.discrete
        (2, True)
    """
    check_keys(arrays, _REQUIRED, _OPTIONAL)
    action = _whole("action", arrays["action"])
    n = len(action)
    if n == 0:
        raise InputError("action is empty: there are no transitions")
    here, there = _observations(arrays, n)
    reward = _array("reward", arrays["reward"], n)
    if reward.dtype.kind not in "fiub" or reward.ndim != 1:
        raise InputError(f"reward must be numbers of shape ({n},), found {reward.dtype} of shape {reward.shape}")
    reward = reward.astype(np.float64)
    check_finite("reward", reward)
    return Transitions(here, action, reward, there, _flags("terminated", arrays["terminated"], n))


def load_transitions(path: PathLike) -> Transitions:
    """The transitions in an .npz file, its arrays named as `make_transitions` says; nothing in it is ever unpickled."""
    with naming(path):
        suffix_of(path, (".npz",))
        return make_transitions(read_npz(path))


def save_transitions(transitions: Transitions, path: PathLike) -> None:
    """Write transitions so that `load_transitions` gives them back; the file appears whole or not at all."""
    with naming(path):
        suffix_of(path, (".npz",))
    name = "state" if transitions.discrete else "observation"
    seen = {name: transitions.observation, f"next_{name}": transitions.next_observation}
    arrays = {field: getattr(transitions, field) for field in _REQUIRED}
    arrays |= {key: values for key, values in seen.items() if values is not None}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomic(path, lambda file: file.write(buffer.getvalue()))


def check_finite(name: str, array: NDArray[Any]) -> None:
    """That all numbers of an array are finite."""
    wrong = ~np.isfinite(array)
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(f"{name}[{', '.join(map(str, at))}] = {array[at]:g} is not a finite number")


def _observations(arrays: Mapping[str, Any], n: int) -> tuple[NDArray[Any] | None, NDArray[Any] | None]:
    names = ("state", "next_state") if "state" in arrays or "next_state" in arrays else _OPTIONAL[2:4]
    if names[0] == "state" and ("observation" in arrays or "next_observation" in arrays):
        raise InputError("give state and next_state, or observation and next_observation, not both")
    if not any(name in arrays for name in names):
        return None, None
    for name in names:
        if name not in arrays:
            raise InputError(f"{name} is missing")
    if names[0] == "state":
        states = [_whole(name, _array(name, arrays[name], n)) for name in names]
        return states[0], states[1]
    here, there = (_array(name, arrays[name], n) for name in names)
    for name, array in zip(names, (here, there), strict=True):
        if array.dtype.kind not in "fiub":
            raise InputError(f"{name} must hold real numbers, found dtype {array.dtype}")
        if array.dtype.kind == "f":
            check_finite(name, array)
    if here.shape != there.shape:
        raise InputError(f"next_observation has the shape {there.shape}, observation {here.shape}")
    if here.ndim == 1:
        if here.dtype.kind in "iu" and there.dtype.kind in "iu":
            return _whole(names[0], here), _whole(names[1], there)
        here, there = here[:, None], there[:, None]
    return here, there


def _array(name: str, given: Any, n: int | None = None) -> NDArray[Any]:
    try:
        array = np.asarray(given)
    except ValueError as error:  # ragged lists
        raise InputError(f"{name} is not an array: {error}") from None
    if array.ndim == 0 or (n is not None and len(array) != n):
        found = "a single number" if array.ndim == 0 else f"{len(array)} entries"
        raise InputError(f"{name} must have one entry per transition{'' if n is None else f', {n}'}; found {found}")
    return array


def _whole(name: str, given: Any) -> Indices:
    array = _array(name, given)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"{name} must be whole numbers of shape (n,), found {array.dtype} of shape {array.shape}")
    wrong = array < 0
    if wrong.any():
        raise InputError(f"{name}[{int(np.argmax(wrong))}] = {array[wrong][0]} is negative")
    wrong = array > np.iinfo(np.intp).max
    if wrong.any():
        raise InputError(f"{name}[{int(np.argmax(wrong))}] = {array[wrong][0]} is too large to be counted from 0")
    return array.astype(np.intp)


def _flags(name: str, given: Any, n: int) -> Mask:
    array = _array(name, given, n)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be true or false, shape ({n},); found {array.dtype} of shape {array.shape}")
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        raise InputError(f"{name}[{int(np.argmax(wrong))}] = {array[wrong][0]:g} is neither 0 nor 1")
    return array.astype(bool)
