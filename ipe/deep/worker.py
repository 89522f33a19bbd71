"""The process that trains one batch of seeds: `python -m ipe.deep.worker RUN BATCH CHECKPOINT_SECONDS TENSORBOARD`.

It tells its parent how it goes, one JSON object per line on standard output. SIGTERM, or the end of standard input, by
which it knows that its parent is gone, make it write a checkpoint and end. Ctrl-C is for the parent to hear.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from ipe.deep.stopping import Stop


def main(words: list[str]) -> int:
    """Train the batch; returns the exit code."""
    stop = Stop()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    threading.Thread(target=_wait_for_the_end, args=(stop,), daemon=True).start()
    # What an environment prints must not get between the messages.
    messages = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)

    def tell(kind: str, content: Any) -> None:
        try:
            messages.write(json.dumps({kind: content}) + "\n")
        except OSError:  # nobody listens any more
            stop.set()

    from ipe.deep.batches import train_batch  # JAX: after the signals are in place
    from ipe.deep.runs import open_run
    from ipe.errors import InputError

    folder, batch, seconds, tensorboard = words
    try:
        done = train_batch(
            open_run(Path(folder)),
            int(batch),
            report=lambda progress: tell("progress", progress.plain()),
            stopped=stop.is_set,
            checkpoint_seconds=float(seconds),
            tensorboard=tensorboard == "1",
            say=lambda sentence: tell("note", sentence),
        )
    except InputError as error:
        tell("refused", str(error))
        return 2
    tell("done" if done else "stopped", None)
    return 0


def _wait_for_the_end(stop: Stop) -> None:
    # A plain read: the interpreter may be ending while this thread still waits.
    while os.read(0, 4096):
        pass
    stop.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
