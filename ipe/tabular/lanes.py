"""Compilation: one program that runs a fixed number of lanes, whatever is put into them.

A lane is one run of one setting. Runs and settings are dealt to lanes in batches, the last of them padded, and the
size of a batch does not depend on how many they are. So the arithmetic of a run is the same in whatever company it
runs, and same seed means same bytes; and one compilation serves any number of runs and settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from ipe.base.arrays import Array
from ipe.tabular.learning import advance, begin, logits_of
from ipe.tabular.model import Model
from ipe.tabular.numbers import streams
from ipe.tabular.state import Algorithm, Run, Step

LANE_ELEMENTS = 2048
"""Lanes times actions. Beyond this XLA hands the many small loops to its thread pools, which doubles the time that they
take; two batches side by side use two cores better."""
TABLE_ELEMENTS = 2**20
"""Lanes times states times actions, as far as at least `LEAST_LANES` remain: 8 MB per table."""
RECORD_ELEMENTS = 2**24
"""The same for what is recorded, times steps."""
LEAST_LANES = 16

_shape: Any = jax.ShapeDtypeStruct


def lane_count(n_states: int, n_actions: int, steps: int, record: bool) -> int:
    """How many lanes a program has: a power of two."""
    pairs = n_states * n_actions
    most = min(LANE_ELEMENTS // n_actions, TABLE_ELEMENTS // pairs)
    if record:
        most = min(most, RECORD_ELEMENTS // (pairs * steps))
    return 1 << max(most, LEAST_LANES).bit_length() - 1


def lane_runner(
    algorithm: Algorithm,
    steps: int,
    lanes: int,
    model: Model,
    tables: tuple[Array, Array],
    seed: int,
    names: Iterable[str],
) -> Callable[[NDArray[np.uint32], Mapping[str, Array]], tuple[Run, Step | None]]:
    """Compile the function that runs a batch of lanes; any thread may call it.

    Args:
        algorithm: the variant of Algorithm 1.
        steps: how many steps a run takes.
        lanes: how many lanes a batch has.
        model: the MDP.
        tables: initial q and theta, shape (S, A).
        seed: the seed of all runs.
        names: the names of the parameters.

    Returns:
        A function of the index of each lane's run, shape (lanes,), and the parameters of its setting, shape (lanes,)
        each, that returns the last state of every lane and what was recorded on the way.
    """
    # Float64 here and nowhere else: the switch belongs to the thread, and the block, that sets it.
    with jax.enable_x64(True):
        fixed = jax.tree.map(jnp.asarray, (model, tables, np.int64(seed)))
        leaves, tree = jax.tree.flatten(jax.tree.map(lambda x: _shape(x.shape, x.dtype), fixed))
        compiled = _compiled(algorithm, steps, lanes, tuple(leaves), tree, tuple(sorted(names)))

    def run(indices: NDArray[np.uint32], parameters: Mapping[str, Array]) -> tuple[Run, Step | None]:
        with jax.enable_x64(True):
            result: tuple[Run, Step | None] = jax.device_get(compiled(*fixed, indices, dict(parameters)))
        return result

    return run


@lru_cache(maxsize=128)
def _compiled(
    algorithm: Algorithm, steps: int, lanes: int, leaves: tuple[Any, ...], tree: Any, names: tuple[str, ...]
) -> Any:
    def run_lanes(model: Model, tables: Any, seed: Any, indices: Any, parameters: Any) -> tuple[Run, Step | None]:
        def lane(index: Any, numbers: Any) -> tuple[Run, Step | None]:
            random = streams(seed, index)

            def step(run: Run, t: Any) -> tuple[Run, Step | None]:
                return advance(algorithm, model, numbers, random, run, t)

            start = begin(algorithm, model, numbers, random, *tables)
            run, taken = jax.lax.scan(step, start, jnp.arange(steps, dtype=jnp.int32))
            return run._replace(theta=logits_of(algorithm, model, run)), taken

        return jax.vmap(lane)(indices, parameters)

    fixed = jax.tree.unflatten(tree, leaves)
    indices = _shape((lanes,), np.uint32)
    parameters = {name: _shape((lanes,), np.float64) for name in names}
    return jax.jit(run_lanes).lower(*fixed, indices, parameters).compile()
