"""MDPs to try things on: the paper's, those of the literature, random ones, shaped ones, and Gymnasium's tables."""

from ipe.zoo.chains import chain, river_swim
from ipe.zoo.deep_sea import deep_sea
from ipe.zoo.environments import to_gymnasium
from ipe.zoo.garnets import garnet
from ipe.zoo.gymnasium_tables import from_gymnasium
from ipe.zoo.registry import ZOO, make, names
from ipe.zoo.structures import queue, ring_walk, slippery_grid, smooth_line
from ipe.zoo.two_states import dadashi, switch_stay

__all__ = [
    "ZOO",
    "chain",
    "dadashi",
    "deep_sea",
    "from_gymnasium",
    "garnet",
    "make",
    "names",
    "queue",
    "ring_walk",
    "river_swim",
    "slippery_grid",
    "smooth_line",
    "switch_stay",
    "to_gymnasium",
]
