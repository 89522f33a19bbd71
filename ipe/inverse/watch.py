"""A solve that is watched: its progress is told, and it can be stopped with the best point so far in hand.

Every solver calls `Watch.note` after each round with the best point that it has and with its proven gap. The watch
keeps that point, passes it on to whoever asked for progress, and ends the solve by an exception when the time is over.
So the solvers hold no code for time limits, progress or Ctrl-C. Within a round, loops call `Watch.check`, and a long
call of compiled code (a factorisation) goes through `Watch.run`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from time import monotonic
from typing import NamedTuple, TypeAlias, TypeVar

from ipe.base.arrays import Array

TIME_LIMIT, INTERRUPTED = "time limit", "interrupted"
POLL_SECONDS = 0.1
"""How often a long call of compiled code is interrupted by a look at the clock."""

T = TypeVar("T")


class SolveProgress(NamedTuple):
    """How far a solve is."""

    method: str
    """The solver at work."""
    iterations: int
    """How many iterations that solver has made."""
    objective: float
    """The objective of the best point so far."""
    gap: float
    """How far that objective is above its minimum at most; infinite while no bound is known."""
    target: float
    """The gap at which the solve ends."""
    seconds: float
    """How long the whole solve has taken so far."""


ProgressCallback: TypeAlias = Callable[[SolveProgress], object]


class TimeOverError(Exception):
    """Ends a solve whose time is over. It never leaves `evaluation_policy`."""


@dataclass(eq=False)
class Watch:
    """The clock, the best point so far, and whoever wants to be told.

    Attributes:
        time_limit: how many seconds the solve may take; None for no limit.
        callback: called with a `SolveProgress` after each round of a solver.
        v: the best point so far, None before the first round.
        lower: the best lower bound on the objective so far.
    """

    time_limit: float | None = None
    callback: ProgressCallback | None = None
    v: Array | None = None
    lower: float = -math.inf
    method: str = ""
    iterations: int = 0
    started: float = field(default_factory=monotonic)

    @property
    def remaining(self) -> float:
        """The seconds left; infinite without a limit, never negative."""
        if self.time_limit is None:
            return math.inf
        return max(0.0, self.started + self.time_limit - monotonic())

    def note(self, method: str, iterations: int, v: Array, objective: float, gap: float, target: float) -> None:
        """Keep the best point of the problem that is being solved; end the solve if the time is over before the target.

        Raises:
            TimeOverError: no time is left.
        """
        self.v, self.method, self.iterations = v, method, iterations
        self.lower = max(self.lower, objective - gap)
        if self.callback is not None:
            self.callback(SolveProgress(method, iterations, objective, gap, target, monotonic() - self.started))
        if gap > target:
            self.check()

    def check(self) -> None:
        """End the solve if the time is over."""
        if self.remaining == 0.0:
            raise TimeOverError

    def run(self, work: Callable[[], T], worker: Executor | None = None) -> T:
        """The result of a long call of compiled code, while the clock and Ctrl-C are heard.

        The call runs in another thread. When the time is over or Ctrl-C is pressed, nobody waits for its end: compiled
        code cannot be interrupted, so the thread ends its call in the background, and its result is dropped.

        Args:
            work: the call, which must release Python's interpreter lock while it computes.
            worker: the thread to run it in; by default a new one.

        Raises:
            TimeOverError: no time is left.
        """
        thread = worker or ThreadPoolExecutor(1)
        future = thread.submit(work)
        if worker is None:
            thread.shutdown(wait=False)
        while not wait([future], timeout=min(POLL_SECONDS, self.remaining)).done:
            self.check()
        return future.result()


class StartWatch(Watch):
    """Watches the solve of another problem, whose solution is only the start of the one that is asked for."""

    def __init__(self, outer: Watch) -> None:
        super().__init__()
        self.outer = outer

    @property
    def remaining(self) -> float:
        """The seconds that the other problem's solve has left."""
        return self.outer.remaining

    def note(self, method: str, iterations: int, v: Array, objective: float, gap: float, target: float) -> None:
        """Keep the point alone: objective and gap are those of the other problem."""
        self.outer.v, self.outer.method = v, "least squares"
        if gap > target:
            self.check()
