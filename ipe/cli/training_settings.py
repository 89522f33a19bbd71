"""The settings that `ipe train` was given: the paper's, but for the options that are there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipe.base.nested import at_path
from ipe.cli.settings_options import options_of, paths, read_key_values
from ipe.deep.settings import ONLY_WITH, TrainingSettings, paper_settings
from ipe.errors import InputError

_BARE = ("environment.frame_limit",)


def _defaults() -> dict[str, str]:
    """The paper's value of every setting, in words where it depends on the environment or the behaviour."""
    cases = {
        "": paper_settings("Other-v0"),
        "with epsilon-greedy and boltzmann": paper_settings("Other-v0", "epsilon-greedy"),
        "LunarLander": paper_settings("LunarLander-v3"),
        "MinAtar": paper_settings("minatar/Freeway"),
    }
    usual, *others = [settings.model_dump() for settings in cases.values()]
    out = {}
    for path in (*paths(usual), "environment.options"):
        values = [at_path(settings, path) for settings in (usual, *others)]
        words = [_words(values[0])]
        words += [f"{name} {_words(v)}" for name, v in list(zip(cases, values, strict=True))[2:] if v != values[0]]
        if values[1] != values[0]:
            words.insert(1, f"{_words(values[1])} {list(cases)[1]}")
            words += [f"MinAtar {_words(values[3])}"] if values[3] == values[0] else []
        out[path] = "; ".join(words) if values[0] != {} else ""
    del out["environment.id"]  # the word that is no option
    out["behaviour"] = usual["behaviour"]
    return out


def _words(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


if TYPE_CHECKING:
    SettingsOptions = Any
else:
    SettingsOptions = options_of(TrainingSettings, _defaults(), bare=_BARE)
"""An option for every setting, all of them left out by default."""


def settings_from(environment: str, given: dict[str, Any]) -> TrainingSettings:
    """The paper's, with what was given instead; refused if some of that would have no effect."""
    values = dict(given)
    behaviour = values.pop("behaviour", "epsilon-ipe")
    for path in paths(values):
        behaviours = ONLY_WITH.get(path.partition(".")[0], (behaviour,))
        if behaviour not in behaviours:
            others = " and ".join(behaviours)
            raise InputError(f"{option_of(path)} has no effect with the behaviour {behaviour}; it is for {others}")
    own = values.get("environment", {})
    if "options" in own:
        values["environment"] = {**own, "options": read_key_values(own["options"], "--environment.options")}
    settings = paper_settings(environment, behaviour, **values)
    if "momentum" in values.get("optimiser", {}) and settings.optimiser.kind == "rmsprop":
        raise InputError("--optimiser.momentum has no effect with rmsprop; it is for --optimiser.kind adam")
    if "channels" in values and not _shows_images(settings):
        raise InputError(f"--channels has no effect with {environment}, which shows vectors; it is for images")
    return settings


def _shows_images(settings: TrainingSettings) -> bool:
    from ipe.deep.environments import make_environment

    environment = make_environment(settings.environment, 0)
    environment.close()
    return environment.spec.image


def option_of(path: str) -> str:
    """The option that a setting has."""
    name = path.rpartition(".")[2] if path in _BARE else path
    return f"--{name.replace('_', '-')}"
