"""How training processes use JAX: one thread, the user's own flags, and programs compiled once for all processes."""

from __future__ import annotations

import json
import os
import platform
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ipe.deep.compilation import cache_folder, training_environment

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path), "PATH": "somewhere"}


def test_a_process_has_one_thread_and_the_cpu(variables: dict[str, str]) -> None:
    changed = training_environment(variables)
    assert changed["XLA_FLAGS"] == "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    assert changed["JAX_PLATFORMS"] == "cpu"
    assert changed["JAX_CPU_ENABLE_ASYNC_DISPATCH"] == "0"
    assert all(changed[name] == "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"))
    assert changed["PATH"] == "somewhere"
    assert variables == {"XDG_CACHE_HOME": variables["XDG_CACHE_HOME"], "PATH": "somewhere"}


def test_the_users_other_flags_stay(variables: dict[str, str]) -> None:
    changed = training_environment({**variables, "XLA_FLAGS": "--xla_dump_to=there  --xla_cpu_multi_thread_eigen=true"})
    flags = changed["XLA_FLAGS"].split()
    assert flags[0] == "--xla_dump_to=there"
    assert [flag for flag in flags if "multi_thread" in flag][-1] == "--xla_cpu_multi_thread_eigen=false"
    assert training_environment(changed) == changed


def test_the_users_own_cache_is_left_alone(variables: dict[str, str]) -> None:
    changed = training_environment({**variables, "JAX_COMPILATION_CACHE_DIR": "mine"})
    assert changed["JAX_COMPILATION_CACHE_DIR"] == "mine"
    assert "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in changed


@posix
def test_the_cache_is_private(variables: dict[str, str], tmp_path: Path) -> None:
    folder = cache_folder(variables)
    assert folder == tmp_path / "ipe" / "jax"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert training_environment(variables)["JAX_COMPILATION_CACHE_DIR"] == str(folder)


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777, 0o720])
def test_a_folder_that_others_may_write_to_is_not_used(variables: dict[str, str], tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "ipe" / "jax"
    folder.mkdir(parents=True)
    folder.chmod(mode)
    assert cache_folder(variables) is None
    assert "JAX_COMPILATION_CACHE_DIR" not in training_environment(variables)


@posix
def test_a_folder_of_somebody_else_is_not_used(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert cache_folder(variables) is not None
    monkeypatch.setattr("os.getuid", lambda: 12345)
    assert cache_folder(variables) is None


def test_no_folder_is_no_error(variables: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "ipe").write_text("a file in the way")
    assert cache_folder(variables) is None


def test_a_relative_cache_home_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder({"XDG_CACHE_HOME": "relative"}) == tmp_path / ".cache" / "ipe" / "jax"


COUNTING = """
import collections, json
import jax
counts = collections.Counter()
jax.monitoring.register_event_listener(lambda name, **_: counts.update([name]))
from tests.deep_helpers import DRIFT, run, small
loop = run(small(DRIFT), [0, 1], 3)
print(json.dumps(counts))
"""


def events(variables: dict[str, str]) -> Any:
    """What JAX says about its cache in a new process that trains for three frames."""
    inherited = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    environment = training_environment(inherited | variables)
    root = str(Path(__file__).parent.parent)
    run = subprocess.run(
        [sys.executable, "-c", COUNTING], env=environment, cwd=root, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.slow
def test_a_second_process_finds_the_programs_of_the_first(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    variables = {"XDG_CACHE_HOME": str(tmp_path)}
    first = events(variables)
    files = {path.name for path in (tmp_path / "ipe" / "jax").iterdir() if not path.name.endswith("-atime")}
    second = events(variables)
    assert first["/jax/compilation_cache/cache_misses"] >= 2
    assert len(files) >= 2
    # What takes less than a tenth of a second to compile is not kept.
    assert second["/jax/compilation_cache/cache_hits"] >= 2
    after = {path.name for path in (tmp_path / "ipe" / "jax").iterdir() if not path.name.endswith("-atime")}
    assert files <= after
    assert second["/jax/compilation_cache/cache_hits"] >= len(files) - 1


FAULTS = """
import resource, sys
import numpy as np
from ipe.deep.compilation import keep_memory
if sys.argv[1] == "kept":
    keep_memory()
def faults():
    for _ in range(50):
        np.ones(125_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults()
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_freed_memory_is_kept_though_dask_would_give_it_back() -> None:
    environment = {**os.environ, "MALLOC_TRIM_THRESHOLD_": "65536"}
    root = str(Path(__file__).parent.parent)
    found = {}
    for how in ("kept", "given back"):
        words = [sys.executable, "-c", FAULTS, how]
        done = subprocess.run(words, env=environment, cwd=root, capture_output=True, text=True, check=True)
        found[how] = int(done.stdout)
    assert found["given back"] > 10_000  # a megabyte has 256 pages
    assert found["kept"] < 100
