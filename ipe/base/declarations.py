"""Tables of declarations: what there is of a kind, by name, one file each."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol, TypeVar

from ipe.errors import InputError


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name by which users choose it."""


Declaration = TypeVar("Declaration", bound=Named)


class Table(dict[str, Declaration]):
    """The declarations of a kind, by name, in the order in which they were declared.

    Args:
        kind: what is declared, in the words of error messages.
    """

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind

    def declare(self, declaration: Declaration) -> Declaration:
        """Add a declaration, and return it.

        Raises:
            InputError: there is another one of that name.
        """
        if self.setdefault(declaration.name, declaration) is not declaration:
            raise InputError(f"there is a {self._kind} {declaration.name!r} already")
        return declaration

    def declare_modules(self, package: str, path: Iterable[str]) -> None:
        """Import every module of a package, in alphabetical order, so that a new file there declares itself.

        Args:
            package: the package's name.
            path: the package's `__path__`.
        """
        for module in iter_modules(path):
            import_module(f"{package}.{module.name}")


def one_of(value: Any, names: Iterable[str], field: str) -> str:
    """`value` if it is one of the names.

    Raises:
        InputError: it is not; the sentence lists the names.
    """
    known = tuple(names)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{field} must be one of {', '.join(known)}; found {value!r}")
    return value
