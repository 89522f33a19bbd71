"""Who may import whom: every module of `ipe` against the order of rooms in CONTRIBUTING.md, and against cycles."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
LEFT_OUT = {"ipe/__init__.py", "ipe/deep/__init__.py"}  # public names, also of rooms below, and nothing else


class Import(NamedTuple):
    """One name that one file imports from another file of the library."""

    importer: str
    """The importing file, as a path from the root of the repository."""
    line: int
    """The line of the import."""
    imported: str
    """The file that defines what is imported: behind a package's `__init__.py`, not that file."""

    def __str__(self) -> str:
        return f"{self.importer}:{self.line} imports {self.imported}"


def order_of_rooms(text: str) -> list[str]:
    """The rooms in the first column of the table whose header begins with `| room |`, from top to bottom."""
    _, _, table = text.partition("| room |")
    rows = [line for line in table.split("\n\n")[0].splitlines() if line.startswith("| `ipe/")]
    return [room for row in rows for room in re.findall(r"`(ipe/[^`]*)`", row.split("|")[1])]


def room_of(file: str, rooms: list[str]) -> str | None:
    """The room that a file belongs to: one that lies in another room's folder is a part of that other room."""
    return next((room for room in rooms if file == room or (room.endswith("/") and file.startswith(room))), None)


