"""Stable-Baselines3's networks on observations that several of them look at: these are prepared once.

A network of Stable-Baselines3 turns what it is given into numbers (pixels, one-hot vectors) whenever it is called. With
three networks on one minibatch that is a tenth of an update on images.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import torch as th
from stable_baselines3.common.preprocessing import is_image_space, preprocess_obs
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.dqn.policies import QNetwork


class Prepared(NamedTuple):
    """Observations for several networks of one shape."""

    given: Any
    """What the networks get: a tensor, or tensors by name."""
    plain: bool
    """Whether `given` is what their first layers take. Otherwise the networks are called, and prepare it themselves."""


def prepared(networks: Iterable[Any], observations: Any) -> Prepared:
    """Observations for `output` of each of these networks, which have one shape.

    They are prepared here if all networks are Stable-Baselines3's, without hooks; not for classes derived from it.
    Images then have their channels last in memory: Stable-Baselines3 has them first, with which a backward pass through
    Nature's convolutional network takes a quarter longer.
    """
    networks = tuple(networks)
    if not all(type(network) is QNetwork and not _hooked(network) for network in networks):
        return Prepared(observations, plain=False)
    space, normalize = networks[0].observation_space, networks[0].normalize_images
    given = _pixels_last(observations)
    if normalize and is_image_space(space):
        # In place: new memory for a minibatch of images costs more than the division.
        return Prepared(given.float().div_(255.0), plain=True)
    return Prepared(preprocess_obs(given, space, normalize_images=normalize), plain=True)


def output(network: Any, observations: Prepared) -> Any:
    """A network's output on observations that were prepared for it among others."""
    if not observations.plain:
        return network(observations.given)
    features = network.features_extractor
    x = observations.given.flatten(1) if type(features) is FlattenExtractor else features(observations.given)
    for layer in network.q_net:
        x = layer.forward(x)  # torch's call of a layer, which looks for hooks, costs as much as a small layer does
    return x


def joined(first: Any, second: Any) -> Any:
    """Two batches of observations as one."""
    if isinstance(first, dict):
        return {name: th.cat((first[name], second[name])) for name in first}
    return th.cat((first, second))


def halves(both: Prepared) -> tuple[Prepared, Prepared]:
    """The prepared observations of the two batches that `joined` made one."""
    if isinstance(both.given, dict):
        parts = {name: values.chunk(2) for name, values in both.given.items()}
        first, second = ({name: part[i] for name, part in parts.items()} for i in range(2))
    else:
        first, second = both.given.chunk(2)
    return Prepared(first, both.plain), Prepared(second, both.plain)


def _hooked(network: Any) -> bool:
    """Whether somebody watches a part of the network that `output` does not call."""
    parts = (network, network.features_extractor, network.q_net, *network.q_net)
    return any(
        part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks
        for part in parts
    )


def _pixels_last(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {name: _pixels_last(values) for name, values in observations.items()}
    if observations.dim() != 4 or observations.device.type != "cpu":
        return observations
    return observations.contiguous(memory_format=th.channels_last)
