"""The settings of `ipe train`: those of the environment or the paper's, changed by the options that are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ipe.base.nested import at_path, flatten, merged
from ipe.base.words import listed
from ipe.behaviours import BEHAVIOURS, find_behaviour
from ipe.cli.settings_options import options_of, read_key_values
from ipe.deep.defaults import Origin, default_settings, origin_of
from ipe.deep.setting_groups import WHOLE
from ipe.deep.settings import TrainingSettings, deep_behaviours, extra_fields, no_effect, paper_settings
from ipe.errors import InputError

_BARE = ("environment.frame_limit",)


def _defaults() -> dict[str, str]:
    """The paper's value of every setting, in words where it depends on the environment or the behaviour."""
    wide = [name for name in deep_behaviours() if not BEHAVIOURS[name].needs_policy]
    cases = {
        "": paper_settings("Other-v0"),
        f"with {listed(wide)}": paper_settings("Other-v0", wide[0]),
        "LunarLander": paper_settings("LunarLander-v3"),
        "MinAtar": paper_settings("minatar/Freeway"),
    }
    usual, *others = [settings.model_dump(context=WHOLE) for settings in cases.values()]
    out = {}
    for path in (*flatten(usual), "environment.options"):
        values = [at_path(settings, path) for settings in (usual, *others)]
        words = [_words(values[0])]
        words += [f"{name} {_words(v)}" for name, v in list(zip(cases, values, strict=True))[2:] if v != values[0]]
        if values[1] != values[0]:
            words.insert(1, f"{_words(values[1])} {list(cases)[1]}")
            words += [f"MinAtar {_words(values[3])}"] if values[3] == values[0] else []
        out[path] = "; ".join(words) if values[0] != {} else ""
    del out["environment.id"], out["data"]  # ENV and --data, which are no settings' options
    out["behaviour"] = usual["behaviour"]
    return out | {name: _words(field.default) for name, field in extra_fields().items()}


def _words(value: Any) -> str:
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def settings_options() -> Any:
    """A dataclass with an option for every setting, all of them left out by default.

    Those of a behaviour in a module of the user's are there once the behaviour has been found.
    """
    return options_of(TrainingSettings, _defaults(), bare=_BARE, more=extra_fields())


if TYPE_CHECKING:
    SettingsOptions = Any
else:
    SettingsOptions = settings_options()
"""The options of the settings with the behaviours that come with ipe."""


def settings_from(environment: str, given: dict[str, Any], origin: Origin | None = None) -> TrainingSettings:
    """The settings of an environment with those that were given; a setting that would have no effect is refused.

    Args:
        environment: the environment's id.
        given: the settings that were given, as nested mappings.
        origin: where the other settings come from (`ipe.deep.defaults`).
    """
    values = merged({"behaviour": "epsilon-ipe"}, given)
    if ":" in values["behaviour"]:
        find_behaviour(values["behaviour"])  # whose numbers are settings from here on
    usual = default_settings(environment, values["behaviour"], origin=origin)
    optimiser = given.get("optimiser", {}).get("kind", usual.optimiser.kind)
    for path in flatten(given):
        if why := no_effect(path, values["behaviour"], optimiser, values.get("policy_update", usual.policy_update)):
            raise InputError(f"{option_of(path)} has no effect {why}")
    where = values.get("environment", {})
    if "options" in where:
        values["environment"] = {**where, "options": read_key_values(where["options"], "--environment.options")}
    settings = default_settings(environment, origin=origin, **values)
    _check_sizes(settings, given)
    return settings


def origin_in_words(environment: str, origin: Origin | None = None) -> str:
    """Whose settings a new run starts from, for the line above the run.

    Example:
        >>> origin_in_words("CartPole-v1"), origin_in_words("LunarLander-v3")
        ('tuned settings', "the paper's settings")
        >>> origin_in_words("Taxi-v3")
        "the paper's settings for LunarLander"
    """
    if origin_of(environment, origin) == "tuned":
        return "tuned settings"
    name = environment.rpartition(":")[2]
    if name == "minatar/Freeway" or name.startswith("LunarLander"):
        return "the paper's settings"
    return f"the paper's settings for {'Freeway' if name.startswith('minatar/') else 'LunarLander'}"


def _check_sizes(settings: TrainingSettings, given: dict[str, Any]) -> None:
    """Refuse sizes of networks that the environment's observations do not have."""
    sizes = [name for name in ("channels", "width", "network") if name in given]
    if not sizes:
        return
    from ipe.deep.environments import make_environment
    from ipe.deep.programs import unused_sizes

    environment = make_environment(settings.environment, 0)
    environment.close()
    for name, why in unused_sizes(settings, environment.spec).items():
        if name in sizes:
            raise InputError(f"--{name} has no effect with {settings.environment.id}, {why}")


def option_of(path: str) -> str:
    """The option of a setting, from the setting's path."""
    name = path.rpartition(".")[2] if path in _BARE else path
    return f"--{name.replace('_', '-')}"
