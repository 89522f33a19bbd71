"""Epsilon-IPE inside other libraries, and trainings told to trackers of experiments. Each needs its library."""

from typing import TYPE_CHECKING

from ipe.base.lazy import load_when_asked

if TYPE_CHECKING:
    from ipe.integrations import stable_baselines3
    from ipe.integrations.mlflow import MlflowCallback
    from ipe.integrations.wandb import WandbCallback
else:
    __getattr__, __dir__ = load_when_asked(__name__)

__all__ = ["MlflowCallback", "WandbCallback", "stable_baselines3"]
