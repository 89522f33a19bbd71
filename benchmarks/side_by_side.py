"""One process per core, all in their timed phase at the same time.

The protocol: a child prints `ready` when it is warm, waits for a line on its standard input, measures, and prints one
line of JSON. `side_by_side` starts the children, waits until all are ready, and lets all go at once. Only the standard
library is needed, on either side: a child may belong to another environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import IO, Any

READY = "ready"
SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "NPROC": "1",  # of XLA's own pool
    "JAX_PLATFORMS": "cpu",
    "JAX_CPU_ENABLE_ASYNC_DISPATCH": "0",  # programs run in the thread that calls them
}
"""What holds NumPy, torch and XLA to one thread, if set before they are imported."""


WINDOW = 1.0
"""Seconds: a machine that others use too is at its own speed for a second more often than for ten."""


class Stopwatch:
    """Counts what a child does, second by second, from the moment on when all children were let go.

    Args:
        seconds: to count for.
    """

    def __init__(self, seconds: float) -> None:
        self.rates: list[float] = []
        """Per second, in each window."""
        self._windows = max(1, round(seconds / WINDOW))
        self._length = seconds / self._windows
        self._began = self._mark = time.perf_counter()
        self._count = 0

    def count(self, n: int) -> bool:
        """Add what was just done; False when the time is over."""
        self._count += n
        now = time.perf_counter()
        if now - self._began >= self._length * (len(self.rates) + 1):
            self.rates.append(self._count / (now - self._mark))
            self._mark, self._count = now, 0
        return len(self.rates) < self._windows


def best_together(rates: Sequence[Sequence[float]]) -> float:
    """The best window of all children together: the rates of the same second, summed."""
    return max((float(sum(window)) for window in zip(*rates, strict=False)), default=0.0)


class SideBySideError(RuntimeError):
    """A child failed or took too long; the sentence says which and how it ended."""


def available_cores() -> list[int]:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def pin(core: int | None) -> None:
    """Hold this process to one core, where the system can; None leaves it free."""
    if core is not None and hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(0, {core})
        except OSError:
            sys.exit(f"there is no core {core} for this process; it may use {available_cores()}")


def wait_for_the_others() -> None:
    """In a child: say that it is warm, and wait until all are. Ends the process if the parent is gone."""
    print(READY, flush=True)
    if not sys.stdin.readline():
        sys.exit(1)


def side_by_side(
    commands: Sequence[Sequence[str]],
    *,
    environment: Mapping[str, str] = SINGLE_THREAD,
    warm_up: float = 300.0,
    measurement: float = 300.0,
) -> list[dict[str, Any]]:
    """Run the commands at the same time, their timed phases together.

    Args:
        commands: one per child, each speaking the protocol above.
        environment: variables added to this process's.
        warm_up: seconds until every child must be ready.
        measurement: seconds from then until every child must have ended.

    Returns:
        The last line of every child, decoded.

    Raises:
        SideBySideError: if a child failed or was late. The others are ended then.
    """
    return asyncio.run(_side_by_side(commands, {**os.environ, **environment}, warm_up, measurement))


async def _side_by_side(
    commands: Sequence[Sequence[str]], environment: Mapping[str, str], warm_up: float, measurement: float
) -> list[dict[str, Any]]:
    children: list[tuple[asyncio.subprocess.Process, IO[bytes]]] = []
    with contextlib.ExitStack() as stack:
        try:
            for command in commands:
                errors = stack.enter_context(tempfile.TemporaryFile())  # a pipe that nobody reads would fill up
                process = await asyncio.create_subprocess_exec(
                    *command,
                    env=environment,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=errors,
                )
                children.append((process, errors))
            await _together([_until_ready(*child) for child in children], warm_up, "warm-up")
            return await _together([_measured(*child) for child in children], measurement, "measurement")
        except OSError as error:
            raise SideBySideError(f"cannot start {commands[len(children)][0]}: {error.strerror or error}") from None
        finally:
            for process, _ in children:
                if process.returncode is None:
                    process.kill()
                    await process.wait()


async def _together(phase: Sequence[Coroutine[Any, Any, Any]], seconds: float, name: str) -> list[Any]:
    try:
        return list(await asyncio.wait_for(asyncio.gather(*phase), seconds))
    except TimeoutError:
        raise SideBySideError(f"its {name} took more than {seconds:g} s") from None


async def _until_ready(process: asyncio.subprocess.Process, errors: IO[bytes]) -> None:
    assert process.stdout is not None
    while line := await process.stdout.readline():
        if line.decode().strip() == READY:
            return
    await process.wait()
    raise SideBySideError(_last_words(process, errors))


async def _measured(process: asyncio.subprocess.Process, errors: IO[bytes]) -> dict[str, Any]:
    output, _ = await process.communicate(b"go\n")
    lines = output.decode().strip().splitlines()
    if process.returncode or not lines:
        raise SideBySideError(_last_words(process, errors))
    try:
        result: dict[str, Any] = json.loads(lines[-1])
    except ValueError:
        raise SideBySideError(f"its last line is not JSON: {lines[-1][:200]}") from None
    return result


def _last_words(process: asyncio.subprocess.Process, errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else f"it ended with status {process.returncode} and said nothing"
