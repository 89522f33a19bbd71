"""What `make dist` builds, and the wheel in an environment that has the core dependencies and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import ipe

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source distribution, by the command of the Makefile."""
    pytest.importorskip("hatchling")
    command = re.search(r"\$\(PY\) (-m hatchling build -d) dist$", (ROOT / "Makefile").read_text(), re.M)
    assert command is not None
    folder = tmp_path_factory.mktemp("dist")
    call([sys.executable, *command[1].split(), str(folder)], ROOT)
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, source


def call(command: list[str | Path], folder: Path, code: int = 0) -> str:
    """Run a command that sees no other environment; what it printed."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def described(wheel: Path) -> metadata.PathDistribution:
    """The metadata of a wheel."""
    (folder,) = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" in name}
    return metadata.PathDistribution(zipfile.Path(wheel, f"{folder}/"))


def link_dependencies(wheel: Path, place: Path) -> set[str]:
    """Link what the wheel needs, and what that needs, from this environment into another; the names."""
    waiting, done = list(described(wheel).requires or []), set[str]()
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        extras = requirement.extras or {""}
        if name in done or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        done.add(name)
        found = metadata.distribution(name)
        for line in found.requires or []:
            marker = Requirement(line).marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras):
                waiting.append(line.partition(";")[0])
        for top in {file.parts[0] for file in found.files or []} - {"..", "__pycache__"}:
            if not (place / top).exists():
                (place / top).symlink_to(Path(str(found.locate_file(top))))
    return done


@pytest.fixture(scope="module")
def clean(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of an environment into which pip has installed the wheel."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    place = Path(call([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder).strip())
    linked = link_dependencies(built[0], place)
    assert {"jax", "numpy", "scipy", "matplotlib"} <= linked
    assert not {"gymnasium", "distributed", "torch", "tyro", "pytest"} & linked
    call([python, "-m", "pip", "install", "--no-index", "--no-deps", built[0]], folder)
    call([python, "-m", "pip", "check"], folder)
    return python.parent


def test_names_and_classifiers(built: tuple[Path, Path]) -> None:
    about = described(built[0]).metadata
    assert (about["Name"], about["Version"]) == ("ipe-rl", ipe.__version__)
    assert "Programming Language :: Python :: 3.13" in (about.get_all("Classifier") or [])
    assert "Provides-Extra" in about


def test_files(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CITATION.cff", "LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "tests/tiers.py"} <= inside
    assert not [name for name in inside if name.startswith((".venv", "node_modules", "out/", "runs/"))]
    kept = {name for name in zipfile.ZipFile(built[0]).namelist() if name.startswith("ipe/")}
    sources = (path for path in (ROOT / "ipe").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert kept == {path.relative_to(ROOT).as_posix() for path in sources}


def test_the_wheel_solves_draws_and_explores(clean: Path, tmp_path: Path) -> None:
    program = clean / "ipe"
    assert call([program, "--version"], tmp_path) == f"ipe {ipe.__version__}\n"
    said = call([program, "solve", "switch-stay", "--values", "18,-6"], tmp_path)
    assert "achievable    no: V is the value of no policy" in said
    call([program, "draw", "switch-stay", "--out", "mdp.svg"], tmp_path)
    assert "<svg" in (tmp_path / "mdp.svg").read_text()
    call([program, "explore", "--out", "explorer.html"], tmp_path)
    assert (tmp_path / "explorer.html").read_text().startswith("<!doctype html>")
    solve = "ipe.evaluation_policy(ipe.zoo.switch_stay(), v=[18, -6])"
    code = f"import ipe; print(ipe.__file__, {solve}.achievable)"
    file, achievable = call([clean / "python", "-c", code], tmp_path).split()
    assert Path(file).is_relative_to(clean.parent)
    assert achievable == "False"


def test_what_needs_an_extra_names_it(clean: Path, tmp_path: Path) -> None:
    said = call([clean / "ipe", "train", "CartPole-v1", "--frames", "10"], tmp_path, code=2)
    assert (
        said == "ipe train: 'CartPole-v1' needs Gymnasium, which is not installed: pip install \"ipe-rl[gymnasium]\"\n"
    )
