"""Deep epsilon-IPE: DQN whose behaviour comes from the evaluation policy of its values, many seeds at once."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ipe.deep.batches import Progress, SeedProgress
    from ipe.deep.evaluation import Evaluation, SeedEvaluation, evaluate
    from ipe.deep.loop import Outcome
    from ipe.deep.settings import EnvironmentSettings, Epsilon, Optimiser, TrainingSettings, paper_settings
    from ipe.deep.training import TrainingResult, resume, train
    from ipe.deep.watching import Recording, watch

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

# Imported when first asked for: JAX takes seconds, in which `ipe train --help` has long answered, and a worker must
# have its signal handlers before that.
_HOMES = {
    "EnvironmentSettings": "settings",
    "Epsilon": "settings",
    "Evaluation": "evaluation",
    "Optimiser": "settings",
    "Outcome": "loop",
    "Progress": "batches",
    "Recording": "watching",
    "SeedEvaluation": "evaluation",
    "SeedProgress": "batches",
    "TrainingResult": "training",
    "TrainingSettings": "settings",
    "evaluate": "evaluation",
    "paper_settings": "settings",
    "resume": "training",
    "train": "training",
    "watch": "watching",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"ipe.deep.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'ipe.deep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
