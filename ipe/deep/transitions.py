"""A batch of transitions (s, a, r, s', terminated): from arrays, from an .npz file, or from a Minari data set."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array, Indices, Mask, array_like, refuse_where
from ipe.base.atomic import write_atomic
from ipe.base.files import PathLike, check_keys, naming, read_npz, suffix_of
from ipe.base.numbers import whole_number
from ipe.base.packages import missing_package
from ipe.errors import InputError

_REQUIRED = ("action", "reward", "terminated")
_OPTIONAL = ("state", "next_state", "observation", "next_observation", "truncated")


@dataclass(frozen=True, eq=False)
class Transitions:
    """A batch of n transitions. Their order matters only where a part of the batch is held out in blocks."""

    observation: NDArray[Any] | None
    """The observation of each s: whole numbers of shape (n,), which are states; or vectors or images, (n, ...)."""
    action: Indices
    """The action taken in each s, shape (n,)."""
    reward: Array
    """The reward of each transition, shape (n,)."""
    next_observation: NDArray[Any] | None
    """The observation of each s', in the same form as `observation`."""
    terminated: Mask
    """Whether each s' is terminal, shape (n,). A state at a time limit is not terminal: it has a value."""
    truncated: Mask | None = None
    """Whether the episode was cut off after each transition, shape (n,); None if that is not known."""

    def __len__(self) -> int:
        return len(self.action)

    @property
    def discrete(self) -> bool:
        """Whether the observations are states, that is, whole numbers."""
        return self.observation is not None and self.observation.ndim == 1 and self.observation.dtype.kind in "iu"


