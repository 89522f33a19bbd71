"""Get what the browser tests need: playwright-core from npm, by its lock, and a chromium.

Run by hand or by the continuous integration; `make test` works without it, and says which tests it skipped and why.
Chromium is the one on the PATH, or the one that IPE_CHROMIUM names, or Debian's, installed with apt-get where this
process may. Only the standard library is used.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "node_modules"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium(environment: Mapping[str, str] = os.environ) -> str | None:
    """The path of a chromium: that of IPE_CHROMIUM, or the first on the PATH; None if there is none.

    >>> find_chromium({"PATH": ""}) is None
    True
    """
    named = environment.get("IPE_CHROMIUM")
    if named:
        return shutil.which(named, path=environment.get("PATH", ""))
    return next((found for name in BROWSERS if (found := shutil.which(name, path=environment.get("PATH", "")))), None)


def why_not() -> str | None:
    """Why the browser tests cannot run here, in one sentence; None if they can."""
    if shutil.which("node") is None:
        return "node is not installed"
    if not (MODULES / "playwright-core" / "package.json").is_file():
        return "playwright-core is not installed: run python scripts/setup_browser.py"
    if find_chromium() is None:
        return "there is no chromium on the PATH: run python scripts/setup_browser.py"
    return None


def install_playwright() -> None:
    """The version of package-lock.json, checked by its hash; nothing that it brings is executed."""
    if shutil.which("npm") is None:
        sys.exit("setup_browser: npm is not installed (Debian: apt-get install npm)")
    if locked(MODULES / ".package-lock.json") != locked(ROOT / "package-lock.json"):
        print("setup_browser: playwright-core", flush=True)
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=ROOT, check=True)


def locked(file: Path) -> str:
    """The hash that a lock file has for playwright-core; nothing if there is no such file."""
    import json

    try:
        packages = json.loads(file.read_text(encoding="utf-8"))["packages"]
        return str(packages["node_modules/playwright-core"]["integrity"])
    except (OSError, ValueError, KeyError):
        return f"none in {file.name}"


def install_chromium() -> None:
    """Debian's package, if this process is root or may become it without a password."""
    apt = shutil.which("apt-get")
    become: list[str] = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if apt is None or (become and shutil.which("sudo") is None):
        sys.exit("setup_browser: no chromium on the PATH, and apt-get cannot be used here; set IPE_CHROMIUM to one")
    print("setup_browser: chromium, with apt-get", flush=True)
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    install = [*become, apt, "-qq", "install", "-y", "--no-install-recommends", "chromium"]
    if subprocess.run(install, env=quiet).returncode != 0:  # the list of packages may be old or missing
        subprocess.run([*become, apt, "-qq", "update"], env=quiet, check=True)
        subprocess.run(install, env=quiet, check=True)


def main() -> None:
    """Install what is missing."""
    install_playwright()
    if find_chromium() is None:
        install_chromium()
    problem = why_not()
    if problem:
        sys.exit(f"setup_browser: {problem}")
    print(f"setup_browser: playwright-core and {find_chromium()}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"setup_browser: the step above failed (exit code {error.returncode})")
