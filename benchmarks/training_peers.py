"""Frames per second of a peer's DQN, in the environment that `peers.py` makes: it is not run in this project's own.

    PEERS/bin/python benchmarks/training_peers.py --library sb3 --task lunar-lander --width 128 --seconds 20 --seed 0

The peers get this library's DQN: the same networks, batch of 32, replay of 100,000, one update per frame, target
period, step size and RMSprop (PyTorch's in Stable-Baselines3, optax's with the same constants in sbx). What cannot be
turned off is left: both use the Huber loss, and Stable-Baselines3 computes the gradient's norm, to clip at infinity.
No statistics are kept and nothing is logged. Epsilon falls from 1 to 0.01 before the timed phase, where it is through
nearly all of a real run: most actions then cost a forward pass. The replay is still far from full then, which if
anything favours the peer. The last line on standard output is the result as JSON.

Each in its best way. With k environments a peer takes k frames, then does k updates: one per frame as well, though the
behaviour is up to k frames old. Frames per second, two processes on two cores that others used too: single runs of 5 s,
those in which both processes had at least 0.94 of their cores. A guide for the choice of k, no result:

    environments        1      4      8     16
    sb3, width 128  1,300  1,630  1,640
    sb3, width 256    840    885    870
    sb3, Freeway      440    470    515
    sbx, width 128  1,025  3,050  5,190  7,150
    sbx, width 256    810         3,080
    sbx, Freeway      460         1,150

sbx gains much and without an end in sight, sb3 little, between 4 and 8 perhaps nothing. For Freeway, patches and a
product were slower than torch's own convolution in three rounds of three; channels-last memory and RMSprop's `foreach`
could not be told from the defaults, which therefore stay. In sbx patches gave about three times the frames of
flax's convolution (316 against 90 to 110 per second, one process), so sbx gets patches.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from side_by_side import SINGLE_THREAD, Stopwatch, pin, wait_for_the_others

LEARNING_STARTS = 1_000
WARM_UP = 2_000  # frames: half before the first update, half after (compilation, caches)
FOREVER = 10**8  # frames: the callback ends training, not this
PACKAGES = {
    "sb3": ("stable-baselines3", "torch", "gymnasium", "numpy"),
    "sbx": ("sbx-rl", "stable-baselines3", "jax", "jaxlib", "flax", "optax", "gymnasium", "numpy"),
}
STEP_SIZES = {"lunar-lander": 1e-3, "freeway": 1e-5}
TARGET_PERIODS = {"lunar-lander": 500, "freeway": 100}


def lunar_lander() -> Any:
    import gymnasium

    return gymnasium.make("LunarLander-v3", max_episode_steps=5000)


def freeway(channels_first: bool) -> Any:
    """MinAtar's game with its six actions, as bytes: a quarter of the memory traffic of floats in the replay."""
    import gymnasium
    import numpy as np
    from minatar import Environment

    class Freeway(gymnasium.Env):  # type: ignore[misc]
        def __init__(self) -> None:
            self.game = Environment("freeway", sticky_action_prob=0.1)
            height, width, channels = self.game.state_shape()
            shape = (channels, height, width) if channels_first else (height, width, channels)
            self.observation_space = gymnasium.spaces.Box(0, 1, shape, np.uint8)
            self.action_space = gymnasium.spaces.Discrete(self.game.num_actions())

        def observation(self) -> Any:
            state = self.game.state().view(np.uint8)
            return state.transpose(2, 0, 1) if channels_first else state  # a view: the vector environment copies it

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
            super().reset(seed=seed)
            if seed is not None:
                self.game.seed(seed)
            self.game.reset()
            return self.observation(), {}

        def step(self, action: int) -> Any:
            reward, done = self.game.act(int(action))
            return self.observation(), float(reward), bool(done), False, {}

    return Freeway()


def sb3_network(task: str, width: int) -> dict[str, Any]:
    """The arguments of Stable-Baselines3's policy: the network and its optimiser."""
    import torch
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    optimiser = {"optimizer_class": torch.optim.RMSprop, "optimizer_kwargs": {"alpha": 0.99, "eps": 1e-8}}
    if task == "lunar-lander":
        return {"net_arch": [width, width], "normalize_images": False, **optimiser}

    class Convolution(BaseFeaturesExtractor):  # type: ignore[misc]
        def __init__(self, observation_space: Any) -> None:
            channels, rows, columns = observation_space.shape
            super().__init__(observation_space, 16 * (rows - 2) * (columns - 2))
            self.layers = torch.nn.Sequential(torch.nn.Conv2d(channels, 16, 3), torch.nn.ReLU(), torch.nn.Flatten())

        def forward(self, observations: Any) -> Any:
            return self.layers(observations)

    extractor = {"features_extractor_class": Convolution, "normalize_images": False}
    return {"net_arch": [width], **extractor, **optimiser}


