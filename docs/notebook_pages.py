"""Notebooks as pages of the site: a page that consists of `<!-- notebook: NAME.ipynb -->` becomes that notebook.

The notebooks of `examples/notebooks` are kept with their outputs, so nothing runs here: a cell of text is Markdown
already, code becomes a block, and an output becomes text, a table or a picture inside the page. This needs no package.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

NOTEBOOKS = Path(__file__).parent.parent / "examples" / "notebooks"


def markdown_of(notebook: dict[str, Any]) -> str:
    """A notebook, with its outputs, as one page of MyST Markdown."""
    parts: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            parts += [_block("python", source), *(_output(output) for output in cell["outputs"])]
        else:
            parts.append(source)
    return "\n\n".join(parts)


def _block(language: str, text: str) -> str:
    return f"````{language}\n{text.rstrip()}\n````"


def _output(output: dict[str, Any]) -> str:
    """An output in the richest form that a page can show."""
    data = {kind: "".join(content) for kind, content in output.get("data", {}).items()}
    if "image/png" in data:
        address = "data:image/png;base64," + re.sub(r"\s", "", data["image/png"])
        return _block("{raw} html", f'<img src="{address}" alt="The figure that the code above draws">')
    if "text/html" in data:
        return _block("{raw} html", data["text/html"])
    return _block("text", data.get("text/plain", "".join(output.get("text", []))))


def _read(app: Sphinx, page: str, source: list[str]) -> None:
    if named := re.fullmatch(r"<!-- notebook: (\w+\.ipynb) -->\s*", source[0]):
        path = NOTEBOOKS / named[1]
        app.env.note_dependency(str(path))
        origin = f"*This page is the notebook `examples/notebooks/{path.name}` of the repository, as it was run last.*"
        source[0] = f"{markdown_of(json.loads(path.read_text(encoding='utf-8')))}\n\n{origin}\n"


def setup(app: Sphinx) -> dict[str, bool]:
    """Replace the pages that name a notebook when they are read."""
    app.connect("source-read", _read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
