"""The lock of the set-up: whole, since `make setup` installs it without looking for dependencies."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent


def locked() -> set[str]:
    """The names in constraints.txt."""
    return {
        canonicalize_name(name) for name in re.findall(r"^([\w.-]+)==", (ROOT / "constraints.txt").read_text(), re.M)
    }


def needed(name: str, extras: frozenset[str]) -> Iterator[Requirement]:
    """What an installed package needs here, with these extras."""
    for line in metadata.requires(name) or []:
        requirement = Requirement(line)
        if requirement.marker is None or any(requirement.marker.evaluate({"extra": e}) for e in ("", *extras)):
            yield requirement


def test_the_lock_has_all_that_its_packages_need() -> None:
    pins = locked()
    left = [(name, frozenset[str]()) for name in sorted(pins)]
    seen, missing = set(left), []
    while left:
        name, extras = left.pop()
        try:
            wanted = list(needed(name, extras))
        except metadata.PackageNotFoundError:  # locked for another system or Python
            continue
        for requirement in wanted:
            entry = canonicalize_name(requirement.name), frozenset(requirement.extras)
            if entry[0] not in pins:
                missing.append(f"{name} needs {requirement}")
            elif entry not in seen:
                seen.add(entry)
                left.append(entry)
    assert missing == []


def test_the_set_up_looks_for_no_newer_release() -> None:
    """With pip's search for dependencies it would: pip takes the newest coverage for pytest-cov's coverage[toml]."""
    script = (ROOT / "scripts" / "setup_venv.py").read_text()
    assert re.search(r'"--no-deps", "--require-hashes", "-r", CONSTRAINTS', script)
