"""The public surface: what a package lists is there, what is there is listed, and nothing heavy loads unasked."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from importlib import metadata
from types import ModuleType

import pytest

import ipe

NEEDS = {"ipe.integrations.stable_baselines3": "stable_baselines3"}
PACKAGES = ["ipe", *sorted(found.name for found in pkgutil.walk_packages(ipe.__path__, "ipe.") if found.ispkg)]
LISTED_BY_IPE = [name for name in ipe.__all__ if isinstance(getattr(ipe, name), ModuleType)]
ROOMS = ["ipe", *(f"ipe.{name}" for name in LISTED_BY_IPE), *NEEDS]


def room_named(name: str) -> ModuleType:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    return importlib.import_module(name)


@pytest.mark.parametrize("name", PACKAGES)
def test_what_is_listed_is_there(name: str) -> None:
    room = room_named(name)
    listed = getattr(room, "__all__", [])
    assert len(set(listed)) == len(listed)
    for entry in listed:
        if f"{name}.{entry}" in NEEDS:
            pytest.importorskip(NEEDS[f"{name}.{entry}"])
        assert getattr(room, entry) is not None


@pytest.mark.parametrize("name", ROOMS)
def test_what_is_there_is_listed(name: str) -> None:
    room = room_named(name)
    there = {key for key, value in vars(room).items() if not (key.startswith("_") or isinstance(value, ModuleType))}
    assert there <= {*room.__all__, "annotations"}


@pytest.mark.parametrize("name", ["ipe", "ipe.audit", "ipe.deep", "ipe.experiments", "ipe.studies", "ipe.integrations"])
def test_dir_shows_what_is_meant(name: str) -> None:
    room = room_named(name)
    assert {entry for entry in dir(room) if not entry.startswith("__")} == {*room.__all__} - {"__version__"}
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'import_module'"):
        room.import_module  # noqa: B018


def test_every_room_of_the_library_is_an_attribute() -> None:
    hidden = {"base", "cli", "pages"}
    rooms = {found.name for found in pkgutil.iter_modules(ipe.__path__) if found.ispkg}
    assert set(LISTED_BY_IPE) == rooms - hidden


def test_the_version_is_that_of_the_installed_package() -> None:
    assert ipe.__version__ == metadata.version("ipe-rl")


def test_rooms_load_when_they_are_asked_for_and_not_before() -> None:
    script = (
        "import sys, ipe\n"
        "heavy = {'numpy', 'scipy', 'jax', 'matplotlib', 'pyarrow', 'pydantic', 'torch'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        f"for name in {LISTED_BY_IPE}:\n"
        "    assert getattr(ipe, name).__name__ == f'ipe.{name}'\n"
        "assert 'torch' not in sys.modules\n"
        "sys.modules['stable_baselines3'] = None\n"
        "try:\n"
        "    ipe.integrations.stable_baselines3\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ipe-rl[stable-baselines3]" in done.stdout


def test_a_misspelt_name_is_an_error_that_suggests_the_right_one() -> None:
    with pytest.raises(AttributeError) as caught:
        ipe.evaluation_polcy  # type: ignore[attr-defined]  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("evaluation_polcy", ipe)
