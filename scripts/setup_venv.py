"""Make `.venv`: exactly the versions of constraints.txt, by hash, and this package, editable.

Every `make` target runs this first. When neither file, the Python nor the place of the clone changed since the
last complete set-up, it compares two digests and returns. The stamp that holds them is written last, so an
interrupted set-up is simply done again. Only the standard library is used.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the whole point: this file still parses on Python 3.6
    sys.exit(
        f"ipe needs Python 3.11 or later, and {sys.executable} is {sys.version.split()[0]}. "
        "Name another one: make PYTHON=python3.11 ..."
    )

import fcntl
import hashlib
import json
import os
import subprocess
import time
from pathlib import Path
from typing import BinaryIO

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "setup.json"
CONSTRAINTS = ROOT / "constraints.txt"
PYPROJECT = ROOT / "pyproject.toml"


def digest(*parts: bytes) -> str:
    """Return a SHA-256 of the parts, each closed off from the next."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def wanted() -> dict[str, str]:
    """Return what a complete set-up records; another Python or a moved clone needs a new .venv."""
    locked = digest(CONSTRAINTS.read_bytes(), sys.version.encode(), sys.base_prefix.encode(), os.fsencode(VENV))
    return {"locked": locked, "project": digest(PYPROJECT.read_bytes())}


def recorded() -> dict[str, str]:
    """Return the stamp's content, or nothing if there is none, it is broken, or .venv lost its Python."""
    try:
        found = json.loads(STAMP.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and PYTHON.exists() else {}


def record(stamp: dict[str, str]) -> None:
    """Write the stamp in one step: it is either whole or absent."""
    partial = STAMP.with_suffix(".partial")
    partial.write_text(json.dumps(stamp))
    partial.replace(STAMP)


def lock_against_others() -> BinaryIO:
    """Return an open file that holds the clone's set-up lock until it is closed.

    The lock is on constraints.txt itself, so it leaves no file behind; opened for writing because NFS asks for that.
    """
    handle = CONSTRAINTS.open("r+b")
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        print("setup: waiting for another set-up of this clone", flush=True)
        fcntl.flock(handle, fcntl.LOCK_EX)
    return handle


def run(lock: BinaryIO, message: str, *command: str | Path) -> None:
    """Say what is done and do it. The child inherits the lock: if this process is killed, the next set-up waits."""
    print(f"setup: {message}", flush=True)
    subprocess.run(command, cwd=ROOT, check=True, pass_fds=(lock.fileno(),))


def main() -> None:
    """Bring .venv up to date."""
    with lock_against_others() as lock:
        want, have = wanted(), recorded()
        if have == want:
            return
        start = time.monotonic()
        version = sys.version.split()[0]
        pip = (PYTHON, "-m", "pip", "-qq", "--disable-pip-version-check", "install")
        if have.get("locked") != want["locked"]:
            STAMP.unlink(missing_ok=True)
            run(lock, f"new .venv with Python {version}", sys.executable, "-m", "venv", "--clear", VENV)
            # Without pip's search for dependencies, which the lock holds all of. With it, pip takes the newest version
            # for a requirement with an extra (pytest-cov's coverage[toml]), and refuses that because it is not locked.
            locked = ("--no-deps", "--require-hashes", "-r", CONSTRAINTS)
            run(lock, "installing the locked packages (a minute or two)", *pip, *locked)
            record({"locked": want["locked"]})
        run(lock, "constraints.txt against pyproject.toml", PYTHON, ROOT / "scripts" / "check_lock.py", CONSTRAINTS)
        run(lock, "installing ipe, editable", *pip, "--no-deps", "--no-build-isolation", "--editable", ROOT)
        record(want)
        print(f"setup: done in {time.monotonic() - start:.0f} s", flush=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"setup: the step above failed (exit code {error.returncode}); the next make tries again")
    except KeyboardInterrupt:
        sys.exit("setup: interrupted; the next make starts again")
