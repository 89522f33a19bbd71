"""The explorer's page in headless chromium: drag, keyboard, touch, reload, no request, no console message, contrast."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ipe.explorer import write_explorer

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).with_name("browser") / "explorer.mjs"
SCENARIOS = (
    "opens", "drag", "achievable", "keyboard", "touch", "play", "map", "edit", "address", "wrongAddress", "names",
    "accessible", "light", "dark", "narrow", "phone", "million", "print", "steady",
)  # fmt: skip


def browser_setup() -> Any:
    """The script that says whether a browser is there, and installs one."""
    script = Path(__file__).parent.parent / "scripts" / "setup_browser.py"
    if not script.is_file():
        pytest.skip("scripts/setup_browser.py is not there: the tests run outside of a checkout")
    spec = importlib.util.spec_from_file_location("setup_browser", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What became of each scenario; all of them run once, in one browser."""
    setup = browser_setup()
    if (reason := setup.why_not()) is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("explorer")
    write_explorer(folder / "explorer.html")
    command = [shutil.which("node"), SCRIPT, setup.find_chromium(), folder / "explorer.html", folder]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    found["pictures"] = {file.name: file.stat().st_size for file in folder.glob("*.png")}
    return found


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_scenario(outcome: dict[str, Any], scenario: str) -> None:
    assert outcome["results"][scenario] is None, outcome["results"][scenario]


def test_every_scenario_is_reported(outcome: dict[str, Any]) -> None:
    assert set(outcome["results"]) == set(SCENARIOS)
    assert all(size > 20_000 for size in outcome["pictures"].values())
    views = ("light", "dark", "narrow", "phone")
    assert set(outcome["pictures"]) == {f"explorer-{view}.png" for view in views}


def test_first_paint_is_soon(outcome: dict[str, Any]) -> None:
    assert outcome["paint"] < 1000, "milliseconds to the first paint from disk"