def sbx_policy(task: str) -> Any:
    """sbx's MLP policy, or one with the convolutional network of MinAtar: its own is Nature's, for 84x84 images."""
    if task == "lunar-lander":
        return "MlpPolicy"
    import flax.linen as nn
    import jax
    import jax.numpy as jnp
    from sbx.common.type_aliases import RLTrainState
    from sbx.dqn.policies import DQNPolicy

    class Network(nn.Module):  # type: ignore[misc]
        n_actions: int
        n_units: int

        @nn.compact  # type: ignore[untyped-decorator]
        def __call__(self, x: Any) -> Any:
            x = x.astype(jnp.float32)
            height, width = x.shape[1] - 2, x.shape[2] - 2
            corners = [(i, j) for i in range(3) for j in range(3)]
            patches = jnp.concatenate([x[:, i : i + height, j : j + width] for i, j in corners], axis=-1)
            x = nn.relu(nn.Dense(16)(patches))
            x = nn.relu(nn.Dense(self.n_units)(x.reshape(x.shape[0], -1)))
            return nn.Dense(self.n_actions)(x)

    class Policy(DQNPolicy):  # type: ignore[misc]
        def build(self, key: Any, lr_schedule: Callable[[float], float]) -> Any:
            key, qf_key = jax.random.split(key)
            self.qf = Network(int(self.action_space.n), self.n_units)
            parameters = self.qf.init(qf_key, jnp.asarray(self.observation_space.sample())[None])
            optimiser = self.optimizer_class(learning_rate=lr_schedule(1), **self.optimizer_kwargs)
            self.qf_state = RLTrainState.create(
                apply_fn=self.qf.apply, params=parameters, target_params=parameters, tx=optimiser
            )
            self.qf.apply = jax.jit(self.qf.apply)
            return key

    return Policy


def dqn(library: str, task: str, width: int, environments: int, seed: int) -> Any:
    """The peer's learner. With k environments it takes k frames and then k updates: one per frame too."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    make = lunar_lander if task == "lunar-lander" else lambda: freeway(channels_first=library == "sb3")
    arguments: dict[str, Any] = {
        "env": DummyVecEnv([make] * environments),
        "learning_rate": STEP_SIZES[task],
        "buffer_size": 100_000,
        "learning_starts": LEARNING_STARTS,
        "batch_size": 32,
        "gamma": 0.99,
        "train_freq": 1,
        "gradient_steps": environments,
        "target_update_interval": TARGET_PERIODS[task],
        "exploration_fraction": WARM_UP / FOREVER,
        "exploration_final_eps": 0.01,
        "seed": seed,
        "device": "cpu",
    }
    if library == "sb3":
        import torch
        from stable_baselines3 import DQN

        torch.set_num_threads(1)
        network = sb3_network(task, width)
        return DQN("MlpPolicy", policy_kwargs=network, max_grad_norm=float("inf"), stats_window_size=1, **arguments)
    import optax
    from sbx import DQN as SBXDQN

    optimiser = {"decay": 0.99, "eps": 1e-8, "eps_in_sqrt": False}
    network = {"net_arch": [width, width], "optimizer_class": optax.rmsprop, "optimizer_kwargs": optimiser}
    return SBXDQN(sbx_policy(task), policy_kwargs=network, **arguments)


def frames_per_second(model: Any, seconds: float, start: Callable[[], None]) -> tuple[list[float], float]:
    """Train past the warm-up, call `start`, and count the frames of so many seconds.

    Returns:
        Frames per second, in each second; and the share of a core that this process had meanwhile: well under 1, others
        disturbed it.
    """
    from stable_baselines3.common.callbacks import BaseCallback

    class Counting(BaseCallback):  # type: ignore[misc]
        watch: Stopwatch | None = None
        began = cpu = share = 0.0
        frames = updates = last = 0

        def _on_step(self) -> bool:
            if self.watch is None:
                if self.num_timesteps >= WARM_UP:
                    start()
                    self.frames = self.last = self.num_timesteps
                    self.updates = self.model._n_updates
                    self.cpu, self.began, self.watch = time.process_time(), time.perf_counter(), Stopwatch(seconds)
                return True
            new, self.last = self.num_timesteps - self.last, self.num_timesteps
            if self.watch.count(new):
                return True
            self.share = (time.process_time() - self.cpu) / (time.perf_counter() - self.began)
            self.frames = self.num_timesteps - self.frames
            self.updates = self.model._n_updates - self.updates
            return False

    counting = Counting()
    model.learn(FOREVER, callback=counting, log_interval=FOREVER)
    if counting.updates != counting.frames:  # what the comparison rests on
        raise RuntimeError(f"{counting.updates} updates for {counting.frames} frames; expected one per frame")
    assert counting.watch is not None
    return counting.watch.rates, counting.share


def main() -> None:
    parser = argparse.ArgumentParser(description="Frames per second of a peer's DQN.")
    parser.add_argument("--library", choices=sorted(PACKAGES), required=True)
    parser.add_argument("--task", choices=sorted(STEP_SIZES), required=True)
    parser.add_argument("--width", type=int, default=128, help="of the hidden layers")
    parser.add_argument("--environments", type=int, default=1, help="stepped together, with as many updates after")
    parser.add_argument("--seconds", type=float, default=20.0, help="of the timed phase")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--core", type=int, help="the core to stay on")
    parser.add_argument("--barrier", action="store_true", help="before the timed phase, print `ready`, await a line")
    options = parser.parse_args()
    os.environ.update(SINGLE_THREAD)  # before anything that reads it is imported
    pin(options.core)
    model = dqn(options.library, options.task, options.width, options.environments, options.seed)
    start = wait_for_the_others if options.barrier else lambda: None
    rates, share = frames_per_second(model, options.seconds, start)
    result = {
        "library": options.library,
        "versions": {name: version(name) for name in PACKAGES[options.library]},
        "task": options.task,
        "width": options.width,
        "environments": options.environments,
        "frames_per_second": rates,
        "core_share": share,
        "threads": 1,
    }
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
