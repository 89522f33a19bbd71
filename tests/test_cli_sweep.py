"""`ipe sweep`: plans, shards, refusals in one sentence, and what it says on the way."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("gymnasium")

from ipe.cli.display import Display
from ipe.cli.sweep import Arguments, _again
from ipe.cli.sweep_plan import _memory
from ipe.cli.sweep_progress import progress_line, show_sweep
from ipe.deep.environments import episode_seed
from ipe.experiments.calibration import Calibration
from ipe.experiments.grids import jobs, read_sweep
from ipe.experiments.ledger import SweepProgress
from ipe.experiments.planning import makespan, plan_sweep
from ipe.experiments.store import open_store
from tests.needs import ROOT, Run
from tests.sweep_helpers import nothing_is_left_over, small_sweep, toml


@pytest.fixture
def run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command line in a folder that has a sweep's file."""
    monkeypatch.syspath_prepend(str(ROOT))
    (tmp_path / "grid.toml").write_text(toml(2, "", "gamma = [0.5, 0.9]", frames=300))
    return run


# ---- running


@pytest.mark.slow
def test_a_shard_runs_here(run: Run, tmp_path: Path) -> None:
    code, out, err = run("sweep", "grid.toml", "--shard", "0/2")
    assert (code, out) == (0, "1 of 1 jobs done: 2 runs done, 0 failed, 0 diverged; in runs/small\n")
    assert err.splitlines()[0] == "small: 2 settings by 2 seeds, 1.2k frames, in runs/small"
    assert err.splitlines()[-1] == "1 of 1 jobs done, 600 of 600 frames (100%); done"
    assert run("sweep", "grid.toml", "--shard", "1/2")[0] == 0
    store = open_store(tmp_path / "runs" / "small")
    assert all(store.published(job) for job in store.jobs)
    nothing_is_left_over(store.folder)
    code, out, err = run("sweep", "grid.toml", "--seeds", "3", "--shard", "0/1", "--out", "runs/small")
    assert (code, out) == (0, "4 of 4 jobs done: 6 runs done, 0 failed, 0 diverged; in runs/small\n")
    code, out, err = run("sweep", "grid.toml", "--frames", "200", "--shard", "0/1")
    assert (code, out) == (2, "")
    assert err.startswith("ipe sweep: runs/small was made for another sweep: ")


@pytest.mark.slow
def test_runs_that_fail_are_said(run: Run, tmp_path: Path) -> None:
    options = f'bad = {episode_seed(1, 4)}, fault = "raise"'
    (tmp_path / "grid.toml").write_text(toml(2, options, "", frames=300))
    code, out, err = run("sweep", "grid.toml", "--shard", "0/1", "--out", "a")
    assert (code, out) == (0, "1 of 1 jobs done: 1 runs done, 1 failed, 0 diverged; in a\n")
    assert "ipe sweep: base, seed 1 failed at frame " in err
    assert "OSError: the wheel came off" in err
    code, out, err = run("sweep", "grid.toml", "--shard", "0/1", "--out", "b", "--seeds", "1,")
    assert (code, out) == (3, "1 of 1 jobs done: 0 runs done, 1 failed, 0 diverged; in b\n")


@pytest.mark.slow
def test_a_job_that_fails_is_exit_code_1(run: Run, tmp_path: Path) -> None:
    options = f'bad = {episode_seed(1, 4)}, fault = "quit"'
    (tmp_path / "grid.toml").write_text(toml(2, options, "", frames=300))
    code, out, err = run("sweep", "grid.toml", "--shard", "0/1", "--out", "a")
    assert (code, out) == (1, "0 of 1 jobs done: 0 runs done, 0 failed, 0 diverged; in a\n")
    assert "ipe sweep: base, seeds 0, 1: SystemExit: 3 (see " in err
    assert err.splitlines()[-1] == (
        "ipe sweep: 1 job could not be done; try again with: ipe sweep grid.toml --out a --shard 0/1"
    )


