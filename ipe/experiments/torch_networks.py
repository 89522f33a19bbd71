"""Trained networks as modules of torch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray


class Prepared(torch.nn.Module):  # type: ignore[misc]
    """Encoded observations as float32, scaled; images with their channels first.

    Args:
        scale: the number that observations are multiplied by.
        image: whether the observations are images.
    """

    def __init__(self, scale: float, image: bool) -> None:
        super().__init__()
        self.scale, self.image = scale, image

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The observations, ready for the first layer."""
        x = observations.to(torch.float32) * self.scale
        return x.permute(0, 3, 1, 2) if self.image else x


class Flattened(torch.nn.Module):  # type: ignore[misc]
    """The outputs of a convolution in a row, in the order row, column, channel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The rows."""
        return x.permute(0, 2, 3, 1).flatten(1)


class Networks(torch.nn.Module):  # type: ignore[misc]
    """The Q-network `q` and, if a policy was learned, the network `policy`, which returns probabilities.

    Args:
        q: the Q-network.
        policy: the policy network; None if there is none.
    """

    def __init__(self, q: torch.nn.Module, policy: torch.nn.Module | None) -> None:
        super().__init__()
        self.q = q
        if policy is not None:
            self.policy = policy

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The action values of a batch of encoded observations."""
        return self.q(observations)


def torch_networks(tensors: Mapping[str, NDArray[np.float32]], scale: float) -> Networks:
    """Make a module from the tensors of `ipe.experiments.agents.TrainedAgent`.

    Args:
        tensors: the parameters by name.
        scale: the number that observations are multiplied by.
    """
    networks = {name: _network(name, tensors, scale) for name in ("q", "policy") if f"{name}.last.bias" in tensors}
    module = Networks(networks["q"], networks.get("policy"))
    module.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in tensors.items()})
    return module


def _network(name: str, tensors: Mapping[str, NDArray[np.float32]], scale: float) -> torch.nn.Sequential:
    first, middle, last = (tensors[f"{name}.{layer}.weight"].shape for layer in ("first", "middle", "last"))
    image = len(first) == 4
    parts: OrderedDict[str, torch.nn.Module] = OrderedDict(prepared=Prepared(scale, image))
    parts["first"] = torch.nn.Conv2d(first[1], first[0], 3) if image else torch.nn.Linear(first[1], first[0])
    parts["relu_first"] = torch.nn.ReLU()
    if image:
        parts["flattened"] = Flattened()
    parts["middle"] = torch.nn.Linear(middle[1], middle[0])
    parts["relu_middle"] = torch.nn.ReLU()
    parts["last"] = torch.nn.Linear(last[1], last[0])
    if name == "policy":
        parts["softmax"] = torch.nn.Softmax(dim=-1)
    return torch.nn.Sequential(parts)
