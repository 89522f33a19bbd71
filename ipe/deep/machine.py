"""The machine and the versions that a run was made with, without names of hosts, users or folders."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path
from typing import Any

from ipe.base.cores import available_cores

_PACKAGES = {
    "ipe": ("ipe-rl",),
    "jax": ("jax",),
    "jaxlib": ("jaxlib",),
    "numpy": ("numpy",),
    "gymnasium": ("gymnasium",),
    "minatar": ("minatar",),
    "box2d": ("box2d", "box2d-py"),  # Gymnasium has asked for either
}


def describe_machine() -> dict[str, Any]:
    """Describe the machine that this process runs on.

    Returns:
        `cpu`, the model of the processor; `cores`, how many of them this process may use; `memory`, the machine's
        memory in bytes, or None where the system does not say; `system`, its name and release; `architecture`.
    """
    return {
        "cpu": _cpu(),
        "cores": available_cores(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}".strip(),
        "architecture": platform.machine(),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python, of `ipe`, and of the installed packages that a run's bytes depend on."""
    out = {"python": platform.python_version()}
    for name, distributions in _PACKAGES.items():
        for distribution in distributions:
            try:
                out.setdefault(name, metadata.version(distribution))
            except metadata.PackageNotFoundError:
                continue
    return out


def _cpu(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    models = [value.strip() for key, _, value in (line.partition(":") for line in lines) if key.strip() == "model name"]
    return next(iter(models), "") or platform.processor() or platform.machine()


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
