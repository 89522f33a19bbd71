"""Deep epsilon-IPE: DQN whose behaviour comes from the evaluation policy of its values, many seeds at once."""

from typing import TYPE_CHECKING

from ipe.base.lazy import load_when_asked

if TYPE_CHECKING:
    from ipe.deep.batches import Progress, SeedProgress
    from ipe.deep.evaluation import Evaluation, SeedEvaluation, evaluate
    from ipe.deep.loop import Outcome
    from ipe.deep.settings import EnvironmentSettings, Epsilon, Optimiser, TrainingSettings, paper_settings
    from ipe.deep.training import TrainingResult, resume, train
    from ipe.deep.watching import Recording, watch
else:
    __getattr__, __dir__ = load_when_asked(__name__)

__all__ = [
    "EnvironmentSettings",
    "Epsilon",
    "Evaluation",
    "Optimiser",
    "Outcome",
    "Progress",
    "Recording",
    "SeedEvaluation",
    "SeedProgress",
    "TrainingResult",
    "TrainingSettings",
    "evaluate",
    "paper_settings",
    "resume",
    "train",
    "watch",
]
