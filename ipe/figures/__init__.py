"""Figures: drawn with matplotlib's objects, one style, no global state."""

from ipe.figures.certificate import draw_certificate
from ipe.figures.learning import learning_curves
from ipe.figures.mdp import draw_mdp
from ipe.figures.polytope import draw_polytope, draw_value_map
from ipe.figures.projection import draw_projection
from ipe.figures.sensitivity import draw_sensitivity
from ipe.figures.style import OKABE_ITO, new_figure, save_figure, style
from ipe.figures.trajectories import draw_epsilon, draw_paths

__all__ = [
    "OKABE_ITO",
    "draw_certificate",
    "draw_epsilon",
    "draw_mdp",
    "draw_paths",
    "draw_polytope",
    "draw_projection",
    "draw_sensitivity",
    "draw_value_map",
    "learning_curves",
    "new_figure",
    "save_figure",
    "style",
]
