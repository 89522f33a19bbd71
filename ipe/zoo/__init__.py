"""MDPs to try things on: the paper's, those of the literature, random ones, and Gymnasium's tables."""

from ipe.zoo.chains import chain, river_swim
from ipe.zoo.garnets import garnet
from ipe.zoo.gymnasium_tables import from_gymnasium
from ipe.zoo.registry import ZOO, make, names
from ipe.zoo.two_states import dadashi, switch_stay

__all__ = ["ZOO", "chain", "dadashi", "from_gymnasium", "garnet", "make", "names", "river_swim", "switch_stay"]
