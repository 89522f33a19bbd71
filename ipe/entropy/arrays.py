"""One way to write a function for NumPy, JAX and torch, with checks that leave traced arrays alone.

JAX arrays and those of NumPy 2 name their namespace (the array API standard); torch's do not, but the
functions used here have the same names and arguments there, so no compatibility package is needed.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np

from ipe.base.arrays import place
from ipe.errors import InputError

AnyArray: TypeAlias = Any
"""An array of NumPy, JAX or torch, or what NumPy makes an array of."""


def namespace(*arrays: AnyArray) -> Any:
    """The module whose functions apply: `jax.numpy` or `torch` if one of the arrays is theirs, else NumPy."""
    for array in arrays:
        if _is_torch(array):
            return sys.modules["torch"]
        if hasattr(array, "__array_namespace__") and (xp := array.__array_namespace__()) is not np:
            return xp
    return np


def floating(array: AnyArray, name: str, *others: AnyArray) -> AnyArray:
    """`array` with a floating dtype; integers and booleans get the default floating dtype of their library.

    A NumPy array becomes one of JAX or torch if one of the `others`, with which it is combined, is.
    """
    xp = namespace(array, *others)
    if namespace(array) is not xp:
        array = xp.asarray(array)
    if xp is np:
        try:
            array = np.asarray(array)
        except ValueError as error:
            raise InputError(f"{name} is not an array of numbers: {error}") from None
        if array.dtype.kind not in "fiub":
            raise InputError(f"{name} must hold real numbers, found dtype {array.dtype}")
    return array if "float" in str(array.dtype) else array * 1.0


def actions(array: AnyArray, name: str) -> AnyArray:
    """As `floating`, with a last axis that holds at least one action."""
    array = floating(array, name)
    if array.ndim == 0 or array.shape[-1] == 0:
        raise InputError(f"{name} must have one entry per action on its last axis; found shape {tuple(array.shape)}")
    return array


def like(reference: AnyArray, value: AnyArray) -> AnyArray:
    """`value` as an array of the library, dtype and device of `reference`."""
    xp = namespace(reference)
    if _is_torch(reference):
        return xp.as_tensor(value, dtype=reference.dtype, device=reference.device)
    return xp.asarray(value, dtype=reference.dtype)


def detached(array: AnyArray) -> AnyArray:
    """`array` as a constant to automatic differentiation."""
    if _is_torch(array):
        return array.detach()
    if namespace(array) is np:
        return array
    return sys.modules["jax"].lax.stop_gradient(array) if "jax" in sys.modules else array


def per_row(reference: AnyArray, value: AnyArray, name: str) -> AnyArray:
    """`value` in the dtype of `reference`, one for each of its rows: broadcast to all axes but the last."""
    value = like(reference, value)
    rows = tuple(reference.shape[:-1])
    broadcasts(tuple(value.shape), rows, name)
    return namespace(reference).broadcast_to(value, rows)


def mask(reference: AnyArray, allowed: AnyArray | None, name: str = "allowed") -> AnyArray:
    """`allowed` as booleans that broadcast to `reference`; None stands for all of them."""
    xp = namespace(reference)
    if allowed is None:
        return xp.ones_like(reference, dtype=xp.bool if hasattr(xp, "bool") else bool)
    if namespace(allowed) is np:
        allowed = np.asarray(allowed)
    if "bool" not in str(allowed.dtype):
        raise InputError(f"{name} must be boolean, found dtype {allowed.dtype}")
    broadcasts(tuple(allowed.shape), tuple(reference.shape), name)
    return like(reference, allowed) != 0


def broadcasts(shape: tuple[int, ...], to: tuple[int, ...], name: str) -> None:
    """Refuse a shape that does not broadcast to another."""
    try:
        fits = np.broadcast_shapes(shape, to) == to
    except ValueError:
        fits = False
    if not fits:
        raise InputError(f"{name} has shape {shape}, which does not broadcast to {to}")


def sum_actions(array: AnyArray) -> AnyArray:
    """The sum over the last axis, by halves when it is long.

    The sums of the array libraries add thousands of numbers one after the other. In float32 that makes an error of a
    few 1e-7 for the equal small probabilities of a nearly deterministic policy.
    """
    xp = namespace(array)
    while array.shape[-1] > 16:
        half = array.shape[-1] // 2
        odd = array[..., 2 * half :]
        array = array[..., :half] + array[..., half : 2 * half]
        array = xp.concatenate((array, odd), axis=-1) if odd.shape[-1] else array
    return xp.sum(array, axis=-1)


def count(allowed: AnyArray, reference: AnyArray) -> AnyArray:
    """How many actions are allowed, in the dtype of `reference`."""
    xp = namespace(reference)
    return sum_actions(xp.where(allowed, xp.ones_like(reference), xp.zeros_like(reference)))


def concrete(value: AnyArray) -> np.ndarray[Any, Any] | None:
    """`value` as a NumPy array if it is one of NumPy or a Python number, which are never traced; else None."""
    return np.asarray(value) if namespace(value) is np else None


def check_range(
    value: AnyArray,
    name: str,
    low: float = -np.inf,
    high: float = np.inf,
    *,
    strict: bool = False,
    where: AnyArray | None = None,
) -> None:
    """Refuse NaN and numbers outside [low, high], or (low, high] if `strict`. Traced arrays are not checked."""
    array = concrete(value)
    if array is None:
        return
    inside = (array > low if strict else array >= low) & (array <= high)
    if where is not None:
        inside = inside | ~where
    if not inside.all():
        at = tuple(np.argwhere(~inside)[0])
        bracket, relation = ("(", ">") if strict else ("[", ">=")
        interval = f"{relation} {low:g}" if high == np.inf else f"in {bracket}{low:g}, {high:g}]"
        raise InputError(f"{name}{place(at)} = {array[at]:g} must be {interval}")


def check_distribution(probabilities: AnyArray, allowed: AnyArray, name: str) -> None:
    """Refuse rows that are no distribution over the allowed actions. Traced arrays are not checked."""
    pi = concrete(probabilities)
    if pi is None or (permitted := concrete(allowed)) is None:
        return
    check_range(pi, name, 0.0, where=permitted)
    tolerance = max(1e-8, 8 * float(np.finfo(pi.dtype).eps) * pi.shape[-1] ** 0.5)
    off = np.where(permitted.any(-1), np.where(permitted, pi, 0).sum(-1) - 1.0, 0.0)
    wrong = ~(np.abs(off) <= tolerance)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0])
        raise InputError(f"{name}{place(at)} sums to {1.0 + off[at]:.9g}, not to 1 (off by {off[at]:.3g})")


def _is_torch(array: AnyArray) -> bool:
    return type(array).__module__.split(".")[0] == "torch"
