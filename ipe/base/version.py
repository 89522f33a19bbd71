"""The version of the package. A module of its own, because `importlib.metadata` is slow to import."""

from __future__ import annotations

import tomllib
from importlib import metadata
from pathlib import Path

from ipe.base.packages import DISTRIBUTION


def find_version(distribution: str, pyproject: Path) -> str:
    """The version of an installed distribution, or of the folder of sources that `pyproject` describes."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        pass
    try:
        project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
        return str(project["version"]) if project["name"] == distribution else "0+not.installed"
    except (OSError, ValueError, KeyError):
        return "0+not.installed"


__version__ = find_version(DISTRIBUTION, Path(__file__).parents[2] / "pyproject.toml")
