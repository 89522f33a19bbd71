"""Trained networks as ONNX files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ipe.base.atomic import write_bytes
from ipe.base.packages import missing_package
from ipe.deep.environments import EnvironmentSpec
from ipe.deep.networks import Architecture

OPSET = 17
"""The version of ONNX's operators, of 2022: every current runtime has it."""
_IR_VERSION = 8

_Operator: TypeAlias = tuple[str, list[str], str | list[str], dict[str, Any]]
"""An operator's name, its inputs, its output or outputs, and its attributes."""


def write_onnx(
    path: str | os.PathLike[str], net: Architecture, tensors: Mapping[str, NDArray[np.float32]], spec: EnvironmentSpec
) -> None:
    """Write an ONNX file from the tensors of a `TrainedAgent`, the shape of its networks and the spaces of its
    environment."""
    try:
        from onnx import checker, helper, numpy_helper
    except ImportError:
        raise missing_package("to_onnx", "onnx", extra="onnx") from None
    networks = [name for name in ("q", "policy") if f"{name}.middle.bias" in tensors]
    constants = {**tensors, "scale": np.float32(spec.scale)}
    steps: list[_Operator] = [("Cast", ["observation"], "float", {"to": 1}), ("Mul", ["float", "scale"], "scaled", {})]
    if spec.image:
        steps.append(("Transpose", ["scaled"], "channels_first", {"perm": [0, 3, 1, 2]}))
    prepared = "channels_first" if spec.image else "scaled"
    for name in networks:
        steps += _network(name, prepared, net.of(name))
    outputs = {"q": "values", "policy": "policy"}
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(spec.dtype))
    graph = helper.make_graph(
        [helper.make_node(op, inputs, _names(output), **more) for op, inputs, output, more in steps],
        "ipe",
        [helper.make_tensor_value_info("observation", kind, ["batch", *spec.observation_shape])],
        [helper.make_tensor_value_info(outputs[name], 1, ["batch", spec.actions]) for name in networks],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, producer_name="ipe", opset_imports=opsets, ir_version=_IR_VERSION)
    checker.check_model(model, full_check=True)
    write_bytes(path, model.SerializeToString())


def _names(output: str | list[str]) -> list[str]:
    return [output] if isinstance(output, str) else output


def _network(name: str, observations: str, net: Architecture) -> Iterator[_Operator]:
    """Yield the operators of a network."""

    def layer(which: str) -> list[str]:
        return [f"{name}.{which}.weight", f"{name}.{which}.bias"]

    dense: dict[str, Any] = {"transB": 1}
    if net.image:
        for which, convolution in zip(net.names, net.convolutions, strict=False):
            strides = {"strides": [convolution.stride, convolution.stride]}
            yield "Conv", [observations, *layer(which)], f"{name}.{which}.convolved", strides
            observations = f"{name}.{which}.positive"
            yield "Relu", [f"{name}.{which}.convolved"], observations, {}
        yield "Transpose", [observations], f"{name}.channels_last", {"perm": [0, 2, 3, 1]}
        yield "Flatten", [f"{name}.channels_last"], f"{name}.hidden", {}
    else:
        yield "Gemm", [observations, *layer("first")], f"{name}.one", dense
        yield "Relu", [f"{name}.one"], f"{name}.hidden", {}
    yield "Gemm", [f"{name}.hidden", *layer("middle")], f"{name}.two", dense
    yield "Relu", [f"{name}.two"], f"{name}.features", {}
    last = "values" if name == "q" else "policy.logits"
    if net.dueling:
        yield "Split", [f"{name}.features"], ["q.first_half", "q.second_half"], {"axis": 1}
        yield "Gemm", ["q.first_half", *layer("last.value")], "q.value", dense
        yield "Gemm", ["q.second_half", *layer("last.advantage")], "q.advantage", dense
        yield "ReduceMean", ["q.advantage"], "q.mean_advantage", {"axes": [1], "keepdims": 1}
        yield "Sub", ["q.advantage", "q.mean_advantage"], "q.centred_advantage", {}
        yield "Add", ["q.value", "q.centred_advantage"], last, {}
    else:
        yield "Gemm", [f"{name}.features", *layer("last")], last, dense
    if name == "policy":
        yield "Softmax", ["policy.logits"], "policy", {"axis": -1}
