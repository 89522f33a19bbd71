r"""What the squared TD error of a batch is made of: noise, estimation, and the Bellman residual itself.

**The parts.** A pair (s, a) was seen n times, with the TD errors :math:`\delta_i = r_i + \gamma v(s'_i) - Q(s,a)`,
where :math:`v(s') = \sum_a \pi(a|s') Q(s',a)`. With their mean :math:`\bar\delta`, their variance
:math:`s^2 = \frac{1}{n-1} \sum_i (\delta_i - \bar\delta)^2` and the share w of the pair,

.. math:: \frac1N \sum_i \delta_i^2 = \underbrace{\sum w \tfrac{n-1}{n} s^2}_\text{noise}
    + \underbrace{\sum w \tfrac{s^2}{n} - o}_\text{estimation}
    + \underbrace{\sum w \big(\bar\delta^2 - \tfrac{s^2}{n}\big) + o}_\text{residual} .

For a policy that was chosen without looking at this batch (greedy, when Q comes from other data), o = 0, and since
:math:`E[\bar\delta^2] = \delta^2 + \sigma^2/n`, the last term is an unbiased estimate of the squared Bellman residual
:math:`\sum w\, (Q - T^\pi Q)^2`, in the true model with the weights of this batch.

**Optimism.** The evaluation policy is fitted to the same batch, which makes its residual smaller than it is. Let v be
the solution of :math:`\min_v \|\gamma \hat P v - (Q - \hat r)\|_w^2` in its box, F the states where v is not at an end
of the box, :math:`A = \gamma \hat P_F` and :math:`G = A^T W A`. The fit then takes away, to first order in 1/n,

.. math:: o = E[g^T G^{-1} g] = \sum \frac{w^2}{n} \operatorname{tr}\big(G^{-1} \operatorname{Cov}_i(\xi_i)\big),
    \qquad \xi_i = A_{s,a}\, \delta_i + \gamma\, \bar\delta\, e_{s'_i} ,

where 2g is the gradient that the noise of :math:`\hat P` and :math:`\hat r` makes at the true solution, and 2G is the
Hessian. With this o, the last term estimates :math:`\min_\pi \|Q - T^\pi Q\|_w^2`, what no policy can remove, without
bias to first order. For up to `MOST_FREE` states in F, o is computed as this trace. Beyond, it is the mean of
:math:`g^T G^{-1} g` over a few draws of g, each a sum of the observed terms :math:`\frac{w}{n} \xi_i`, centred within
their pairs, with random signs: g then has the right covariance, and :math:`g^T G^{-1} g`, a sum over thousands of
directions, hardly varies.

**Crossing.** The policy that is fitted to one half of the transitions does not know the noise of the other half: there,
:math:`\bar\delta^2 - s^2/n` estimates its squared residual without optimism, and no policy's squared residual is below
the least one. So the mean over both directions is, in expectation, at least what no policy can remove, whatever the
size of the batch; the difference is the price of having to estimate the policy from half of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

from ipe.audit.empirical import EmpiricalModel, assemble
from ipe.base.arrays import Array, Mask
from ipe.inverse import evaluation_policy

MOST_FREE = 1000
"""The number of states in F up to which the dense inverse of G is affordable."""
MOST_NUMBERS = 20_000_000
"""The number of entries up to which the product of the pairs' rows with that inverse is affordable."""
DRAWS = 12
"""The number of draws of g where the trace is not affordable."""


@dataclass(frozen=True, eq=False)
class PairErrors:
    """The TD errors of each pair under a policy."""

    mean: Array
    r""":math:`\bar\delta = (\hat T^\pi Q - Q)(s,a)`, shape (m,). Positive: Q promises less than follows."""
    variance: Array
    """The unbiased variance of each pair's TD errors; 0 where transitions are deterministic."""
    standard_error: Array
    """The standard error of each pair's mean."""
    delta: Array
    """The TD error of each transition, shape (n,)."""


@dataclass(frozen=True)
class Decomposition:
    """The mean squared TD error under a policy, and its parts, which sum to it."""

    mean_squared_td_error: float
    """The sum of `noise`, `estimation` and `residual`."""
    noise: float
    """The variance of rewards and successors within the pairs, which no values and no policy remove."""
    estimation: float
    """What the noise of a finite sample adds to the residual. It falls as 1/n."""
    residual: float
    """The squared Bellman residual that is left. As an estimate, it can be below 0 when there is none."""
    standard_error: float
    """The standard error of `residual`; 0 where transitions are deterministic."""

    @property
    def measured(self) -> float:
        """The squared residual on the empirical model: the sum of `estimation` and `residual`."""
        return self.estimation + self.residual


