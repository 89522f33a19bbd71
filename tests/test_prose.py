"""Sentences that can be understood alone: what a program can check of them."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.test_api_pages import PAGES, importable, listed

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "ipe").rglob("*.py"))
CLIPPED = re.compile(r"(?:Of|Its|Their|Whose)\b")
"""How a fragment begins that leaves out what it is about: "Of it.", "Their environment did." """


def attribute_docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The line and the text of every string that follows an assignment."""
    for node in ast.walk(tree):
        body = getattr(node, "body", [])
        for before, after in pairwise(body) if isinstance(body, list) else ():
            if (
                isinstance(before, ast.Assign | ast.AnnAssign)
                and isinstance(after, ast.Expr)
                and isinstance(after.value, ast.Constant)
                and isinstance(after.value.value, str)
            ):
                yield after.lineno, after.value.value


def named_own(tree: ast.AST) -> Iterator[int]:
    """The lines on which something is called `own`, a name that says nothing."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id="own", ctx=ast.Store()) | ast.arg(arg="own"):
                yield node.lineno


def test_attributes_are_described_in_whole_sentences() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}: {text[:60]}"
        for file in FILES
        for line, text in attribute_docstrings(ast.parse(file.read_text(encoding="utf-8")))
        if CLIPPED.match(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_is_called_own() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{line}"
        for file in FILES
        for line in named_own(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_field_of_a_public_class_has_a_sentence() -> None:
    pytest.importorskip("sphinx")
    fields_of = importlib.import_module("docs.api_pages").fields_of
    for page in PAGES.glob("*.md"):
        for module, names in listed(page.read_text(encoding="utf-8")).items():
            if not importable(module):
                continue
            for thing in (getattr(importlib.import_module(module), name, None) for name in names):
                if not inspect.isclass(thing) or re.search(r"^\s*(Attributes|Args):", thing.__doc__ or "", re.M):
                    continue
                missing = [field.name for field in fields_of(thing) if not field.sentence]
                assert not missing, f"{module}.{thing.__name__}: {', '.join(missing)} without a sentence"


def test_what_is_wrong_would_be_found() -> None:
    tree = ast.parse(
        'class A:\n    seed: int\n    """Of it."""\n\ndef f(own):\n    for own in own.parts:\n        pass\n'
    )
    assert list(attribute_docstrings(tree)) == [(3, "Of it.")]
    assert sorted(named_own(tree)) == [5, 6]
