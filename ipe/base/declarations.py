"""Tables of declarations: what there is of a kind, by name, one file each; or in a module of the user's."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Callable, Iterable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol, TypeVar

from ipe.base.words import one_of
from ipe.errors import InputError


class Named(Protocol):
    """Anything with a name."""

    @property
    def name(self) -> str:
        """The name by which users choose it."""


Declaration = TypeVar("Declaration", bound=Named)


class Table(dict[str, Declaration]):
    """The declarations of a kind, by name, in the order in which they were declared. `kind` is its name in errors."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self._shipped: set[str] = set()

    def declare(self, declaration: Declaration) -> Declaration:
        """Add a declaration, and return it; another one of the same name is refused."""
        if self.setdefault(declaration.name, declaration) is not declaration:
            raise InputError(f"there is a {self.kind} {declaration.name!r} already")
        return declaration

    def declare_modules(self, package: str, path: Iterable[str]) -> None:
        """Import every module of a package, in alphabetical order, so that a new file there declares itself."""
        for module in iter_modules(path):
            import_module(f"{package}.{module.name}")
        self._shipped |= set(self)

    def find(self, name: str, made: Callable[[str, Any], Declaration]) -> Declaration:
        """The declaration of a name. One written `package.module:name` is imported, `made` into a declaration, and has
        that name from then on."""
        if isinstance(name, str) and name not in self and ":" in name:
            self[name] = made(name, self._imported(name))
        return self[one_of(name, self, self.kind)]

    def meant(self, given: Any, kind: type[Declaration], made: Callable[[str, Any], Declaration]) -> Declaration:
        """The declaration that is meant by its name, by `package.module:name`, by a function, or by itself."""
        if isinstance(given, kind):
            return given
        if isinstance(given, str) or not callable(given):
            return self.find(given, made)
        return made(getattr(given, "__name__", "a function"), given)

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
        """Refuse a name that was declared in this process alone, so that other processes would not know it."""
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


def renamed(name: str, given: Any, kind: type[Declaration]) -> Declaration | None:
    """A declaration under another name; None if it is a function, of which one can be made."""
    if isinstance(given, kind):
        return dataclasses.replace(given, name=name)  # type: ignore[type-var]
    if not callable(given):
        raise InputError(f"{name} is neither a {kind.__name__} nor a function, but {type(given).__name__}")
    return None


def summary_of(function: Callable[..., Any]) -> str:
    """The first line of a user's function's docstring."""
    return (inspect.getdoc(function) or "by a function of the user's").partition("\n")[0]


def first_call(what: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Compile a user's function and call it once, before anything runs with it; `what` it is, and its name."""
    import jax

    try:
        return jax.device_get(jax.jit(function)(*arguments))
    except InputError:
        raise
    except Exception as error:
        why = f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
        raise InputError(
            f"{what}: it cannot be compiled, because with arrays of JAX it raises {why} (it is made of operations on "
            "whole arrays, such as those of jax.numpy)"
        ) from None


def _home(given: Any) -> tuple[str, str]:
    """The module in which other processes find an object, and its name there; no module if they cannot."""
    name = str(getattr(given, "__name__", type(given).__name__))
    module = getattr(given, "__module__", None)
    if module in (None, "__main__") or getattr(sys.modules.get(str(module)), name, None) is not given:
        return "", name
    return str(module), name
