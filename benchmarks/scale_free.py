"""Policy updates whose step size does not depend on the rewards' scale: mean reward over step sizes, on six MDPs.

    python benchmarks/scale_free.py                  # every update, epsilon-IPE and tau-IPE: ten minutes
    python benchmarks/scale_free.py --updates paper scale-free --behaviours epsilon-ipe --mdps switch-stay

Algorithm 1 on tables, 50 runs of 2000 steps, gamma .9, alpha_Q .5, the same random numbers for all. `paper` is the
paper's update and `scale-free` the library's; `lift` and `cross-entropy` learn the closed form, and the step size of
`lift` is a rate, of which only 0 to 1 make sense. The others were tried and set aside; they are functions here:

    spread      the error and Q in units of the spread of Q(s', .), the target cut to the range of Q(s', .)
    proximal    the KL-proximal update in the same units; with a large step size, the tilt to the target, without one
    gradient    the paper's gradient divided by a running root mean square of each (s, a)
    values      the error and Q in units of a running root mean square of the spread of Q(s', .)
"""

from __future__ import annotations

import argparse
from typing import Any

import jax.numpy as jnp
import numpy as np

import ipe
from ipe.updates import PolicyUpdate, Transition, kl_proximal_update, paper_gradient, paper_update
from ipe.updates.declaration import ALPHA
from ipe.zoo import garnet, river_swim, switch_stay

GRID = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
MEMORY = 0.01
MDPS = {
    "switch-stay": switch_stay(),
    **{f"garnet-{i}": garnet(30, 4, 3, seed=i, gamma=0.9) for i in range(3)},
    "deterministic": garnet(30, 4, 1, seed=0, gamma=0.9),
    "river-swim": river_swim(),
}


def in_its_spread(transition: Transition) -> Transition:
    """The transition in units of the spread of Q(s', .), counted from max Q, with a target that some policy has."""
    q, gamma = transition.q_next, transition.gamma
    high, low = q.max(-1), q.min(-1)
    unit = jnp.where(high > low, high - low, 1.0)
    target = jnp.clip((transition.q_sa - transition.reward) / gamma, low, high)
    return Transition(gamma * (target - high) / unit, 0.0, gamma, transition.terminal, (q - high) / unit)


def spread(theta: Any, transition: Transition, alpha: Any) -> Any:
    """the paper's, in units of the spread of Q(s', .)"""
    return paper_update(theta, in_its_spread(transition), alpha)


def proximal(theta: Any, transition: Transition, alpha: Any) -> Any:
    """the KL-proximal one, in units of the spread of Q(s', .)"""
    return kl_proximal_update(theta, in_its_spread(transition), alpha)


def _mean_square(before: Any, square: Any) -> Any:
    return jnp.where(before > 0, (1.0 - MEMORY) * before + MEMORY * square, square)


def _by_gradient(theta: Any, before: Any, transition: Transition, numbers: Any) -> tuple[Any, Any]:
    gradient = paper_gradient(theta, transition).theta
    square = (1.0 - MEMORY) * before + MEMORY * jnp.mean(gradient**2)
    return theta - numbers["alpha_pi"] * gradient / jnp.where(square > 0, jnp.sqrt(square), 1.0), square


def _by_values(theta: Any, before: Any, transition: Transition, numbers: Any) -> tuple[Any, Any]:
    square = _mean_square(before, jnp.ptp(transition.q_next, axis=-1) ** 2)
    unit = jnp.where(square > 0, jnp.sqrt(square), 1.0)
    scaled = Transition(
        transition.q_sa / unit,
        transition.reward / unit,
        transition.gamma,
        transition.terminal,
        transition.q_next / unit,
    )
    return paper_update(theta, scaled, numbers["alpha_pi"]).theta, square


UPDATES: dict[str, Any] = {
    "paper": "paper",
    "scale-free": "scale-free",
    "lift": "lift",
    "cross-entropy": "cross-entropy",
    "spread": spread,
    "proximal": proximal,
    "gradient": PolicyUpdate("gradient", "by its size", _by_gradient, hyperparameters=(ALPHA,), estimates=True),
    "values": PolicyUpdate("values", "by Q", _by_values, hyperparameters=(ALPHA,), estimates=True, shared=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", nargs="+", choices=list(UPDATES), default=list(UPDATES))
    parser.add_argument("--mdps", nargs="+", choices=list(MDPS), default=list(MDPS))
    parser.add_argument(
        "--behaviours", nargs="+", choices=("epsilon-ipe", "tau-ipe"), default=("epsilon-ipe", "tau-ipe")
    )
    parser.add_argument("--runs", type=int, default=50)
    options = parser.parse_args()
    print(f"{'':<41}" + "".join(f"{alpha:>8g}" for alpha in GRID), flush=True)
    for behaviour in options.behaviours:
        for name in options.mdps:
            mdp = MDPS[name].with_gamma(0.9)
            for update in options.updates:
                runs = ipe.simulate(
                    mdp, behaviour, update=UPDATES[update], sweep={"alpha_pi": GRID}, runs=options.runs, steps=2000
                )
                means = np.round(runs.reward.mean(axis=1), 3)
                print(f"{behaviour:<12}{name:<15}{update:<14}" + "".join(f"{mean:>8.3f}" for mean in means), flush=True)


if __name__ == "__main__":
    main()
