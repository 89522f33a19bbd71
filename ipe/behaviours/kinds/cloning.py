r"""Behaviour cloning: a policy network that imitates the actions of a data set."""

from __future__ import annotations

from ipe.behaviours.declaration import Behaviour, Numbers, View, declare
from ipe.entropy import softmax
from ipe.entropy.arrays import AnyArray


def _distils(view: View, numbers: Numbers) -> AnyArray:
    r"""The action that the data set has in each state: the network descends :math:`-\ln \pi(a|s)`."""
    assert view.taken is not None
    return view.taken


declare(
    Behaviour(
        "cloning",
        "as the data set does, imitated by a policy network (with `ipe train --data` alone)",
        probabilities=lambda view, numbers: softmax(view.logits, view.allowed),
        distils=_distils,
        imitates=True,
    )
)
