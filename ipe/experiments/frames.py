"""Results for other tools: frames of pandas or polars, and a DuckDB connection. `ipe` itself needs none of them."""

from __future__ import annotations

import json
import os
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from ipe.base.nested import flatten
from ipe.base.packages import missing_package
from ipe.base.words import one_of
from ipe.experiments.declared import Sweep
from ipe.experiments.results import Results, load_results

KINDS = ("episodes", "progress", "evaluations", "outcomes", "settings")
LIBRARIES = ("pandas", "polars")


def frame(folder: str | os.PathLike[str], kind: str = "episodes", library: str = "pandas") -> Any:
    """Return a table of a sweep's results, verified as by `load_results`, which says what is missing.

    Args:
        folder: the folder of the store.
        kind: episodes (setting, case, seed, frame, return, length); progress (setting, case, seed, frame, epsilon,
            entropy, td_error, ipe_error, q_mean); evaluations (setting, case, seed, frame, mean, returns, lengths; the
            last two are lists); outcomes (setting, case, seed, status, frame, reason); or settings,
            one row each: setting, case, key, and every field by its path. `setting` is the name in all of them.
        library: pandas or polars.

    Raises:
        InputError: if the library is not installed, or there is no such kind or store.
    """
    one_of(kind, KINDS, "kind")
    one_of(library, LIBRARIES, "library")
    module = _module(library)
    table = named_table(load_results(folder, progress=kind == "progress"), kind)
    return table.to_pandas() if library == "pandas" else module.from_arrow(table)


def connect(folder: str | os.PathLike[str]) -> Any:
    """Return a DuckDB connection, in memory, with the tables `episodes`, `progress`, `evaluations`,
    `outcomes`, `settings`.

    Args:
        folder: the folder of the store. Its results are read and verified once, now.
    """
    module = _module("duckdb")
    results = load_results(folder)
    connection = module.connect()
    for kind in KINDS:
        connection.register(kind, named_table(results, kind))
    return connection


def named_table(results: Results, kind: str) -> pa.Table:
    """Return a table with the settings' names and cases in the place of their indices; `kind` as in `frame`."""
    if kind == "settings":
        return _settings(results.sweep)
    table = _outcomes(results) if kind == "outcomes" else getattr(results, kind)
    indices = table["setting"].combine_chunks()
    names = [setting.name for setting in results.sweep.settings]
    cases = [setting.case for setting in results.sweep.settings]
    distinct = list(dict.fromkeys(cases))
    of_setting = np.array([distinct.index(case) for case in cases], np.int32)
    case = pa.DictionaryArray.from_arrays(pa.array(of_setting[np.asarray(indices)], pa.int32()), pa.array(distinct))
    name = pa.DictionaryArray.from_arrays(indices, pa.array(names))
    return table.set_column(0, "setting", name).add_column(1, "case", case)


def _outcomes(results: Results) -> pa.Table:
    kinds = {"setting": pa.int32(), "seed": pa.int64(), "status": pa.string(), "frame": pa.int64()}
    return pa.Table.from_pylist(results.outcomes, pa.schema(kinds | {"reason": pa.string()}))


def _settings(sweep: Sweep) -> pa.Table:
    rows = [
        {"setting": one.name, "case": one.case, "key": one.key, **flatten(one.settings.model_dump())}
        for one in sweep.settings
    ]
    paths = dict.fromkeys(path for row in rows for path in row)
    return pa.table({path: _column([row.get(path) for row in rows]) for path in paths})


def _column(values: list[Any]) -> pa.Array:
    """Return a column of one type; values of several types, as options of environments may be, become JSON."""
    try:
        return pa.array(values)
    except pa.ArrowException:
        return pa.array([json.dumps(value) for value in values])


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise missing_package("this table", name) from None
