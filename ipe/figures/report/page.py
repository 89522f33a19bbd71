"""The page: one HTML file that holds its style, its program and its data, and asks nobody for anything."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_WEB = Path(__file__).with_name("web")
SCRIPTS = (
    "dom.js",
    "numbers.js",
    "axes.js",
    "chart.js",
    "curves.js",
    "exploration.js",
    "ranking.js",
    "comparison.js",
    "sensitivity.js",
    "words.js",
    "main.js",
)
"""The parts of the program, in the order in which they are put together."""


def page_html(data: Mapping[str, Any]) -> str:
    """The page for this data.

    The policy in it allows this style and this program, by their hashes, and nothing else: no request, no other
    script. Data stands in a JSON element that no browser executes, with every `<` written as an escape, and the
    program puts it on the page as text only.

    Args:
        data: plain; `title` is the page's.
    """
    style, program = _read("page.css"), program_text()
    policy = (
        f"default-src 'none'; script-src '{_hash(program)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    parts = {
        "title": html.escape(str(data["title"])),
        "policy": policy,
        "style": style,
        "program": program,
        "data": json_element(data),
    }
    # In one pass: what is put in is never searched for names.
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read("page.html"))


def program_text() -> str:
    """The program of the page: its parts in one scope."""
    parts = "\n".join(f"// {name}\n{_read(name)}" for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def json_element(data: Mapping[str, Any]) -> str:
    r"""Data as JSON that may stand inside a script element, whatever words it holds.

    Example:
        >>> json_element({"name": "</script>"})
        '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))  # ASCII: no line separators either
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _read(name: str) -> str:
    return (_WEB / name).read_text(encoding="utf-8")
