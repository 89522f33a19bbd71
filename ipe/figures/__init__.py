"""Figures: drawn with matplotlib's objects, one style, no global state."""

from ipe.figures.mdp import draw_mdp
from ipe.figures.style import OKABE_ITO, new_figure, save_figure, style

__all__ = ["OKABE_ITO", "draw_mdp", "new_figure", "save_figure", "style"]
