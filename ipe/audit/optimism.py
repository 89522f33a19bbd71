r"""How much smaller a squared residual is for having been minimised on the batch that it is measured on.

With the notation of `ipe.audit.decomposition`, :math:`o = E[g^T G^{-1} g]`, where g is a sum of independent terms
:math:`\frac{w}{n} \xi_i`, centred within each pair. For up to `MOST_FREE` states in F, o is the trace in the formula
there. Beyond, it is the mean over a few draws of g, each a sum with random signs of the terms seen: g then has
the right covariance, and :math:`g^T G^{-1} g`, a sum over thousands of directions, hardly varies.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import lsqr

from ipe.audit.decomposition import PairErrors
from ipe.audit.empirical import EmpiricalModel
from ipe.base.arrays import Array, Mask

MOST_FREE = 1000
"""States in F up to which the dense inverse of G is affordable."""
MOST_NUMBERS = 20_000_000
"""Entries of the product of the pairs' rows with that inverse."""
DRAWS = 12


def fit_optimism(model: EmpiricalModel, errors: PairErrors, free: Mask) -> float:
    """The expected amount, to first order in 1/n: o.

    Args:
        model: the empirical model.
        errors: under the evaluation policy.
        free: the states F whose v is not at an end of its box, shape (S + 1,).
    """
    if model.deterministic or not free.any():
        return 0.0
    rows = sparse.csr_array(model.rows[:, free])
    if rows.shape[1] <= MOST_FREE and rows.shape[0] * rows.shape[1] <= MOST_NUMBERS:
        return _trace(model, errors, free, rows)
    return _drawn(model, errors, free, rows)


def _trace(model: EmpiricalModel, errors: PairErrors, free: Mask, rows: sparse.csr_array) -> float:
    """The sum over pairs of the parts of the trace: of delta, of the successor, and of both together."""
    w, n = model.share, model.count
    scaled = _scaled(model, rows)
    inverse = np.linalg.pinv((scaled.T @ scaled).toarray(), rcond=1e-10, hermitian=True)
    product = rows @ inverse
    spread = (errors.delta - errors.mean[model.pair]) / (n[model.pair] - 1)
    together = sparse.csr_array(sparse.coo_array((spread, (model.pair, model.successor)), shape=(len(n), len(free))))
    own = _row_products(rows, product)
    of_delta = own * errors.variance
    crossed = 2.0 * errors.mean * _row_products(sparse.csr_array(together[:, free]), product)
    of_successor = errors.mean**2 * n / (n - 1) * (rows @ np.diag(inverse) - own)
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
    """The product of each row of the one with the same row of the other."""
    return np.asarray(left.multiply(right).sum(axis=1)).ravel()
