"""The API pages: every public name in its place, rooms in their order, fields without any library's machinery."""

from __future__ import annotations

import importlib
import re
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, NamedTuple

import pytest
from pydantic import BaseModel, Field

from tests.test_rooms import CONTRIBUTING, order_of_rooms

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "api"


def listed(text: str) -> dict[str, list[str]]:
    """The names that a page describes, by module, in the order of the page."""
    found: dict[str, list[str]] = {}
    for module, names in re.findall(r"^\.\. api:: (\S+)\n\n((?:   \S+\n)+)", text, re.M):
        found.setdefault(module, []).extend(names.split())
    for name, module in re.findall(r"^\.\. py:data:: (\S+)\n   :module: (\S+)", text, re.M):
        found.setdefault(module, []).append(name)
    return found


def importable(module: str) -> bool:
    """Whether the packages that a module needs are installed: Stable-Baselines3 is optional."""
    return not module.startswith("ipe.integrations.stable_baselines3") or find_spec("stable_baselines3") is not None


def test_every_public_name_is_on_one_page_once() -> None:
    found: dict[str, list[str]] = {}
    for page in PAGES.glob("*.md"):
        for module, names in listed(page.read_text(encoding="utf-8")).items():
            assert module not in found, f"{page.name}: {module} is on another page too"
            found[module] = names
    for module, names in found.items():
        assert len(names) == len(set(names)), f"{module}: a name is listed twice"
        if not importable(module):
            continue
        public = getattr(importlib.import_module(module), "__all__", None)
        if public is None:
            continue
        home = importlib.import_module(module)
        usable = [name for name in public if importable(f"{module}.{name}")]
        described = [name for name in usable if not isinstance(getattr(home, name), ModuleType)]
        assert sorted(names) == sorted(described), f"docs/api: the page of {module} misses or invents names"


def test_pages_are_in_the_order_of_the_rooms() -> None:
    index = (PAGES / "index.md").read_text(encoding="utf-8")
    pages = re.search(r":maxdepth: 1\n\n(.*?)\n```", index, re.S)
    assert pages is not None
    rooms = [Path(room).stem for room in order_of_rooms(CONTRIBUTING.read_text(encoding="utf-8"))]
    names = pages[1].split()
    assert names == sorted(names, key=rooms.index)
    assert sorted(names) == sorted(page.stem for page in PAGES.glob("*.md") if page.stem != "index")


class Options(BaseModel):
    """A model of settings."""

    share: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5
    count: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    kind: Literal["a", "b"] = "a"
    limit: float = Field(gt=0, description="A sentence.")


class Pair(NamedTuple):
    """A named tuple."""

    first: int
    second: list[int]


@pytest.fixture(scope="module")
def api_pages() -> Any:
    pytest.importorskip("sphinx")
    return importlib.import_module("docs.api_pages")


def test_fields_are_described_in_plain_words(api_pages: Any) -> None:
    facts = {field.name: field.facts for field in api_pages.fields_of(Options)}
    assert facts == {
        "share": "float, from 0 to 1, default 0.5",
        "count": "int from 1 on or None, default None",
        "kind": "'a' or 'b', default 'a'",
        "limit": "float, above 0",
    }
    assert api_pages.fields_of(Options)[-1].sentence == "A sentence."
    assert [field[:2] for field in api_pages.fields_of(Pair)] == [("first", "int"), ("second", "list[int]")]


def test_signatures_are_as_written(api_pages: Any) -> None:
    def function(q: Array | None, *, level: float = 0.5, made: Any = Options(limit=1.0)) -> Array:  # type: ignore[name-defined]  # noqa: B008, F821
        return q

    assert api_pages.written_signature(function) == (
        "(q: Array | None, *, level: float = 0.5, made: Any = Options())",
        "Array",
    )
    assert api_pages.written_signature(Options) == ("", "")
    assert api_pages.written_signature(Pair) == ("", "")
