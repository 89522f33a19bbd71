"""The command line in a test's own process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import Run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `ipe` in this process, in an empty folder; returns the exit code, standard output and standard error."""
    from ipe.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(words)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return call
