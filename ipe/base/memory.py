"""How much memory there is, and a refusal of what cannot fit before anything is allocated."""

from __future__ import annotations

import os
from pathlib import Path

from ipe.errors import InputError

_MEMINFO = Path("/proc/meminfo")
_CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def available_memory() -> int | None:
    """The bytes that this process could allocate now; None where the system does not say.

    On Linux this is what the kernel counts as available, or a container's limit, if that is less. Elsewhere it is the
    machine's memory.
    """
    found = [size for size in (_from_kernel(), _from_container()) if size is not None]
    return min(found) if found else None


def check_memory(size: float, what: str) -> None:
    """Refuse something that takes more memory, `size` bytes, than is available: the sentence, whose subject is `what`,
    has both numbers.

    Example:
        >>> check_memory(1e18, "n = 10000000000000")
        Traceback (most recent call last):
        ...
        ipe.errors.InputError: n = 10000000000000 takes about 1e+09 GB of memory, and this machine has ... GB available
    """
    available = available_memory()
    if available is not None and size > available:
        raise InputError(
            f"{what} takes about {size / 1e9:.3g} GB of memory, and this machine has {available / 1e9:.3g} GB available"
        )


def _from_kernel() -> int | None:
    try:
        lines = _MEMINFO.read_text().splitlines() if _MEMINFO.exists() else []
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, AttributeError, ValueError, IndexError):
        return None


def _from_container() -> int | None:
    try:
        return int(_CONTAINER_LIMIT.read_text())
    except (OSError, ValueError):  # no container, or "max": no limit
        return None
