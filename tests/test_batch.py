"""The values of many policies at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

import ipe
from ipe.mdp import FiniteMDP
from ipe.planning import policy_values
from ipe.planning.evaluation import many_policy_values
from tests.strategies import generators, mdps, random_pi


@given(mdps(), generators())
def test_each_is_the_value_of_its_policy(mdp: FiniteMDP, rng: np.random.Generator) -> None:
    policies = np.stack([[random_pi(rng, mdp) for _ in range(3)] for _ in range(2)])
    values = many_policy_values(mdp, policies)
    assert values.shape == (2, 3, mdp.n_states)
    for i in range(2):
        for j in range(3):
            np.testing.assert_allclose(values[i, j], policy_values(mdp, policies[i, j]).v, rtol=1e-9, atol=1e-9)


def test_wrong_shapes_and_large_mdps_are_refused() -> None:
    with pytest.raises(ipe.InputError, match=r"policies must have shape \(..., 2, 2\); found \(2, 3\)"):
        many_policy_values(ipe.zoo.switch_stay(), np.ones((2, 3)))
    with pytest.raises(ipe.InputError, match="at most 200 states, the MDP has 300"):
        many_policy_values(ipe.zoo.garnet(300), np.ones((300, 4)))
