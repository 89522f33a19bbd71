r"""Policy updates from one sampled transition (s, a, r, s'), for a table of softmax logits.

All of them lower the squared error of one backup,
:math:`\delta = r + \gamma (1 - \text{terminal})\, v' - Q(s,a)`, :math:`v' = \sum_b \pi_b Q(s',b)`, the inner term of
the paper's bound (its `eq:upper-bound-eval-policy`), by changing the logits :math:`\theta = \theta(s', \cdot)` of the
next state's policy :math:`\pi`; Q stays as it is. They differ in how they step:

=========================  ==========================================================================
`paper_update`             gradient descent on the logits, the paper's `eq:ipe-update`
`natural_update`           natural gradient: does not slow down next to a deterministic policy
`kl_proximal_update`       the exact minimiser within reach of a KL penalty: nearly any step size will do
`fenchel_update`           a second estimate of the mean error: no bias where transitions are random
`absolute_update`          gradient descent on :math:`|\delta|`
`scale_free_update`        the paper's in units of the error: rewards of any scale need the same step size
`cross_entropy_update`     imitates the policy of most entropy that makes :math:`\delta = 0`
`lift_update`              learns the value that is asked of s'; the policy of most entropy that has it
=========================  ==========================================================================

Each is a pure function `(theta, transition, alpha)` of arrays of NumPy, JAX or torch (see `ipe.entropy`): `theta` has
shape (..., A), `transition` is a `Transition` whose parts broadcast, and all may be traced, so that runs and settings
can be batched by `jax.vmap` inside `jax.lax.scan`. The result has the shape and dtype of theta. At a terminal
transition theta stays as it is, bit for bit.

`UPDATES` is the table of updates by name, which the tabular and the deep agent read. An update in a module of
your own is named `package.module:name`.

For a policy network and its optimiser, `paper_gradient` and its sisters are what goes into the network's outputs. Each
is the gradient of a loss, which its docstring states.

A baseline subtracted from Q(s', .) would change nothing: with a sum over all actions the update is
invariant to it.
"""

from ipe.updates.declaration import (
    UPDATES,
    EstimatedGradient,
    Gradient,
    PolicyUpdate,
    Transition,
    Update,
    declare,
)
from ipe.updates.descent import entropy_bonus
from ipe.updates.functions import find_update
from ipe.updates.kinds.absolute import absolute_gradient, absolute_update
from ipe.updates.kinds.cross_entropy import cross_entropy_gradient, cross_entropy_update
from ipe.updates.kinds.fenchel import FenchelUpdate, fenchel_gradient, fenchel_update
from ipe.updates.kinds.kl_proximal import kl_proximal_gradient, kl_proximal_update
from ipe.updates.kinds.lift import LiftUpdate, lift_gradient, lift_logits, lift_update
from ipe.updates.kinds.natural import natural_gradient, natural_update
from ipe.updates.kinds.paper import paper_gradient, paper_update
from ipe.updates.kinds.scale_free import ScaleFreeUpdate, scale_free_gradient, scale_free_update
from ipe.updates.targets import NStepTarget, n_step_target, td_error, tree_backup

__all__ = [
    "UPDATES",
    "EstimatedGradient",
    "FenchelUpdate",
    "Gradient",
    "LiftUpdate",
    "NStepTarget",
    "PolicyUpdate",
    "ScaleFreeUpdate",
    "Transition",
    "Update",
    "absolute_gradient",
    "absolute_update",
    "cross_entropy_gradient",
    "cross_entropy_update",
    "declare",
    "entropy_bonus",
    "fenchel_gradient",
    "fenchel_update",
    "find_update",
    "kl_proximal_gradient",
    "kl_proximal_update",
    "lift_gradient",
    "lift_logits",
    "lift_update",
    "n_step_target",
    "natural_gradient",
    "natural_update",
    "paper_gradient",
    "paper_update",
    "scale_free_gradient",
    "scale_free_update",
    "td_error",
    "tree_backup",
]
