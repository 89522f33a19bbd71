"""What pytest leaves alone where an optional package is missing."""

from importlib.util import find_spec

# Its doctests would be errors: the module cannot be imported without it.
collect_ignore = [] if find_spec("stable_baselines3") else ["ipe/integrations/stable_baselines3"]
