"""Manifests whose checksum is right and whose content is absurd: refused alike by status, sweep and reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipe.base.sealed import _NECKS, _whole
from ipe.cli import main
from ipe.errors import InputError
from ipe.experiments.publications import read_manifest
from ipe.experiments.results import load_results
from ipe.experiments.status import sweep_status
from tests.store_helpers import make_store, make_sweep, publish, publish_all

INFINITE, NAN, HUGE = float("inf"), float("nan"), 10**400
MISSING = "it is taken away"
OUTCOME = {"seed": 0, "status": "done", "frame": 1000, "reason": ""}
ABSURD: list[tuple[str, Any, str]] = [
    *((name, value, name) for name in ("size", "seconds", "published") for value in (INFINITE, NAN, HUGE, -1, "1")),
    *((f"rows.{kind}", value, "rows") for kind in ("episodes", "progress") for value in (0, -1, 39, INFINITE, HUGE)),
    *(("seeds", value, "seeds") for value in ([INFINITE, 1], [HUGE, 1], [0, -1], 3, "01", [], [0])),
    *((name, MISSING, name) for name in ("file", "sha256", "size", "rows", "outcomes", "seconds", "machine")),
    ("rows", [40, 8], "rows"),
    ("sha256", "0" * 63, "sha256"),
    ("file", 3, "file must be a text, found 3"),
    ("file", "other.parquet", "another name"),
    ("versions", [], "versions"),
    ("size", None, "size"),
    ("rows.progress", True, "rows"),
    ("machine", {}, "machine"),
    ("networks", 3, "networks"),
    ("networks", {"sha256": "0" * 64, "size": INFINITE}, "networks"),
    ("speeds", 3, "speeds"),
    ("speeds", [[250, HUGE]], "speeds"),
    ("speeds", [[INFINITE, 1.0]], "speeds"),
    ("outcomes", [OUTCOME, {"seed": 1, "frame": 1000, "reason": ""}], "outcome"),
    ("outcomes", [OUTCOME], "outcome"),
    ("outcomes", [OUTCOME, OUTCOME], "outcome"),
    ("outcomes", [OUTCOME, OUTCOME | {"seed": 1, "status": "running"}], "status"),
    ("outcomes", [OUTCOME, OUTCOME | {"seed": 1, "frame": INFINITE}], "frame"),
    ("outcomes", [OUTCOME, OUTCOME | {"seed": 1, "reason": 3}], "reason"),
    ("outcomes", [OUTCOME, 3], "outcome"),
    ("outcomes", 3, "outcome"),
]  # fmt: skip


def reseal(path: Path, field: str, value: Any) -> None:
    """Change a field of a manifest, and write the checksum that is right for it."""
    content = json.loads(path.read_bytes())["content"]
    table = content
    *tables, name = field.split(".")
    for part in tables:
        table = table[part]
    if value == MISSING:
        del table[name]
    else:
        table[name] = value
    path.write_bytes(_whole(json.dumps(content).encode(), _NECKS[0]))


@pytest.mark.parametrize(("field", "value", "named"), ABSURD, ids=lambda each: str(each)[:30])
def test_an_absurd_manifest_is_no_result_to_anybody(
    field: str, value: Any, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = make_store(tmp_path, make_sweep((16,), range(4)))
    publish_all(store)
    manifest = store.publication(store.jobs[0])
    assert manifest is not None
    reseal(manifest.path, field, value)

    status = sweep_status(tmp_path)
    assert [job.state for job in status.jobs] == ["waiting", "done"]
    assert len(status.problems) == 1
    assert manifest.path.stem in status.problems[0]
    assert named in status.problems[0]
    assert main(["status", str(tmp_path)]) == 0
    assert main(["status", str(tmp_path), "--json"]) == 0
    assert "Traceback" not in capsys.readouterr().err
    assert not store.published(store.jobs[0])
    assert not store.published(store.jobs[0], verify=False)
    results = load_results(tmp_path)
    assert results.missing == [(0, 0), (0, 1)]
    assert len(results.problems) == 2

    assert publish(store, store.jobs[0])  # computed again
    assert sweep_status(tmp_path).finished
    assert load_results(tmp_path).problems == []


def test_the_sentence_names_the_file_and_the_field(tmp_path: Path) -> None:
    store = make_store(tmp_path, make_sweep((16,), range(2)))
    publish_all(store)
    manifest = store.publication(store.jobs[0])
    assert manifest is not None
    reseal(manifest.path, "rows.progress", -1)
    with pytest.raises(InputError) as caught:
        read_manifest(manifest.path)
    assert str(caught.value) == f"{manifest.path}: rows.progress must be a whole number from 0 to 2^63 - 1, found -1"
