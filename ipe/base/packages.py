"""Packages that are not installed: the sentence that says so, and the command that installs them."""

from __future__ import annotations

from ipe.errors import InputError

DISTRIBUTION = "ipe-rl"
"""The name by which pip installs this library; the name `ipe` is another project's."""


def missing_package(what: str, package: str, *, extra: str = "", first: str = "") -> InputError:
    """The error of something that needs a package which is not installed: pip installs it by its own name, or by the
    `extra` of this library that brings it, after a package that must come `first`.

    Example:
        >>> print(missing_package("'CartPole-v1'", "Gymnasium", extra="gymnasium"))
        'CartPole-v1' needs Gymnasium, which is not installed: pip install "ipe-rl[gymnasium]"
        >>> print(missing_package("frame", "polars"))
        frame needs polars, which is not installed: pip install polars
    """
    before = f"pip install {first}, then " if first else ""
    wanted = f'"{DISTRIBUTION}[{extra}]"' if extra else package
    return InputError(f"{what} needs {package}, which is not installed: {before}pip install {wanted}")
