"""The site of the documentation: built without a warning, links that lead somewhere, nothing loaded from elsewhere."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import ipe

ROOT = Path(__file__).parent.parent
NEEDED = ("sphinx", "furo", "myst_parser")

pytestmark = pytest.mark.slow  # the site is built as `make docs` builds it


class Reader(HTMLParser):
    """What a page of the site is called by, leads to, and loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        elif tag == "link":
            self.loads.append(found["href"])
        if "src" in found:
            self.loads.append(found["src"])


def wrong_links(site: Path) -> list[str]:
    """Links and loads that lead nowhere, and loads from elsewhere. No request is made: of https links, the form."""
    pages = {path.resolve(): Reader(path) for path in site.rglob("*.html")}
    wrong = []
    for path, page in pages.items():
        for link in page.links + page.loads:
            parts = urlsplit(link)
            elsewhere = (parts.scheme == "https" and "." in parts.netloc) or parts.hostname == "127.0.0.1"
            if parts.scheme == "data" or (elsewhere and link not in page.loads):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            anchor = unquote(parts.fragment)
            if parts.scheme or parts.netloc or not target.is_file():
                wrong.append(f"{path.name}: {link}")
            elif anchor and target in pages and anchor not in pages[target].ids:
                wrong.append(f"{path.name}: {link} (no such place)")
    return wrong


def foreign_styles(site: Path) -> list[Path]:
    """Style sheets that load something from elsewhere."""
    foreign = re.compile(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//")
    return [sheet for sheet in site.rglob("*.css") if foreign.search(sheet.read_text(encoding="utf-8"))]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does, warnings errors."""
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        pytest.skip(f"{', '.join(missing)} not installed")
    folder = tmp_path_factory.mktemp("site")
    words = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(folder / "doctrees"), "docs", str(folder / "html")]
    done = subprocess.run([sys.executable, "-m", "sphinx", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if line and "generated new fontManager" not in line]
    assert said == []  # matplotlib says so once in a fresh cache
    return folder / "html"


def test_every_page_is_there_and_the_explorer_too(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs")).with_suffix(".html").is_file()
    assert (site / "explore.html").read_text().startswith("<!doctype html>")
    assert "explore.html" in Reader(site / "index.html").links
    assert "explore.html" in Reader(site / "idea.html").links


def test_notebooks_are_pages_with_their_text_code_and_figures(site: Path) -> None:
    notebooks = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
    assert notebooks
    for path in notebooks:
        page = (site / "notebooks" / f"{path.stem}.html").read_text()
        cells = json.loads(path.read_text())["cells"]
        title = "".join(cells[0]["source"]).splitlines()[0].removeprefix("# ")
        assert f"<h1>{title}" in page
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        assert page.count('class="highlight-python') == len(code)
        figures = [output for cell in code for output in cell["outputs"] if "image/png" in output.get("data", {})]
        assert page.count("data:image/png;base64,") == len(figures)
        tables = [output for cell in code for output in cell["outputs"] if "text/html" in output.get("data", {})]
        assert page.count('class="dataframe"') == len(tables)
        assert f"notebooks/{path.stem}.html" in Reader(site / "index.html").links


def test_formulas_are_mathml_and_none_is_left_as_tex(site: Path) -> None:
    assert (site / "theory.html").read_text().count("<math") > 100
    for page in (site / "theory.html", site / "notation.html", *(site / "api").glob("*.html")):
        text = page.read_text()
        assert not re.search(r"\\(?:frac|sum|pi|gamma|mathrm)\b", text), page.name
        assert not [formula for formula in re.findall(r"<math.*?</math>", text, re.S) if "`" in formula], page.name


def test_links_lead_somewhere_and_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    assert wrong_links(site) == []
    assert foreign_styles(site) == []


def test_wrong_links_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a href="b.html#there">1</a><a href="b.html#not">2</a><a href="c.html">3</a><a href="#no">4</a>'
        '<a href="https://example.org/">5</a><a href="http://example.org/">6</a>'
        '<script src="https://example.org/x.js"></script><img src="data:image/png;base64,AA">'
        '<link rel="stylesheet" href="//example.org/x.css"><img src="missing.png">'
    )
    (tmp_path / "b.html").write_text('<p id="there">')
    (tmp_path / "a.css").write_text("@import url('https://example.org/x.css');")
    (tmp_path / "b.css").write_text("a { background: url(data:image/png;base64,AA) }")
    assert [line.removeprefix("a.html: ") for line in wrong_links(tmp_path)] == [
        "b.html#not (no such place)", "c.html", "#no (no such place)", "http://example.org/",
        "https://example.org/x.js", "//example.org/x.css", "missing.png",
    ]  # fmt: skip
    assert foreign_styles(tmp_path) == [tmp_path / "a.css"]


def test_every_public_name_is_described(site: Path) -> None:
    described = set().union(*(Reader(path).ids for path in (site / "api").glob("*.html")))
    for room in ROOT.glob("ipe/*/__init__.py"):
        home = f"ipe.{room.parent.name}"
        public = getattr(importlib.import_module(home), "__all__", []) if room.parent.name in ipe.__all__ else []
        missing = [name for name in public if not {f"{home}.{name}", f"module-{home}.{name}"} & described]
        assert missing == [], home


def test_api_pages_show_nothing_of_the_machinery(site: Path) -> None:
    """Neither pydantic's constraints and attributes, nor private names, nor what autodoc makes of type aliases."""
    wrong = re.compile(
        r"Annotated|FieldInfo|model_config|Alias for field|ForwardRef|dtype\[|&lt;factory&gt;|\b_[A-Z]\w+<"
    )
    for page in (site / "api").glob("*.html"):
        assert not wrong.findall(page.read_text()), page.name
