"""Algorithm 1 compiled: equal to a plain loop step by step, to the reference numbers, and to itself in any batch."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from ipe.errors import InputError, NotSolvedError
from ipe.mdp import FiniteMDP
from ipe.planning import optimal_values
from ipe.studies.switch_stay.reference import REFERENCE
from ipe.tabular import BEHAVIOURS, PARAMETERS, TabularRuns, simulate
from ipe.tabular.lanes import _compiled, lane_count
from ipe.tabular.model import looks, model_of
from ipe.tabular.numbers import pair, streams
from ipe.zoo import chain, garnet, river_swim, switch_stay
from tests.strategies import random_mdp
from tests.tabular_oracle import Oracle
from tests.tiers import tiered, tiered_rows

slow = pytest.mark.slow

STATIC = ("update", "order", "ties", "n_steps")


@pytest.fixture(scope="module")
def masked() -> FiniteMDP:
    """Six states, one of them terminal, with 10 of 15 pairs allowed; any of them is a start."""
    mdp = random_mdp(np.random.default_rng(3), 6, 3, masks=True, terminals=True, successors=2)
    assert mdp.terminal.any()
    assert not mdp.allowed[~mdp.terminal].all()
    return mdp


def same_bytes(a: TabularRuns, b: TabularRuns) -> bool:
    fields = ("reward", "rmse", "q", "theta", "probabilities", "epsilon", "states", "actions", "rewards", "next_states")
    return all(getattr(a, f).tobytes() == getattr(b, f).tobytes() for f in fields)


def part(runs: TabularRuns, setting: slice, run: slice) -> list[bytes]:
    return [getattr(runs, f)[setting, run].tobytes() for f in ("reward", "rmse", "q", "theta")]


def agree_with_the_oracle(
    mdp: FiniteMDP, behaviour: str, steps: int = 100, runs: int = 3, **options: Any
) -> TabularRuns:
    result = simulate(mdp, behaviour, steps=steps, runs=runs, seed=5, record="trajectory", **options)
    static = {name: value for name, value in options.items() if name in STATIC}
    given = {name: value for name, value in options.items() if name not in STATIC}
    close: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-10}
    for i in range(runs):
        oracle = Oracle(mdp, behaviour, seed=5, run=i, steps=steps, given=given, **static)
        for t in range(steps):
            here = f"run {i}, step {t}"
            pi = np.stack([oracle.probabilities(s) for s in range(mdp.n_states)])
            np.testing.assert_allclose(result.probabilities[0, i, t], pi, **close, err_msg=here)
            if np.isfinite(result.epsilon[0, i, t]).all():
                expected = [oracle.epsilon(s) for s in np.flatnonzero(~mdp.terminal).tolist()]
                np.testing.assert_allclose(result.epsilon[0, i, t, ~mdp.terminal], expected, **close, err_msg=here)
            s, a, reward, following = oracle.step()
            recorded = (result.states[0, i, t], result.actions[0, i, t], result.next_states[0, i, t])
            assert (s, a, following) == tuple(int(x) for x in recorded), here
            assert result.rewards[0, i, t] == pytest.approx(reward, abs=1e-12), here
            q = np.where(mdp.allowed, oracle.q, np.where(mdp.terminal[:, None], 0.0, np.nan))
            np.testing.assert_allclose(result.q[0, i, t + 1], q, **close, err_msg=here)
            policy = np.zeros(mdp.rewards.shape)
            for x in np.flatnonzero(~mdp.terminal).tolist():
                policy[x, oracle.actions(x)] = oracle.policy(x)
            np.testing.assert_allclose(result.policies[0, i, t + 1], policy, **close, err_msg=here)
    return result


# The quick tests compare most of them with reference numbers below, and with the explorer's.
@pytest.mark.slow
@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_every_behaviour_is_that_of_a_plain_loop(masked: FiniteMDP, behaviour: str) -> None:
    result = agree_with_the_oracle(masked, behaviour)
    assert masked.terminal[result.next_states].any(), "no episode ended: the test shows less than it should"
    without = ("boltzmann", "conservative", "greedy", "ipe", "tau-ipe", "munchausen-softmax")
    has_epsilon = behaviour not in without
    assert np.isfinite(result.epsilon[..., ~masked.terminal]).all() == has_epsilon


UPDATES = ("paper", "natural", "kl-proximal", "fenchel", "absolute", "scale-free", "cross-entropy", "lift")


@pytest.mark.parametrize("update", tiered(UPDATES))
def test_every_update_is_that_of_a_plain_loop(masked: FiniteMDP, update: str) -> None:
    bonus: dict[str, Any] = {} if update == "lift" else {"tau": 0.2}
    agree_with_the_oracle(masked, "ipe", update=update, n_steps=3, alpha_pi=0.3, gamma=0.8, **bonus)


@pytest.mark.slow
def test_a_lift_of_optimal_values_is_greedy() -> None:
    """Where transitions are deterministic, Q* promises the largest value of every state."""
    mdp = switch_stay()
    q = optimal_values(mdp).q
    numbers: dict[str, Any] = {"alpha_pi": 0.1, "alpha_q": 0.0, "epsilon": 1.0}
    runs = simulate(mdp, "epsilon-greedy", update="lift", initial_q=q, initial_theta=15.0, runs=10, **numbers)
    np.testing.assert_allclose(runs.policies[0], np.broadcast_to([[0.0, 1.0], [1.0, 0.0]], (10, 2, 2)), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mdp", "behaviour", "options"),
    [
        pytest.param(chain(4, slip=0.2), "vdbe", {"rate": 0.3, "sigma": 0.2, "initial_epsilon": 0.8}, marks=slow),
        pytest.param(chain(4, slip=0.2, terminal=False), "conservative", {"rate": 0.3, "ties": "first"}, marks=slow),
        (switch_stay(slip=0.1), "epsilon-ipe", {"update": "fenchel", "beta": 0.3, "order": "policy-first"}),
        pytest.param(garnet(7, 4, 5, seed=2), "epsilon-ipe", {"update": "natural", "alpha_pi": 0.5}, marks=slow),
        pytest.param(garnet(7, 3, 2), "ez-greedy", {"epsilon": 0.7, "longest": 4.0, "ties": "first"}, marks=slow),
        pytest.param(garnet(7, 3, 2), "epsilon-bmc", {"bmc_prior": 0.5, "bmc_certainty": 0.5}, marks=slow),
        pytest.param(river_swim(5), "boltzmann", {"update": "none", "temperature": 0.05, "alpha_q": 0.1}, marks=slow),
        pytest.param(
            switch_stay(), "exponential", {"anneal_steps": 30.0, "final_epsilon": 0.02, "ties": "first"}, marks=slow),
    ],
)  # fmt: skip
def test_options_are_those_of_a_plain_loop(mdp: FiniteMDP, behaviour: str, options: dict[str, Any]) -> None:
    agree_with_the_oracle(mdp, behaviour, **options)


@pytest.mark.parametrize(
    ("behaviour", "parameter"),
    tiered_rows(
        [("epsilon-greedy", "epsilon"), ("linear", "anneal_steps"), ("ipe", "alpha_pi"), ("epsilon-ipe", "alpha_pi")],
        ("epsilon-ipe", "alpha_pi"),
    ),
)
def test_reference_table(behaviour: str, parameter: str) -> None:
    rows = REFERENCE[behaviour]
    runs = simulate(switch_stay(), behaviour, sweep={parameter: list(rows)}, runs=1000, steps=500, seed=1)
    for i, (value, row) in enumerate(rows.items()):
        assert runs.settings[parameter][i] == value
        assert runs.reward[i].mean() == pytest.approx(row.reward, abs=max(0.14 * row.reward_sd, 0.005)), value
        assert runs.rmse[i].mean() == pytest.approx(row.rmse, abs=max(0.14 * row.rmse_sd, 0.005)), value


@slow
@pytest.mark.parametrize(("behaviour", "paper", "fenchel"), [("ipe", 1.34, 1.49), ("epsilon-ipe", 1.41, 1.54)])
def test_fenchel_on_slippery_switch_stay(behaviour: str, paper: float, fenchel: float) -> None:
    for update, reward in (("paper", paper), ("fenchel", fenchel)):
        runs = simulate(switch_stay(slip=0.1), behaviour, update=update, steps=5000, runs=500, alpha_pi=0.05)
        assert runs.reward.mean() == pytest.approx(reward, abs=0.012), update


@pytest.mark.parametrize("size", tiered([1, 7, 50], 7))
def test_runs_are_the_same_in_every_batch(size: int) -> None:
    def run(first: int, count: int) -> TabularRuns:
        return simulate(switch_stay(), "epsilon-ipe", first_run=first, runs=count, seed=7)

    together = run(0, 100)
    assert len(np.unique(together.reward)) > 20, "the runs hardly differ"
    for first in range(0, 100, size):
        count = min(size, 100 - first)
        assert part(run(first, count), slice(None), slice(None)) == part(
            together, slice(None), slice(first, first + count)
        )


@slow
def test_runs_are_the_same_in_every_batch_with_masks_and_ends(masked: FiniteMDP) -> None:
    together = simulate(masked, "ipe", runs=1000, steps=100)  # more than one batch
    assert lane_count(masked.n_states, masked.n_actions, 100, False) < 1000
    for first, count in ((0, 1), (3, 7), (990, 10), (500, 333)):
        alone = simulate(masked, "ipe", runs=count, first_run=first, steps=100, threads=1)
        assert part(alone, slice(None), slice(None)) == part(together, slice(None), slice(first, first + count))


def test_settings_are_the_same_alone_and_together() -> None:
    grid = [0.001, 0.05, 1.0, 50.0]
    together = simulate(switch_stay(), "ipe", sweep={"alpha_pi": grid}, runs=300)
    for i, alpha in enumerate(grid):
        swept = simulate(switch_stay(), "ipe", sweep={"alpha_pi": [alpha]}, runs=300)
        given = simulate(switch_stay(), "ipe", alpha_pi=alpha, runs=300)
        assert part(swept, slice(None), slice(None)) == part(together, slice(i, i + 1), slice(None))
        assert part(given, slice(None), slice(None)) == part(together, slice(i, i + 1), slice(None))


def test_same_seed_same_bytes_another_seed_others() -> None:
    def run(seed: int, **options: Any) -> TabularRuns:
        return simulate(switch_stay(), "epsilon-ipe", runs=2000, seed=seed, **options)

    assert same_bytes(run(3), run(3, threads=1))
    assert same_bytes(run(3), run(3, threads=3))
    assert not np.array_equal(run(3).reward, run(4).reward)
    assert not np.array_equal(run(2**40).reward, run(0).reward)


@pytest.mark.slow
def test_trajectory_ends_in_the_summary_and_a_shorter_run_is_its_beginning(masked: FiniteMDP) -> None:
    summary = simulate(masked, "epsilon-ipe", runs=30, steps=100)
    path = simulate(masked, "epsilon-ipe", runs=30, steps=100, record="trajectory")
    assert summary.q.tobytes() == path.q[:, :, -1].tobytes()
    assert summary.theta.tobytes() == path.theta[:, :, -1].tobytes()
    np.testing.assert_array_equal(summary.reward, path.reward)
    np.testing.assert_array_equal(summary.rmse, path.rmse)
    np.testing.assert_allclose(path.rewards.mean(axis=-1), path.reward, rtol=1e-13)
    shorter = simulate(masked, "epsilon-ipe", runs=30, steps=60, record="trajectory")
    np.testing.assert_array_equal(shorter.states, path.states[:, :, :60])
    np.testing.assert_array_equal(shorter.q, path.q[:, :, :61])


def test_one_compilation_for_all_runs_and_settings() -> None:
    simulate(switch_stay(), "boltzmann", runs=3, steps=20)
    before = _compiled.cache_info().misses
    simulate(switch_stay(), "boltzmann", runs=3000, steps=20, sweep={"temperature": [0.1, 1.0, 10.0]}, alpha_q=0.1)
    simulate(switch_stay(), "boltzmann", runs=1, steps=20, sweep={"gamma": [0.1, 0.5]}, initial_q=2.0, seed=9)
    assert _compiled.cache_info().misses == before


@pytest.mark.slow
def test_shapes_of_a_trajectory() -> None:
    runs = simulate(garnet(5, 3, 2), "vdbe", steps=11, runs=4, sweep={"sigma": [0.1, 1.0]}, record="trajectory")
    assert runs.reward.shape == runs.rmse.shape == (2, 4)
    assert runs.q.shape == runs.theta.shape == runs.policies.shape == (2, 4, 12, 5, 3)
    assert runs.estimates.shape == (2, 4, 12, 5)
    assert runs.probabilities.shape == (2, 4, 11, 5, 3)
    assert runs.epsilon.shape == (2, 4, 11, 5)
    assert runs.states.shape == runs.actions.shape == runs.rewards.shape == runs.next_states.shape == (2, 4, 11)
    np.testing.assert_array_equal(runs.states[..., 1:], runs.next_states[..., :-1])
    assert not runs.q[:, :, 0].any()
    assert set(runs.settings) == {"alpha_q", "gamma", "alpha_pi", "tau", "sigma", "initial_epsilon"}
    assert "2 settings, 4 runs" in repr(runs)


def test_summary_has_no_steps() -> None:
    runs = simulate(switch_stay(), "greedy", steps=20, runs=4)
    assert runs.probabilities.shape == (1, 4, 0, 2, 2)
    assert runs.states.shape == (1, 4, 0)
    assert runs.q.shape == (1, 4, 2, 2)


@pytest.mark.slow
def test_episodes_end_and_start_again() -> None:
    mdp = chain(5)
    runs = simulate(mdp, "linear", steps=2000, runs=50, record="trajectory")
    ended = mdp.terminal[runs.next_states]
    assert ended.any(axis=-1).all()
    assert (runs.states[..., 1:][ended[..., :-1]] == 0).all()
    assert not mdp.terminal[runs.states].any()
    assert not runs.q[..., -1, :].any(), "a terminal state has value 0"
    assert not runs.probabilities[..., -1, :].any()
    np.testing.assert_array_equal(runs.rewards, ended.astype(float))
    np.testing.assert_allclose(runs.estimates[0, :, -1, :4], np.tile(0.9 ** np.arange(3, -1, -1), (50, 1)), atol=1e-9)
    assert runs.rmse.max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slippery", "epsilon", "alpha_q", "steps", "error"),
    [(False, 1.0, 0.5, 20_000, 1e-6), pytest.param(True, 0.5, 0.02, 100_000, 0.1, marks=slow)],
)
def test_frozen_lake_is_learned(slippery: bool, epsilon: float, alpha_q: float, steps: int, error: float) -> None:
    pytest.importorskip("gymnasium")
    from ipe.zoo import from_gymnasium

    mdp = from_gymnasium("FrozenLake-v1", gamma=0.95, is_slippery=slippery)
    runs = simulate(mdp, "epsilon-greedy", epsilon=epsilon, steps=steps, runs=8, alpha_q=alpha_q, update="none")
    assert runs.rmse.max() < error
    np.testing.assert_allclose(runs.estimates.mean(axis=(0, 1)), optimal_values(mdp).v, atol=error)


@pytest.mark.slow
def test_masked_actions_are_never_taken(masked: FiniteMDP) -> None:
    for behaviour in ("boltzmann", "ipe"):
        runs = simulate(masked, behaviour, steps=100, runs=200, record="trajectory")
        assert masked.allowed[runs.states, runs.actions].all()
        assert (runs.probabilities[..., ~masked.allowed] == 0).all()
        assert (runs.policies[..., ~masked.allowed] == 0).all()
        np.testing.assert_allclose(runs.policies[..., ~masked.terminal, :].sum(axis=-1), 1.0, rtol=1e-12)
        visited = np.zeros(masked.allowed.shape, bool)
        visited[runs.states, runs.actions] = True
        np.testing.assert_array_equal(visited, masked.allowed)


@pytest.mark.slow
def test_runs_that_diverge_say_so_and_stay_inside_the_mdp(masked: FiniteMDP) -> None:
    for behaviour in ("boltzmann", "epsilon-greedy"):
        runs = simulate(masked, behaviour, steps=300, runs=20, alpha_q=1e3, record="trajectory")
        assert not np.isfinite(runs.rmse).all()
        assert masked.allowed[runs.states, runs.actions].all()
        assert np.isfinite(runs.reward).all()


@pytest.mark.slow
def test_random_numbers_are_uniform_and_independent() -> None:
    runs, steps, bins = 500, 400, 16
    with jax.enable_x64(True):
        own = jax.vmap(lambda i: streams(7, i))(jnp.arange(runs))
        counts = jnp.arange(steps, dtype=jnp.int32)
        numbers = np.array(jax.vmap(lambda w: jnp.stack(pair(w, counts), axis=-1))(own.steps))
        starts = np.array(jax.vmap(lambda w: pair(w, counts)[0])(own.starts))
    assert 0.0 <= numbers.min() < numbers.max() < 1.0
    samples = {
        "action and next state": (numbers[..., 0], numbers[..., 1]),
        "one step and the next": (numbers[:, 1:, 0], numbers[:, :-1, 0]),
        "one run and the next": (numbers[1:, :, 0], numbers[:-1, :, 0]),
        "step and start": (numbers[..., 0], starts),
    }
    for what, (x, y) in samples.items():
        cells = np.bincount((x.ravel() * bins).astype(int) * bins + (y.ravel() * bins).astype(int), minlength=bins**2)
        assert chisquare(cells).pvalue > 1e-3, what


@pytest.mark.slow
def test_next_states_have_their_probabilities() -> None:
    mdp = garnet(4, 2, 4, seed=1)
    runs = simulate(mdp, "epsilon-greedy", epsilon=1.0, steps=2000, runs=100, record="trajectory", update="none")
    counts = np.zeros((8, 4))
    np.add.at(counts, (runs.states * 2 + runs.actions, runs.next_states), 1)
    n = counts.sum(axis=1, keepdims=True)
    p = mdp.transitions.toarray()
    assert (np.abs(counts / n - p) < 5 * np.sqrt(p * (1 - p) / n) + 1e-9).all()


@pytest.mark.slow
def test_starts(masked: FiniteMDP) -> None:
    def first(**options: Any) -> Any:
        return simulate(garnet(4, 2, 4), "greedy", steps=1, runs=4000, record="trajectory", **options).states[0, :, 0]

    assert (first(start=2) == 2).all()
    shares = np.bincount(first(start=[0.5, 0.0, 0.2, 0.3]), minlength=4) / 4000
    np.testing.assert_allclose(shares, [0.5, 0.0, 0.2, 0.3], atol=0.04)
    assert shares[1] == 0
    np.testing.assert_allclose(np.bincount(first(), minlength=4) / 4000, 0.25, atol=0.04)
    states = simulate(masked, "greedy", steps=1, runs=500, record="trajectory").states
    assert set(states.ravel()) == set(np.flatnonzero(~masked.terminal))


@pytest.mark.slow
def test_initial_tables(masked: FiniteMDP) -> None:
    runs = simulate(masked, "ipe", steps=5, runs=2, record="trajectory", initial_q=3.0, initial_theta=-1.0)
    assert (runs.q[:, :, 0][..., masked.allowed] == 3.0).all()
    assert np.isnan(runs.q[:, :, 0][..., ~masked.allowed & ~masked.terminal[:, None]]).all()
    assert (runs.q[:, :, 0, masked.terminal] == 0).all()
    assert (runs.theta[:, :, 0][..., ~masked.allowed] == -np.inf).all()
    again = simulate(
        masked,
        "ipe",
        steps=5,
        runs=2,
        record="trajectory",
        initial_q=runs.q[0, 0, 5],
        initial_theta=runs.theta[0, 0, 5],
    )
    np.testing.assert_array_equal(again.q[0, 0, 0], runs.q[0, 0, 5])
    np.testing.assert_array_equal(again.theta[0, 0, 0], runs.theta[0, 0, 5])


def test_rmse_uses_the_discount_of_the_setting() -> None:
    runs = simulate(switch_stay(), "epsilon-greedy", epsilon=1.0, steps=500, runs=20, sweep={"gamma": [0.0, 0.5, 0.9]})
    assert (runs.rmse[:2] < 1e-6).all()
    np.testing.assert_allclose(runs.estimates[0], np.tile([1.0, 2.0], (20, 1)), atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mdp",
    [garnet(1500, 4, 5), pytest.param(river_swim(3000), marks=slow), pytest.param(garnet(300, 2, 300), marks=slow)],
)
def test_many_states(mdp: FiniteMDP) -> None:
    runs = simulate(mdp, "epsilon-greedy", steps=300, runs=3, record="summary")
    assert np.isfinite(runs.q).all()
    assert (runs.q != 0).any() or mdp.n_actions == 2  # the river's reward is far away
    assert looks(model_of(mdp, None).transitions) == int(np.ceil(np.log2(np.diff(mdp.transitions.indptr).max())))


def test_progress_and_float32_elsewhere() -> None:
    seen: list[tuple[int, int]] = []
    simulate(
        switch_stay(),
        "greedy",
        runs=2500,
        steps=20,
        sweep={"alpha_q": [0.1, 0.5]},
        progress=lambda *now: seen.append(now),
    )
    assert [total for _, total in seen] == [5000] * len(seen)
    assert [done for done, _ in seen] == [1024, 2048, 3072, 4096, 5000]
    assert jnp.zeros(1).dtype == np.float32, "64 bits leaked out of the simulation"


def test_an_exception_in_progress_stops_the_runs() -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        simulate(switch_stay(), "greedy", runs=5000, steps=20, progress=stop)


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("eps", {}, "behaviour must be one of linear, .*, epsilon-ipe, .*; found 'eps'"),
    ("ipe", {"update": "adam"}, "update must be one of absolute, .*, scale-free, none; found 'adam'"),
    ("ipe", {"order": "theta-first"}, "order must be one of q-first, policy-first; found 'theta-first'"),
    ("ipe", {"record": 1}, "record must be one of summary, trajectory; found 1"),
    ("ipe", {"ties": "last"}, "ties must be one of random, first; found 'last'"),
    ("ipe", {"mdp": np.eye(2)}, "mdp must be a FiniteMDP, found ndarray"),
    ("ipe", {"steps": 0}, "steps must be a whole number from 1 to 2147483647, found 0"),
    ("ipe", {"runs": 1.5}, "runs must be a whole number from 1 to 4294967295, found 1.5"),
    ("ipe", {"seed": -1}, r"seed must be a whole number from 0 to 2\^63 - 1, found -1"),
    ("ipe", {"seed": 2**63}, r"seed must be a whole number from 0 to 2\^63 - 1, found"),
    ("ipe", {"first_run": 2**32 - 5, "runs": 5}, "runs must be a whole number from 1 to 4, found 5"),
    ("ipe", {"threads": 0}, "threads must be a whole number >= 1, found 0"),
    ("ipe", {"n_steps": 0}, "n_steps must be a whole number from 1 to 2147483647, found 0"),
    ("greedy", {"update": "none", "n_steps": 2}, "n_steps = 2 has no effect with update 'none'"),
    ("ipe", {"alpha": 0.1}, "unknown parameter 'alpha'; there are alpha_pi, .*, temperature"),
    ("ipe", {"epsilon": 0.1}, "epsilon has no effect with behaviour 'ipe' and update 'paper'"),
    ("greedy", {"update": "none", "alpha_pi": 1.0}, "alpha_pi has no effect with behaviour 'greedy' and update 'none'"),
    ("ipe", {"alpha_pi": "1"}, "alpha_pi must be a number, found '1'"),
    ("ipe", {"alpha_pi": [1.0]}, r"alpha_pi must be a number, found \[1.0\] \(several values: sweep="),
    ("ipe", {"alpha_pi": np.nan}, "alpha_pi = nan is not a finite number"),
    ("boltzmann", {"temperature": np.inf}, "temperature = inf is not a finite number"),
    ("ipe", {"alpha_pi": -0.1}, "alpha_pi = -0.1 must be >= 0"),
    ("ipe", {"alpha_q": -1.0}, "alpha_q = -1 must be >= 0"),
    ("epsilon-greedy", {"epsilon": 1.2}, r"epsilon = 1.2 must be in \[0, 1\]"),
    ("boltzmann", {"temperature": 0.0}, "temperature = 0 must be > 0"),
    ("linear", {"anneal_steps": 0.0}, "anneal_steps = 0 must be > 0"),
    ("exponential", {"final_epsilon": 0.0}, r"final_epsilon = 0 must be in \(0, 1\]"),
    ("ipe", {"gamma": 1.0}, r"gamma must lie in \[0, 1\), found 1.0"),
    ("ipe", {"sweep": {"gamma": [0.5, -1.0]}}, r"gamma\[1\] = -1 must be in \[0, 1\]"),
    ("ipe", {"sweep": [1.0]}, "sweep must map the names of parameters to their values, found"),
    ("ipe", {"sweep": {"apha": [1.0]}}, "unknown parameter 'apha'"),
    ("ipe", {"sweep": {"rate": [1.0]}}, "rate has no effect with behaviour 'ipe'"),
    ("ipe", {"sweep": {"alpha_pi": []}}, r"sweep\['alpha_pi'\] must be a list of at least one number"),
    ("ipe", {"sweep": {"alpha_pi": 0.1}}, r"sweep\['alpha_pi'\] must be a list of at least one number"),
    ("ipe", {"sweep": {"alpha_pi": ["a"]}}, r"sweep\['alpha_pi'\] must hold real numbers"),
    ("ipe", {"sweep": {"alpha_pi": [0.1, np.nan]}}, r"alpha_pi\[1\] = nan is not a finite number"),
    ("ipe", {"sweep": {"alpha_pi": [0.1, 0.2, -3.0]}}, r"alpha_pi\[2\] = -3 must be >= 0"),
    ("ipe", {"sweep": {"alpha_pi": [1.0, 2.0], "tau": [1.0]}}, "but there are 2 of alpha_pi, 1 of tau"),
    ("ipe", {"sweep": {"tau": [1.0]}, "tau": 0.5}, "tau is both swept and given as one value"),
    ("ipe", {"mdp": chain(3), "start": 2}, "start gives probability to state 2, which is terminal"),
    ("ipe", {"start": 5}, "start names state 5, but states run from 0 to 1"),
    ("ipe", {"start": [0.5, 0.6]}, "start sums to 1.1, not to 1"),
    ("ipe", {"initial_q": np.nan}, r"initial_q\[0, 0\] = nan is not a finite number"),
    ("ipe", {"initial_q": [1.0, 2.0]}, r"initial_q must have shape \(2, 2\)"),
    ("ipe", {"initial_theta": np.full((2, 2), -np.inf)}, r"initial_theta\[0, 0\] = -inf is not a finite number"),
    ("ipe", {"runs": 10**7, "steps": 10**6, "record": "trajectory"}, "need .* GB, .* fewer runs or steps, or record="),
]


@pytest.mark.parametrize(("behaviour", "options", "message"), WRONG)
def test_wrong_input(behaviour: str, options: dict[str, Any], message: str) -> None:
    mdp = options.get("mdp", switch_stay())
    with pytest.raises(InputError, match=message):
        simulate(mdp, behaviour, **{name: value for name, value in options.items() if name != "mdp"})


def test_only_terminal_states() -> None:
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[0.0]], 0.9, terminal=[0])
    with pytest.raises(InputError, match="only terminal states"):
        simulate(mdp, "greedy")


def test_every_parameter_is_used_by_something() -> None:
    from ipe.tabular.parameters import COMMON, names_by_update
    from ipe.tabular.returns import NUMBERS

    used = {each.name for each in (*COMMON, *NUMBERS)}
    used |= {name for table in (BEHAVIOURS, names_by_update()) for names in table.values() for name in names}
    assert used == set(PARAMETERS)
    for each in PARAMETERS.values():
        assert each.sentence.endswith("."), each.name


@pytest.mark.slow
@pytest.mark.parametrize("gamma", tiered([0.9999, 0.9999999], 0.9999999))
def test_optimal_values_beyond_float64_are_no_reason_to_refuse(gamma: float) -> None:
    mdp = switch_stay(gamma=gamma)
    with pytest.raises(NotSolvedError):
        optimal_values(mdp)
    assert np.isfinite(simulate(mdp, "epsilon-ipe", steps=5, runs=2).rmse).all()
