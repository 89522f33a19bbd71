"""A worker process of the local pool: `python -m ipe.experiments.worker FOLDER OPTIONS`.

It reads the ids of jobs from standard input, one per line, does them one after the other, and tells its parent how it
goes, one JSON object per line on standard output. SIGTERM makes it write a checkpoint and end, and so does the end of
standard input, by which it knows that its parent is gone. Ctrl-C is for the parent to hear.

Events for callbacks (`ipe.deep.callbacks`) go the same way, and the job waits for the parent's answer, a line of
standard input that begins with `ANSWER`.
"""

from __future__ import annotations

import gc
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from typing import Any

from ipe.deep.progress import Progress
from ipe.deep.stopping import Stop

ANSWER = "answer "
"""What a line that answers events begins with; other lines are ids of jobs."""


def main(words: list[str]) -> int:
    """Do jobs until there are no more; returns the exit code."""
    folder, options = words[0], json.loads(words[1])
    stop = Stop()
    jobs: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # a signal handler may put into it
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
    gone = threading.Event()

    def end(*_: object) -> None:
        stop.set()
        jobs.put(None)

    def lost() -> None:
        gone.set()
        answers.put(None)
        end()

    def hear(line: str) -> None:
        if line.startswith(ANSWER):
            answers.put(json.loads(line.removeprefix(ANSWER)))
        else:
            jobs.put(line)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_listen, args=(hear, lost), daemon=True).start()
    # What an environment prints must not get between the messages.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def tell(kind: str, content: Any) -> None:
        try:
            messages.write(json.dumps({kind: content}) + "\n")
        except OSError:  # nobody listens any more
            end()

    def ask(events: list[dict[str, Any]]) -> dict[int, str] | None:
        tell("ask", events)
        return None if gone.is_set() else answers.get()

    told = False

    def report(progress: Progress) -> None:
        nonlocal told
        if not told:
            # Modules and compiled programs stay to the end. To have the collector look through them again and again
            # takes some 2% of a frame of MinAtar.
            gc.freeze()
            told = True
        tell("progress", progress.plain())

    from ipe.experiments.jobs import attempt  # after the signals are in place: it takes a second

    while (job := jobs.get()) is not None and not stop.is_set():
        ended = attempt(
            folder,
            job,
            stopped=stop.is_set,
            report=report,
            say=lambda sentence: tell("note", sentence),
            bark=lambda sentence: None,  # the seed's outcome will say it
            ask=ask,
            **options,
        )
        tell("end", ended)
    return 0


def _listen(hear: Callable[[str], None], lost: Callable[[], None]) -> None:
    # Plain reads: the interpreter may be ending while this thread still waits.
    rest = b""
    while data := os.read(0, 4096):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            hear(line.decode())
    lost()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
