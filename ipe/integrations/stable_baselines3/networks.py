"""Stable-Baselines3's networks on observations that several of them look at: these are prepared once.

A network of Stable-Baselines3 turns what it is given into numbers (pixels, one-hot vectors) whenever it is called. With
three networks on one minibatch that is a tenth of an update on images.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import get_ident
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch as th
from stable_baselines3.common.preprocessing import is_image_space, preprocess_obs
from stable_baselines3.common.torch_layers import FlattenExtractor, NatureCNN
from stable_baselines3.dqn.policies import QNetwork
from torch.nn import Conv2d, Flatten, Linear, ReLU

_MEMORY: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()
"""The memory for the images that were last prepared for each network, by their number and layout."""
_SIZES = 4
"""For how many numbers of images a network keeps memory: one when it acts, another when it learns."""


class Prepared(NamedTuple):
    """Observations for several networks of one shape."""

    given: Any
    """What the networks get: a tensor, or tensors by name."""
    plain: bool
    """Whether `given` is what their first layers take. Otherwise the networks are called, and prepare it themselves."""


def prepared(networks: Iterable[Any], observations: Any) -> Prepared:
    """Observations for `output` of each of these networks, which have one shape. They can be used until the next
    observations of as many rows are prepared for the same networks.

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
        return Prepared(_memory(networks[0], given).copy_(given).div_(255.0), plain=True)
    return Prepared(preprocess_obs(given, space, normalize_images=normalize), plain=True)


def output(network: Any, observations: Prepared) -> Any:
    """A network's output on observations that were prepared for it among others."""
    if not observations.plain:
        return network(observations.given)
    features, x = network.features_extractor, observations.given
    if type(features) is FlattenExtractor:
        x = x.flatten(1)
    elif type(features) is NatureCNN:
        x = _through(features.linear, _through(_flattened_early(features.cnn), x))
    else:
        x = features(x)
    return _through(network.q_net, x)


def _flattened_early(layers: Iterable[Any]) -> list[Any]:
    """Layers that end with a rectifier and a flattening, these two exchanged: the numbers are the same. A rectifier's
    gradient takes five times as long where the gradient after it lies in memory in another order than its input."""
    found = list(layers)
    if [type(layer) for layer in found[-3:]] == [Conv2d, ReLU, Flatten]:
        found[-2], found[-1] = found[-1], found[-2]
    return found


def _through(layers: Iterable[Any], x: Any) -> Any:
    """The output of layers one after the other. Torch's call of a layer, which looks for hooks, costs as much as a
    small layer does. A rectifier overwrites the output of the layer before it, flattened or not, which nothing else
    needs."""
    before: Any = None
    for layer in layers:
        x = x.relu_() if type(layer) is ReLU and type(before) in (Linear, Conv2d) else layer.forward(x)
        before = layer if type(layer) is not Flatten else before
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
    features = network.features_extractor
    parts = [network, features, network.q_net, *network.q_net]
    if type(features) is NatureCNN:
        parts += [features.cnn, *features.cnn, features.linear, *features.linear]
    return any(
        part._forward_hooks or part._forward_pre_hooks or part._backward_hooks or part._backward_pre_hooks
        for part in parts
    )


def _pixels_last(observations: Any) -> Any:
    if isinstance(observations, dict):
        return {name: _pixels_last(values) for name, values in observations.items()}
    if observations.dim() != 4 or observations.device.type != "cpu":
        return observations
    # With one channel, images are contiguous in both orders; the convolution reads the order off the strides.
    if observations.is_contiguous(memory_format=th.channels_last) and observations.stride(1) == 1:
        return observations
    # Half as long as `contiguous(memory_format=torch.channels_last)`, for the same bytes.
    return th.stack(observations.unbind(1), dim=-1).permute(0, 3, 1, 2)


def _memory(network: Any, images: Any) -> Any:
    """Memory for the numbers of some images, laid out as these are: the same as before for a network, a thread and as
    many images. New memory for a minibatch of images costs as much as a twentieth of an update."""
    key = (get_ident(), tuple(images.shape), images.stride(), images.device)
    kept = _MEMORY.setdefault(network, {})
    if key not in kept:
        if len(kept) == _SIZES:
            kept.clear()
        with th.inference_mode(False):  # what is made in that mode can be written to in no other
            kept[key] = th.empty_like(images, dtype=th.float32)
    return kept[key]
