"""What tests of several files need: the repository's folder, systems and packages, and the command line's type."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).parent.parent

Run: TypeAlias = Callable[..., tuple[int, str, str]]
"""The fixture `run`: from the words of a command to its exit code, standard output and standard error."""

posix = pytest.mark.skipif(os.name != "posix" or not Path("/proc/self").exists(), reason="needs signals and /proc")
needs_minatar = pytest.mark.skipif(find_spec("minatar") is None, reason="minatar is not installed")
needs_box2d = pytest.mark.skipif(find_spec("Box2D") is None, reason="Box2D is not installed")
