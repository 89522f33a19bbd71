"""Sweeps declared in TOML: the appendix's grids, combinations, cases, one at a time, and every refusal's sentence."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ipe.deep.settings import deep_behaviours, deep_updates, paper_settings
from ipe.errors import InputError
from ipe.experiments.declared import Job, Sweep, read_seeds
from ipe.experiments.grids import changed, jobs, make_sweep, read_sweep, shipped_sweeps
from tests.sweep_file_fuzzer import read_mutants
from tests.tiers import share

LANDER = {"environment": "LunarLander-v3"}
GREEDY = LANDER | {"behaviour": "epsilon-greedy"}


def sweep_of(**content: Any) -> Sweep:
    return make_sweep({"name": "test", "base": LANDER} | content)


# ---- the appendix

THIRDS = [1e-5, 1e-4, 1e-3]
APPENDIX: dict[str, tuple[int, dict[str, list[Any]]]] = {
    "lunar-lander-dqn": (
        500_000,
        {
            "target_period": [1, 100, 500],
            "epsilon.final": [0.2, 0.1, 0.01],
            "epsilon.steps": [25_000, 50_000, 100_000],
            "value_step_size": THIRDS,
            "width": [64, 128, 256],
        },
    ),
    "lunar-lander-epsilon-ipe": (
        500_000,
        {
            "target_period": [1, 100, 500],
            "policy_step_size": THIRDS,
            "value_step_size": THIRDS,
            "width": [64, 128, 256],
        },
    ),
    "freeway-dqn": (
        2_000_000,
        {
            "target_period": [1, 100],
            "epsilon.final": [0.2, 0.1, 0.01],
            "epsilon.steps": [100_000, 200_000, 400_000],
            "value_step_size": THIRDS,
        },
    ),
    "freeway-epsilon-ipe": (
        2_000_000,
        {"target_period": [1, 100], "policy_step_size": THIRDS, "value_step_size": THIRDS},
    ),
}
COUNTS = {"lunar-lander-dqn": 243, "lunar-lander-epsilon-ipe": 81, "freeway-dqn": 54, "freeway-epsilon-ipe": 18}


def test_the_appendix_ships() -> None:
    assert set(shipped_sweeps()) == {*APPENDIX, "cart-pole-lambda", "cart-pole-updates", "lunar-lander-updates"}


@pytest.mark.parametrize(("name", "seeds", "frames"), [("cart-pole", 30, 50_000), ("lunar-lander", 10, 200_000)])
def test_the_comparison_of_policy_updates_ships(name: str, seeds: int, frames: int) -> None:
    """Every policy update of the deep agent, with policy step sizes over three orders of magnitude, on CartPole over
    four; on LunarLander the paper's and those with a closed form over five."""
    sweep = read_sweep(f"{name}-updates")
    assert len(sweep.seeds) == seeds
    assert {each.settings.frames for each in sweep.settings} == {frames}
    sizes = [each.settings.policy_step_size for each in sweep.settings if each.case == "natural"]
    assert max(sizes) / min(sizes) == pytest.approx(1000 if name == "lunar-lander" else 10_000)
    tried = {each.settings.policy_update for each in sweep.settings}
    assert tried == set(deep_updates())
    cases = len(tried) + 5  # entropy bonus, three steps in two ways, the error as DQN's, conservative
    assert len(sweep.settings) == cases * len(sizes) + (6 if name == "lunar-lander" else 0)


@pytest.mark.parametrize("name", APPENDIX)
def test_the_appendix_as_files(name: str) -> None:
    frames, grid = APPENDIX[name]
    sweep = read_sweep(name)
    assert (sweep.name, sweep.seeds, sweep.one_at_a_time) == (name, list(range(30)), False)
    assert len(sweep.settings) == COUNTS[name]
    expected = {tuple(values) for values in itertools.product(*grid.values())}
    assert {tuple(own.varied[path] for path in grid) for own in sweep.settings} == expected
    lander = name.startswith("lunar")
    for own in sweep.settings:
        settings = own.settings
        assert set(own.varied) == set(grid)
        assert (settings.frames, settings.gamma, settings.replay, settings.batch) == (frames, 0.99, 100_000, 32)
        assert settings.environment.frame_limit == (5000 if lander else None)
        assert settings.environment.id == ("LunarLander-v3" if lander else "minatar/Freeway")
        assert settings.behaviour == ("epsilon-greedy" if name.endswith("dqn") else "epsilon-ipe")
        assert settings.epsilon.initial == 1.0
        assert lander or settings.width == 128
    # The bold setting is the library's own for this environment.
    bold = paper_settings(settings.environment.id, settings.behaviour)
    assert sum(own.settings == bold for own in sweep.settings) == 1


