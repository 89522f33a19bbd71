"""Deep epsilon-IPE: DQN whose behaviour comes from the evaluation policy of its values, many seeds at once."""

from ipe.deep.batches import Progress, SeedProgress
from ipe.deep.loop import Outcome
from ipe.deep.settings import EnvironmentSettings, Epsilon, Optimiser, TrainingSettings, paper_settings
from ipe.deep.training import TrainingResult, resume, train

__all__ = [
    "EnvironmentSettings",
    "Epsilon",
    "Optimiser",
    "Outcome",
    "Progress",
    "SeedProgress",
    "TrainingResult",
    "TrainingSettings",
    "paper_settings",
    "resume",
    "train",
]
