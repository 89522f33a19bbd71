"""Callbacks: what a training from Python tells its caller, seed by seed, and how the caller can stop a seed.

A training tells five kinds of events: a seed starts, a window of a thousand frames is over, an evaluation is over, a
checkpoint is written, a seed has ended. Callbacks are called in the process that called `train`, one event after the
other, whatever process trains the seed. A window or an evaluation that a callback answers with a text stops the seed
right there. The process that trains waits for the answer, so that a seed stops at the same frame however the training
is spread over processes, and a run whose callbacks answer alike has the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ipe.deep.evaluating import Evaluating
from ipe.deep.progress import LAST_EPISODES
from ipe.deep.records import MEASURED, SPEED, Records
from ipe.deep.settings import TrainingSettings


@dataclass(frozen=True)
class Window:
    """A thousand frames of a seed are over, or its last frames: a row of the progress."""

    seed: int
    """The trained seed."""
    frame: int
    """The frames that the seed has done."""
    episodes: int
    """The episodes that the seed has finished."""
    mean_return: float | None
    """The mean return of the last 20 episodes; None before the first one has ended."""
    epsilon: float | None
    """The mean epsilon over the window; None if the behaviour has none."""
    entropy: float | None
    """The mean entropy of the policy network over the window; None if there is none."""
    td_error: float | None
    """The mean absolute error of the value update over the window; None without an update."""
    ipe_error: float | None
    """The mean absolute error of the policy update over the window; None without one."""
    q_mean: float | None
    """The mean value of the Q-network over the minibatches of the window; None without an update."""
    frames_per_second: float
    """The speed of the seed in the window."""

    def metrics(self) -> dict[str, float]:
        """The numbers of the window by the names that loggers give them; those that are None are left out."""
        numbers = {"training/return": self.mean_return, "training/episodes": float(self.episodes)}
        numbers |= {f"progress/{name}": getattr(self, name) for name in (*MEASURED, SPEED)}
        return {name: value for name, value in numbers.items() if value is not None}


@dataclass(frozen=True)
class Evaluated:
    """An evaluation of a seed while it trains is over."""

    seed: int
    """The trained seed."""
    frame: int
    """The frames that the seed has done."""
    mean: float | None
    """The mean return of the episodes; None if an environment failed in one of them."""
    returns: tuple[float | None, ...]
    """The return of each episode; None where its environment failed."""
    lengths: tuple[int, ...]
    """The number of frames of each episode."""
    best: bool
    """Whether the mean is above those of all earlier evaluations of the seed: its networks are the best ones now."""

    def metrics(self) -> dict[str, float]:
        """The mean return and the mean length, by the names that loggers give them; nothing if there is no mean."""
        if self.mean is None:
            return {}
        return {"evaluation/return": self.mean, "evaluation/length": sum(self.lengths) / len(self.lengths)}


@dataclass(frozen=True)
class Started:
    """A seed starts, or goes on from a checkpoint."""

    seed: int
    """The trained seed."""
    frame: int
    """The frames that the seed has done: 0, or those of the checkpoint."""
    past: tuple[Window | Evaluated, ...]
    """What the seed went through up to this frame, in order. A callback that counts or compares can bring itself to
    where it was from this."""
    run: Path
    """The folder of the run."""
    settings: TrainingSettings
    """The settings of the run."""
    evaluating: Evaluating | None
    """When the seed is evaluated while it trains; None: never."""


@dataclass(frozen=True)
class Checkpointed:
    """A checkpoint is written, from which the seed would go on."""

    seed: int
    """The trained seed."""
    frame: int
    """The frames that the seed had done."""
    folder: str
    """The folder of the checkpoint, which holds those of the other seeds of the batch too."""


@dataclass(frozen=True)
class Ended:
    """The training of a seed is over, and its results are in the run's folder; or it was interrupted."""

    seed: int
    """The trained seed."""
    frame: int
    """The seed's last frame; of an interrupted one, the last that a callback has heard of."""
    status: str
    """done, failed, diverged; or interrupted: the run can be resumed."""
    reason: str
    """Why the seed failed, diverged or was stopped; empty otherwise."""


Event: TypeAlias = Started | Window | Evaluated | Checkpointed | Ended


