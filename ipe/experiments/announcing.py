"""What is said before a training starts: how images are read, and how long it will take if that is long."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ipe.deep.environments import EnvironmentSpec
from ipe.deep.programs import architecture, network_of
from ipe.deep.settings import TrainingSettings
from ipe.experiments.declared import Job, Sweep
from ipe.experiments.planning import plan_sweep

Say = Callable[[str], object]
"""Called with a sentence for the user."""

LONG_SECONDS = 600.0
"""A training that is likely to take longer is measured for some seconds before it starts."""
_MULTIPLICATIONS = 2e10  # in a second, of a core; a rough number, which decides whether to measure
_PASSES = 4  # forward in the target network, forward in the network that learns, and twice that back


@dataclass(frozen=True)
class Announcement:
    """What is said before a training starts.

    Args:
        settings: what is trained.
        spec: the spaces of its environment.
    """

    settings: TrainingSettings
    spec: EnvironmentSpec

    def images(self) -> str:
        """How the images of an environment are read; an empty text for vectors, and for small images as they are."""
        network = network_of(self.settings, self.spec)
        if not self.spec.image or (self.spec.layout.plain and network == "minatar"):
            return ""
        height, width, channels = self.spec.observation_shape
        words = [f"{height} x {width} pixels with {channels} channel{'s' * (channels != 1)}"]
        if self.spec.layout.order == "first":
            words.append("which the environment shows first")
        if self.spec.stack > 1:
            words.append(f"the last {self.spec.stack} frames, each kept once")
        return f"images of {', '.join(words)}; the network {network}"

    def likely_seconds(self, jobs: Sequence[Job], processes: int) -> float:
        """Roughly how long the matrix products of some jobs take, before anything is measured."""
        chosen, net = self.settings, architecture(self.settings, self.spec)
        updates = max(chosen.frames - chosen.warm_up, 0) / chosen.update_every
        passes = _PASSES * (2 if chosen.learns_policy else 1)
        each = net.multiplications * (chosen.frames + updates * chosen.batch * passes) / _MULTIPLICATIONS
        return each * sum(len(job.seeds) for job in jobs) / max(1, min(processes, len(jobs)))

    def say(self, say: Say, sweep: Sweep, jobs: Sequence[Job], processes: int) -> None:
        """Say how images are read; and if the training is long, measure how long, and say that.

        Args:
            say: called with each sentence.
            sweep: the sweep that the training is.
            jobs: its jobs.
            processes: how many processes do them; 0, and nothing is measured, if this one does.
        """
        if images := self.images():
            say(images)
        if processes == 0 or self.settings.data or self.likely_seconds(jobs, processes) < LONG_SECONDS:
            return  # another process may not know what this one trains: a behaviour that is a function
        say("this is a long training: measuring how long it will take")
        seconds = plan_sweep(sweep, jobs, [processes]).seconds[processes]
        speed = self.settings.frames * len(sweep.seeds) / seconds
        say(f"it will take about {_duration(seconds)} at {speed:.3g} frames x seeds per second, as measured here")


def _duration(seconds: float) -> str:
    for size, unit in ((86_400.0, "days"), (3_600.0, "hours"), (60.0, "minutes")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} seconds"


def to_standard_error(sentence: str) -> None:
    """Print a sentence on standard error."""
    if sys.stderr is not None:
        print(sentence, file=sys.stderr, flush=True)
