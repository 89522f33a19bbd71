"""What the runs of a store were made with."""

from __future__ import annotations

import os

from ipe.experiments.store import open_store


def run_versions(folder: str | os.PathLike[str]) -> dict[str, list[str]]:
    """The versions of packages, and the processors, that the runs of a store were made with.

    Args:
        folder: of the store.

    Returns:
        By package, and `cpu`: every version that some run was made with. More than one means that not all runs can be
        had again, byte for byte, from one of them.
    """
    store = open_store(folder)
    found: dict[str, set[str]] = {}
    for job in store.jobs:
        manifest = store.publication(job, verify=False)
        if manifest is None:
            continue
        for name, version in manifest.content["versions"].items():
            found.setdefault(name, set()).add(str(version))
        found.setdefault("cpu", set()).add(str(manifest.content["machine"]["cpu"]))
    return {name: sorted(versions) for name, versions in found.items()}