class Callback:
    """What hears a training: a class of your own with some of these methods, given as `train(..., callbacks=[...])`.

    All methods are called in the process that called `train` or `resume`, one at a time. An exception in one of them
    stops the training, with checkpoints, and is raised where `train` was called.

    Example:
        A callback that stops a seed when it has solved its task:

        >>> class Solved(Callback):
        ...     def on_evaluation(self, event):
        ...         return "solved" if event.mean is not None and event.mean >= 475.0 else None
        >>> Solved().on_evaluation(Evaluated(0, 5000, 480.0, (480.0,), (480,), True))
        'solved'
    """

    def on_start(self, event: Started) -> None:
        """A seed starts, or goes on from a checkpoint. After a crash of a process it may start a second time."""

    def on_window(self, event: Window) -> str | None:
        """A thousand frames are over. A text that is returned stops the seed here, and says why in its outcome."""
        return None

    def on_evaluation(self, event: Evaluated) -> str | None:
        """An evaluation is over. A text that is returned stops the seed here, and says why in its outcome."""
        return None

    def on_checkpoint(self, event: Checkpointed) -> None:
        """A checkpoint is written."""

    def on_end(self, event: Ended) -> None:
        """A seed's training has ended, or was interrupted."""


_KINDS: dict[str, type[Any]] = {
    "start": Started,
    "window": Window,
    "evaluation": Evaluated,
    "checkpoint": Checkpointed,
    "end": Ended,
}


def plain_event(event: Window | Evaluated | Checkpointed | Ended) -> dict[str, Any]:
    """Return an event as plain data, for JSON."""
    return {"kind": next(name for name, each in _KINDS.items() if type(event) is each), **asdict(event)}


def plain_start(seed: int, frame: int, past: Sequence[Window | Evaluated]) -> dict[str, Any]:
    """Return the start of a seed as plain data, without what the caller's process knows: run, settings, evaluating."""
    return {"kind": "start", "seed": seed, "frame": frame, "past": [plain_event(each) for each in past]}


def event_from(content: Mapping[str, Any], **more: Any) -> tuple[str, Event]:
    """Return the kind and the event that `plain_event` or `plain_start` made plain; `more` are the other fields of a
    start."""
    kind = str(content["kind"])
    given = {name: value for name, value in content.items() if name != "kind"}
    if kind == "start":
        given["past"] = tuple(event_from(one)[1] for one in given["past"])
        given |= more
    listed = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return kind, _KINDS[kind](**(given | listed))


def events_of(records: Records, seeds: Sequence[int], since: int, until: int) -> list[Window | Evaluated]:
    """Return the windows and evaluations of some seeds after one frame and up to another, in the order of the frames;
    at the same frame, the windows of all seeds come first."""
    arrays, found = records.arrays(), list[tuple[int, int, int, Window | Evaluated]]()
    evaluations = records.evaluations_table().to_pylist()
    for place, seed in enumerate(seeds):
        of_seed = arrays["episodes.seed"] == seed
        ends, returns = arrays["episodes.frame"][of_seed], arrays["episodes.return"][of_seed]
        rows = np.flatnonzero(arrays["progress.seed"] == seed)
        for row in rows[(arrays["progress.frame"][rows] > since) & (arrays["progress.frame"][rows] <= until)]:
            frame = int(arrays["progress.frame"][row])
            done = int(np.searchsorted(ends, frame, side="right"))
            last = returns[max(0, done - LAST_EPISODES) : done]
            measured = {name: float(arrays[f"progress.{name}"][row]) for name in (*MEASURED, SPEED)}
            known: dict[str, Any] = {name: None if np.isnan(value) else value for name, value in measured.items()}
            mean = float(last.mean()) if last.size else None
            found.append((frame, 0, place, Window(seed, frame, done, mean, **known)))
        highest: float | None = None
        for each in (each for each in evaluations if each["seed"] == seed and each["frame"] <= until):
            mean = each["mean"]
            better = mean is not None and (highest is None or mean > highest)
            highest = mean if better else highest
            if each["frame"] > since:
                event = Evaluated(seed, each["frame"], mean, tuple(each["returns"]), tuple(each["lengths"]), better)
                found.append((each["frame"], 1, place, event))
    return [event for *_, event in sorted(found, key=lambda entry: entry[:3])]
