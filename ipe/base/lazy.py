"""Packages whose public names are imported when somebody first asks for them.

SciPy, JAX, Arrow and matplotlib take seconds to import; `ipe --help` and `import ipe` must not wait for them. A package
lists its public names twice, as every package does: as imports, here under `if TYPE_CHECKING:`, where type checkers and
editors read them, and in `__all__`. `load_when_asked` reads the same imports and performs each one on demand:

    if TYPE_CHECKING:
        from ipe.experiments.training import train
    else:
        __getattr__, __dir__ = load_when_asked(__name__)

    __all__ = ["train"]
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any


def load_when_asked(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make the `__getattr__` and the `__dir__` of a package from the imports under its `if TYPE_CHECKING:`.

    The names that the package's file needs for this itself (`TYPE_CHECKING` and this function) are removed from the
    package, so that its attributes are the public names and nothing else.
    """
    module = sys.modules[package]
    homes = _imports(str(module.__file__))
    for name, value in list(vars(module).items()):
        if not name.startswith("_") and not isinstance(value, ModuleType):
            delattr(module, name)

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name, obj=module)
        home = homes[name]
        return import_module(f"{package}.{name}") if home == package else getattr(import_module(home), name)

    def listing() -> list[str]:
        return sorted({*module.__all__, *(name for name in vars(module) if name.startswith("__"))})

    return get, listing


def _imports(file: str) -> dict[str, str]:
    """The module that each name is imported from under `if TYPE_CHECKING:` at the top level of a file."""
    with open(file, encoding="utf-8") as source:
        tree = ast.parse(source.read())
    homes: dict[str, str] = {}
    for statement in tree.body:
        if isinstance(statement, ast.If) and ast.unparse(statement.test) == "TYPE_CHECKING":
            for line in statement.body:
                if isinstance(line, ast.ImportFrom) and line.module:
                    homes |= {alias.name: line.module for alias in line.names}
    return homes
