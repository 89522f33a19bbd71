"""The last line of a command, with commands that run as they stand; and the sentence about a missing package."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from ipe.base.packages import DISTRIBUTION, missing_package
from ipe.base.version import find_version
from ipe.cli import main

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

COMMANDS = [
    "solve switch-stay --values 18,-6",
    "solve switch-stay --values 18,-6 --out policy.npz",
    "solve river-swim:n=20 --values 0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
    "zoo",
    "zoo chain:n=4",
    "zoo garnet:n_states=30",
    "draw dadashi-3 --out mdp-1.svg",
    "polytope switch-stay --no-map --out polytope.svg",
    "explore switch-stay --out explorer.html",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_ends_with_commands_that_run(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(command)) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("next: ")
    for step in last.removeprefix("next: ").split("; "):
        if step.startswith("ipe ") and not step.startswith("ipe explore"):  # which serves until Ctrl-C
            words = shlex.split(step)[1:]
            assert main(words[: words.index(">")] if ">" in words else words) == 0, step


@pytest.mark.parametrize("command", ["solve switch-stay --values 18,-6 --json", "zoo --json", "zoo switch-stay --json"])
def test_json_has_no_such_line(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)) == 0
    assert "next:" not in capsys.readouterr().out


# Names that pip knows.


def test_the_distribution_is_named_once() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_every_hint_names_an_extra_that_exists() -> None:
    named = set()
    for path in [*(ROOT / "ipe").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]:
        text = path.read_text()
        named |= set(re.findall(r'missing_package\([^)]*extra="([^"]+)"', text))
        for extras in re.findall(r'install "(?:ipe-rl|\.)\[([^]{]+)\]"', text):
            named |= set(extras.split(","))
        assert not re.findall(r"\bipe\[[a-z]", text), f"{path}: the distribution is called {DISTRIBUTION}"
    assert {"gymnasium", "minatar", "sweeps", "stable-baselines3"} <= named <= set(PROJECT["optional-dependencies"])


def test_the_first_page_says_how_to_install_and_to_cite() -> None:
    page = (ROOT / "README.md").read_text()
    begins, _, _ = page.partition("## The first ten minutes")
    assert f'pip install "{DISTRIBUTION}[gymnasium]"' in begins
    assert begins.count("![") == 1, "one picture, of the main result"
    assert "## Coming from Stable-Baselines3 or CleanRL" in page
    assert "## Related libraries" in page
    entry = page[page.index("@software{ipe") :]
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{PROJECT['version']}}}" in entry
    assert f"version: {PROJECT['version']}\n" in citation
    assert "2008.11329" in page
    assert "arXiv:2008.11329" in citation


def test_the_sentence_is_made_in_one_place() -> None:
    files = [path for path in (ROOT / "ipe").rglob("*.py") if "which is not installed" in path.read_text()]
    assert [path.name for path in files] == ["packages.py"]
    sentence = str(missing_package("x", "torch", extra="stable-baselines3", first="torch"))
    assert sentence.endswith('pip install torch, then pip install "ipe-rl[stable-baselines3]"')


def test_the_version_without_an_installation_is_that_of_the_sources(tmp_path: Path) -> None:
    sources = tmp_path / "pyproject.toml"
    assert find_version("not-installed-rl", sources) == "0+not.installed"
    sources.write_text('[project]\nname = "another"\nversion = "9"\n')
    assert find_version("not-installed-rl", sources) == "0+not.installed"
    sources.write_text('[project]\nname = "not-installed-rl"\nversion = "1.2.3"\n')
    assert find_version("not-installed-rl", sources) == "1.2.3"
