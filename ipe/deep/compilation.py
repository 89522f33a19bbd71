"""How training processes use JAX: one thread each, and compiled programs kept for the next process.

One process per core with one XLA thread is more than twice as fast as one process with two: the products are too small
to share. The program runs in the thread that calls it: to hand it to another thread, which the same core has to run,
takes a twentieth of a small network's frame. The cache folder belongs to the user: what is in it is executed.
"""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ONE_THREAD = ("--xla_cpu_multi_thread_eigen=false", "intra_op_parallelism_threads=1")
# XLA's own pool has as many threads as NPROC says, whatever its flags say; some of its products run there.
_THREAD_POOLS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC")


_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # glibc's names for them in mallopt
_KEPT_BYTES = 2**30
_MMAP_BYTES = 2**25  # the most that glibc takes


def keep_memory() -> None:
    """Have this process keep freed memory for the next frame's arrays.

    Dask starts its workers with `MALLOC_TRIM_THRESHOLD_=65536`: each frame then gives its arrays back to the system and
    has them mapped anew, 140,000 page faults a second, which takes from a third to a half of the speed. This function
    has no effect where the C library is not glibc.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)


def training_environment(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a training process, from those of this one. The user's settings of JAX that
    do not concern threads stay."""
    flags = [flag for flag in variables.get("XLA_FLAGS", "").split() if not flag.startswith(_ONE_THREAD)]
    changed = dict(variables) | dict.fromkeys(_THREAD_POOLS, "1")
    changed["XLA_FLAGS"] = " ".join([*flags, *_ONE_THREAD])
    changed["JAX_PLATFORMS"] = "cpu"
    changed["JAX_CPU_ENABLE_ASYNC_DISPATCH"] = "0"
    if (folder := cache_folder(variables)) is not None and "JAX_COMPILATION_CACHE_DIR" not in variables:
        changed["JAX_COMPILATION_CACHE_DIR"] = str(folder)
        changed["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.1"
        changed["JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES"] = "0"
    return changed


def training_process(module: str, *words: str, **options: Any) -> subprocess.Popen[Any]:
    """Start a module as a training process, with pipes to its standard input and from its standard output. It finds the
    modules that this process finds: an environment's too. The options are others of `subprocess.Popen`."""
    variables = training_environment(os.environ)
    variables["PYTHONPATH"] = os.pathsep.join(path or os.getcwd() for path in sys.path)
    command = [sys.executable, "-m", module, *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables, **options)


def cache_folder(variables: Mapping[str, str], name: str = "jax") -> Path | None:
    """Return the user's folder for compiled programs, `ipe/jax` where the system keeps caches; None if there is none.

    The folder is made if it is not there. A folder that belongs to somebody else, or that others may write to, is not
    used.
    """
    base = variables.get("XDG_CACHE_HOME") or ""
    home = Path(base) if os.path.isabs(base) else Path(os.path.expanduser("~")) / ".cache"
    folder = home / "ipe" / name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.stat()
    except OSError:
        return None
    if os.name == "posix" and (found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o022):
        return None
    return folder if os.access(folder, os.W_OK) else None
