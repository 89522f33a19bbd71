"""The settings of `ipe train`: the paper's, changed by the options that are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipe.base.nested import at_path, flatten, merged
from ipe.behaviours import BEHAVIOURS, find_behaviour
from ipe.cli.settings_options import options_of, read_key_values
from ipe.deep.settings import TrainingSettings, deep_behaviours, extra_fields, no_effect, paper_settings
from ipe.errors import InputError

_BARE = ("environment.frame_limit",)


def _defaults() -> dict[str, str]:
    """The paper's value of every setting, in words where it depends on the environment or the behaviour."""
    wide = [name for name in deep_behaviours() if not BEHAVIOURS[name].needs_policy]
    cases = {
        "": paper_settings("Other-v0"),
        f"with {' and '.join(wide)}": paper_settings("Other-v0", wide[0]),
        "LunarLander": paper_settings("LunarLander-v3"),
        "MinAtar": paper_settings("minatar/Freeway"),
    }
    usual, *others = [settings.model_dump() for settings in cases.values()]
    out = {}
    for path in (*flatten(usual), "environment.options"):
        values = [at_path(settings, path) for settings in (usual, *others)]
        words = [_words(values[0])]
        words += [f"{name} {_words(v)}" for name, v in list(zip(cases, values, strict=True))[2:] if v != values[0]]
        if values[1] != values[0]:
            words.insert(1, f"{_words(values[1])} {list(cases)[1]}")
            words += [f"MinAtar {_words(values[3])}"] if values[3] == values[0] else []
        out[path] = "; ".join(words) if values[0] != {} else ""
    del out["environment.id"]  # ENV, which is no option
    out["behaviour"] = usual["behaviour"]
    return out | {name: _words(field.default) for name, field in extra_fields().items()}


def _words(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


if TYPE_CHECKING:
    SettingsOptions = Any
else:
    SettingsOptions = options_of(TrainingSettings, _defaults(), bare=_BARE, more=extra_fields())
"""An option for every setting, all of them left out by default."""


def settings_from(environment: str, given: dict[str, Any]) -> TrainingSettings:
    """The paper's settings with those that were given; a setting that would have no effect is refused."""
    values = merged({"behaviour": "epsilon-ipe", "optimiser": {"kind": "rmsprop"}}, given)
    if ":" in values["behaviour"]:
        find_behaviour(values["behaviour"])  # whose numbers are settings from here on
    for path in flatten(given):
        if why := no_effect(path, values["behaviour"], values["optimiser"]["kind"]):
            raise InputError(f"{option_of(path)} has no effect {why}")
    where = values.get("environment", {})
    if "options" in where:
        values["environment"] = {**where, "options": read_key_values(where["options"], "--environment.options")}
    settings = paper_settings(environment, **values)
    if "channels" in given and not _shows_images(settings):
        raise InputError(f"--channels has no effect with {environment}, which shows vectors; it is for images")
    return settings


def _shows_images(settings: TrainingSettings) -> bool:
    from ipe.deep.environments import make_environment

    environment = make_environment(settings.environment, 0)
    environment.close()
    return environment.spec.image


def option_of(path: str) -> str:
    """The option of a setting, from the setting's path."""
    name = path.rpartition(".")[2] if path in _BARE else path
    return f"--{name.replace('_', '-')}"
