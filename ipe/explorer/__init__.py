"""The explorer: the value polytope of a two-state MDP as a page in the browser.

The page is one HTML file that needs nothing else and asks for nothing. Its mathematics, `web/math`, is the library's,
written again in JavaScript and tested against it.
"""

from ipe.explorer.page import explorer_page, write_explorer
from ipe.explorer.serving import ExplorerServer

__all__ = ["ExplorerServer", "explorer_page", "write_explorer"]
