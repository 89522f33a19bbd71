"""Which process holds a claim, and whether it is certainly gone.

A process is known by its host, the boot and the pid namespace (a container's) that its number counts in, its number,
and when it started: numbers are given again. Only who shares all that with it can say that it is gone; about processes
elsewhere nothing is known but their heartbeat.
"""

from __future__ import annotations

import functools
import os
import socket
from pathlib import Path
from typing import Any

_PROC = Path("/proc")


def this_process() -> dict[str, Any]:
    """What a claim says of its owner: host, space (boot and pid namespace), pid, and started, in the kernel's ticks."""
    pid = os.getpid()
    return {"host": socket.gethostname(), "space": _space(), "pid": pid, "started": _started(pid)}


def is_gone(owner: dict[str, Any]) -> bool:
    """Whether a process has certainly ended; False if it lives, and if this process cannot know.

    Example:
        >>> is_gone(this_process())
        False
        >>> is_gone(this_process() | {"host": "elsewhere", "pid": 2**30})
        False
    """
    here = this_process()
    pid, started = owner.get("pid"), owner.get("started")
    if not isinstance(pid, int) or (owner.get("host"), owner.get("space")) != (here["host"], here["space"]):
        return False
    if here["space"]:
        return _started(pid) != started or started is None
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:  # somebody else's
        return False
    return False


@functools.cache
def _space() -> str:
    """Where process numbers mean the same; empty where the system does not say."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat(_PROC / 'self/ns/pid').st_ino}"
    except OSError:
        return ""


def _started(pid: int) -> int | None:
    """When a living process started, in ticks since the boot; None if there is none, or only its remains."""
    try:
        # The second field is the program's name in brackets, which may hold anything.
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if fields[0] in "ZX" else int(fields[19])
    except (OSError, IndexError, ValueError):
        return None
