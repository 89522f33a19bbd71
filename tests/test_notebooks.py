"""Every notebook runs from top to bottom, in an empty folder, and says no more than it did: no error, no warning."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.tiers import tiered

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
pytest.importorskip("gymnasium")

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def test_the_three_are_there() -> None:
    assert NAMES == ["audit_my_value_function.ipynb", "polytope_tour.ipynb", "sweep_read_back.ipynb"]


@pytest.mark.filterwarnings("ignore")  # Jupyter's own
@pytest.mark.parametrize("name", tiered(NAMES))
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(FOLDER / name, as_version=4)
    for cell in notebook.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.outputs = []
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    said = [output.text for output in outputs if output.output_type == "stream" and output.name == "stderr"]
    assert not [text for text in said if text.strip() and "frames per second" not in text]  # a training's progress
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 1


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_kept_with_its_outputs_and_without_traces_of_a_machine(name: str) -> None:
    content = json.loads((FOLDER / name).read_text())
    code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert any(cell["outputs"] for cell in code)
    text = [
        "".join(output.get("text", [])) + "".join(output.get("data", {}).get("text/plain", []))
        for cell in code
        for output in cell["outputs"]
    ]
    assert not any("Traceback" in own for own in text)
    absolute = re.compile(r"(?<![\w.:/<-])/\w+/")  # a place on the machine that made it, wherever that was
    assert [found for own in text if (found := absolute.search(own))] == []
    assert absolute.search("wrote /somewhere/else/figure.png")
    assert len((FOLDER / name).read_bytes()) < 1_000_000
