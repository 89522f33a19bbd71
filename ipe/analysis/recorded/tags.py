"""Which scalar of TensorBoard is the return: the tags that programs use, and CleanRL's table of hyperparameters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ipe.analysis.recorded.record import Kind, Record, value_of


class Tag(NamedTuple):
    """A tag that holds returns: the program that writes it, and what one value is."""

    program: str
    kind: Kind
    record: Record


TAGS: dict[str, Tag] = {
    "charts/episodic_return": Tag("CleanRL", "training", "episode"),
    "episode/return": Tag("ipe", "training", "episode"),
    "rollout/ep_rew_mean": Tag("Stable-Baselines3", "training", "mean"),
    "ray/tune/env_runners/episode_return_mean": Tag("RLlib", "training", "mean"),
    "ray/tune/episode_reward_mean": Tag("RLlib", "training", "mean"),
    "Environment/Cumulative Reward": Tag("ML-Agents", "training", "mean"),
    "evaluation/return": Tag("ipe", "evaluation", "mean"),
    "eval/mean_reward": Tag("Stable-Baselines3", "evaluation", "mean"),
}
"""The tags that are known; of those of one kind that a run has, the first one counts."""

_BOOKKEEPING = {
    "seed", "exp_name", "env_id", "track", "wandb_project_name", "wandb_entity", "capture_video", "save_model",
    "upload_model", "hf_entity", "cuda", "torch_deterministic", "run_name",
}  # fmt: skip
"""CleanRL's arguments that say nothing about the algorithm, or that the run's name says."""


def tag_of(name: str) -> Tag:
    """What a tag that the user names holds: what is known of it, or what its name says."""
    kind: Kind = "evaluation" if name.lower().startswith(("eval", "test")) else "training"
    return TAGS.get(name, Tag("", kind, "value"))


def known_tags(tags: Iterable[str]) -> dict[Kind, str]:
    """The tag of each kind that counts, of those that a run has."""
    there, out = set(tags), dict[Kind, str]()
    for name, tag in TAGS.items():
        if name in there:
            out.setdefault(tag.kind, name)
    return out


def hyperparameters(texts: dict[str, str]) -> dict[str, Any]:
    """The arguments that CleanRL writes as a table in Markdown, by name; nothing if there is no such text.

    Example:
        >>> hyperparameters({"hyperparameters/text_summary": "|param|value|\\n|-|-|\\n|seed|1|\\n|gamma|0.99|"})
        {'seed': 1, 'gamma': 0.99}
    """
    out: dict[str, Any] = {}
    for tag, text in texts.items():
        if not tag.startswith("hyperparameters"):
            continue
        for line in text.splitlines()[2:]:
            name, bar, value = line.strip().strip("|").partition("|")
            if name and bar:
                out[name] = value_of(value)
    return out


def algorithm_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """The hyperparameters without what is no part of the algorithm: the seed, names, and whom results are sent to."""
    return {name: value for name, value in parameters.items() if name not in _BOOKKEEPING}
