"""The result of inverse policy evaluation: the evaluation policy, its residual, and the proof of its gap."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from ipe.base.arrays import Array
from ipe.base.html import preformatted
from ipe.checks import Form
from ipe.entropy import entropy
from ipe.inverse.problem import Norm
from ipe.mdp import FiniteMDP
from ipe.planning import policy_values, q_from_v

SHOWN_STATES = 12
SHOWN_ACTIONS = 6


@dataclass(frozen=True, eq=False, repr=False)
class EvaluationPolicy:
    r"""The evaluation policy of a value function, with its certificate. Print it for a table.

    Attributes:
        mdp: the MDP.
        form: "v" or "q", what was given.
        given: the values that were given, v of shape (S,) or q of shape (S, A).
        norm: "l2", "l1" or "linf".
        policy: :math:`\pi(a|s)`, shape (S, A), of maximum entropy among the policies with this residual.
        v: :math:`\sum_a \pi(a|s) Q(s,a)` (in the V form, with :math:`q_V` for Q), shape (S,): the value that the
            policy makes of the given values, one step ahead. Not its true value.
        inverse_temperatures: the signed :math:`\eta_s` of the policy, shape (S,).
        residual: :math:`\|Q - T^\pi Q\|` (or V) in the norm.
        residual_lower_bound: no policy has a smaller residual than this.
        sup_residual: the largest absolute residual over all rows, weights or not.
        objective: what was minimised: half the squared norm for l2, the norm otherwise.
        gap: the objective is at most this far above its minimum.
        achievable: whether the values are those of a policy (this one), to `tolerance`; None if undecided.
        distance_bounds: bounds on the sup-norm distance to the nearest values that are those of a policy.
        unique: whether v is the only solution in the states that the norm sees; None if not known.
        method: the method that found the solution.
        iterations: how many iterations the method took; 0 for closed forms.
        converged: whether the gap is within the tolerance asked for.
        stopped: why the solve ended early, "time limit" or "interrupted"; empty if it did not.
    """

    mdp: FiniteMDP
    form: Form
    given: Array
    norm: Norm
    policy: Array
    v: Array
    inverse_temperatures: Array
    residual: float
    residual_lower_bound: float
    sup_residual: float
    objective: float
    gap: float
    achievable: bool | None
    distance_bounds: tuple[float, float]
    unique: bool | None
    method: str
    iterations: int
    converged: bool
    tolerance: float = field(default=1e-9)
    stopped: str = ""

    @property
    def relative_gap(self) -> float:
        """The gap over the objective; 0 where the gap is 0."""
        return self.gap / self.objective if self.gap > 0 else 0.0

    @cached_property
    def values(self) -> Array:
        r"""The true values :math:`V^\pi` of the policy, shape (S,); computed when first asked for."""
        size = float(np.abs(self.mdp.rewards).max()) or 1.0  # the tolerance there is absolute
        return policy_values(self.mdp, self.policy, tol=1e-10 * size).v

    @cached_property
    def action_values(self) -> Array:
        r"""The true action values :math:`Q^\pi` of the policy, shape (S, A)."""
        return q_from_v(self.mdp, self.values)

    @cached_property
    def entropy(self) -> Array:
        r"""The entropy :math:`H(\pi(\cdot|s))` in nats, shape (S,); 0 in terminal states."""
        return np.asarray(entropy(self.policy, self.mdp.allowed), dtype=np.float64)

    @property
    def promised(self) -> Array:
        """What the given values promise per state: V, or the policy's mean of Q. Shape (S,)."""
        return self.given if self.form == "v" else self.v

    def plot(self, path: str | os.PathLike[str] | None = None, *, shape: tuple[int, int] | None = None) -> Any:
        """Draw the residual per state, promised against true values, and where the policy is undecided.

        Args:
            path: the file to write: `.svg`, `.png` or `.pdf`.
            shape: rows and columns of a grid world, whose residuals are then drawn as a map.

        Returns:
            The figure of `ipe.figures.draw_certificate`.
        """
        # Figures lie in a room below this one, which is loaded only when somebody asks for a picture.
        return import_module("ipe.figures").draw_certificate(self, path, shape=shape)

    def __repr__(self) -> str:
        return (
            f"EvaluationPolicy({self.form}, {self.norm}, residual={self.residual:.6g}, gap={self.gap:.3g}, "
            f"achievable={self.achievable}, method={self.method!r})"
        )

    def __str__(self) -> str:
        return "\n".join([*self._summary(), "", *self._table()])

    def _repr_html_(self) -> str:
        return preformatted(str(self))

    def _summary(self) -> list[str]:
        lower, upper = self.distance_bounds
        values = self.form.upper()
        achievable = {
            True: f"yes: {values} is the value of this policy",
            False: f"no: {values} is the value of no policy",
            None: "not decided at this tolerance",
        }[self.achievable]
        proof = "exact" if self.gap == 0 else f"at least {self.residual_lower_bound:.6g} for every policy"
        norm = {"l2": "l2", "l1": "l1", "linf": "sup"}[self.norm]
        lines = [
            f"Evaluation policy of {values} on {self.mdp!r}",
            f"  solved by     {self.method}" + (f", {self.iterations} iterations" if self.iterations else ""),
            f"  residual      {self.residual:.6g} in the {norm} norm ({proof}); largest {self.sup_residual:.6g}",
            f"  gap           {self.gap:.3g} of an objective of {self.objective:.6g}",
            f"  achievable    {achievable}",
            f"  distance      between {lower:.6g} and {upper:.6g} (sup norm) to the nearest achievable {values}",
        ]
        if not self.converged:
            reason = f" ({self.stopped})" if self.stopped else ""
            lines.insert(2, f"  NOT CONVERGED to the tolerance asked for{reason}: read the gap")
        return lines

    def _table(self) -> list[str]:
        """The states in order, or those with the largest difference between promise and truth if many."""
        states = np.flatnonzero(~self.mdp.terminal)
        note = []
        if len(states) > SHOWN_STATES:
            off = np.abs(self.promised - self.values)[states]
            states = np.sort(states[np.argsort(-off, kind="stable")[:SHOWN_STATES]])
            note = [f"  (the {SHOWN_STATES} states where promise and truth differ most, of {self.mdp.n_states})"]
        actions = range(min(self.mdp.n_actions, SHOWN_ACTIONS))
        names = [self.mdp.action_name(a) for a in actions] + (["..."] if self.mdp.n_actions > SHOWN_ACTIONS else [])
        rows = [["state", "promised", "true", *(f"pi({name})" if name != "..." else name for name in names), "eta"]]
        for s in states:
            cells = [f"{self.policy[s, a]:.4f}" if self.mdp.allowed[s, a] else "-" for a in actions]
            more = ["..."] if self.mdp.n_actions > SHOWN_ACTIONS else []
            numbers = [f"{self.promised[s]:.4f}", f"{self.values[s]:.4f}"]
            rows.append([self.mdp.state_name(int(s)), *numbers, *cells, *more, f"{self.inverse_temperatures[s]:.4g}"])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  "
            + row[0].ljust(widths[0])
            + "".join(f"  {c.rjust(w)}" for c, w in zip(row[1:], widths[1:], strict=True))
            for row in rows
        ]
        return lines + note
