r"""Epsilon-BMC: an epsilon that is the mean of a posterior, by Bayesian model combination."""

from __future__ import annotations

from typing import NamedTuple

from ipe.behaviours.declaration import Behaviour, Experience, Memory, Numbers, View, declare
from ipe.behaviours.hyperparameters import Hyperparameter
from ipe.entropy.arrays import AnyArray, check_range, count, mask, namespace, sum_actions

MEAN, MEAN_WEIGHT = 0.0, 1.0
"""The prior mean of returns, and how many returns it counts for: the authors' numbers."""
ADVANTAGE = 0.01
"""By how much the prior of greedy behaviour is above that of uniform behaviour: the authors' number."""


class Beliefs(NamedTuple):
    """What epsilon-BMC knows: a Beta posterior of epsilon, and the returns so far. Arrays of one shape (...)."""

    uniform: AnyArray
    r""":math:`\alpha` of the posterior, the weight of uniform behaviour."""
    greedy: AnyArray
    r""":math:`\beta` of the posterior, the weight of greedy behaviour."""
    returns: AnyArray
    """How many returns were seen."""
    mean: AnyArray
    """The mean of the returns."""
    squares: AnyArray
    """The sum of the squared differences of the returns from their mean."""

    @property
    def epsilon(self) -> AnyArray:
        r"""The mean :math:`\alpha / (\alpha + \beta)` of the posterior."""
        return self.uniform / (self.uniform + self.greedy)


def bmc_update(beliefs: Beliefs, greedy_return: AnyArray, uniform_return: AnyArray, certainty: AnyArray) -> Beliefs:
    r"""The beliefs of epsilon-BMC after one more return.

    Epsilon-BMC (Gimelfarb, Sanner and Lee, arXiv 2007.00869) takes epsilon for the weight of a uniform model of
    returns beside a greedy one, :math:`G^U = r + \gamma\,\mathrm{mean}_b Q(s',b)` and :math:`G^Q = r + \gamma \max_b
    Q(s',b)`. The return :math:`G = (1-\epsilon) G^Q + \epsilon\, G^U` has a normal-gamma model; its predictive density
    around each of the two is Student's:

    .. math::
        e_m = \mathrm{St}(G;\, G^m, b_t/a_t, 2a_t),\quad a_t = a_0 + \tfrac t2,\quad
        b_t = b_0 + \tfrac t2\Big(\hat\sigma_t^2 + \tfrac{\tau_0}{\tau_0+t}(\hat\mu_t-\mu_0)^2\Big).

    The posterior :math:`\propto (\epsilon e_U + (1-\epsilon) e_Q)\,\mathrm{Beta}(\epsilon; \alpha, \beta)` is a mixture
    :math:`w\,\mathrm{Beta}(\alpha+1,\beta) + (1-w)\,\mathrm{Beta}(\alpha,\beta+1)`,
    :math:`w = \alpha e_U/(\alpha e_U + \beta e_Q)`, and is replaced by the Beta of the same mean and variance. With
    :math:`X = \alpha\beta + w\beta + (1-w)\alpha` that is

    .. math::
        \alpha \leftarrow (\alpha + w)\,\kappa,\quad \beta \leftarrow (\beta + 1 - w)\,\kappa,\quad
        \kappa = \frac{X}{X + w(1-w)(\alpha+\beta+2)},

    a form of the paper's formulas in which nothing cancels. Epsilon falls from below a half to 0, and stays at a half.
    The numbers are those of the authors' programs: :math:`\mu_0 = 0`, :math:`\tau_0 = 1`, :math:`a_0 = b_0 = 500`, and
    :math:`\beta_0 = \alpha_0 + .01` with an :math:`\alpha_0` that they chose for each task (1, 5, 10, 25). After a
    terminal transition both returns are r. The deep agent updates its beliefs in every frame, with the Q-network.

    Args:
        beliefs: the beliefs so far.
        greedy_return: :math:`G^Q`.
        uniform_return: :math:`G^U`.
        certainty: :math:`a_0 = b_0`: half the number of returns that the prior variance 1 counts for.

    Returns:
        The new beliefs.

    Example:
        >>> before = Beliefs(uniform=1.0, greedy=3.0, returns=0.0, mean=0.0, squares=0.0)
        >>> after = bmc_update(before, greedy_return=4.0, uniform_return=0.0, certainty=1.0)
        >>> round(float(after.epsilon), 4)
        0.2145
    """
    check_range(certainty, "certainty", 0.0, strict=True)
    uniform, greedy, returns, mean, squares = beliefs
    xp = namespace(*beliefs, greedy_return, uniform_return, certainty)
    epsilon, gap = beliefs.epsilon, greedy_return - uniform_return
    seen = greedy_return - epsilon * gap
    returns = returns + 1.0
    shift = seen - mean
    mean = mean + shift / returns
    squares = squares + shift * (seen - mean)
    variance = squares / xp.clip(xp.asarray(returns - 1.0), 1.0, None)
    distance = MEAN_WEIGHT / (MEAN_WEIGHT + returns) * (mean - MEAN) ** 2
    shape, rate = certainty + 0.5 * returns, certainty + 0.5 * returns * (variance + distance)
    # The two densities enter by their ratio alone; gap^2 / (2 rate) is the square of Student's t over its freedom.
    far = gap * gap / (2.0 * rate)
    odds = (shape + 0.5) * (xp.log1p(epsilon**2 * far) - xp.log1p((1.0 - epsilon) ** 2 * far))
    w = uniform / (uniform + greedy * xp.exp(-odds))
    mixed = uniform * greedy + w * greedy + (1.0 - w) * uniform
    kept = mixed / (mixed + w * (1.0 - w) * (uniform + greedy + 2.0))
    return Beliefs((uniform + w) * kept, (greedy + 1.0 - w) * kept, returns, mean, squares)


def _initial(view: View, numbers: Numbers) -> dict[str, AnyArray]:
    zeros = 0.0 * sum_actions(view.q)
    prior = zeros + numbers["bmc_prior"]
    return Beliefs(prior, prior + ADVANTAGE, zeros, zeros, zeros)._asdict()


def _updated(view: View, experience: Experience, numbers: Numbers) -> dict[str, AnyArray]:
    q = experience.following.q
    xp, permitted = namespace(q), mask(q, experience.following.allowed)
    n = count(permitted, q)
    best = xp.where(n > 0, xp.amax(xp.where(permitted, q, -xp.inf), axis=-1), 0.0)
    mean = sum_actions(xp.where(permitted, q, 0.0)) / xp.clip(n, 1.0, None)
    greedy, uniform = (experience.reward + experience.discount * value for value in (best, mean))
    return bmc_update(Beliefs(**view.memory), greedy, uniform, numbers["bmc_certainty"])._asdict()


declare(
    Behaviour(
        "epsilon-bmc",
        "epsilon-greedily, with the mean of a posterior of epsilon, by Bayesian model combination",
        epsilon=lambda view, numbers: Beliefs(**view.memory).epsilon,
        hyperparameters=(
            Hyperparameter(
                "bmc_prior", "How many steps the prior of epsilon = 1/2 counts for, halved.", 5.0, above=True
            ),
            Hyperparameter(
                "bmc_certainty", "How many returns the prior variance 1 counts for, halved.", 500.0, above=True
            ),
        ),
        memory=Memory(_initial, _updated, scope="agent"),
    )
)
