"""Transitions from a Minari data set that is on this machine; nothing is downloaded."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ipe.audit.transitions import Transitions, make_transitions
from ipe.base.numbers import whole_number
from ipe.errors import InputError


def minari_transitions(name: str, limit: int | None = None) -> Transitions:
    """The transitions of a local Minari data set, episode by episode.

    Args:
        name: its id, such as `CartPole/random-v0`.
        limit: take the first so many. Default: all.

    Returns:
        Transitions with numbered states if the observation space is `Discrete`, else with arrays. Actions and states
        are counted from 0, whatever the spaces start at.

    Raises:
        InputError: Minari is missing, the data set is not here, or its spaces are not those of a Q-function.
    """
    try:
        import minari
    except ModuleNotFoundError as error:
        raise InputError(f'--minari needs {error.name}, which is not installed: pip install "minari[hdf5]"') from None
    if limit is not None:
        whole_number(limit, "limit", 1)
    data = _load(minari, name)
    first_action = _start(data.action_space, f"{name}: the actions")
    if first_action is None:
        raise InputError(f"{name}: its actions are {data.action_space}; a Q-function needs Discrete ones")
    first_state = _start(data.observation_space, f"{name}: the observations")
    parts: dict[str, list[Any]] = {key: [] for key in ("observation", "action", "reward", "next_observation", "end")}
    total = 0
    for episode in data.iterate_episodes():
        observations = episode.observations
        if not isinstance(observations, np.ndarray):
            raise InputError(f"{name}: its observations are {data.observation_space}; only arrays are audited")
        shifted = observations - first_state if first_state is not None else observations
        for key, values in (
            ("observation", shifted[:-1]),
            ("action", np.asarray(episode.actions) - first_action),
            ("reward", episode.rewards),
            ("next_observation", shifted[1:]),
            ("end", episode.terminations),
        ):
            parts[key].append(np.asarray(values))
        total += len(episode.rewards)
        if limit is not None and total >= limit:
            break
    if not total:
        raise InputError(f"{name}: it holds no transitions")
    arrays = {key: np.concatenate(values)[:limit] for key, values in parts.items()}
    arrays["terminated"] = arrays.pop("end")
    if first_state is not None:
        arrays["state"], arrays["next_state"] = arrays.pop("observation"), arrays.pop("next_observation")
    try:
        return make_transitions(arrays)
    except InputError as error:
        raise InputError(f"{name}: {error}") from None


def _load(minari: Any, name: str) -> Any:
    root = os.environ.get("MINARI_DATASETS_PATH") or os.path.join("~", ".minari", "datasets")
    if not os.path.isdir(os.path.join(os.path.expanduser(root), name, "data")):
        raise InputError(f"there is no Minari data set {name!r} in {root} (`minari download {name}` gets one)")
    try:
        return minari.load_dataset(name, download=False)
    except Exception as error:  # a damaged folder: h5py, json and Minari raise a dozen kinds
        raise InputError(f"the Minari data set {name!r} cannot be read: {' '.join(str(error).split())}") from None


def _start(space: Any, what: str) -> int | None:
    """The first number of a Discrete space; None for another one."""
    from gymnasium.spaces import Dict, Discrete, Text, Tuple

    if isinstance(space, Dict | Tuple | Text):
        raise InputError(f"{what} are {type(space).__name__}; only arrays are audited")
    return int(space.start) if isinstance(space, Discrete) else None
