"""What PyTorch's optimisers do to seven numbers in a hundred steps, for `test_deep_optimisers.py`.

`data/torch_optimisers.json` was written by `python -m tests.record_torch` with torch 2.13.0 on the CPU: the parameters
after some of the steps, in single precision, and gradients before and after `torch.nn.utils.clip_grad_norm_`. The
gradients are fractions of powers of ten, from 1e-6 to 1e3, that can be had again on any machine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

FILE = Path(__file__).parent / "data" / "torch_optimisers.json"
STEPS = 100
SHOWN = (1, 2, 3, 10, 50, 100)
POWERS = (1e-6, 1e-5, 1e-4, 1e-2, 1.0, 30.0, 1e3)
START = (0.5, -0.25, 1.0, 0.125, -2.0, 0.0, 3.0)

RMSPROP = [
    {"step_size": 1e-3, "decay": 0.99, "epsilon": 1e-8, "clip": 0.0},
    {"step_size": 1e-5, "decay": 0.99, "epsilon": 1e-8, "clip": 0.0},
    {"step_size": 1e-2, "decay": 0.9, "epsilon": 1e-5, "clip": 0.0},
    {"step_size": 1e-3, "decay": 0.99, "epsilon": 1e-8, "clip": 10.0},
]
ADAM = [
    {"step_size": 1e-3, "decay": 0.999, "momentum": 0.9, "epsilon": 1e-8, "clip": 0.0},
    {"step_size": 3e-4, "decay": 0.99, "momentum": 0.5, "epsilon": 1e-6, "clip": 0.0},
    {"step_size": 1e-2, "decay": 0.9, "momentum": 0.0, "epsilon": 1e-8, "clip": 0.0},
    {"step_size": 1e-3, "decay": 0.999, "momentum": 0.9, "epsilon": 1e-8, "clip": 10.0},
]
NORMS = (0.5, 40.0, 1e4)
"""To clip the first gradient to: its own is about 900."""


def gradient(t: int) -> NDArray[np.float32]:
    """Of step t = 0, 1, ...: fractions between -1 and 1 of the powers, which change places halfway."""
    fractions = np.array([((t * 7919 + i * 104729 + 77) % 1009 - 504) / 504 for i in range(len(POWERS))])
    powers = POWERS if t < STEPS // 2 else POWERS[::-1]
    found: NDArray[np.float32] = (fractions * np.array(powers)).astype(np.float32)
    return found


def torch_steps(torch: Any, kind: str, case: dict[str, float]) -> list[list[float]]:
    """The parameters after the steps in `SHOWN`, in two tensors as a network has them."""
    parameters = [torch.tensor(part, dtype=torch.float32, requires_grad=True) for part in (START[:4], START[4:])]
    if kind == "rmsprop":
        optimiser = torch.optim.RMSprop(parameters, lr=case["step_size"], alpha=case["decay"], eps=case["epsilon"])
    else:
        betas = (case["momentum"], case["decay"])
        optimiser = torch.optim.Adam(parameters, lr=case["step_size"], betas=betas, eps=case["epsilon"])
    shown = []
    for t in range(STEPS):
        for parameter, part in zip(parameters, np.split(gradient(t), [4]), strict=True):
            parameter.grad = torch.from_numpy(part.copy())
        if case["clip"] > 0.0:
            torch.nn.utils.clip_grad_norm_(parameters, case["clip"])
        optimiser.step()
        if t + 1 in SHOWN:
            shown.append([float(x) for parameter in parameters for x in parameter.detach()])
    return shown


def torch_clipped(torch: Any, norm: float) -> list[float]:
    """The first gradient, clipped."""
    parameters = [torch.zeros(4, requires_grad=True), torch.zeros(3, requires_grad=True)]
    for parameter, part in zip(parameters, np.split(gradient(0), [4]), strict=True):
        parameter.grad = torch.from_numpy(part.copy())
    torch.nn.utils.clip_grad_norm_(parameters, norm)
    return [float(x) for parameter in parameters for x in parameter.grad]


def record(torch: Any) -> dict[str, Any]:
    """All of it."""
    return {
        "rmsprop": [torch_steps(torch, "rmsprop", case) for case in RMSPROP],
        "adam": [torch_steps(torch, "adam", case) for case in ADAM],
        "clipped": [torch_clipped(torch, norm) for norm in NORMS],
    }


if __name__ == "__main__":
    import torch

    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(json.dumps({"torch": torch.__version__} | record(torch), indent=1) + "\n")
