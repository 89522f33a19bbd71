"""Large images: convolutions in three ways, frames per second, memory, and checkpoints.

    python benchmarks/images.py                  # all of it: about three minutes
    python benchmarks/images.py --only loop      # one part: products or loop

Products: the forward pass of the network of Mnih et al. (2015) for images of 84 x 84 x 4, and the forward and the
backward pass, for one seed in one compiled program: by XLA's convolution, by patches and a matrix product, and by
patches after the pixels of a stride are gathered into channels. Loop: whole frames of training on random images, in
stacks of four that share their frames. Everything is in milliseconds of the processor, on one core, the best and the
mean of several.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from side_by_side import SINGLE_THREAD

SIDE, FRAMES = 84, 4
ENVIRONMENT = "images:Noise-v0"


class Noise(gymnasium.Env):  # type: ignore[misc]
    """Frames of random bytes; six actions; a step in a hundred ends the episode."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 255, (SIDE, SIDE), np.uint8)
        self.action_space = spaces.Discrete(6)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        return self._frame(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take a step; the reward is the action's number."""
        return self._frame(), float(action), bool(self.np_random.random() < 0.01), False, {}

    def _frame(self) -> Any:
        return self.np_random.integers(0, 256, (SIDE, SIDE), dtype=np.uint8)


if "Noise-v0" not in gymnasium.registry:
    gymnasium.register("Noise-v0", entry_point=Noise)


def milliseconds(repeats: int, function: Callable[..., Any], *arguments: Any) -> float:
    """The best time of the processor, after a first call."""
    import jax

    wait: Any = jax.block_until_ready
    wait(function(*arguments))
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        wait(function(*arguments))
        times.append(1e3 * (time.process_time() - begin))
    return min(times)


def products(repeats: int) -> None:
    """Three ways to convolve, with one seed."""
    import jax
    import jax.numpy as jnp

    from ipe.deep.convolutions import ATARI
    from ipe.deep.networks import Architecture, initial_parameters, split

    def by_xla(x: Any, w: Any, stride: int) -> Any:
        axes = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(x, w, (stride, stride), "VALID", dimension_numbers=axes)

    def by_patches(x: Any, w: Any, stride: int) -> Any:
        size = w.shape[0]
        down, across = ((n - size) // stride + 1 for n in x.shape[1:3])
        ends = (down - 1) * stride + 1, (across - 1) * stride + 1
        every = [(i, j) for i in range(size) for j in range(size)]
        parts = [x[:, i : i + ends[0] : stride, j : j + ends[1] : stride] for i, j in every]
        patches = jnp.concatenate(parts, axis=-1).reshape(-1, size * size * x.shape[3])
        return (patches @ w.reshape(-1, w.shape[3])).reshape(len(x), down, across, -1)

    def by_gathered_patches(x: Any, w: Any, stride: int) -> Any:
        n, height, width, channels = x.shape
        times, outputs = w.shape[0] // stride, w.shape[3]
        down, across = ((side - w.shape[0]) // stride + times for side in (height, width))
        x = x[:, : down * stride, : across * stride].reshape(n, down, stride, across, stride, channels)
        x = x.transpose(0, 1, 3, 2, 4, 5).reshape(n, down, across, -1)
        w = w.reshape(times, stride, times, stride, channels, outputs).transpose(0, 2, 1, 3, 4, 5)
        return by_patches(x, w.reshape(times, times, -1, outputs), 1)

    net = Architecture((SIDE, SIDE, FRAMES), 512, 16, 6, network="atari")
    layers = [(w[0], b[0]) for w, b in split(net, initial_parameters(net, [np.random.default_rng(0)]))]

    def outputs(convolve: Any, own: Any, x: Any) -> Any:
        for (w, b), (size, stride, channels) in zip(own, ATARI, strict=False):
            x = jax.nn.relu(convolve(x, w.reshape(size, size, -1, channels), stride) + b)
        (w, b), (w_last, b_last) = own[-2:]
        return jax.nn.relu(x.reshape(len(x), -1) @ w + b) @ w_last + b_last

    ways = {"XLA's convolution": by_xla, "patches": by_patches, "patches, strides gathered": by_gathered_patches}
    print(f"{'':<28}{'batch':>6}{'forward':>10}{'and back':>10}   ms, best of {repeats}")
    for batch in (1, 32, 64):
        x = jnp.asarray(np.random.default_rng(1).random((batch, SIDE, SIDE, FRAMES), dtype=np.float32))
        for name, convolve in ways.items():
            forward = jax.jit(lambda own, x, c=convolve: outputs(c, own, x))
            both = jax.jit(jax.grad(lambda own, x, c=convolve: (outputs(c, own, x) ** 2).sum()))
            best = [milliseconds(repeats, function, layers, x) for function in (forward, both)]
            print(f"{name:<28}{batch:>6}{best[0]:>10.1f}{best[1]:>10.1f}", flush=True)


def loop(frames: int) -> None:
    """Whole frames of training, memory, and checkpoints."""
    from ipe.deep.checkpoints import save_checkpoint
    from ipe.deep.loop import Loop
    from ipe.deep.settings import paper_settings

    heads = ("ms", "mean", "frames/s", "MB per seed", "checkpoint", "seconds")
    print(f"{'':<18}{'network':<9}{'update':>7}" + "".join(f"{head:>12}" for head in heads))
    for behaviour in ("epsilon-greedy", "epsilon-ipe"):
        for network, every in (("minatar", 1), ("atari", 1), ("atari", 4)):
            more: dict[str, Any] = {"environment": {"stack": FRAMES}, "network": network, "update_every": every}
            training = Loop([paper_settings(ENVIRONMENT, behaviour, **more)], [0])
            for _ in range(2 * every):
                training.advance()
            times = []
            for _ in range((frames if network == "atari" else 6) // every):
                begin = time.process_time()
                for _ in range(every):
                    training.advance()
                times.append(1e3 * (time.process_time() - begin) / every)
            mean = sum(times) / len(times)
            with tempfile.TemporaryDirectory() as folder:
                begin = time.perf_counter()
                written = save_checkpoint(Path(folder), training.checkpoint())
                seconds = time.perf_counter() - begin
                size = written.with_suffix(".safetensors").stat().st_size / 1e6
            row = f"{behaviour:<18}{network:<9}{f'1 in {every}':>7}{min(times):>12.1f}{mean:>12.1f}{1e3 / mean:>12.1f}"
            print(f"{row}{training.memory / 1e6:>12.0f}{f'{size:.1f} MB':>12}{seconds:>12.2f}", flush=True)
            training.close()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("products", "loop"), help="one part (default: both)")
    parser.add_argument("--repeats", type=int, default=10, help="of each product")
    parser.add_argument("--frames", type=int, default=48, help="of each training")
    options = parser.parse_args()
    os.environ.update(SINGLE_THREAD)
    if options.only in (None, "products"):
        products(options.repeats)
    if options.only in (None, "loop"):
        loop(options.frames)


if __name__ == "__main__":
    main()
