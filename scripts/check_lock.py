"""Check that constraints.txt pins, by hash, everything that pyproject.toml asks for, and names no host and no path.

usage: check_lock.py CONSTRAINTS
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PYPROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
# The CPU build of torch is installed by hand where it is wanted; from an index it would bring gigabytes.
# Extras that need it are not locked either, nor are the trackers of experiments, which bring dozens of packages.
NEVER_LOCKED = ("torch",)
EXTRAS_NOT_LOCKED = ("stable-baselines3", "mlflow", "wandb")


def requirements(pyproject: Path) -> Iterator[Requirement]:
    """Yield what the project asks for: to run, in every extra that is locked, to develop, and to build."""
    data = tomllib.loads(pyproject.read_text(encoding="utf-8"))
    project = data["project"]
    lists = [data["build-system"]["requires"], project.get("dependencies", [])]
    extras = project.get("optional-dependencies", {}).items()
    lists += [lines for name, lines in extras if name not in EXTRAS_NOT_LOCKED]
    lists += data.get("dependency-groups", {}).values()
    for line in (line for lines in lists for line in lines):
        # An included group is a table, and its own list is read anyway; so is an extra that names this project.
        if isinstance(line, str) and Requirement(line).name != project["name"]:
            yield Requirement(line)


def problems(constraints: str, wanted: list[Requirement]) -> Iterator[str]:
    """Yield one sentence for each thing that is wrong with the text of constraints.txt.

    >>> good = "numpy==2.4.6 --hash=sha256:" + 64 * "0"
    >>> list(problems(good, [Requirement("NumPy>=2")]))
    []
    >>> for problem in problems(good, [Requirement("numpy>=3"), Requirement("scipy")]):
    ...     print(problem)
    it has numpy 2.4.6, and the project asks for numpy>=3
    scipy is not in it
    >>> list(problems(good.replace("numpy", "torch"), []))
    ['torch must not be locked']
    >>> bad = ("numpy==2.4.6", "numpy @ file:///a", "--index-url https://example.org", "# via a/b")
    >>> [len(list(problems(entry, []))) for entry in bad]
    [1, 1, 1, 1]
    """
    pins: dict[str, list[str]] = {}
    for entry in constraints.replace("\\\n", " ").splitlines():
        pin = re.fullmatch(r"([\w.-]+)==([\w.!+]+)( ; [^/\\]+?)?(\s+--hash=sha256:[0-9a-f]{64})+\s*", entry)
        if pin is None:
            yield f"not of the form name==version --hash=sha256:...: {entry[:80]}"
        else:
            pins.setdefault(canonicalize_name(pin[1]), []).append(pin[2])
    for name in NEVER_LOCKED:
        if name in pins:
            yield f"{name} must not be locked"
    for requirement in wanted:
        versions = pins.get(canonicalize_name(requirement.name), [])
        if not versions:
            yield f"{requirement} is not in it"
        for version in versions:
            if not requirement.specifier.contains(version, prereleases=True):
                yield f"it has {requirement.name} {version}, and the project asks for {requirement}"


def main(constraints: Path) -> int:
    """Print the problems and return the exit code."""
    found = list(problems(constraints.read_text(encoding="utf-8"), list(requirements(PYPROJECT))))
    for problem in found:
        print(f"constraints.txt: {problem}", file=sys.stderr)
    if found:
        print("Run `make lock` and commit the result.", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: check_lock.py CONSTRAINTS")
    sys.exit(main(Path(sys.argv[1])))
