"""MDPs and value functions in files: see `docs/formats.md` for the formats. No pickle anywhere."""

from ipe.mdp_files.mdps import load_mdp, save_mdp
from ipe.mdp_files.values import load_values, save_values

__all__ = ["load_mdp", "load_values", "save_mdp", "save_values"]