def pair_errors(model: EmpiricalModel, v: Array) -> PairErrors:
    """The TD errors of the transitions, pair by pair. `v` is the mean of Q under the policy in each state, shape (S +
    1,), 0 in the last."""
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
    """The parts of the mean squared TD error; `optimism` is o, for a policy that was fitted to this batch."""
    w, n, square = model.share, model.count, errors.variance / model.count
    noise = float(np.sum(w * (n - 1) * square))
    estimation = float(np.sum(w * square)) - optimism
    residual = float(np.sum(w * errors.mean**2)) - estimation
    # Var(mean^2) of a normal mean: 4 delta^2 s^2 + 2 s^4, with s^2 = sigma^2 / n.
    real = np.maximum(errors.mean**2 - square, 0.0)
    error = float(np.sqrt(np.sum(w**2 * (4.0 * real * square + 2.0 * square**2))))
    total = float(np.mean(errors.delta**2))
    return Decomposition(total, noise, estimation, residual, error)


def fit_optimism(model: EmpiricalModel, errors: PairErrors, free: Mask) -> float:
    """How much smaller the squared residual is because the policy was fitted to this batch: o, to first order in 1/n.
    `free` are the states F whose v is not at an end of its box, shape (S + 1,)."""
    if model.deterministic or not free.any():
        return 0.0
    rows = sparse.csr_array(model.rows[:, free])
    if rows.shape[1] <= MOST_FREE and rows.shape[0] * rows.shape[1] <= MOST_NUMBERS:
        return _trace(model, errors, free, rows)
    return _drawn(model, errors, free, rows)


def crossed_residual(model: EmpiricalModel) -> float:
    """The squared residual of a policy fitted to half of each pair's transitions, on the other half; both ways. Every
    pair of the model must have been seen twice or more."""
    first = _first_half(model)
    return 0.5 * (_judged(model, first) + _judged(model, ~first))


def _trace(model: EmpiricalModel, errors: PairErrors, free: Mask, rows: sparse.csr_array) -> float:
    """The trace in the formula of o: the parts that delta, the successor, and both together contribute."""
    w, n = model.share, model.count
    scaled = _scaled(model, rows)
    inverse = np.linalg.pinv((scaled.T @ scaled).toarray(), rcond=1e-10, hermitian=True)
    product = rows @ inverse
    spread = (errors.delta - errors.mean[model.pair]) / (n[model.pair] - 1)
    together = sparse.csr_array(sparse.coo_array((spread, (model.pair, model.successor)), shape=(len(n), len(free))))
    squared = _row_products(rows, product)
    of_delta = squared * errors.variance
    crossed = 2.0 * errors.mean * _row_products(sparse.csr_array(together[:, free]), product)
    of_successor = errors.mean**2 * n / (n - 1) * (rows @ np.diag(inverse) - squared)
    return float(model.mdp.gamma**2 * np.sum(w**2 / n * (of_delta + crossed + of_successor)))


def _drawn(model: EmpiricalModel, errors: PairErrors, free: Mask, rows: sparse.csr_array) -> float:
    """The mean of :math:`g^T G^{-1} g` over draws of g."""
    n, m = model.count, len(model.count)
    size = (model.share / n * np.sqrt(n / (n - 1)))[model.pair]
    spread = errors.delta - errors.mean[model.pair]
    transposed = sparse.csr_array(_scaled(model, rows).T)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(DRAWS):
        signed = size * rng.choice([-1.0, 1.0], len(model.pair))
        of_successor = signed * errors.mean[model.pair]
        of_pair = np.bincount(model.pair, signed * spread - of_successor, minlength=m)
        arrived = np.bincount(model.successor, of_successor, minlength=len(free))[free]
        g = model.mdp.gamma * (rows.T @ of_pair + arrived)
        y = lsqr(transposed, g, atol=1e-6, btol=1e-6)[0]  # the shortest y with A^T W^(1/2) y = g
        found.append(float(y @ y))
    return float(np.mean(found))


def _scaled(model: EmpiricalModel, rows: sparse.csr_array) -> sparse.csr_array:
    r""":math:`W^{1/2} A`, so that G is its transpose times itself."""
    return sparse.csr_array(rows * (model.mdp.gamma * np.sqrt(model.share))[:, None])


def _row_products(left: sparse.csr_array, right: Array) -> Array:
    """The scalar product of each row of `left` with the same row of `right`."""
    return np.asarray(left.multiply(right).sum(axis=1)).ravel()


def _first_half(model: EmpiricalModel) -> Mask:
    """Every other transition of each pair, in their order, which is independent of the noise of the transitions."""
    order = np.argsort(model.pair, kind="stable")
    begins = np.concatenate([[0], np.cumsum(model.count)[:-1]])
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order)) - begins[model.pair[order]]
    first: Mask = rank % 2 == 0
    return first


def _judged(model: EmpiricalModel, fitted: Mask) -> float:
    """The squared residual, on the other transitions, of the policy that is fitted to some of them."""
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
