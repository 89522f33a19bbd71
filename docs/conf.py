"""Sphinx: the pages of this folder, the docstrings by room, and the explorer, as a site that works offline."""

from __future__ import annotations

import html
import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

import ipe

project = "ipe"
author = "The ipe authors"
release = version = ipe.__version__
html_title = f"ipe {release}"

sys.path.insert(0, str(Path(__file__).parent))
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "api_pages",
    "notebook_pages",
]
exclude_patterns = ["_build"]
source_suffix = {".md": "markdown"}

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3
highlight_language = "text"  # of a block that names no language
default_role = "code"  # docstrings put names and formulas between single backticks

autodoc_member_order = "bysource"
# A name for each of the long types of arrays.
autodoc_type_aliases = {name: name for name in ("AnyArray", "Array", "ArrayLike", "Mask")}
autodoc_typehints_format = "short"
autodoc_preserve_defaults = False  # the number, not the name of a constant that holds it
# The page of an integration can be read without the library that it integrates with.
autodoc_mock_imports = [name for name in ("torch", "stable_baselines3", "minari") if not importlib.util.find_spec(name)]
python_maximum_signature_line_length = 100
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["static"]
html_css_files = ["ipe.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False

EXPLORER = "explore.html"

# What docutils' reader of TeX does not know, or reads in another way, and how to say it.
_TEX = (
    (r"\\dots(?![a-z])", r"\\ldots"),
    (r"\\([Bb]ig+)(?=\s*(?:[(\[]|\\\{))", r"\\\1l"),
    (r"\\([Bb]ig+)(?![a-z])", r"\\\1r"),
    (r"\\frac\s*(\d)(\d)", r"\\frac{\1}{\2}"),
)


def _mathml(node: nodes.math | nodes.math_block) -> str:
    """MathML, which browsers draw by themselves: a page needs neither TeX nor a script for its formulas."""
    tex = node.astext()
    for said, understood in _TEX:
        tex = re.sub(said, understood, tex)
    try:
        mathml = tex2mathml(tex, as_block=isinstance(node, nodes.math_block))
    except MathError as error:
        logging.getLogger(__name__).warning("%s in %s", error, tex, location=node)
        return f"<code>{html.escape(tex)}</code>"
    return re.sub(r"<mo[^>]*>([|‖])</mo>", r'<mo stretchy="false" lspace="0" rspace="0">\1</mo>', str(mathml))


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_mathml(node))
    raise nodes.SkipNode


def _block(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{_mathml(node)}</div>')
    raise nodes.SkipNode


def _prepare_docstring(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Before napoleon reads a docstring: what it, and reStructuredText, would misread."""
    if what in ("attribute", "data", "property") and lines:
        lines[0] = f": {lines[0]}"  # or napoleon takes the words before the first colon for a type
    inside: int | None = None  # the indentation of the math directive that the line is part of
    for i, line in enumerate(lines):
        indent = len(line) - len(line.lstrip())
        if inside is not None and line.strip() and indent <= inside:
            inside = None
        if line.lstrip().startswith(".. math::"):
            inside = indent
        if inside is None:  # a size such as |S|: not a substitution
            lines[i] = re.sub(r"(?<=\s)\|(\w+)\|(?=[\s.,]|$)", r":math:`|\1|`", line)


def _write_explorer(app: Sphinx, exception: Exception | None) -> None:
    """The explorer is a page of the site, made by the library itself."""
    if exception is None and app.builder.format == "html":
        from ipe.explorer import write_explorer

        write_explorer(Path(app.outdir) / EXPLORER)


def setup(app: Sphinx) -> dict[str, bool]:
    """Formulas as MathML, and the explorer beside the pages."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("autodoc-process-docstring", _prepare_docstring, priority=400)
    app.connect("build-finished", _write_explorer)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
