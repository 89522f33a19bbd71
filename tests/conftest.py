"""The command line in a test's own process; the tables of declarations as they were before a test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipe.base.declarations import Table
from ipe.behaviours import BEHAVIOURS
from ipe.updates import UPDATES
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


@pytest.fixture(autouse=True)
def tables_as_before() -> Iterator[None]:
    """Leave the tables of behaviours and updates without what the test has made known to them."""
    tables: list[Table[Any]] = [BEHAVIOURS, UPDATES]
    before = [dict(table) for table in tables]
    yield
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)
