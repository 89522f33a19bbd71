"""Whether the browser tests can run here, as `scripts/setup_browser.py` says."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def _script() -> Any:
    path = Path(__file__).parent.parent / "scripts" / "setup_browser.py"
    spec = importlib.util.spec_from_file_location("setup_browser", path)
    if spec is None or spec.loader is None or not path.is_file():
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def why_not() -> str | None:
    """Why they cannot, in one sentence; None if they can."""
    script = _script()
    return "scripts/setup_browser.py is not there" if script is None else script.why_not()


def chromium() -> str:
    """The path of the browser."""
    return str(_script().find_chromium())
