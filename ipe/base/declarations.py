"""Tables of declarations: what there is of a kind, by name, one file each; or in a module of the user's."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
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
        self.kind = kind
        self._shipped: set[str] = set()

    def declare(self, declaration: Declaration) -> Declaration:
        """Add a declaration, and return it.

        Raises:
            InputError: there is another one of that name.
        """
        if self.setdefault(declaration.name, declaration) is not declaration:
            raise InputError(f"there is a {self.kind} {declaration.name!r} already")
        return declaration

    def declare_modules(self, package: str, path: Iterable[str]) -> None:
        """Import every module of a package, in alphabetical order, so that a new file there declares itself.

        Args:
            package: the package's name.
            path: the package's `__path__`.
        """
        for module in iter_modules(path):
            import_module(f"{package}.{module.name}")
        self._shipped |= set(self)

    def find(self, name: str, made: Callable[[str, Any], Declaration]) -> Declaration:
        """The declaration of a name. One written `package.module:name` is imported, and has that name from then on.

        Args:
            name: the name.
            made: makes a declaration from a name and what a module has under it.

        Raises:
            InputError: there is no such name, or no such module.
        """
        if isinstance(name, str) and name not in self and ":" in name:
            self[name] = made(name, self._imported(name))
        return self[one_of(name, self, self.kind)]

    def name_of(self, given: Any, made: Callable[[str, Any], Declaration]) -> Any:
        """The name of a declaration or a function, which is made known; anything else is returned as it is.

        What other processes can import is known as `package.module:name`; anything else in this process alone.
        """
        if hasattr(given, "hyperparameters"):
            return self.declare(given).name
        if not callable(given):
            return given
        module, name = _home(given)
        if module:
            return self.find(f"{module}:{name}", made).name
        return self.declare(made(name, given)).name

    def check_shared(self, name: str) -> None:
        """Refuse a name that other processes would not know.

        Raises:
            InputError: it was declared in this process alone.
        """
        if name not in self._shipped and ":" not in name:
            raise InputError(
                f"the {self.kind} {name!r} is declared in this process alone, and worker processes do not know it: put "
                f"it into a module and name it package.module:{name}, or train in this process (processes=0)"
            )

    def _imported(self, name: str) -> Any:
        """What a module has under a name: an attribute, or what it has declared."""
        module, _, attribute = name.rpartition(":")
        try:
            home = import_module(module)
        except Exception as error:  # a module's code can raise anything
            why = " ".join(str(error).split())
            raise InputError(
                f"{name}: the module {module!r} cannot be imported: {type(error).__name__}: {why}"
            ) from None
        found = getattr(home, attribute, self.get(attribute))
        if found is None:
            raise InputError(f"{name}: the module {module!r} has no {self.kind} {attribute!r}")
        return found


def _home(given: Any) -> tuple[str, str]:
    """The module in which other processes find an object, and its name there; no module if they cannot."""
    name = str(getattr(given, "__name__", type(given).__name__))
    module = getattr(given, "__module__", None)
    if module in (None, "__main__") or getattr(sys.modules.get(str(module)), name, None) is not given:
        return "", name
    return str(module), name


def one_of(value: Any, names: Iterable[str], field: str) -> str:
    """`value` if it is one of the names.

    Raises:
        InputError: it is not; the sentence lists the names.
    """
    known = tuple(names)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{field} must be one of {', '.join(known)}; found {value!r}")
    return value
