"""Trained networks as modules of torch."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray

from ipe.deep.networks import Architecture


class Prepared(torch.nn.Module):  # type: ignore[misc]
    """Encoded observations as float32, times `scale`; images with their channels first."""

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


class Dueling(torch.nn.Module):  # type: ignore[misc]
    """The value V and the advantages A, from halves of the units, as action values V + A - mean A."""

    def __init__(self, units: int, actions: int) -> None:
        super().__init__()
        self.value, self.advantage = torch.nn.Linear(units, 1), torch.nn.Linear(units, actions)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The action values."""
        first, second = x.chunk(2, dim=-1)
        advantage = self.advantage(second)
        return self.value(first) + advantage - advantage.mean(dim=-1, keepdim=True)


class Networks(torch.nn.Module):  # type: ignore[misc]
    """The Q-network `q` and, if a policy was learned, the network `policy`, which returns probabilities."""

    def __init__(self, q: torch.nn.Module, policy: torch.nn.Module | None) -> None:
        super().__init__()
        self.q = q
        if policy is not None:
            self.policy = policy

    def forward(self, observations: torch.Tensor) -> torch.Tensor:
        """The action values of a batch of encoded observations."""
        return self.q(observations)


def torch_networks(net: Architecture, tensors: Mapping[str, NDArray[np.float32]], scale: float) -> Networks:
    """Make a module from the tensors of a `TrainedAgent` and the shape of its networks; observations are multiplied by
    `scale`."""
    names = [name for name in ("q", "policy") if f"{name}.middle.bias" in tensors]
    networks = {name: _network(name, net.of(name), scale) for name in names}
    module = Networks(networks["q"], networks.get("policy"))
    module.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in tensors.items()})
    return module


def _network(name: str, net: Architecture, scale: float) -> torch.nn.Sequential:
    parts: OrderedDict[str, torch.nn.Module] = OrderedDict(prepared=Prepared(scale, net.image))
    middle, width = net.layers[-1 - len(net.heads)]
    channels = net.inputs[-1]
    for which, (size, stride, outputs) in zip(net.names, net.convolutions, strict=False):
        parts[which] = torch.nn.Conv2d(channels, outputs, size, stride)
        parts[f"relu_{which}"] = torch.nn.ReLU()
        channels = outputs
    if net.image:
        parts["flattened"] = Flattened()
    else:
        parts["first"] = torch.nn.Linear(channels, middle)
        parts["relu_first"] = torch.nn.ReLU()
    parts["middle"] = torch.nn.Linear(middle, width)
    parts["relu_middle"] = torch.nn.ReLU()
    parts["last"] = Dueling(*net.heads[1]) if net.dueling else torch.nn.Linear(width, net.actions)
    if name == "policy":
        parts["softmax"] = torch.nn.Softmax(dim=-1)
    return torch.nn.Sequential(parts)
