"""Deep epsilon-IPE: DQN whose behaviour comes from the evaluation policy of its values, many seeds at once."""

from typing import TYPE_CHECKING

from ipe.base.lazy import load_when_asked

if TYPE_CHECKING:
    from ipe.deep.callbacks import Callback, Checkpointed, Ended, Evaluated, Started, Window
    from ipe.deep.defaults import default_settings
    from ipe.deep.evaluating import Evaluating
    from ipe.deep.progress import Outcome, Progress, SeedProgress
    from ipe.deep.setting_groups import EnvironmentSettings, Epsilon, Optimiser
    from ipe.deep.settings import TrainingSettings, paper_settings

    # What reads and writes stores is at home in the room above, and has its public names here.
    from ipe.experiments.agents import TrainedAgent, load_agent
    from ipe.experiments.evaluation import Evaluation, SeedEvaluation, evaluate
    from ipe.experiments.training import TrainingResult, resume, train
    from ipe.experiments.watching import Recording, watch
else:
    __getattr__, __dir__ = load_when_asked(__name__)

__all__ = [
    "Callback",
    "Checkpointed",
    "Ended",
    "EnvironmentSettings",
    "Epsilon",
    "Evaluated",
    "Evaluating",
    "Evaluation",
    "Optimiser",
    "Outcome",
    "Progress",
    "Recording",
    "SeedEvaluation",
    "SeedProgress",
    "Started",
    "TrainedAgent",
    "TrainingResult",
    "TrainingSettings",
    "Window",
    "default_settings",
    "evaluate",
    "load_agent",
    "paper_settings",
    "resume",
    "train",
    "watch",
]
