"""The transitions of a training, as they come: what `ipe train --keep-transitions` keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ipe.deep.data import Data, joined
from ipe.deep.replay import CONTINUES, TRUNCATED

_TYPES = {"start": np.int64, "action": np.int32, "reward": np.float32, "end": np.uint8}


class _Tape:
    """The transitions of one environment, in arrays that grow."""

    def __init__(self) -> None:
        self.steps = self.places = 0
        self._arrays: dict[str, NDArray[Any]] = {name: np.empty(64, kind) for name, kind in _TYPES.items()}

    def show(self, observation: NDArray[Any]) -> None:
        if "observation" not in self._arrays:
            self._arrays["observation"] = np.empty((64, *observation.shape), observation.dtype)
        self._write("observation", self.places, observation)
        self.places += 1

    def step(self, action: int, reward: float, end: int, arrived: NDArray[Any]) -> None:
        for name, value in zip(_TYPES, (self.places - 1, action, reward, end), strict=True):
            self._write(name, self.steps, value)
        self.steps += 1
        self.show(arrived)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {
            name: array[: self.places if name == "observation" else self.steps] for name, array in self._arrays.items()
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self._arrays = {name: np.array(array) for name, array in arrays.items()}
        self.steps, self.places = len(arrays["start"]), len(arrays.get("observation", ()))

    def _write(self, name: str, at: int, value: Any) -> None:
        array = self._arrays[name]
        if at == len(array):
            self._arrays[name] = np.empty((max(64, 2 * at), *array.shape[1:]), array.dtype)
            self._arrays[name][:at] = array
        self._arrays[name][at] = value


class Recording:
    """The transitions in some environments, those of the first seed before those of the second.

    Example:
        >>> recording = Recording(1)
        >>> recording.show(0, np.zeros(2, np.float32))
        >>> recording.step(0, 1, 0.5, CONTINUES, np.ones(2, np.float32))
        >>> data = recording.data(0, 1)
        >>> data.action, data.end              # where a recording ends, its last episode is cut off
        (array([1], dtype=int32), array([2], dtype=uint8))
    """

    def __init__(self, environments: int) -> None:
        self._tapes = [_Tape() for _ in range(environments)]

    def show(self, row: int, observation: NDArray[Any]) -> None:
        """Note the first observation of an episode in an environment."""
        self._tapes[row].show(observation)

    def step(self, row: int, action: int, reward: float, end: int, arrived: NDArray[Any]) -> None:
        """Note a step in an environment: its action, its reward, how it ended, and the observation it led to."""
        self._tapes[row].step(action, reward, end, arrived)

    def data(self, first: int, count: int) -> Data | None:
        """The transitions in some environments in a row, one environment after the other; None if there are none."""
        kept = [tape.arrays() for tape in self._tapes[first : first + count] if tape.steps]
        parts = [Data(**{name: array.copy() for name, array in arrays.items()}) for arrays in kept]
        for part in parts:
            if part.end[-1] == CONTINUES:
                part.end[-1] = TRUNCATED
        return joined(parts) if parts else None

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Everything, for a checkpoint."""
        tapes = enumerate(self._tapes)
        return {f"{i}.{name}": array.copy() for i, tape in tapes for name, array in tape.arrays().items()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take over what a checkpoint holds."""
        for i, tape in enumerate(self._tapes):
            prefix = f"{i}."
            tape.restore({name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)})
