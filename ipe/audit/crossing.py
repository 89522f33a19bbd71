r"""Crossing: the evaluation policy of one half of the transitions, judged by the other half.

The policy that is fitted to one half does not know the noise of the other: there,
:math:`\bar\delta^2 - s^2/n` estimates its squared residual without the optimism of a fit, and no policy's is below the
least one. So the mean over both directions is, in expectation, at least what no policy can remove, whatever the size of
the batch; what it is more is the price of having to estimate the policy from half of it.
"""

from __future__ import annotations

import numpy as np

from ipe.audit.decomposition import pair_errors
from ipe.audit.empirical import EmpiricalModel, assemble
from ipe.base.arrays import Mask
from ipe.inverse import evaluation_policy


def crossed_residual(model: EmpiricalModel) -> float:
    """The squared residual of a policy fitted to half of each pair's transitions, on the other half; both ways.

    Args:
        model: the empirical model of transitions that are not deterministic: every pair was seen twice or more.
    """
    first = _first_half(model)
    return 0.5 * (_judged(model, first) + _judged(model, ~first))


def _first_half(model: EmpiricalModel) -> Mask:
    """Every other transition of each pair, in their order: the noise of a pair's transitions is independent of it."""
    order = np.argsort(model.pair, kind="stable")
    begins = np.concatenate([[0], np.cumsum(model.count)[:-1]])
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order)) - begins[model.pair[order]]
    first: Mask = rank % 2 == 0
    return first


def _judged(model: EmpiricalModel, fitted: Mask) -> float:
    keys = model.state * model.mdp.n_actions + model.action
    half = assemble(
        model.mdp.allowed, model.mdp.gamma, keys, model.pair[fitted], model.reward[fitted], model.successor[fitted]
    )
    v = evaluation_policy(half, q=model.q, weights=model.weights, on_miss="flag").v
    errors = pair_errors(model, v)
    m = len(model.count)
    count = np.bincount(model.pair[~fitted], minlength=m)
    mean = np.bincount(model.pair[~fitted], errors.delta[~fitted], minlength=m) / count
    # The variance from all transitions: half of a pair that was seen twice has none, and the fit is to means.
    return float(np.sum(model.share * (mean**2 - errors.variance / count)))
