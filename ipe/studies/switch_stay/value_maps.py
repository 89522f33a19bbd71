"""Figure 3: where fixed value functions lead, by their evaluation policy and by greedy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ipe.analysis import Claim, verdict
from ipe.base.arrays import Array
from ipe.polytope import paper_grid, value_map, value_polytope
from ipe.studies.parts import Progress, Table, Tables, labelled, rows_with, stacked
from ipe.studies.switch_stay.settings import SwitchStaySettings
from ipe.updates import Transition, paper_update
from ipe.zoo import switch_stay

NEAR = 2.0
"""Points of the grid within the grid's spacing of the polytope are near; points beyond three spacings are far."""
FAR = 6.0
DELTAS = (0.01, 0.1, 1.0, 10.0, 100.0)
CORNERS = (5.0, 10.0)
CORNER_UPDATES = 500


def compute(settings: SwitchStaySettings, progress: Progress) -> Tables:
    """The images of the paper's 195 points, and what becomes of a nearly deterministic policy."""
    mdp, points = switch_stay(settings.gamma), paper_grid()
    rows = []
    for policy in ("ipe", "greedy"):
        image = value_map(mdp, points, policy=policy)
        columns = dict(zip(("v0", "v1", "image0", "image1"), (*points.T, *image.T), strict=True))
        rows.append({**labelled(len(points), policy=policy), **columns})
    return {"figure-3": stacked(rows), "figure-3-corner": _corner(settings)}


def _corner(settings: SwitchStaySettings) -> dict[str, Array]:
    """Policies next to a corner under many of the paper's updates, for initial errors of several sizes."""
    logit, delta = (x.ravel() for x in np.meshgrid(CORNERS, DELTAS, indexing="ij"))
    theta = np.stack([logit, np.zeros_like(logit)], axis=1)
    q_next = np.tile([1.0, 0.0], (len(logit), 1))
    first = 1.0 / (1.0 + np.exp(-logit))
    q_sa = settings.gamma * first - delta  # so that the error starts at the given size
    for _ in range(CORNER_UPDATES):
        theta = paper_update(theta, Transition(q_sa, 0.0, settings.gamma, False, q_next), 0.05).theta
    final = 1.0 / (1.0 + np.exp(theta[:, 1] - theta[:, 0]))
    return {"logit": logit, "delta": delta, "start": first, "end": final}


def judge(settings: SwitchStaySettings, tables: Tables) -> Sequence[Claim]:
    """The paper's sentences on Figure 3 and on how deterministic an evaluation policy is."""
    table, corner = tables["figure-3"], tables["figure-3-corner"]
    mdp = switch_stay(settings.gamma)
    polytope = value_polytope(mdp)
    ours, greedy = table["policy"] == "ipe", table["policy"] == "greedy"
    v = np.stack([table["v0"], table["v1"]], axis=1)
    image = np.stack([table["image0"], table["image1"]], axis=1)
    distance = polytope.nearest(v[ours])[1]
    deterministic = (np.abs(image[ours][:, None] - polytope.vertices).max(axis=-1) < 1e-6).any(axis=1)
    inside = distance == 0
    near, far = ~inside & (distance <= NEAR), distance >= FAR
    strictly = inside & (polytope.boundary_distance(v[ours]) > 1e-9)
    kept = inside & np.isclose(image[ours], v[ours], atol=1e-6).all(axis=1)
    moved = np.linalg.norm(image[ours] - v[ours], axis=1)
    distinct = len(np.unique(image[greedy].round(6), axis=0))
    small, large = corner["delta"] <= 0.1, corner["delta"] >= 10
    stays, leaves = corner["end"] > corner["start"] - 0.01, corner["end"] < 0.9
    outer = corner["logit"] == CORNERS[0]
    near_share, far_share = float((~deterministic[near]).mean()), float(deterministic[far].mean())
    return [
        Claim(
            "near-values-map-to-stochastic-policies", "figure-3",
            "Fixed value functions that are relatively near to the polytope appear to get mapped to a nearby, "
            "non-deterministic point of the polytope.",
            verdict(near_share > 0.5, float(np.median(moved[near])) < FAR),
            f"Of {near.sum()} points outside within {NEAR:g} of the polytope {near_share:.0%} map to a policy that is "
            f"not deterministic; the median way is {np.median(moved[near]):.1f}, for far points "
            f"{np.median(moved[far]):.1f}.",
            {"near": near.sum(), "stochastic_share": near_share, "median_way": float(np.median(moved[near]))},
        ),
        Claim(
            "far-values-map-to-deterministic-policies", "figure-3",
            "If the values are far from the polytope, they can map to a deterministic policy.",
            verdict(bool(deterministic[far].any()), far_share > float(deterministic[near].mean())),
            f"Of {far.sum()} points at {FAR:g} or more from the polytope {far_share:.0%} map to a deterministic "
            f"policy, of the near ones {deterministic[near].mean():.0%}.",
            {"far": far.sum(), "deterministic_share": far_share},
        ),
        Claim(
            "inside-maps-to-itself", "figure-3",
            "The evaluation policy of values that some policy has is such a policy: inside, the map is the identity.",
            verdict(bool(kept.sum() == inside.sum())),
            f"{kept.sum()} of the {inside.sum()} points inside ({strictly.sum()} strictly), of {ours.sum()}.",
            {"inside": inside.sum(), "strictly_inside": strictly.sum(), "kept": kept.sum(), "points": ours.sum()},
            addition=True,
        ),
        Claim(
            "greedy-forgets-the-values", "figure-3",
            "Greedy policies of all these values are few: the map has hardly any image.",
            verdict(distinct <= len(polytope.vertices)),
            f"Greedy leads to {distinct} different values, the evaluation policy to "
            f"{len(np.unique(image[ours].round(6), axis=0))}.",
            {"greedy_images": distinct},
            addition=True,
        ),
        Claim(
            "deterministic-stays-unless-delta-is-large", "figure-3",
            "If δ is large, ... the resulting gradient may be large and π will not remain deterministic.",
            verdict(bool(stays[small].all()), bool(leaves[large & outer].all()), bool(leaves[large & ~outer].all())),
            f"After {CORNER_UPDATES} updates with step size .05, "
            + "; ".join(_ends(corner, logit) for logit in CORNERS)
            + ": the closer to the corner, the larger an error it takes.",
            {f"end/{z:g}/{d:g}": p for z, d, p in zip(*(corner[k] for k in ("logit", "delta", "end")), strict=True)},
        ),
    ]  # fmt: skip


def _ends(corner: Table, logit: float) -> str:
    rows = rows_with(corner, logit=logit)
    ends = ", ".join(f"{p:.3f} (δ = {d:g})" for d, p in zip(corner["delta"][rows], corner["end"][rows], strict=True))
    return f"from probability {corner['start'][rows][0]:.5f} to {ends}"
