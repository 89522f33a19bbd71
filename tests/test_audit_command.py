"""Options of `ipe audit` that are refused by their own name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ipe.cli.program import main
from tests.audit_cases import switch_stay_batch
from tests.test_audit_sources import make_run


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command says on standard error, and nothing else, when it ends with code 2."""
    code = main(["audit", *words])
    said = capsys.readouterr()
    assert (code, said.out, said.err.count("\n")) == (2, "", 1)
    return said.err


def test_draws_and_refit_are_refused_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    lake = str(make_run(tmp_path / "lake", "FrozenLake-v1", "epsilon-ipe"))
    np.savez(tmp_path / "batch.npz", **switch_stay_batch())
    np.savez(tmp_path / "q.npz", q=np.zeros((2, 2)))
    arrays = ("--transitions", str(tmp_path / "batch.npz"), "--q", str(tmp_path / "q.npz"), "--gamma", "0.9")
    for words in ((lake, "--draws", "-1"), (*arrays, "--draws", "-1")):
        assert "--draws must be at least 0, found -1" in refusal(capsys, *words)
    assert "draws must be a whole number from 0 to 2^63 - 1" in refusal(capsys, lake, "--draws", str(2**63))
    assert "refit is not for numbered states" in refusal(capsys, lake, "--refit", "--frames", "50")
