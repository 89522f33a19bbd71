r"""One training step of both networks on a minibatch: DQN's of the Q-network, and the policy network's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch as th
from torch.nn import functional

from ipe.integrations.stable_baselines3.networks import Prepared, halves, joined, output, prepared
from ipe.integrations.stable_baselines3.stepping import clear, clip, parameters_of, policy_slope
from ipe.updates import Transition


def update_together(model: Any, batch: Any) -> tuple[float, float]:
    """One step of both networks by one backward pass: neither step depends on the other one's result.

    Args:
        model: the `EpsilonIPEDQN`, its networks in training mode.
        batch: a minibatch of its replay.

    Returns:
        The loss of the Q-network, and the mean absolute delta; both before the step.
    """
    given = _observations(model, batch)
    here, there = halves(given)
    as_dqn = model.delta_q == "dqn"
    with th.no_grad():
        values = output(model.q_net_target, there if as_dqn else given)
    q = output(model.q_net, here)
    q_here, q_next = (q.detach(), values) if as_dqn else values.chunk(2)
    loss = _q_loss(model, batch, q, q_next)
    theta, slope, error = _policy_loss(model, batch, there, q_here, q_next)
    _step(model, (model.policy.optimizer, model.policy.policy_optimizer), (loss, theta), (None, slope))
    return loss.item(), error


def update_in_turn(model: Any, batch: Any) -> tuple[float, float]:
    """One step of the Q-network, and one of the policy network on the new Q; arguments as for `update_together`."""
    given = _observations(model, batch)
    here, there = halves(given)
    with th.no_grad():
        q_next = output(model.q_net_target, there)
    loss = _q_loss(model, batch, output(model.q_net, here), q_next)
    _step(model, (model.policy.optimizer,), (loss,), (None,))
    with th.no_grad():
        model.q_net.set_training_mode(False)  # statistics and dropout are for the Q-network's update
        q_here, q_next = output(model.q_net, given).chunk(2)
        model.q_net.set_training_mode(True)
    theta, slope, error = _policy_loss(model, batch, there, q_here, q_next)
    _step(model, (model.policy.policy_optimizer,), (theta,), (slope,))
    return loss.item(), error


def _observations(model: Any, batch: Any) -> Prepared:
    """The minibatch's observations, and then the next ones, for the three networks."""
    networks = (model.q_net, model.q_net_target, model.policy.policy_net)
    return prepared(networks, joined(batch.observations, batch.next_observations))


def _q_loss(model: Any, batch: Any, q: Any, q_next: Any) -> Any:
    """DQN's loss of the Q-network, written out: DQN.train does not hand out its minibatch."""
    gamma = model.gamma if batch.discounts is None else batch.discounts
    target = batch.rewards + (1 - batch.dones) * gamma * q_next.max(dim=1, keepdim=True).values
    q_sa = th.gather(q, dim=1, index=batch.actions.long())
    return functional.smooth_l1_loss(q_sa, target)


def _policy_loss(model: Any, batch: Any, there: Prepared, q_here: Any, q_next: Any) -> tuple[Any, Any, float]:
    """The policy network's logits, the gradient of its loss in them, and the mean absolute delta."""
    theta = output(model.policy.policy_net, there)
    q_sa = th.gather(q_here, dim=1, index=batch.actions.long())
    gamma = th.full_like(batch.rewards, model.gamma) if batch.discounts is None else batch.discounts
    q_sa, reward, gamma, terminal = (each.squeeze(1) for each in (q_sa, batch.rewards, gamma, batch.dones))
    transition = Transition(q_sa, reward, gamma, terminal, q_next)
    slope, error = policy_slope(model.policy_update, theta, transition, float(model.entropy_bonus))
    return theta, slope, error


def _step(model: Any, optimizers: Sequence[Any], outputs: Sequence[Any], gradients: Sequence[Any]) -> None:
    """One backward pass from all outputs, and a step of each optimiser, its network's gradient clipped."""
    networks = [parameters_of(optimizer) for optimizer in optimizers]
    for parameters in networks:
        clear(parameters)
    th.autograd.backward(outputs, gradients)
    for optimizer, parameters in zip(optimizers, networks, strict=True):
        clip(parameters, model.max_grad_norm)
        optimizer.step()
