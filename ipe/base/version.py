"""The version of the installed package. A module of its own, because `importlib.metadata` is slow to import."""

from importlib import metadata

try:
    __version__ = metadata.version("ipe")
except metadata.PackageNotFoundError:  # run from a folder of sources that was never installed
    __version__ = "0+not.installed"
