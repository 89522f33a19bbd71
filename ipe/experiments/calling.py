"""Callbacks of a training: events from whatever process trains, called in the process that called `train`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ipe.base.words import short
from ipe.deep.callbacks import Callback, Ended, Event, event_from
from ipe.errors import InputError
from ipe.experiments.declared import Job
from ipe.experiments.store import Store

Answer = dict[int, str]
"""The seeds to stop, each with the reason."""


def check_callbacks(callbacks: Sequence[Any]) -> list[Callback]:
    """Return the callbacks, after a check that each is one."""
    for i, each in enumerate(callbacks):
        if not isinstance(each, Callback):
            hint = "; a function of the progress is given as callback=" if callable(each) else ""
            raise InputError(f"callbacks[{i}] must be an ipe.deep.Callback, found {short(each)}{hint}")
    return list(callbacks)


class Calling:
    """The callbacks of one call of `train` or `resume`.

    Args:
        callbacks: the callbacks.
        store: the store of the run.
        stop: called when a callback has raised an exception: the training is to stop, with checkpoints.
    """

    def __init__(self, callbacks: Sequence[Callback], store: Store, stop: Callable[[], None]) -> None:
        self._callbacks, self._store, self._stop = list(callbacks), store, stop
        self._last: dict[int, int] = {}
        self.error: Exception | None = None
        """The exception that a callback has raised, if one has; nothing is called after it."""

    def ask(self, job: Job, events: Sequence[dict[str, Any]]) -> Answer:
        """Call the callbacks with events of a job, as plain data; returns which seeds are to stop, and why."""
        answer: Answer = {}
        more = {
            "run": self._store.folder,
            "settings": self._store.sweep.by_key[job.key].settings,
            "evaluating": self._store.sweep.evaluating,
        }
        for content in events:
            kind, event = event_from(content, **more)
            self._last[event.seed] = event.frame
            if (reason := self._call(kind, event)) is not None:
                answer.setdefault(event.seed, reason)
            if isinstance(event, Ended):
                del self._last[event.seed]
        return answer

    def end(self) -> None:
        """Tell the callbacks of the seeds that have started and not ended: the training was interrupted."""
        for seed, frame in list(self._last.items()):
            self._call("end", Ended(seed, frame, "interrupted", ""))
        self._last.clear()

    def _call(self, kind: str, event: Event) -> str | None:
        """Call every callback; returns the first answer."""
        answers = []
        for each in self._callbacks:
            if self.error is not None and not isinstance(event, Ended):
                return None
            try:
                answer = getattr(each, f"on_{kind}")(event)
                if kind in ("window", "evaluation") and answer is not None:
                    answers.append(_checked(answer, kind, each))
            except Exception as error:  # whatever a caller's own code raises is raised where `train` was called
                self.error = self.error or error
                self._stop()
        return answers[0] if answers else None


def _checked(answer: Any, kind: str, callback: Callback) -> str:
    if not isinstance(answer, str) or not answer.strip():
        who = f"on_{kind} of {type(callback).__name__}"
        raise InputError(f"{who} must return None, or a text that says why the seed stops; found {answer!r}")
    return " ".join(answer.split())
