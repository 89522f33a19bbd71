r"""What the squared TD error of a batch is made of: noise, estimation, and the Bellman residual itself.

A pair (s, a) was seen n times, with the TD errors :math:`\delta_i = r_i + \gamma v(s'_i) - Q(s,a)`, where
:math:`v(s') = \sum_a \pi(a|s') Q(s',a)`. With their mean :math:`\bar\delta`, their variance
:math:`s^2 = \frac{1}{n-1} \sum_i (\delta_i - \bar\delta)^2` and the share w of the pair,

.. math:: \frac1N \sum_i \delta_i^2 = \underbrace{\sum w \tfrac{n-1}{n} s^2}_\text{noise}
    + \underbrace{\sum w \tfrac{s^2}{n} - o}_\text{estimation}
    + \underbrace{\sum w \big(\bar\delta^2 - \tfrac{s^2}{n}\big) + o}_\text{residual} .

For a policy that was chosen without looking at this batch (greedy, when Q comes from other data), o = 0, and since
:math:`E[\bar\delta^2] = \delta^2 + \sigma^2/n`, the last term is an unbiased estimate of the squared Bellman residual
:math:`\sum w\, (Q - T^\pi Q)^2`, in the true model with the weights of this batch.

The evaluation policy is fitted to the same batch, which makes its residual smaller than it is. With v the solution of
:math:`\min_v \|\gamma \hat P v - (Q - \hat r)\|_w^2` in its box, F the states where v is not at an end of it,
:math:`A = \gamma \hat P_F` and :math:`G = A^T W A`, the fit takes away, to first order in 1/n,

.. math:: o = E[g^T G^{-1} g] = \sum \frac{w^2}{n} \operatorname{tr}\big(G^{-1} \operatorname{Cov}_i(\xi_i)\big),
    \qquad \xi_i = A_{s,a}\, \delta_i + \gamma\, \bar\delta\, e_{s'_i} ,

2g being the gradient that the noise of :math:`\hat P` and :math:`\hat r` makes at the true solution, 2G the Hessian.
With it, the last term estimates :math:`\min_\pi \|Q - T^\pi Q\|_w^2`, what no policy can remove, without bias to
first order. `ipe.audit.optimism` computes o.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ipe.audit.empirical import EmpiricalModel
from ipe.base.arrays import Array


@dataclass(frozen=True, eq=False)
class PairErrors:
    """The TD errors of each pair under a policy."""

    mean: Array
    r""":math:`\bar\delta = (\hat T^\pi Q - Q)(s,a)`, shape (m,). Positive: Q promises less than follows."""
    variance: Array
    """Their unbiased variance; 0 where transitions are deterministic."""
    standard_error: Array
    """Of the mean."""
    delta: Array
    """Of each transition, shape (n,)."""


@dataclass(frozen=True)
class Decomposition:
    """The mean squared TD error under a policy, and its parts, which sum to it."""

    mean_squared_td_error: float
    noise: float
    """Variance of rewards and successors within the pairs: no values and no policy remove it."""
    estimation: float
    """What the noise of a finite sample adds to the residual: it falls as 1/n."""
    residual: float
    """The squared Bellman residual that is left. An estimate: it can be below 0 when there is none."""
    standard_error: float
    """Of `residual`; 0 where transitions are deterministic."""

    @property
    def measured(self) -> float:
        """The squared residual on the empirical model: estimation and residual."""
        return self.estimation + self.residual


def pair_errors(model: EmpiricalModel, v: Array) -> PairErrors:
    """The TD errors of the transitions, pair by pair.

    Args:
        model: the empirical model.
        v: what the policy makes of Q in each state, shape (S + 1,), 0 in the last one.
    """
    delta = model.reward + model.mdp.gamma * v[model.successor] - model.q[model.state, model.action][model.pair]
    m = len(model.count)
    mean = np.bincount(model.pair, delta, minlength=m) / model.count
    if model.deterministic:
        mean = delta[np.unique(model.pair, return_index=True)[1]]  # all are equal: to the last bit
        return PairErrors(mean, np.zeros(m), np.zeros(m), delta)
    squares = np.bincount(model.pair, (delta - mean[model.pair]) ** 2, minlength=m)
    variance = squares / (model.count - 1)
    return PairErrors(mean, variance, np.sqrt(variance / model.count), delta)


def decompose(model: EmpiricalModel, errors: PairErrors, optimism: float = 0.0) -> Decomposition:
    """The parts of the mean squared TD error.

    Args:
        model: the empirical model.
        errors: under the policy.
        optimism: o, for a policy that was fitted to this batch.
    """
    w, n, square = model.share, model.count, errors.variance / model.count
    noise = float(np.sum(w * (n - 1) * square))
    estimation = float(np.sum(w * square)) - optimism
    residual = float(np.sum(w * errors.mean**2)) - estimation
    # Var(mean^2) of a normal mean: 4 delta^2 s^2 + 2 s^4, with s^2 = sigma^2 / n.
    real = np.maximum(errors.mean**2 - square, 0.0)
    error = float(np.sqrt(np.sum(w**2 * (4.0 * real * square + 2.0 * square**2))))
    total = float(np.mean(errors.delta**2))
    return Decomposition(total, noise, estimation, residual, error)
