"""What cannot fit into memory is refused before it is allocated, in a sentence with both numbers."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from ipe import zoo
from ipe.base import memory
from ipe.base.memory import available_memory, check_memory
from ipe.cli import main
from ipe.deep.loop import Loop
from ipe.deep.memory import seed_bytes
from ipe.deep.settings import paper_settings
from ipe.errors import InputError
from ipe.experiments.training import train
from tests.deep_helpers import DRIFT, small
from tests.tiers import tiered

HUGE = {
    "chain": {"n": 10**9},
    "river-swim": {"n": 10**9},
    "garnet": {"n_states": 10**9},
    "slippery-grid": {"n": 10**5},
    "queue": {"n": 10**9},
    "ring-walk": {"n": 10**9},
    "smooth-line": {"n": 10**6},
}


def test_the_memory_is_what_the_kernel_or_the_container_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meminfo").write_text("MemTotal:  16000 kB\nMemAvailable:  8000 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_CONTAINER_LIMIT", tmp_path / "memory.max")
    assert available_memory() == 8000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() == 8000 * 1024
    (tmp_path / "memory.max").write_text("4096000\n")
    assert available_memory() == 4_096_000
    check_memory(4_000_000, "it")
    with pytest.raises(InputError, match=r"it takes about 0\.005 GB of memory, and this machine has 0\.0041 GB avail"):
        check_memory(5_000_000, "it")
    monkeypatch.setattr(memory, "_from_kernel", lambda: None)
    monkeypatch.setattr(memory, "_from_container", lambda: None)
    check_memory(1e30, "nothing is refused where the system does not say")


@pytest.mark.parametrize("name", HUGE)
def test_an_mdp_that_cannot_fit_is_refused_at_once(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    begin = time.monotonic()
    with pytest.raises(InputError, match=r"takes about .* GB of memory, and this machine has .* GB available"):
        zoo.make(name, **HUGE[name])
    assert time.monotonic() - begin < 1.0
    words = ",".join(f"{key}={value}" for key, value in HUGE[name].items())
    assert main(["zoo", f"{name}:{words}"]) == 2
    assert f"ipe zoo: {name}: " in capsys.readouterr().err


def test_a_training_that_cannot_fit_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("gymnasium")
    monkeypatch.setattr(memory, "_from_kernel", lambda: 10**9)
    monkeypatch.setattr("ipe.experiments.training.create_store", lambda *_: pytest.fail("a store was made"))
    settings = paper_settings("CartPole-v1", replay=10**8, width=4096, batch=4096, frames=10)
    with pytest.raises(InputError, match=r"a seed with a replay of 100000000 transitions and .* takes about 4\.\d+ GB"):
        train(settings, out=tmp_path / "run")
    several = paper_settings("CartPole-v1", replay=10**7)
    with pytest.raises(InputError, match=r"\(3 at the same time\) takes about 1\.\d+ GB of memory"):
        train(several, seeds=3, out=tmp_path / "run", processes=1)
    assert not (tmp_path / "run").exists()


def test_a_worker_refuses_what_cannot_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_from_kernel", lambda: 10**6)
    monkeypatch.setattr("ipe.deep.loop.Slots", lambda *_: pytest.fail("memory was allocated"))
    with pytest.raises(InputError, match=r"of memory, and this machine has 0\.001 GB available"):
        Loop([small(DRIFT, replay=10**6)], [0])


@pytest.mark.parametrize(
    "changes", tiered([{}, {"behaviour": "epsilon-greedy"}, {"optimiser": {"kind": "adam"}, "width": 256}], {})
)
def test_the_estimate_is_what_a_training_takes(changes: dict[str, object]) -> None:
    settings = small(DRIFT, replay=20_000, **changes)
    loop = Loop([settings], [0])
    estimate = seed_bytes(settings, loop.program.architecture, loop.program.form)
    gradient = 4 * sum(i * o + o for i, o in loop.program.architecture.layers)
    assert np.isclose(estimate, loop.memory + loop.slots.places.nbytes / loop.lanes + gradient, rtol=0.02)