# ---- what a file says


def test_what_is_not_given_is_the_papers() -> None:
    (only,) = sweep_of(base=GREEDY | {"epsilon": {"final": 0.1}}).settings
    assert only.settings == paper_settings("LunarLander-v3", "epsilon-greedy", epsilon={"final": 0.1})
    assert (only.name, only.case, only.varied) == ("base", "", {})


def test_every_combination_in_every_case() -> None:
    sweep = sweep_of(
        grid={"width": [8, 16]},
        cases={
            "greedy": {"behaviour": "epsilon-greedy", "grid": {"epsilon.final": [0.1, 0.2]}},
            "ipe": {"behaviour": "ipe", "gamma": 0.9},
            "wide": {"grid": {"width": [512]}},
        },
    )
    assert [own.name for own in sweep.settings] == [
        "greedy width=8 epsilon.final=0.1",
        "greedy width=8 epsilon.final=0.2",
        "greedy width=16 epsilon.final=0.1",
        "greedy width=16 epsilon.final=0.2",
        "ipe width=8",
        "ipe width=16",
        "wide width=512",
    ]
    assert [own.case for own in sweep.settings] == ["greedy"] * 4 + ["ipe"] * 2 + ["wide"]
    assert sweep.settings[1].varied == {"width": 8, "epsilon.final": 0.2}
    assert sweep.settings[5].settings == paper_settings("LunarLander-v3", "ipe", gamma=0.9, width=16)
    assert len(sweep.by_key) == 7


def test_one_at_a_time_is_the_base_and_each_value_around_it() -> None:
    sweep = sweep_of(grid={"width": [64, 128, 256], "value_step_size": [1e-4, 1e-3]}, one_at_a_time=True)
    assert [own.name for own in sweep.settings] == ["base", "width=64", "width=256", "value_step_size=0.0001"]
    assert [own.varied for own in sweep.settings] == [
        {"width": 128, "value_step_size": 1e-3},
        {"width": 64, "value_step_size": 1e-3},
        {"width": 256, "value_step_size": 1e-3},
        {"width": 128, "value_step_size": 1e-4},
    ]
    assert sweep.one_at_a_time
    both = sweep_of(grid={"width": [64, 256]}, one_at_a_time=True, cases={"a": {"width": 64}, "b": {"gamma": 0.5}})
    assert [own.name for own in both.settings] == ["a", "a width=256", "b", "b width=64", "b width=256"]


def test_nested_dotted_and_short_forms_are_the_same() -> None:
    forms: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"environment": "A-v0", "epsilon": {"steps": 9}}, {"epsilon": {"final": [0.1]}}),
        ({"environment": {"id": "A-v0"}, "epsilon.steps": 9}, {"epsilon.final": [0.1]}),
        ({"environment.id": "A-v0", "epsilon.steps": 9}, {"epsilon.final": [0.1]}),
    ]
    made = [make_sweep({"name": "n", "base": {"behaviour": "epsilon-greedy"} | b, "grid": g}) for b, g in forms]
    assert made[0] == made[1] == made[2]
    several = sweep_of(grid={"environment": ["A-v0", "B-v0"], "environment.options.size": [3, 4]})
    assert [own.settings.environment.id for own in several.settings] == ["A-v0", "A-v0", "B-v0", "B-v0"]
    assert [own.settings.environment.options["size"] for own in several.settings] == [3, 4, 3, 4]
    assert [own.settings.environment.frame_limit for own in several.settings] == [None] * 4


def test_a_key_stands_for_the_settings_alone() -> None:
    one = sweep_of(grid={"width": [8, 16]}).settings
    other = make_sweep({"name": "x", "base": LANDER | {"width": 16}, "cases": {"c": {}}}).settings
    assert one[1].key == other[0].key != one[0].key
    assert len(one[0].key) == 16
    assert int(one[0].key, 16) >= 0
    assert paper_settings("LunarLander-v3", width=8) == one[0].settings


@given(
    st.lists(st.integers(1, 4096), min_size=1, max_size=4, unique=True),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=3, unique=True),
    st.booleans(),
)
def test_a_sweep_survives_json(widths: list[int], gammas: list[float], single: bool) -> None:
    gammas = [gamma for gamma in gammas if gamma < 1.0] or [0.5]
    sweep = sweep_of(grid={"width": widths, "gamma": gammas}, one_at_a_time=single, seeds=[4, 2])
    again = Sweep.from_plain(json.loads(json.dumps(sweep.plain())))
    assert again == sweep
    assert [own.key for own in again.settings] == [own.key for own in sweep.settings]
    assert single or len(sweep.settings) == len(widths) * len(gammas)


