"""The explorer as one HTML file: style, script and MDPs inside, nothing fetched."""

from __future__ import annotations

import os
from pathlib import Path

from ipe.base.atomic import write_atomic
from ipe.errors import InputError
from ipe.explorer.models import examples, page_model
from ipe.mdp import FiniteMDP
from ipe.pages import page_html

WEB = Path(__file__).with_name("web")
ENTRY = "explorer/web/page/main.js"


def explorer_page(mdp: FiniteMDP | None = None, name: str = "my MDP") -> str:
    """The explorer as the text of an HTML file that opens offline and makes no request.

    Args:
        mdp: the MDP that the page starts with; exactly two of its states are not terminal. Default: Switch-Stay. The
            examples of the zoo can be chosen in the page either way.
        name: the name of `mdp` on the page.

    Example:
        >>> page = explorer_page()
        >>> page.startswith("<!doctype html>"), "http-equiv" in page
        (True, True)
    """
    models = examples()
    if mdp is not None:
        given = page_model(mdp, name)
        same = [m for m in models if all(m[key] == part for key, part in given.items())]
        first = same[0] if same else {**given, "title": given["name"], "example": False}
        models = [first, *(m for m in models if m is not first)]
    return page_html("Value polytope explorer", WEB, ENTRY, {"models": models}, served=True)


def write_explorer(path: str | os.PathLike[str], mdp: FiniteMDP | None = None, name: str = "my MDP") -> None:
    """Write the explorer to a file, whole or not at all.

    Args:
        path: the file to write, which ends in .html. A file that is there is replaced.
        mdp, name: as in `explorer_page`.
    """
    check_page_path(path)
    content = explorer_page(mdp, name).encode()
    write_atomic(path, lambda file: file.write(content))


def check_page_path(path: str | os.PathLike[str]) -> None:
    """Refuse a path that does not end in .html or .htm: browsers go by the suffix."""
    suffix = Path(path).suffix
    if suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{path}: the suffix of a page must be .html; found {suffix or 'none'}")