class Tree:
    """The files of a library, and what each of them imports from the others."""

    def __init__(self, root: Path, package: str = "ipe") -> None:
        self.root, self.package = root, package
        paths = sorted((root / package).rglob("*.py"))
        self.files = {_module_name(path.relative_to(root)): path.relative_to(root).as_posix() for path in paths}
        self.parsed = {file: ast.parse((root / file).read_text(encoding="utf-8")) for file in self.files.values()}
        self.home = cache(self._home)

    def imports(self) -> Iterator[Import]:
        """Every import of every file: at its top, under `if TYPE_CHECKING:` and inside functions."""
        for name, file in self.files.items():
            for line, module, imported in _statements(self.parsed[file], name, file.endswith("__init__.py")):
                if module.split(".")[0] == self.package:
                    yield Import(file, line, self.home(module, imported))

    def _home(self, module: str, name: str) -> str:
        """The file that defines a name which is imported from a module, behind the `__init__.py` of packages."""
        if f"{module}.{name}" in self.files:
            return self.home(f"{module}.{name}", "")
        if module not in self.files:
            return self.home(module.rpartition(".")[0], name)
        file = self.files[module]
        if name and file.endswith("__init__.py"):
            for _, source, imported in _statements(self.parsed[file], module, True):
                if imported == name and source.split(".")[0] == self.package and source != module:
                    return self.home(source, name)
        return file


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _statements(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[int, str, str]]:
    """The line, the module and the name of everything that is imported; the name is "" for a whole module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                parts = module.split(".")
                base = parts[: len(parts) - node.level + is_package]
                source = ".".join([*base, *([source] if source else [])])
            yield from ((node.lineno, source, alias.name) for alias in node.names)


def against_the_order(tree: Tree, rooms: list[str]) -> list[str]:
    """A sentence for every import of a room that comes later in the list."""
    wrong = []
    for found in tree.imports():
        importer, imported = (room_of(file, rooms) for file in (found.importer, found.imported))
        if found.importer in LEFT_OUT or importer is None or imported is None:
            continue
        if rooms.index(imported) > rooms.index(importer):
            wrong.append(f"{found}, but {imported} comes after {importer} in the order of rooms")
    return wrong


def cycle(tree: Tree) -> str:
    """A sentence that names the files of one cycle of imports, or nothing if there is none."""
    lines: dict[str, dict[str, Import]] = {}
    for found in tree.imports():
        # An __init__.py lists the names of its package. Whoever imports one of these needs its home alone.
        if found.imported != found.importer and not found.importer.endswith("__init__.py"):
            lines.setdefault(found.importer, {}).setdefault(found.imported, found)
    try:
        TopologicalSorter({importer: list(imported) for importer, imported in lines.items()}).prepare()
    except CycleError as error:
        files: list[str] = error.args[1][::-1]
        return "; ".join(str(lines[a][b]) for a, b in pairwise(files))
    return ""


@pytest.fixture(scope="module")
def library() -> Tree:
    return Tree(ROOT)


@pytest.fixture(scope="module")
def rooms() -> list[str]:
    return order_of_rooms(CONTRIBUTING.read_text(encoding="utf-8"))


def test_every_file_and_every_folder_has_a_room(library: Tree, rooms: list[str]) -> None:
    assert len(rooms) == len(set(rooms)) > 20
    for room in rooms:
        assert (ROOT / room).exists(), f"CONTRIBUTING.md lists {room}, which does not exist"
    for file in library.files.values():
        folder = f"{Path(file).parent.as_posix()}/"
        known = file in LEFT_OUT or file in rooms or folder in rooms
        assert known, f"CONTRIBUTING.md lists no room for {file}: add {folder} to the table"


def test_no_module_imports_from_a_later_room(library: Tree, rooms: list[str]) -> None:
    wrong = against_the_order(library, rooms)
    assert not wrong, "\n".join(wrong)


def test_no_modules_import_one_another_in_a_circle(library: Tree) -> None:
    found = cycle(library)
    assert not found, found


def make(root: Path, **files: str) -> Tree:
    """A library of a few files; `a__b` stands for ipe/a/b.py."""
    for name, text in files.items():
        path = root / "ipe" / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for folder in {path.parent, root / "ipe"}:
            (folder / "__init__.py").touch()
    return Tree(root)


ROOMS = ["ipe/errors.py", "ipe/base/", "ipe/deep/", "ipe/deep/native/", "ipe/cli/"]


@pytest.mark.parametrize(
    "statement",
    [
        "from ipe.deep.loop import Loop",
        "import ipe.deep.loop",
        "from ipe.deep import loop",
        "from ..deep.loop import Loop",
        "def later():\n    from ipe.deep.loop import Loop",
        "if TYPE_CHECKING:\n    from ipe.deep.loop import Loop",
    ],
)
def test_an_import_against_the_order_is_found_however_it_is_written(tmp_path: Path, statement: str) -> None:
    tree = make(
        tmp_path, errors="", base__words=statement, deep__loop="import numpy\nfrom ipe.errors import InputError"
    )
    line = len(statement.splitlines())
    said = f"ipe/base/words.py:{line} imports ipe/deep/loop.py, but ipe/deep/ comes after ipe/base/"
    assert against_the_order(tree, ROOMS) == [f"{said} in the order of rooms"]


def test_a_name_belongs_to_the_file_behind_the_table_of_names(tmp_path: Path) -> None:
    tree = make(tmp_path, deep__loop="Loop = 1", deep__settings="", cli__train="from ipe.deep import Loop")
    (tmp_path / "ipe/deep/__init__.py").write_text("if TYPE_CHECKING:\n    from ipe.deep.loop import Loop\n")
    tree = Tree(tmp_path)
    assert Import("ipe/cli/train.py", 1, "ipe/deep/loop.py") in list(tree.imports())
    assert against_the_order(tree, ROOMS) == []
    (tmp_path / "ipe/deep/settings.py").write_text("from ipe.deep import Loop\n")
    assert cycle(Tree(tmp_path)) == ""


def test_a_circle_is_found_across_functions_and_rooms(tmp_path: Path) -> None:
    tree = make(
        tmp_path,
        deep__loop="def run():\n    from ipe.deep.native.calls import product",
        deep__native__calls="from ipe.deep.networks import forward",
        deep__networks="from ipe.deep.loop import Loop",
    )
    assert against_the_order(tree, ROOMS) == []  # native is a part of deep
    said = cycle(tree)
    assert said.count("imports") == 3
    assert "ipe/deep/loop.py:2 imports ipe/deep/native/calls.py" in said
    assert "ipe/deep/networks.py:1 imports ipe/deep/loop.py" in said