@pytest.mark.slow
def test_without_dask(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a scheduler needs it."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, out, err = run("sweep", "grid.toml", "--out", "out", "--scheduler", "tcp://127.0.0.1:9")
    assert (code, out) == (2, "")
    assert err.startswith("ipe sweep: a scheduler needs Dask, which is not installed: ")
    assert [path.name for path in tmp_path.iterdir()] == ["grid.toml"]
    code, out, err = run("sweep", "grid.toml", "--frames", "20", "--out", "out", "--workers", "1")
    assert code == 0, err
    first = out.splitlines()[0]
    assert first.startswith("2 of 2 jobs done: 4 runs done")
    code, out, err = run("sweep", "--resume", "out")
    assert (code, out.splitlines()[0]) == (0, first), err
    for words, said in ((("grid.toml",), "SWEEP"), (("--seeds", "3"), "--seeds")):
        assert run("sweep", *words, "--resume", "out")[2].startswith(f"ipe sweep: {said} has no effect with --resume")


# ---- refusals

REFUSED: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "SWEEP is missing, a TOML file, or one of cart-pole-lambda, cart-pole-updates, freeway-dqn, "),
    "no such file": (["no.toml"], "there is no file no.toml, and no sweep of that name; those that have one: "),
    "a shard": (["grid.toml", "--shard", "2/2"], "--shard must be I/N with I from 0 to N - 1, as in 3/100; found"),
    "no shard": (["grid.toml", "--shard", "half"], "--shard must be I/N"),
    "seeds": (["grid.toml", "--seeds", "a"], "--seeds must be how many, or which ones with commas as in 3,5,8"),
    "no seeds": (["grid.toml", "--seeds", "0"], "seeds must be from 1 to a million, found 0"),
    "no frames": (["grid.toml", "--frames", "0"], "frames: input should be greater than or equal to 1, found 0"),
    "no folder": (["grid.toml", "--out", ""], "--out is empty"),
    "cores without a plan": (["grid.toml", "--cores", "4"], "--cores is for --plan"),
    "no cores": (["grid.toml", "--plan", "--cores", "0"], "--cores must be 1 or more, found 0"),
    "workers and a shard": (
        ["grid.toml", "--workers", "1", "--shard", "0/1"], "give one of workers, scheduler and shard"),
    "an option": (["grid.toml", "--shards", "1"], "there is no option --shards (did you mean --shard?)"),
    "seeds at once": (
        ["grid.toml", "--shard", "0/1", "--batch-seeds", "0"], "batch_seeds must lie between 1 and 16, found 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(run: Run, tmp_path: Path, name: str) -> None:
    words, sentence = REFUSED[name]
    code, out, err = run("sweep", *words)
    assert (code, out) == (2, "")
    assert err.startswith(f"ipe sweep: {sentence}")
    assert len(err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["grid.toml"]


def test_the_help_names_the_appendix(run: Run) -> None:
    code, out, _ = run("sweep", "--help")
    assert code == 0
    for word in ("lunar-lander-dqn", "freeway-epsilon-ipe", "--plan", "--scheduler", "--shard", "--hang-seconds"):
        assert word in out
    assert "sweep" in run("--help")[1]


# ---- plans


@pytest.mark.slow
def test_a_plan_measures_and_writes_nothing(run: Run, tmp_path: Path) -> None:
    code, out, err = run("sweep", "grid.toml", "--plan", "--seeds", "30", "--frames", "1e6", "--cores", "64")
    assert (code, err) == (0, "ipe sweep: measuring this machine, for some seconds\n")
    lines = out.splitlines()
    assert lines[0] == "small"
    assert lines[1].split() == ["settings", "2"]
    assert lines[2].split() == ["runs", "60", "(30", "seeds", "each),", "in", "4", "jobs"]
    assert lines[3].split() == ["frames", "60M"]
    assert re.fullmatch(r"disk +about [\d.]+MB of results; checkpoints up to [\d.]+[kM]B", lines[4])
    assert re.fullmatch(r"memory +about [\d.]+[MG]B in \d+ process(es)?, of [\d.]+[MG]B available here", lines[5])
    assert re.fullmatch(r"time +about .* here, on \d+ cores?", lines[6])
    assert re.fullmatch(r"time +about .* on 64 cores", lines[7])
    assert lines[8] == "measured for some seconds on this machine: 1 program"
    assert [path.name for path in tmp_path.iterdir()] == ["grid.toml"]


def test_a_plan_of_the_appendix() -> None:
    pytest.importorskip("Box2D")
    sweep = read_sweep("lunar-lander-dqn")
    asked: list[Any] = []

    def measure(shapes: Any) -> list[Calibration]:
        asked.extend(shapes)
        return [Calibration(seeds, 10.0, 1e-3 * seeds, 10**7, 3 * 10**8, 0.01) for _, seeds in shapes]

    plan = plan_sweep(sweep, jobs(sweep), [1, 2], measure)
    assert (plan.settings, plan.runs, plan.frames) == (243, 7290, 3_645_000_000)
    assert [(settings.width, seeds) for settings, seeds in asked] == [(64, 15), (128, 8), (256, 4)]
    assert (plan.measured, plan.shapes) == (3, 3)
    assert plan.jobs == 81 * 2 + 81 * 4 + 81 * 8
    # A millisecond per frame of a run, and ten seconds per job, on one core.
    assert plan.seconds[1] == pytest.approx(3_645_000_000 * 1e-3 + 10.0 * plan.jobs)
    assert plan.seconds[2] == pytest.approx(plan.seconds[1] / 2, rel=0.01)
    assert plan.work_bytes == {1: 3 * 15 * 10**7, 2: 2 * 3 * 15 * 10**7}
    # Three hundred megabytes per process, and a hundred and fifty for the fifteen seeds of the largest.
    assert plan.memory_bytes == {1: 45 * 10**7, 2: 2 * 45 * 10**7}
    assert plan.result_bytes == pytest.approx(3_645_000_000 * (0.01 * 20 + 0.048) + 8000 * plan.jobs)


def test_a_plan_says_when_memory_is_too_little() -> None:
    assert _memory(3 * 10**9, 2, 16 * 10**9) == "about 3GB in 2 processes, of 16GB available here"
    assert _memory(3 * 10**9, 1, 2 * 10**9) == "about 3GB in 1 process, of 2GB available here: TOO LITTLE"
    assert _memory(3 * 10**9, 1, None) == "about 3GB in 1 process"


def test_a_plan_of_many_programs_measures_some() -> None:
    sweep = small_sweep(grid={"width": list(range(1, 101))})
    asked: list[int] = []

    def measure(shapes: Any) -> list[Calibration]:
        asked.extend(settings.width for settings, _ in shapes)
        return [Calibration(seeds, 0.0, float(settings.width), 0, 0, 0.0) for settings, seeds in shapes]

    plan = plan_sweep(sweep, jobs(sweep), [1], measure)
    assert asked == [1, 13, 26, 38, 51, 63, 76, 88]
    assert (plan.measured, plan.shapes) == (8, 100)
    nearest = [min(asked, key=lambda own: abs(own - width)) for width in range(1, 101)]
    assert plan.seconds[1] == pytest.approx(1500 * sum(nearest))


def test_one_seed_takes_as_long_as_two() -> None:
    sweep = small_sweep(seeds=9)
    plan = plan_sweep(sweep, jobs(sweep, 8), [1], lambda own: [Calibration(n, 0.0, 1.0 * n, 0, 0, 0.0) for _, n in own])
    assert plan.seconds[1] == 1500 * 9
    assert makespan([5.0, 1.0, 1.0, 1.0], 2) == 5.0


# ---- what it says


def progress(**values: Any) -> SweepProgress:
    usual: dict[str, Any] = {
        "jobs": 8, "done": 2, "running": 0, "failed": 0, "frames": 8_000_000, "frames_done": 2_500_000, "runs": 64,
        "failed_runs": 0, "elsewhere": 0, "seconds": 60.0, "seconds_left": 600.0,
    }  # fmt: skip
    return SweepProgress(**(usual | values))


def test_progress_in_one_line() -> None:
    assert progress_line(progress()) == "2 of 8 jobs done, 2.5M of 8M frames (31%); about 10 min left"
    line = progress_line(progress(running=2, elsewhere=1, failed=1, failed_runs=3, seconds_left=None))
    assert line == (
        "2 of 8 jobs done, 2.5M of 8M frames (31%), 2 running, 1 at other processes, 1 jobs failed, "
        "3 of 64 runs failed or diverged; time left not known yet"
    )
    assert progress_line(progress(done=8, frames_done=8_000_000, seconds_left=0.0)).endswith("frames (100%); done")


def test_without_a_terminal_there_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    with Display("ipe sweep") as display:
        display.begin("a sweep")
        for done in [*range(9), 8]:
            show_sweep(display, progress(done=done))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "a sweep"
    assert [line.split()[0] for line in lines[1:]] == ["0", "8"]


def test_on_a_terminal_the_line_is_drawn_in_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    with Display("ipe sweep") as display:
        display.begin("a sweep")
        show_sweep(display, progress())
        show_sweep(display, progress(done=3))  # too soon to be drawn, but it is the last
    title, first, last = capsys.readouterr().err.split("\033[J")
    assert title == "a sweep\n\033[1F"
    line = "{} of 8 jobs done, 2.5M of 8M frames (31%"  # 40 columns: a line of 39 characters does not wrap
    assert first == f"a sweep\n{line.format(2)[:39]}\n\033[2F"
    assert last == f"a sweep\n{line.format(3)[:39]}\n"


def test_the_command_to_go_on_with() -> None:
    arguments = Arguments(sweep="my grid.toml", out="my runs", workers=2, frames=10, checkpoint_seconds=0.5)
    assert _again(arguments) == (
        "ipe sweep 'my grid.toml' --out 'my runs' --workers 2 --frames 10 --checkpoint-seconds 0.5"
    )
