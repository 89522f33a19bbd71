"""The explorer as one HTML file: style, script and MDPs inside, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from pathlib import Path
from typing import Any

from ipe.base.atomic import write_atomic
from ipe.errors import InputError
from ipe.explorer.bundle import WEB, bundle
from ipe.explorer.models import examples, page_model
from ipe.mdp import FiniteMDP

ENTRY = "page/main.js"


def explorer_page(mdp: FiniteMDP | None = None, name: str = "my MDP") -> str:
    """The explorer as the text of an HTML file that opens offline and makes no request.

    Args:
        mdp: what it starts with; exactly two of its states are not terminal. Default: Switch-Stay. The examples of the
            zoo can be chosen in the page either way.
        name: what the page calls `mdp`.

    Example:
        >>> page = explorer_page()
        >>> page.startswith("<!doctype html>"), "http-equiv" in page
        (True, True)
    """
    models = examples()
    if mdp is not None:
        own = page_model(mdp, name)
        same = [m for m in models if all(m[key] == part for key, part in own.items())]
        first = same[0] if same else {**own, "title": own["name"], "example": False}
        models = [first, *(m for m in models if m is not first)]
    style, script = (WEB / "page.css").read_text(encoding="utf-8"), bundle(ENTRY)
    parts = {
        "policy": html.escape(content_policy(style, script)),
        "style": style,
        "data": _json({"models": models}),
        "script": script,
    }
    page = (WEB / "page.html").read_text(encoding="utf-8")
    for key, part in parts.items():
        before, mark, after = page.partition(f"<!-- {key} -->")
        if not mark:
            raise RuntimeError(f"page.html has no place for its {key}")
        page = before + part + after
    return page


def write_explorer(path: str | os.PathLike[str], mdp: FiniteMDP | None = None, name: str = "my MDP") -> None:
    """Write the explorer to a file, whole or not at all.

    Args:
        path: ends in .html. A file that is there is replaced.
        mdp, name: as in `explorer_page`.
    """
    check_page_path(path)
    content = explorer_page(mdp, name).encode()
    write_atomic(path, lambda file: file.write(content))


def check_page_path(path: str | os.PathLike[str]) -> None:
    """That a page may have this path: browsers go by its suffix."""
    suffix = Path(path).suffix
    if suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: the suffix of a page must be .html; found {suffix or 'none'}")


def content_policy(style: str, script: str) -> str:
    """The content security policy that lets this style and this script run, and nothing else."""
    return (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _json(content: Any) -> str:
    """JSON that can stand in a script element, whatever names it holds."""
    return json.dumps(content, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c").replace(">", "\\u003e")
