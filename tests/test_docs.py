"""The pages of the documentation: Python blocks run, commands and options exist, files that are named are there.

A comment before a block of Python says what is done with it: `<!-- test: skip: REASON -->` (its names and arguments are
looked at all the same), `<!-- test: 20_000 as 400: REASON -->`, `<!-- test: file NAME.py -->` (it becomes that file).
"""

from __future__ import annotations

import ast
import doctest
import importlib
import importlib.util
import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from ipe.cli.options import option_names
from ipe.cli.parsing import parse
from ipe.cli.program import COMMANDS, command_of
from ipe.errors import InputError
from tests.needs import ROOT
from tests.tiers import tiered

PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
RUN_ELSEWHERE = {"bounds.md": "test_bounds.py", "stable-baselines3.md": "test_sb3_use.py"}


def label(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


class Block(NamedTuple):
    """A fenced block: its language, its text, and what the comment before it says."""

    language: str
    text: str
    mark: str


def blocks(page: Path) -> list[Block]:
    fences = re.compile(r"(?:<!-- test: (.*?) -->\n)?^```(\S*)[^\n]*\n(.*?)^```$", re.M | re.S)
    return [Block(language, text, mark) for mark, language, text in fences.findall(page.read_text())]


def python_blocks(page: Path) -> list[Block]:
    return [block for block in blocks(page) if block.language == "python"]


# Python


def execute(block: Block, name: str, names: dict[str, Any]) -> None:
    """Run a block, as a doctest if it has prompts, in the namespace of the blocks before it."""
    text = block.text
    if replaced := re.fullmatch(r"(\S+) as (\S+): .+", block.mark):
        assert replaced[1] in text
        text = text.replace(replaced[1], replaced[2])
    if text.startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(text, names, name, name, 0)
        said: list[str] = []
        options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
        doctest.DocTestRunner(optionflags=options).run(test, out=said.append, clear_globs=False)
        assert not said, "".join(said)
        names.update(test.globs)
    else:
        exec(compile(text, name, "exec"), names)  # noqa: S102


def prepare_store(folder: Path) -> None:
    """The store that docs/store.md reads: a real sweep, a small one."""
    from ipe.experiments import create_store, make_sweep, run_job
    from ipe.experiments.grids import jobs

    base = {"environment": "CartPole-v1", "frames": 1200, "batch": 8, "replay": 64}
    sweep = make_sweep({"name": "widths", "seeds": 2, "base": base, "grid": {"width": [8, 16]}})
    for job in create_store(folder, sweep, jobs(sweep)).jobs:
        assert run_job(folder, job.id) == "done"


RUN_HERE = [page for page in PAGES if python_blocks(page) and page.name not in RUN_ELSEWHERE]
# the pages whose examples train, or take seconds
TRAINING = ("store.md", "training.md", "own-behaviour.md", "audit.md", "environments.md", "resuming.md", "returns.md")


@pytest.mark.parametrize("page", tiered(RUN_HERE, *(p for p in RUN_HERE if p.name not in TRAINING)), ids=label)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    if page.name == "store.md":
        prepare_store(tmp_path / "sweeps" / "widths")
    names: dict[str, Any] = {}
    for block in python_blocks(page):
        if block.mark.startswith("skip"):
            continue
        if block.mark.startswith("file "):
            (tmp_path / block.mark.removeprefix("file ")).write_text(block.text)
        elif "stable_baselines3" not in block.text:
            execute(block, label(page), names)
        elif importlib.util.find_spec("stable_baselines3"):
            importlib.import_module("torch").set_num_threads(1)  # networks this small wait for their threads
            execute(block, label(page), names)


def test_every_mark_is_understood_and_skips_are_few() -> None:
    marks = [block.mark for page in PAGES for block in blocks(page) if block.mark]
    assert all(re.fullmatch(r"skip: .+|file \w+\.py|\S+ as \S+: .+", mark) for mark in marks), marks
    assert sum(mark.startswith("skip") for mark in marks) <= 3
    assert len(marks) == sum(page.read_text().count("<!-- test:") for page in PAGES), "a mark is not before a block"


def test_pages_that_other_tests_run_are_run_there() -> None:
    for page, test in RUN_ELSEWHERE.items():
        assert f'"{page}"' in (ROOT / "tests" / test).read_text()


def resolve(node: ast.expr) -> Any:
    """What a dotted name of `ipe` stands for; None for other expressions."""
    path: list[str] = []
    while isinstance(node, ast.Attribute):
        path.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id != "ipe":
        return None
    found: Any = importlib.import_module("ipe")
    for name in reversed(path):
        if isinstance(found, ModuleType) and importlib.util.find_spec(f"{found.__name__}.{name}"):
            found = importlib.import_module(f"{found.__name__}.{name}")
        else:
            found = getattr(found, name)
    return found


def test_names_and_arguments_of_skipped_blocks_exist() -> None:
    checked = 0
    for block in (block for page in PAGES for block in python_blocks(page) if block.mark.startswith("skip")):
        for node in ast.walk(ast.parse(block.text)):
            if isinstance(node, ast.Attribute):
                resolve(node)
            if isinstance(node, ast.Call) and (function := resolve(node.func)) is not None:
                keywords = {keyword.arg: None for keyword in node.keywords if keyword.arg}
                inspect.signature(function).bind(*node.args, **keywords)
                checked += 1
    assert checked >= 4


# Commands


def command_lines(page: Path) -> Iterator[str]:
    """The lines of shell blocks that call `ipe`, but for those that are shown for what is wrong with them."""
    for block in blocks(page):
        if block.language in ("", "sh", "console"):
            lines = block.text.splitlines()
            for line, after in zip(lines, [*lines[1:], ""], strict=True):
                prompt = r"\$ " if block.language == "console" else "(?:exec )?"
                found = re.match(rf"{prompt}(ipe [a-z](?!\w*: ).+)", line)
                if found and not re.match(r"ipe \w+: ", after):
                    yield found[1]


LINES = [(page, line) for page in PAGES for line in command_lines(page)]


@pytest.fixture
def modules_of_the_page(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The modules that a page has its reader write, where Python finds them: a command may name what is in them."""
    for block in blocks(page):
        if block.mark.startswith("file "):
            (tmp_path / block.mark.removeprefix("file ")).write_text(block.text)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("modules_of_the_page")
@pytest.mark.parametrize(("page", "line"), LINES, ids=[f"{page.name}: {line}" for page, line in LINES])
def test_command_lines_are_understood(page: Path, line: str) -> None:
    _, *words = shlex.split(line, comments=True)
    words = words[: words.index(">")] if ">" in words else words
    assert words[0] in COMMANDS, f"{page}: there is no ipe {words[0]}"
    prog, arguments, _, left = command_of(words)
    assert arguments is None or isinstance(parse(arguments, left, prog), arguments)


INSTALLED = Path(sys.executable).with_name("ipe")
"""The program that users type, which finds modules differently from `python -m ipe`."""


def call_installed(line: str, folder: Path) -> None:
    """Run a command line of the documentation by the installed `ipe`; whatever is on PYTHONPATH does not help it."""
    _, *words = shlex.split(line, comments=True)
    words = words[: words.index(">")] if ">" in words else words
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([INSTALLED, *words], cwd=folder, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{line}: {done.stderr}"


@pytest.mark.slow
def test_commands_of_the_environments_page_run_as_written(tmp_path: Path) -> None:
    page = ROOT / "docs" / "environments.md"
    for block in blocks(page):
        if block.mark.startswith("file "):
            (tmp_path / block.mark.removeprefix("file ")).write_text(block.text)
        elif block.language == "sh":
            said, _, instead = block.mark.partition(":")[0].partition(" as ")
            for line in block.text.replace(said, instead).splitlines():
                if (
                    "ALE/" in line
                ):  # hours, with a package that is no dependency; tests/test_deep_images.py has such images
                    continue
                # The second line has no --frames: it is cut short with an option that another one may follow.
                more = " --frames 600" if "train" in line and "--frames" not in line else ""
                call_installed(line + more, tmp_path)
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"corridor", "windy", "deep-sea", "river-swim"}


def is_quick(line: str) -> bool:
    """Whether a command takes a second and reads no file that the page would have to bring."""
    reads = re.search(r"(?<!--out )\b[\w-]+\.(?:npz|npy|json|csv)", line.partition("#")[0])
    return line.split()[1] in ("solve", "zoo", "draw", "polytope") and not reads


QUICK = sorted({line for _, line in LINES if is_quick(line)})


@pytest.mark.parametrize("line", tiered(QUICK, *QUICK[:2]))
def test_quick_command_lines_run_as_written(line: str, tmp_path: Path) -> None:
    call_installed(line, tmp_path)


def test_a_wrong_command_line_would_be_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```sh\nipe solve switch-stay --vlaues 1,2  # not an option\n```\n")
    (line,) = command_lines(page)
    with pytest.raises(InputError, match="--vlaues"):
        test_command_lines_are_understood(page, line)


@pytest.mark.usefixtures("modules_of_the_page")
@pytest.mark.parametrize("page", PAGES, ids=label)
def test_commands_in_the_text_exist_with_their_options(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    for command, rest in re.findall(r"`ipe ([a-z][\w-]*)([^`]*)`", text):
        assert command in COMMANDS, f"ipe {command}"
        _, arguments, _, _ = command_of([command, *shlex.split(rest)])
        known = {"help", *([] if arguments is None else option_names(arguments))}
        assert set(re.findall(r" --([\w.-]+)", rest)) <= known, f"ipe {command}{rest}"


# Files and links


@pytest.mark.parametrize("page", PAGES, ids=label)
def test_files_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    paths = re.findall(r"(?<![\w/.-])((?:tests|benchmarks|examples|scripts|results|ipe)/[\w/.-]*\w)", text)
    missing = [path for path in paths if not (ROOT / path).exists() and not path.startswith("results/KEY")]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    links = [urlsplit(link) for link in re.findall(r"\]\(([^)\s]+)\)", prose)]
    missing += [link.path for link in links if not link.scheme and link.path and not (page.parent / link.path).exists()]
    assert missing == []
    assert all(link.scheme == "https" and "." in link.netloc for link in links if link.scheme)
