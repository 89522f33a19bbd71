"""The value polytope of a two-state MDP: boundary, membership, nearest achievable values, value map."""

from ipe.polytope.polytope import ValuePolytope, value_polytope
from ipe.polytope.reduction import two_state_mdp
from ipe.polytope.value_map import paper_grid, value_map

__all__ = ["ValuePolytope", "paper_grid", "two_state_mdp", "value_map", "value_polytope"]
