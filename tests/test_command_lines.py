"""Mutated command lines: each is done, or refused in one sentence with exit code 2 and nothing written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ipe.cli import main
from tests.command_line_fuzzer import end_lines, mutants, wrong_kinds


def test_mutated_command_lines_are_done_or_refused_in_a_sentence(tmp_path: Path) -> None:
    ends, first = end_lines(mutants(500), tmp_path)
    assert set(ends) <= {"done", "refused"}, first
    assert ends["refused"] > 400


@pytest.mark.slow
def test_thousands_of_mutated_command_lines(tmp_path: Path) -> None:
    ends, first = end_lines(mutants(3000, seed=1), tmp_path)
    assert set(ends) <= {"done", "refused"}, first


def test_every_option_with_a_word_of_a_wrong_kind(tmp_path: Path) -> None:
    ends, first = end_lines(wrong_kinds(2), tmp_path)
    assert set(ends) <= {"done", "refused"}, first


@pytest.mark.slow
def test_every_option_with_words_of_a_wrong_kind(tmp_path: Path) -> None:
    ends, first = end_lines(wrong_kinds(20), tmp_path)
    assert set(ends) <= {"done", "refused"}, first


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("train CartPole-v1 --behaviour epsilon_ipe", "found 'epsilon_ipe' (did you mean epsilon-ipe?)"),
        ("solve switch-stay --values 1,2 --norm L1", "found 'L1' (did you mean l1?)"),
        ("sweep lunar-lander-epsilon-ip", "no sweep of that name (did you mean lunar-lander-epsilon-ipe?)"),
        ("sweep empty", "empty is a folder; a sweep is declared in a TOML file"),
        ("sweep held", "held is the folder of a sweep or a run; go on with it: ipe sweep --resume held"),
        ("report file", "file: it is empty"),
        ("status file", "file is a file; name the folder of a sweep or of a training run"),
        ("train CartPole-v1 --out file", "file is a file; a run needs a new or an empty folder"),
        ("help trian", "there is no command 'trian' (did you mean train?)"),
    ],
)
def test_what_was_meant_is_said(
    words: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / "sweep.json").write_text("{}")
    (tmp_path / "file").write_text("")
    before = sorted(tmp_path.rglob("*"))
    assert main(words.split()) == 2
    assert sentence in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_the_help_of_settings_names_every_tuned_environment(capsys: pytest.CaptureFixture[str]) -> None:
    from ipe.deep.defaults import TUNED

    assert main(["train", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    about = said[said.index("--settings {tuned,paper}") :]
    assert all(name in about[:300] for name in TUNED)


def test_a_package_of_the_core_that_is_missing_is_named_in_a_sentence() -> None:
    """In a process of its own: in this one the package is imported."""
    script = "import sys; sys.modules['scipy'] = None; from ipe.cli import main; sys.exit(main(sys.argv[1:]))"
    command = [sys.executable, "-c", script, "solve", "switch-stay", "--values", "18,-6"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("ipe solve: this command needs scipy, which is not installed: pip install")
    assert done.stderr.count("\n") == 1
