"""Epsilon-IPE inside other libraries. Each module needs the library that it is named after."""

from typing import TYPE_CHECKING

from ipe.base.lazy import load_when_asked

if TYPE_CHECKING:
    from ipe.integrations import stable_baselines3
else:
    __getattr__, __dir__ = load_when_asked(__name__)

__all__ = ["stable_baselines3"]
