"""The policy updates that come with the library: every file here declares one."""

from ipe.updates.declaration import UPDATES

UPDATES.declare_modules(__name__, __path__)
