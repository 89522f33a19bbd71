"""The shell of every page: one HTML file with its style, its program and its data inside."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ipe.base.looks import looks_css
from ipe.pages.bundle import bundle


def page_html(
    title: str, folder: Path, entry: str, data: Mapping[str, Any], *, served: bool = False, images: bool = False
) -> str:
    """The text of a page.

    The page's content security policy allows its own style and program, by their hashes, and nothing else: no request,
    no other script. The data stands in a JSON element that no browser executes, and the program puts it on the page as
    text only.

    Args:
        title: the title of the page.
        folder: the folder of the page's `body.html` and `page.css`.
        entry: the module of the page's program that runs first, as for `bundle`.
        data: plain data, which the program reads as JSON from the element `data`.
        images: whether the page may show images that stand in its data.
        served: whether a server will hand out the page. It then names an empty icon, so that no browser asks for one.
    """
    style, program = looks_css() + (folder / "page.css").read_text(encoding="utf-8"), bundle(entry)
    parts = {
        "policy": content_policy(style, program, images=served or images),
        "title": html.escape(title),
        "icon": '<link rel="icon" href="data:,">\n' if served else "",
        "style": style,
        "body": (folder / "body.html").read_text(encoding="utf-8"),
        "data": json_element(data),
        "program": program,
    }
    shell = Path(__file__).with_name("web").joinpath("page.html").read_text(encoding="utf-8")
    # In one pass, so that the parts themselves are never searched for names.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], shell)


def content_policy(style: str, program: str, *, images: bool) -> str:
    """The content security policy that lets this style and this program run, and nothing else."""
    rules = ["default-src 'none'", f"script-src '{_digest(program)}'", f"style-src '{_digest(style)}'"]
    return "; ".join([*rules, *(["img-src data:"] if images else []), "base-uri 'none'", "form-action 'none'"])


def json_element(data: Mapping[str, Any]) -> str:
    r"""Data as JSON that may stand inside a script element, whatever words it holds.

    Example:
        >>> json_element({"name": "</script>"})
        '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # ASCII: no line separators either
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