def make_transitions(arrays: Mapping[str, Any]) -> Transitions:
    """Transitions from arrays by name.

    Args:
        arrays: `action`, `reward` and `terminated`, each of shape (n,); and either `state` and `next_state`, whole
            numbers from 0 on, or `observation` and `next_observation`, vectors or images. Without states and
            observations, only action values given per transition can be judged. `truncated`, of shape (n,), says where
            an episode was cut off; an audit does not use it.

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
    refuse_where(~np.isfinite(reward), reward, "reward", "not a finite number")
    terminated = _flags("terminated", arrays["terminated"], n)
    truncated = _flags("truncated", arrays["truncated"], n) if "truncated" in arrays else None
    return Transitions(here, action, reward, there, terminated, truncated)


def stack_transitions(rows: Sequence[tuple[Any, int, float, Any, bool]]) -> Transitions:
    """Transitions from rows (s, a, r, s', terminated), as a loop over an environment's steps collects them."""
    here, action, reward, there, terminated = zip(*rows, strict=True)
    return Transitions(
        np.stack(here), np.array(action, np.intp), np.array(reward, np.float64), np.stack(there), np.array(terminated)
    )


def load_transitions(path: PathLike) -> Transitions:
    """Read transitions from an .npz file whose arrays have the names that `make_transitions` lists.

    Nothing in the file is unpickled.
    """
    with naming(path):
        suffix_of(path, (".npz",))
        return make_transitions(read_npz(path))


def save_transitions(transitions: Transitions, path: PathLike) -> None:
    """Write transitions to an .npz file that `load_transitions` reads; the file appears whole or not at all."""
    with naming(path):
        suffix_of(path, (".npz",))
    name = "state" if transitions.discrete else "observation"
    observations = {name: transitions.observation, f"next_{name}": transitions.next_observation}
    arrays = {field: getattr(transitions, field) for field in _REQUIRED}
    observations["truncated"] = transitions.truncated
    arrays |= {key: values for key, values in observations.items() if values is not None}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    write_atomic(path, lambda file: file.write(buffer.getvalue()))


def minari_transitions(name: str, limit: int | None = None) -> Transitions:
    """The transitions of a Minari data set on this machine, episode by episode. Nothing is downloaded.

    Args:
        name: the data set's id, such as `CartPole/random-v0`.
        limit: how many transitions to take, from the first on. Default: all.

    Returns:
        Transitions with numbered states if the observation space is `Discrete`, else with arrays. Actions and states
        are counted from 0, whatever number their spaces start at.

    Raises:
        InputError: Minari is missing, the data set is not on this machine, or a Q-function cannot have its spaces.
    """
    try:
        import minari
    except ModuleNotFoundError as error:
        raise missing_package(f"the Minari data set {name!r}", str(error.name), extra="minari") from None
    if limit is not None:
        whole_number(limit, "limit", 1)
    data = _load_minari(minari, name)
    first_action = _first_number(data.action_space, f"{name}: the actions")
    if first_action is None:
        raise InputError(f"{name}: its actions are {data.action_space}; a Q-function needs Discrete ones")
    first_state = _first_number(data.observation_space, f"{name}: the observations")
    here, there = ("observation", "next_observation") if first_state is None else ("state", "next_state")
    episodes: list[dict[str, NDArray[Any]]] = []
    total = 0
    for episode in data.iterate_episodes():
        if not isinstance(episode.observations, np.ndarray):
            raise InputError(f"{name}: its observations are {data.observation_space}; only arrays are audited")
        observations = episode.observations if first_state is None else episode.observations - first_state
        episodes.append(
            {
                here: observations[:-1],
                "action": np.asarray(episode.actions) - first_action,
                "reward": np.asarray(episode.rewards),
                there: observations[1:],
                "terminated": np.asarray(episode.terminations),
                "truncated": np.asarray(episode.truncations),
            }
        )
        total += len(episode.rewards)
        if limit is not None and total >= limit:
            break
    if not total:
        raise InputError(f"{name}: it holds no transitions")
    with naming(name):
        return make_transitions({key: np.concatenate([part[key] for part in episodes])[:limit] for key in episodes[0]})


def check_below(name: str, array: NDArray[Any], count: int, known: str) -> None:
    """Refuse an array with a number of `count` or more; `known` says in the error message which numbers there are."""
    wrong = array >= count
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InputError(f"{name}[{i}] = {array[i]}, but {known}")


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
        refuse_where(~np.isfinite(array), array, name, "not a finite number")
    if here.shape != there.shape:
        raise InputError(f"next_observation has the shape {there.shape}, observation {here.shape}")
    if here.ndim == 1:
        if here.dtype.kind in "iu" and there.dtype.kind in "iu":
            return _whole(names[0], here), _whole(names[1], there)
        here, there = here[:, None], there[:, None]
    return here, there


def _array(name: str, given: Any, n: int | None = None) -> NDArray[Any]:
    array = array_like(given, name)
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
    refuse_where(array < 0, array, name, "negative")
    wrong = array > np.iinfo(np.intp).max
    if wrong.any():
        raise InputError(f"{name}[{int(np.argmax(wrong))}] = {array[wrong][0]} is too large to be counted from 0")
    return array.astype(np.intp)


def _flags(name: str, given: Any, n: int) -> Mask:
    array = _array(name, given, n)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be true or false, shape ({n},); found {array.dtype} of shape {array.shape}")
    refuse_where((array != 0) & (array != 1), array, name, "neither 0 nor 1")
    return array.astype(bool)


def _load_minari(minari: Any, name: str) -> Any:
    root = os.environ.get("MINARI_DATASETS_PATH") or os.path.join("~", ".minari", "datasets")
    if not os.path.isdir(os.path.join(os.path.expanduser(root), name, "data")):
        raise InputError(f"there is no Minari data set {name!r} in {root} (`minari download {name}` gets one)")
    try:
        return minari.load_dataset(name, download=False)
    except Exception as error:  # a damaged folder: h5py, json and Minari raise a dozen kinds
        raise InputError(f"the Minari data set {name!r} cannot be read: {' '.join(str(error).split())}") from None


def _first_number(space: Any, what: str) -> int | None:
    """The first number of a Discrete space; None for a space of arrays."""
    from gymnasium.spaces import Dict, Discrete, Text, Tuple

    if isinstance(space, Dict | Tuple | Text):
        raise InputError(f"{what} are {type(space).__name__}; only arrays are audited")
    return int(space.start) if isinstance(space, Discrete) else None
