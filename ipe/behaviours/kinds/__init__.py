"""The behaviours that come with the library: every file here declares one, or two that belong together."""

from ipe.behaviours.declaration import BEHAVIOURS

BEHAVIOURS.declare_modules(__name__, __path__)
