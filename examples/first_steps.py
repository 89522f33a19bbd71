"""Exact inverse policy evaluation in half a minute.

1. The paper's Switch-Stay MDP, and a value function that no policy has: its evaluation policy.
2. The paper's value map (Figure 3): where 195 value functions lead, by their evaluation policy and by greedy.
3. A random MDP of 100,000 states: its evaluation policy with a proof of optimality.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import ipe
from ipe.figures import draw_mdp, draw_value_map, save_figure
from ipe.polytope import paper_grid, value_map, value_polytope


def main() -> None:
    """Run the three parts and say what was written where."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/first-steps"), help="folder for the figures")
    parser.add_argument("--states", type=int, default=100_000, help="size of the random MDP")
    options = parser.parse_args()
    if options.states < 5:
        parser.error(f"--states must be 5 or more, found {options.states}")
    options.out.mkdir(parents=True, exist_ok=True)

    mdp = ipe.zoo.switch_stay()
    print("1. Is V = (18, -6) the value of any policy of the Switch-Stay MDP? Which fits it best?\n")
    print(ipe.evaluation_policy(mdp, v=[18.0, -6.0]))

    print("\n2. Where 195 value functions lead when they are acted on\n")
    points = paper_grid()
    inside = value_polytope(mdp).contains(points)
    images = {"Evaluation policy": value_map(mdp, points), "Greedy policy": value_map(mdp, points, policy="greedy")}
    for name, image in images.items():
        distinct = len(np.unique(image.round(6), axis=0))
        kept = np.isclose(image, points, atol=1e-6).all(axis=1)
        print(f"  {name:18} {distinct:3d} different results; {kept.sum()} of {inside.sum()} achievable ones kept")

    print(f"\n3. A random MDP of {options.states} states, and the values of 20 sweeps of value iteration\n")
    large = ipe.zoo.garnet(options.states)
    q = np.zeros((large.n_states, large.n_actions))
    for _ in range(20):
        q = ipe.planning.optimality_operator(large, q=q)
    start = time.perf_counter()
    result = ipe.evaluation_policy(large, q=q)
    seconds = time.perf_counter() - start
    print(f"  {result!r}")
    print(f"  {seconds:.2f} s; no policy has a residual below {result.residual_lower_bound:.9g}")

    files = {"figure-1": draw_mdp(mdp), "figure-3": draw_value_map(mdp, points, images)}
    for name, figure in files.items():
        for suffix in (".png", ".svg"):
            save_figure(figure, options.out / f"{name}{suffix}")
    print(f"\nWrote the MDP (figure-1) and the value map (figure-3), each as .png and .svg, to {options.out}/")


if __name__ == "__main__":
    main()
