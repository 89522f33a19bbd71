"""How many cores there are for this process."""

from __future__ import annotations

import os


def available_cores() -> int:
    """The cores that this process may use: on Linux those that a batch system has left to it, else the machine's."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
