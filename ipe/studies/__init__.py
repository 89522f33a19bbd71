"""The paper's experiments, declared as data: settings, parts (figures) and claims. Each study is a module."""

from typing import TYPE_CHECKING

from ipe.base.lazy import load_when_asked

if TYPE_CHECKING:
    from ipe.studies import exploration, freeway, lunar_lander, returns, switch_stay
else:
    __getattr__, __dir__ = load_when_asked(__name__)

__all__ = ["exploration", "freeway", "lunar_lander", "returns", "switch_stay"]
