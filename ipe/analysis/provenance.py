"""The versions and processors that the runs of a store were made with."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ipe.experiments.old_runs import is_old_run, read_old_run
from ipe.experiments.store import open_store


def run_versions(folder: str | os.PathLike[str]) -> dict[str, list[str]]:
    """The versions of packages, and the processors, that the runs of a store were made with.

    Args:
        folder: the store's folder.

    Returns:
        For each package, every version that some run was made with; under `cpu`, every processor. With more than one
        version, no single installation reproduces all runs byte for byte.
    """
    found: dict[str, set[str]] = {}
    for content in _contents(Path(folder)):
        for name, version in content["versions"].items():
            found.setdefault(name, set()).add(str(version))
        found.setdefault("cpu", set()).add(str(content["machine"]["cpu"]))
    return {name: sorted(versions) for name, versions in found.items()}


def _contents(folder: Path) -> list[dict[str, Any]]:
    """The manifests of a store, or the description of a training run of an earlier version."""
    if is_old_run(folder):
        return [read_old_run(folder).content]
    store = open_store(folder)
    manifests = [store.publication(job, verify=False) for job in store.jobs]
    return [manifest.content for manifest in manifests if manifest is not None]
