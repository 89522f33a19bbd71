"""A worker process of the local pool: `python -m ipe.experiments.worker FOLDER OPTIONS`.

It reads the ids of jobs from standard input, one per line, does them one after the other, and tells its parent how it
goes, one JSON object per line on standard output. SIGTERM makes it write a checkpoint and end, and so does the end of
standard input, by which it knows that its parent is gone. Ctrl-C is for the parent to hear.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from typing import Any

from ipe.deep.stopping import Stop


def main(words: list[str]) -> int:
    """Do jobs until there are no more; returns the exit code."""
    folder, options = words[0], json.loads(words[1])
    stop = Stop()
    jobs: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # a signal handler may put into it

    def end(*_: object) -> None:
        stop.set()
        jobs.put(None)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
    threading.Thread(target=_listen, args=(jobs, end), daemon=True).start()
    # What an environment prints must not get between the messages.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def tell(kind: str, content: Any) -> None:
        try:
            messages.write(json.dumps({kind: content}) + "\n")
        except OSError:  # nobody listens any more
            end()

    from ipe.experiments.jobs import attempt  # after the signals are in place: it takes a second

    while (job := jobs.get()) is not None and not stop.is_set():
        ended = attempt(
            folder,
            job,
            stopped=stop.is_set,
            report=lambda progress: tell("progress", progress.plain()),
            say=lambda sentence: tell("note", sentence),
            bark=lambda sentence: None,  # the seed's outcome will say it
            **options,
        )
        tell("end", ended)
    return 0


def _listen(jobs: queue.SimpleQueue[str | None], end: Any) -> None:
    # Plain reads: the interpreter may be ending while this thread still waits.
    rest = b""
    while data := os.read(0, 4096):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            jobs.put(line.decode())
    end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
