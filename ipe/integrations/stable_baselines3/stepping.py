"""One step of a network in torch, with few and small calls: the policy's gradient, its clipping, the optimiser.

On minibatches of 32 rows a training step is a sequence of calls of some microseconds, so that the number of calls
counts more than the arithmetic.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import jax
import numpy as np
import torch as th

from ipe.updates import UPDATES, Gradient, Transition

GRADIENTS: dict[str, Callable[..., Gradient]] = {
    name: update.gradient
    for name, update in UPDATES.items()
    if update.gradient is not None and not update.estimates and update.logits is None
}
"""The gradient in the logits of every policy update that a network can descend, by the update's name; but for those
that learn something else beside the logits, or in place of them."""


def policy_slope(update: str, theta: Any, transition: Transition, tau: float = 0.0) -> tuple[Any, float]:
    r"""The gradient of a minibatch's mean loss in the logits, and the mean of :math:`|\delta|`.

    On the CPU the library's function is compiled, and all numbers cross to it as one array and back as one. On other
    devices the same function runs on torch's arrays.

    Args:
        update: the name of the policy update.
        theta: the logits of the next states, shape (n, A).
        transition: n transitions, in columns of shape (n,); `q_next` has shape (n, A).
        tau: the weight of the entropy bonus.

    Returns:
        The gradient as a tensor of theta's shape and device, and the mean.
    """
    theta = theta.detach()
    bonus = {"tau": tau} if tau else {}
    if theta.device.type != "cpu":
        gradient, delta = GRADIENTS[update](theta, transition, **bonus)
        return gradient / len(theta), float(delta.abs().mean())
    table = th.cat((th.stack(transition[:4], dim=1), theta, transition.q_next), dim=1)
    found = np.array(_compiled(update)(table.numpy(), **bonus))  # a copy, which torch may write to
    return th.from_numpy(found[:, :-1]), float(found[:, -1].mean())


@cache
def _compiled(update: str) -> Callable[..., Any]:
    """From the columns of transitions, logits and q_next side by side, to the mean's gradient and |delta| the same."""

    def program(table: Any, **bonus: Any) -> Any:
        (q_sa, reward, gamma, terminal), (theta, q_next) = table[:, :4].T, jax.numpy.split(table[:, 4:], 2, axis=1)
        gradient, delta = GRADIENTS[update](theta, Transition(q_sa, reward, gamma, terminal, q_next), **bonus)
        return jax.numpy.concatenate((gradient / len(theta), abs(delta)[:, None]), axis=1)

    return compiled(program)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function compiled by JAX, which runs in the thread that calls it.

    By default JAX hands a program to another thread and waits, which takes three times as long as these programs do,
    and much longer where other processes want the cores. JAX reads the setting when it computes for the first time in a
    process; what it did before stays as it is.
    """
    jax.config.update("jax_cpu_enable_async_dispatch", False)  # type: ignore[no-untyped-call]
    return jax.jit(function)


def parameters_of(optimizer: Any) -> list[Any]:
    """The parameters that an optimiser moves. (A network's `parameters()` walks through all of its modules.)"""
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def clear(parameters: Iterable[Any]) -> None:
    """Forget the gradients."""
    for parameter in parameters:
        parameter.grad = None


def clip(parameters: Iterable[Any], most: float) -> None:
    """`torch.nn.utils.clip_grad_norm_` to the byte; on the CPU it multiplies only where the norm is too large."""
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    if not gradients or gradients[0].device.type != "cpu":
        th.nn.utils.clip_grad_norm_(list(parameters), most)
        return
    norm = th.linalg.vector_norm(th.stack(th._foreach_norm(gradients)))
    scale = most / (norm + 1e-6)
    if not scale >= 1.0:  # or it is NaN, which the gradients then get
        th._foreach_mul_(gradients, scale)


def fuse(optimizer: Any) -> None:
    """Let an optimiser update all parameters by one call, where torch can and the user has not chosen otherwise.

    Adam by one call per parameter and operation, torch's default on the CPU, is a fifth of DQN's update.
    """
    if "fused" not in inspect.signature(type(optimizer)).parameters:
        return
    for group in optimizer.param_groups:
        plain = not any(group.get(name) for name in ("foreach", "differentiable", "capturable"))
        if plain and group["fused"] is None and all(p.device.type == "cpu" for p in group["params"]):
            group["fused"] = True