def test_what_is_wrong_in_plain_data_is_named() -> None:
    content = sweep_of().plain()
    for key in content:
        with pytest.raises(InputError, match=key):
            Sweep.from_plain({name: value for name, value in content.items() if name != key})
    content["settings"][0]["settings"]["gamma"] = 2.0
    with pytest.raises(InputError, match=r"settings\[0\]\.settings: gamma"):
        Sweep.from_plain(content)


# ---- refusals

NAN = float("nan")
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": ({"gird": {}}, "there is no key gird in a sweep's file (did you mean grid?)"),
    "an unknown field of the base": (
        {"base": LANDER | {"widht": 3}}, "base: there is no setting widht (did you mean width?)"),
    "an unknown field of a part": (
        {"base": LANDER | {"optimiser": {"dekay": 3}}},
        "base: there is no setting optimiser.dekay (did you mean optimiser.decay?)"),
    "an unknown field of the grid": (
        {"grid": {"width": [8], "gama": [0.5]}}, "grid.gama: there is no setting gama (did you mean gamma?)"),
    "an unknown nested field of the grid": (
        {"base": GREEDY, "grid": {"epsilon": {"finall": [0.5]}}},
        "grid.epsilon.finall: there is no setting epsilon.finall (did you mean epsilon.final?)"),
    "a wrong type in the base": (
        {"base": LANDER | {"width": "8"}}, "base.width: input should be a valid integer, found '8'"),
    "a wrong type in a case's base": (
        {"base": LANDER | {"width": "8"}, "cases": {"a": {"gamma": 0.5}}},
        "base.width: input should be a valid integer, found '8'"),
    "a wrong type in a case": (
        {"cases": {"a": {"width": "8"}}}, "cases.a.width: input should be a valid integer, found '8'"),
    "a wrong type in the grid": (
        {"grid": {"width": [8, "9"]}}, "grid.width[1]: input should be a valid integer, found '9'"),
    "a wrong value in a case's grid": (
        {"cases": {"a": {"grid": {"gamma": [0.5, 1.5]}}}},
        "cases.a.grid.gamma[1]: input should be less than 1, found 1.5"),
    "an unknown behaviour": (
        {"base": LANDER | {"behaviour": "greedy"}},
        f"base.behaviour: must be one of {', '.join(deep_behaviours())}, or package.module:name; found 'greedy'"),
    "no list": ({"grid": {"width": 8}}, "grid.width must be a list of values, found 8"),
    "an empty list": ({"grid": {"width": []}}, "grid.width is an empty list"),
    "NaN in the grid": ({"grid": {"gamma": [0.5, NAN]}}, "grid.gamma[1] must be finite, found nan"),
    "infinity in the grid": (
        {"grid": {"temperature": [float("inf")]}}, "grid.temperature[0] must be finite, found inf"),
    "NaN in the base": ({"base": LANDER | {"gamma": NAN}}, "base.gamma must be finite, found nan"),
    "NaN in a part": (
        {"base": {"environment": {"id": "A", "options": {"x": NAN}}}},
        "base.environment.options.x must be finite, found nan"),
    "a value twice": ({"grid": {"width": [8, 16, 8]}}, "grid.width[2] = 8 is there twice"),
    "a value twice in disguise": (
        {"grid": {"value_step_size": [0, 0.0]}},
        "the settings 'value_step_size=0.0' and 'value_step_size=0.0' are the same"),
    "a setting twice": ({"cases": {"a": {}, "b": {}}}, "the settings 'a' and 'b' are the same"),
    "a combination that does not go": (
        {"base": GREEDY, "grid": {"epsilon.kind": ["exponential", "linear"], "epsilon.final": [0.1, 0.0]}},
        "the setting epsilon.kind=exponential epsilon.final=0.0: "
        "epsilon: an exponential schedule needs initial and final above 0"),
    "what has no effect": (
        {"grid": {"epsilon.final": [0.1]}},
        "grid.epsilon.final has no effect with the behaviour epsilon-ipe; it is for epsilon-greedy, "
        "ez-greedy and munchausen: list it in the grid of such a case"),
    "momentum of rmsprop": (
        {"grid": {"optimiser.momentum": [0.1]}},
        "grid.optimiser.momentum has no effect with rmsprop; it is for optimiser.kind adam: "
        "list it in the grid of such a case"),
    "a case's field that the grid varies": (
        {"grid": {"width": [8]}, "cases": {"a": {"width": 9}}},
        "cases.a.width has no effect: grid.width lists the values to take"),
    "no environment": ({"base": {}}, 'base: the environment is missing: environment = "LunarLander-v3", say'),
    "an environment of another kind": (
        {"base": {"environment": 3}}, "base.environment: must be the name of an environment or a table, found 3"),
    "an empty environment": (
        {"base": {"environment": ""}}, "base.environment.id: must be the name of an environment, found ''"),
    "no cases": ({"cases": {}}, "cases is an empty table"),
    "a case that is no table": ({"cases": {"a": 3}}, "cases.a must be a table, found 3"),
    "a case's grid that is no table": ({"cases": {"a": {"grid": 3}}}, "cases.a.grid must be a table, found 3"),
    "a case with a name of two lines": (
        {"cases": {"a\nb": {}}}, "cases: a key must be a text on one line, found 'a\\nb'"),
    "a case without a name": (
        {"cases": {" ": {}}}, "cases: a case's name must not be empty, found ' '"),
    "a base that is no table": ({"base": 3}, "base must be a table, found 3"),
    "a grid that is no table": ({"grid": [3]}, "grid must be a table, found [3]"),
    "an empty name": ({"name": " "}, "name must be a text on one line, found ' '"),
    "one_at_a_time as a number": ({"one_at_a_time": 1}, "one_at_a_time must be true or false, found 1"),
    "no seeds": ({"seeds": 0}, "seeds must be from 1 to a million, found 0"),
    "seeds that are true": ({"seeds": True}, "seeds must be how many, or a list of which, found True"),
    "an empty list of seeds": ({"seeds": []}, "seeds is an empty list"),
    "a seed twice": ({"seeds": [1, 2, 1]}, "seeds[2] = 1 is there twice"),
    "a negative seed": ({"seeds": [1, -2]}, "seeds[1] must be a whole number from 0 to 2^63 - 1, found -2"),
    "half a seed": ({"seeds": [0.5]}, "seeds[0] must be a whole number from 0 to 2^63 - 1, found 0.5"),
    "a misspelt key, one at a time": (
        {"one_at_a_time": True, "grid": {"optimiser.momenXtum": [0.5]}},
        "grid.optimiser.momenXtum: there is no setting optimiser.momenXtum (did you mean optimiser.momentum?)"),
    "a table of the file, one at a time": (
        {"one_at_a_time": True, "grid": {"base": [0.5]}}, "grid.base: there is no setting base"),
    "a name that no setting has, one at a time": (
        {"one_at_a_time": True, "grid": {"fields": [0.5]}}, "grid.fields: there is no setting fields"),
    "a name of Python's, one at a time": (
        {"one_at_a_time": True, "grid": {"__class__": [0.5]}}, "grid.__class__: there is no setting __class__"),
    "a number where a table stands, one at a time": (
        {"one_at_a_time": True, "grid": {"optimiser": [3]}},
        "grid.optimiser[0]: input should be a valid dictionary or instance of Optimiser, found 3"),
    "a table where a number stands, one at a time": (
        {"one_at_a_time": True, "grid": {"width.x": [3]}},
        "grid.width.x: width: input should be a valid integer, found {'x': 3}"),
    "an integer that a file can hold and a setting cannot": (
        {"grid": {"width": [8, 1 << 20_000]}},
        "grid.width[1] holds a number of 20001 bits; integers have at most 63 and a sign"),
    "a key of two lines": (
        {"grid": {"wid\nth": [8]}}, "grid: a key must be a text on one line, found 'wid\\nth'"),
    "a grid without end": (
        {"grid": {f"environment.options.x{i}": list(range(10)) for i in range(9)}},
        "the grid has 1000000000 settings; at most 100000 are possible"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    content, sentence = REFUSED[name]
    with pytest.raises(InputError) as caught:
        sweep_of(**content)
    assert str(caught.value) == sentence


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file no\.toml, and no sweep of that name; .*lunar-lander-dqn"):
        read_sweep("no.toml")
    (tmp_path / "broken.toml").write_text("seeds = 1\nname = \n")
    with pytest.raises(InputError, match=r"broken\.toml is not TOML: .*line"):
        read_sweep(tmp_path / "broken.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"bytes\.toml is not TOML"):
        read_sweep(tmp_path / "bytes.toml")
    with pytest.raises(InputError, match="is a folder; a sweep is declared in a TOML file"):
        read_sweep(tmp_path)
    (tmp_path / "wrong.toml").write_text('[base]\nenvironment = "A-v0"\n[grid]\nwidht = [1]\n')
    with pytest.raises(InputError, match=r"wrong\.toml: grid\.widht: there is no setting widht"):
        read_sweep(tmp_path / "wrong.toml")


def test_a_file_comes_before_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "freeway-dqn").write_text('[base]\nenvironment = "A-v0"\n')
    assert read_sweep("freeway-dqn").runs == 1
    assert read_sweep(tmp_path / "freeway-dqn").name == "freeway-dqn"


# ---- other seeds and frames


def test_changed() -> None:
    sweep = sweep_of(grid={"width": [8, 16]}, seeds=3)
    more = changed(sweep, seeds=[5, 7, 9, 11], frames=1000)
    assert (more.seeds, more.runs, more.frames) == ([5, 7, 9, 11], 8, 8000)
    assert [own.name for own in more.settings] == [own.name for own in sweep.settings]
    assert changed(sweep) == sweep
    with pytest.raises(InputError, match="frames: input should be greater than or equal to 1, found 0"):
        changed(sweep, frames=0)
    with pytest.raises(InputError, match="seeds must be from 1"):
        changed(sweep, seeds=0)
    with pytest.raises(InputError, match="frames are what the grid varies"):
        changed(sweep_of(grid={"frames": [10, 20]}), frames=5)


def test_read_seeds_gives_a_new_list() -> None:
    given_seeds = [3, 1]
    assert read_seeds(given_seeds) == [3, 1]
    assert read_seeds(given_seeds) is not given_seeds


# ---- jobs


def test_jobs_cover_every_seed_of_every_setting_once() -> None:
    pytest.importorskip("gymnasium")
    base = {"environment": "CartPole-v1"}
    sweep = make_sweep({"name": "n", "seeds": 30, "base": base, "grid": {"width": [64, 256, 1024]}})
    found = jobs(sweep)
    assert found == jobs(sweep)
    for own, sizes in zip(sweep.settings, ([15, 15], [4, 4, 4, 4, 4, 4, 3, 3], [2] * 15), strict=True):
        batches = [job.seeds for job in found if job.key == own.key]
        assert [len(batch) for batch in batches] == sizes
        assert [seed for batch in batches for seed in batch] == list(range(30))
    assert len({job.id for job in found}) == len(found)
    assert [len(job.seeds) for job in jobs(sweep, 5)] == [5] * 18
    with pytest.raises(InputError, match="batch_seeds must lie between 1 and 16, found 0"):
        jobs(sweep, 0)


def test_images_are_trained_one_at_a_time() -> None:
    pytest.importorskip("gymnasium")
    base = {"environment": "tests.environments:Catch-v0"}
    assert [job.seeds for job in jobs(make_sweep({"name": "n", "seeds": 3, "base": base}), 8)] == [(0,), (1,), (2,)]


def test_jobs_of_an_environment_that_is_not_there() -> None:
    pytest.importorskip("gymnasium")
    with pytest.raises(InputError, match="NoSuch-v0"):
        jobs(sweep_of(base={"environment": "NoSuch-v0"}))


def test_a_jobs_id() -> None:
    assert Job("0123456789abcdef", (3, 5, 9)).id == "0123456789abcdef-3-9-3"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (f"x = {'[' * 100_000}", r"sweep\.toml is nested too deeply"),
        (f"base = {'{a=' * 50}1{'}' * 50}", r"sweep\.toml: base\.a\.a\.a.*: it is nested too deeply"),
        (f"base.{'a.' * 5000}a = 1", r"sweep\.toml: base\.a\.a\.a.*: it is nested too deeply"),
    ],
)
def test_a_file_nested_too_deeply_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_sweep(tmp_path / "sweep.toml")


def test_a_number_of_thousands_of_digits_is_refused_with_its_line_and_key(tmp_path: Path) -> None:
    (tmp_path / "long.toml").write_text(f"seeds = 3\n[grid]\nwidth = [8, {'9' * 5000}]\n")
    with pytest.raises(InputError, match=r"long\.toml: line 3: width holds a number of 5000 digits"):
        read_sweep(tmp_path / "long.toml")


def test_an_option_varied_one_at_a_time_is_the_environments_own_in_the_base() -> None:
    sweep = sweep_of(grid={"environment.options.size": [3, 4]}, one_at_a_time=True)
    assert [setting.varied["environment.options.size"] for setting in sweep.settings] == [None, 3, 4]


def test_no_mutated_file_ends_in_another_error(tmp_path: Path) -> None:
    files = share(4000)
    ends = read_mutants(files, tmp_path)
    assert set(ends) == {"read", "refused"}
    assert ends["read"] > files / 40
    assert ends["refused"] > 0.75 * files
