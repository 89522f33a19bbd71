"""The paper's study of the Switch-Stay MDP: Figures 2a, 2b, 3 and 4, its claims, and what goes beyond."""

from ipe.studies.parts import Part
from ipe.studies.switch_stay import beyond, drawing, sensitivity, trajectories, value_maps
from ipe.studies.switch_stay.settings import SwitchStaySettings

PARTS: tuple[Part, ...] = (
    Part(
        "figure-2a", "Learning on the value polytope", trajectories.compute_paths, drawing.figure_2a,
        trajectories.judge_paths,
    ),
    Part(
        "figure-2b", "ε of an ε-IPE agent over time", trajectories.compute_epsilon, drawing.figure_2b,
        trajectories.judge_epsilon,
    ),
    Part("figure-3", "Value maps", value_maps.compute, drawing.figure_3, value_maps.judge),
    Part(
        "figure-4", "Sensitivity to hyperparameters", sensitivity.compute, drawing.sensitivity("figure-4"),
        sensitivity.judge,
    ),
    Part("updates", "Other policy updates", beyond.compute_updates, drawing.updates, beyond.judge_updates, True),
    Part("slip", "Transitions that slip", beyond.compute_slip, drawing.slip, beyond.judge_slip, True),
    Part("exact", "The exact evaluation policy", beyond.compute_exact, drawing.exact, beyond.judge_exact, True),
    Part(
        "river-swim", "The same sweeps on river-swim", beyond.compute_river_swim, drawing.sensitivity("river-swim"),
        beyond.judge_other("river-swim"), True,
    ),
    Part(
        "garnet", "The same sweeps on a Garnet MDP", beyond.compute_garnet, drawing.sensitivity("garnet"),
        beyond.judge_other("garnet"), True,
    ),
)  # fmt: skip


def settings_for(runs: int | None = None, seed: int = 0) -> SwitchStaySettings:
    """The paper's settings, or those with fewer (or more) runs: no part then uses more runs than that."""
    default = SwitchStaySettings(seed=seed)
    if runs is None:
        return default
    fewer = {name: min(runs, getattr(default, name)) for name in ("trajectory_runs", "extra_runs")}
    return SwitchStaySettings(seed=seed, runs=runs, **fewer)


__all__ = ["PARTS", "SwitchStaySettings", "settings_for"]
