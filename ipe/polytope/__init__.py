"""The value polytope of a two-state MDP: boundary, membership, nearest achievable values, value map."""

from ipe.polytope.polytope import ValuePolytope, value_polytope
from ipe.polytope.projection import PolytopeProjection, polytope_projection
from ipe.polytope.reduction import two_state_mdp
from ipe.polytope.value_map import paper_grid, value_map

__all__ = [
    "PolytopeProjection",
    "ValuePolytope",
    "paper_grid",
    "polytope_projection",
    "two_state_mdp",
    "value_map",
    "value_polytope",
]
