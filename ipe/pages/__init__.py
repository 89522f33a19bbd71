"""Pages: HTML files that hold their style, program and data, open offline, and ask nobody for anything."""

from ipe.pages.page import page_html

__all__ = ["page_html"]
